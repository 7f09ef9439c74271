"""Each complaint of the method's users, made in a memory: the doctor finds that one, and nothing in a healthy one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seasoned import Episode, JitRL, Memory, Selection, Step
from seasoned.errors import InputError, NotFoundError, SeasonedError, UnknownNameError
from seasoned.lab.diagnosis.check import finding_if, not_checked
from seasoned.lab.diagnosis.doctor import diagnose
from seasoned.lab.diagnosis.state_checks import speed
from seasoned.states import NUMBERS, TokenEncoder

ACTIONS = ("pay", "back", "wait")
EVEN = dict.fromkeys(ACTIONS, -math.log(3))
PAGES = ["cart with three items", "payment form for cards", "list of old orders", "help and contact page"]


def steps(rng, *, state=lambda page, number: page, reward=None, action=None, propensity=1 / 3, prior=EVEN, n=4):
    """One episode over the pages: paying is right on the first two of them."""
    made = []
    for at in range(n):
        page = PAGES[at % len(PAGES)]
        chosen = ACTIONS[rng.integers(3)] if action is None else action
        earned = float((chosen == "pay") == (at % 4 < 2)) if reward is None else reward
        made.append(Step(state(page, int(rng.integers(10**9))), chosen, earned, prior, propensity))
    return made


def fill(memory, n=40, seed=0, task="shop", **kinds):
    rng = np.random.default_rng(seed)
    memory.add_many(Episode(task, steps(rng, **kinds), id=f"e{seed}-{number}") for number in range(n))


def found_by(memory, **options):
    return {check.name: check for check in diagnose(memory, **options).findings}


def test_a_healthy_memory_is_said_to_be_healthy_with_the_numbers():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory)
        found = diagnose(memory)
    assert found.healthy
    assert found.n_episodes == 40
    fine = {check.name: check for check in found.checks if check.verdict == "fine"}
    assert {
        "priors and propensities",
        "rewards",
        "states that come back",
        "neighbours",
        "advantages",
        "loops",
        "recent against older returns",
        "speed of retrieval",
        "size of states",
    } <= set(fine)
    assert fine["priors and propensities"].numbers == {"steps": 160, "without_prior": 0, "without_propensity": 0}
    assert fine["loops"].numbers["looped"] == 0
    for name, n in (
        ("priors and propensities", "0 of 160 steps (0 %), no propensity at 0 of 160 steps (0 %)"),
        ("rewards", "(mean of 40)"),
        ("size of states", "of 160 steps"),
    ):
        assert n in fine[name].seen
    for check in found.checks:
        assert check.seen and check.rule
        assert (check.next_step is None) == (check.verdict != "finding")
    assert [check.verdict for check in found.checks] == sorted(
        (check.verdict for check in found.checks), key=["finding", "fine", "not checked"].index
    )


def test_steps_without_priors_or_propensities():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, propensity=None)
        assert set(found_by(memory)) == {"priors and propensities"}
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, prior=None, propensity=None)
        found = diagnose(memory)
    assert [check.name for check in found.findings] == ["priors and propensities"]
    assert {"advantages", "neighbours"} <= {check.name for check in found.checks if check.verdict == "not checked"}


def test_nothing_to_learn():
    with Memory.open(":memory:") as memory:
        fill(memory, reward=0.0)
        found = found_by(memory)
    assert {"rewards", "advantages"} == set(found)
    assert "feedback" in found["rewards"].next_step
    with Memory.open(":memory:") as memory:
        fill(memory, reward=1.0)
        assert "earns the same" in found_by(memory)["rewards"].next_step


def test_advantages_are_zero_because_one_action_was_taken():
    with Memory.open(":memory:", gamma=0.0) as memory:
        fill(memory, action="pay")
        fill(memory, 2, seed=1, action="pay", reward=-3.0)
        check = found_by(memory)["advantages"]
    assert "only one of them was taken" in check.seen
    assert "exploration" in check.next_step
    assert check.numbers["all_zero"] > 0.9 * check.numbers["decisions"]


def test_advantages_are_zero_because_gamma_does_not_reach_back():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.0) as memory:
        for _ in range(30):
            played = steps(rng, reward=0.0)
            won = sum(step.action == "pay" for step in played) >= 2
            end = Step("the end", "close", float(won), {"close": 0.0}, 1.0)
            memory.add(Episode("shop", [*played, end]))
        found = found_by(memory)
    assert set(found) == {"advantages"}
    assert "raise it to 1 - 1/steps" in found["advantages"].next_step


def test_advantages_are_zero_because_no_candidate_was_ever_taken():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.3) as memory:
        for _ in range(30):
            ids = [f"{action} #{rng.integers(10**9)}" for action in ACTIONS]
            prior = dict.fromkeys(ids, -math.log(3))
            memory.add(Episode("shop", [Step(page, ids[0], float(rng.random()), prior, 1 / 3) for page in PAGES]))
        found = found_by(memory)
    assert {"advantages", "remembered actions on offer"} == set(found)
    assert "name actions alike" in found["advantages"].next_step


def test_volatile_states_and_the_mask_that_mends_them():
    def volatile(page, number):
        return f"{page} order {number} of {number + 1} total {number % 977} at {number % 1009} ref {number % 1013}"

    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, state=volatile)
        found = found_by(memory)
    assert {"states that come back", "neighbours"} <= set(found)
    check = found["states that come back"]
    assert "masks=[NUMBERS]" in check.next_step
    assert check.numbers["distinct_with_masks"] == 4
    assert "States do not come back" in found["neighbours"].next_step
    # The advice is right: with the mask, the same episodes make a healthy memory.
    with Memory.open(":memory:", gamma=0.3, encoder=TokenEncoder(masks=[NUMBERS])) as memory:
        fill(memory, state=volatile)
        assert diagnose(memory).healthy


def test_volatile_words_that_no_mask_knows_are_named():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(
            memory,
            state=lambda page, number: " ".join(f"{word}{chr(97 + number % 26)}{number}x" for word in page.split()),
        )
        check = found_by(memory)["states that come back"]
    assert "template" in check.next_step
    assert check.numbers["volatile"]


def test_everything_is_similar_to_everything():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.0) as memory:
        frame = " ".join(f"menu{i}" for i in range(100))
        for _ in range(40):
            page = f"{frame} page-{rng.integers(15)}"
            memory.add(Episode("shop", [Step(page, ACTIONS[rng.integers(3)], float(rng.random()), EVEN, 1 / 3)]))
        check = found_by(memory)["states that are told apart"]
    assert check.numbers["similar_pairs"] == check.numbers["pairs"]
    assert "Raise the threshold" in check.next_step


def test_a_loop_on_one_action():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 20)
        for _ in range(5):
            again = [Step("a locked door", "open door", 0.0, EVEN, 0.5)] * 12
            memory.add(Episode("shop", [*again, *steps(rng)]))
        found = found_by(memory)
    assert set(found) == {"loops"}
    assert "'open door', 50 times" in found["loops"].seen
    assert found["loops"].numbers["looped_episodes"] == 5


def test_following_memory_turns_out_worse():
    """Paying was right for a while, and then never again; memory goes on preferring it."""
    prior = {"back": -0.6, "pay": -0.9, "wait": -3.0}
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.0) as memory:
        for number in range(60):
            action = ("pay", "back")[number % 2]
            right = "pay" if number < 40 else "back"
            reward = (9.0 if number < 40 else 1.0) * (action == right) + rng.normal(0, 0.01)
            memory.add(Episode("shop", [Step("page:cart", action, reward, prior, 0.4)]))
        found = found_by(memory, last=20)
    assert "flipped decisions" in found
    assert found["flipped decisions"].numbers["high"] < 0.0


def test_returns_that_fell_and_actions_that_lead_elsewhere():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 40)
        rng = np.random.default_rng(1)
        for _ in range(25):
            worse = [Step(page, ACTIONS[rng.integers(3)], -1.0, EVEN, 1 / 3) for page in (PAGES[0], PAGES[3], PAGES[2])]
            memory.add(Episode("shop", worse))
        found = found_by(memory)
    assert {"recent against older returns", "actions that lead where they led"} <= set(found)
    assert "'shop'" in found["recent against older returns"].seen
    assert found["actions that lead where they led"].numbers["elsewhere"] >= 10


def test_much_that_is_aborted_or_set_aside():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30)
        rng = np.random.default_rng(5)
        memory.add_many(Episode("shop", steps(rng), ending="aborted") for _ in range(10))
        assert set(found_by(memory)) == {"aborted episodes"}
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30)
        fill(memory, 10, seed=1, task="bad")
        memory.quarantine(Selection(task="bad"), "wrong")
        found = found_by(memory)
    assert set(found) == {"quarantined episodes"}
    assert found["quarantined episodes"].numbers == {"episodes": 40, "quarantined": 10}


@pytest.mark.parametrize(
    ("says", "name"),
    [
        ({"judge": lambda true: -true or 0.5}, "'judge' against the environment"),
        ({"ada": lambda true: 1.0, "bob": lambda true: -1.0}, "feedback on one step"),
        ({"votes": lambda true: true}, None),
    ],
)
def test_feedback_that_contradicts(says, name):
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30)
        for episode in memory.episodes():
            for source, reward in says.items():
                for at, step in enumerate(episode.steps):
                    memory.feedback(episode.id, reward(2 * step.reward - 1), at, source)
        found = found_by(memory)
    assert name in found if name else not found


def test_votes_that_hardly_count():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 10)
        for episode in memory.episodes():
            memory.feedback(episode.id, 1.0, source="judge", weight=0.01)
        assert "weight of 'judge'" in found_by(memory)


def test_feedback_that_was_revoked_says_nothing():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30)
        for episode in memory.episodes():
            memory.revoke(memory.feedback(episode.id, -9.0, source="judge", weight=0.01))
        assert diagnose(memory).healthy


def test_huge_states():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 8, state=lambda page, _: page + " " + " ".join(f"w{i}" for i in range(3000)))
        assert "size of states" in found_by(memory)


def test_slow_queries_are_a_finding():
    assert speed([0.001] * 9 + [3.0], 10).verdict == "fine"
    slow = speed([0.05] * 10, 123)
    assert slow.verdict == "finding"
    assert slow.numbers["p50_s"] == 0.05
    assert "123 distinct states" in slow.next_step


def test_the_policy_can_be_chosen_and_the_replay_limited():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory)
        found = diagnose(memory, policy="seed", last=10)
        assert found.policy == "seed"
        [check] = (check for check in found.checks if check.name == "neighbours")
        assert check.numbers["decisions"] == 20  # the later half of 10 episodes of 4 steps
        before = memory.verify().hash
        diagnose(memory)
        assert memory.verify().hash == before


def test_bad_input_is_refused():
    with Memory.open(":memory:") as memory:
        with pytest.raises(NotFoundError):
            diagnose(memory)
        fill(memory, 3)
        for error, options in ((UnknownNameError, {"policy": "defualt"}), (InputError, {"last": 0})):
            with pytest.raises(error) as caught:
                diagnose(memory, **options)
            assert caught.value.seen and caught.value.rule and caught.value.next_step


def test_a_check_that_is_fine_has_nothing_to_do():
    fine = finding_if(False, "a", "1 of 2", rule="r", next_step="do it", numbers={"n": 1})
    assert (fine.verdict, fine.next_step) == ("fine", None)
    assert not_checked("a", "too few", "r", n=1).numbers == {"n": 1}


def test_a_played_memory_has_no_false_findings():
    """Two hundred decisions of the default policy, sampled, on a task with one good action per page."""
    with Memory.open(":memory:", gamma=0.3) as memory:
        policy = JitRL(memory)
        for number in range(50):
            with memory.episode(task="shop") as episode:
                for at, page in enumerate(PAGES):
                    decision = policy.decide(page, EVEN, step=at, seed=number)
                    episode.record(page, decision, float((decision.action == "pay") == (at < 2)))
        assert diagnose(memory).healthy


@pytest.mark.parametrize("wrong", [None, "agent.db"])
def test_what_is_no_memory_is_refused(wrong):
    with pytest.raises(InputError, match="what is looked at is a memory"):
        diagnose(wrong)


@pytest.mark.parametrize("options", [{"policy": None}, {"policy": 5}, {"policy": []}, {"seed": None}, {"last": "5"}])
def test_options_of_a_wrong_type_are_refused(options):
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 3)
        with pytest.raises(SeasonedError) as caught:
            diagnose(memory, **options)
    assert caught.value.seen and caught.value.rule and caught.value.next_step


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
def test_without_any_reward_no_discount_helps(gamma):
    with Memory.open(":memory:", gamma=gamma) as memory:
        fill(memory, reward=0.0)
        found = found_by(memory)
    assert {"rewards", "advantages"} == set(found)
    assert "gamma" not in found["advantages"].next_step
    assert "'rewards'" in found["advantages"].next_step


def numbered(page, number):
    """Only numbers say which page it is, and which order."""
    return f"screen {PAGES.index(page)} of order {number}"


def test_masks_that_would_merge_every_state_are_not_advised():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30, state=numbered)
        check = found_by(memory)["states that come back"]
    assert check.numbers["distinct_states"] == 120
    assert check.numbers["distinct_with_masks"] == 1
    assert "masks=[" not in check.next_step
    assert "1 of 120" in check.next_step
    for way_out in ("TemplateEncoder", "narrower than NUMBERS"):
        assert way_out in check.next_step


def test_masks_that_leave_one_state_for_most_steps_are_not_advised():
    """An order's page after a page of its own: with the mask, three steps of four are at one state."""

    def mostly(page, number):
        return f"start {number}" if page == PAGES[0] else numbered(page, number)

    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30, state=mostly)
        check = found_by(memory)["states that come back"]
    assert check.numbers["distinct_with_masks"] == 2
    assert "masks=[" not in check.next_step
    assert "2 of 120" in check.next_step


def test_masks_that_leave_few_states_are_advised_with_a_warning():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, state=lambda page, number: f"{page} order {number}")
        check = found_by(memory)["states that come back"]
    assert "leaves 4 of 160" in check.next_step
    assert "That is few" in check.next_step


def test_a_memory_whose_pages_all_merge_is_not_healthy():
    with Memory.open(":memory:", gamma=0.3, encoder=TokenEncoder(masks=[NUMBERS])) as memory:
        fill(memory, 30, state=numbered)
        check = found_by(memory)["states that are told apart"]
    assert "30 of 30 episodes" in check.seen
    assert "'screen " in check.seen
    assert (check.numbers["carried_episodes"], check.numbers["long_episodes"]) == (30, 30)
    assert "masks" in check.next_step


@pytest.mark.parametrize(("merged", "found"), [(10, False), (25, True)])
def test_one_state_that_carries_the_steps_of_few_episodes_is_fine(merged, found):
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 40 - merged)
        memory.add_many(Episode("shop", steps(rng, state=lambda *_: PAGES[0])) for _ in range(merged))
        assert ("states that are told apart" in found_by(memory)) == found
