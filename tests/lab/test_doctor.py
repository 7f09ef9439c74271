"""The diagnosis of memories with one fault each: the doctor finds that fault, and none in a healthy memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seasoned import Decider, Episode, Holdout, JitRL, Memory, Selection, Step
from seasoned.errors import InputError, NotFoundError, SeasonedError, UnknownNameError
from seasoned.lab.diagnosis.check_result import finding_if, not_checked
from seasoned.lab.diagnosis.doctor import diagnose
from seasoned.lab.diagnosis.state_checks import query_speed
from seasoned.states import NUMBERS, TokenEncoder

ACTIONS = ("pay", "back", "wait")
EVEN = dict.fromkeys(ACTIONS, -math.log(3))
PAGES = ["cart with three items", "payment form for cards", "list of old orders", "help and contact page"]


def steps(rng, *, state=lambda page, number: page, reward=None, action=None, propensity=1 / 3, prior=EVEN, n=4):
    """Return the steps of one episode over the pages; `pay` is right on the first two of them."""
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


def found_by(memory, last=6, **options):
    return {check.name: check for check in diagnose(memory, last=last, **options).findings}


def test_healthy_memory_has_no_findings():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory)
        diagnosis = diagnose(memory)
    assert diagnosis.healthy
    assert diagnosis.n_episodes == 40
    fine = {check.name: check for check in diagnosis.checks if check.verdict == "fine"}
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
    for check in diagnosis.checks:
        assert check.seen and check.rule
        assert (check.next_step is None) == (check.verdict != "finding")
    assert [check.verdict for check in diagnosis.checks] == sorted(
        (check.verdict for check in diagnosis.checks), key=["finding", "fine", "not checked"].index
    )


def test_missing_priors_or_propensities_are_a_finding():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, propensity=None)
        assert set(found_by(memory)) == {"priors and propensities"}
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, prior=None, propensity=None)
        report = diagnose(memory)
    checks = {check.name: check for check in report.checks}
    assert report.healthy  # an import has none
    assert checks["priors and propensities"].verdict == "not checked"
    assert not {"advantages", "neighbours"} & set(checks)


def test_equal_rewards_are_a_finding():
    with Memory.open(":memory:") as memory:
        fill(memory, reward=0.0)
        findings = found_by(memory)
    assert {"rewards", "advantages"} == set(findings)
    assert "feedback" in findings["rewards"].next_step
    with Memory.open(":memory:") as memory:
        fill(memory, reward=1.0)
        assert "earns the same" in found_by(memory)["rewards"].next_step


def test_zero_advantages_with_a_single_action_are_a_finding():
    with Memory.open(":memory:", gamma=0.0) as memory:
        fill(memory, action="pay", reward=1.0)
        fill(memory, 2, seed=1, action="pay", reward=-3.0)
        check = found_by(memory, policy="means")["advantages"]
    assert "only one of them was taken" in check.seen
    assert "exploration" in check.next_step
    assert check.numbers["all_zero"] > 0.9 * check.numbers["decisions"]


def test_zero_advantages_with_a_low_discount_are_a_finding():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.0) as memory:
        for _ in range(30):
            played = steps(rng, reward=0.0)
            won = sum(step.action == "pay" for step in played) >= 2
            end = Step("the end", "close", float(won), {"close": 0.0}, 1.0)
            memory.add(Episode("shop", [*played, end]))
        findings = found_by(memory, policy="means")
    assert set(findings) == {"advantages"}
    assert "raise it to 1 - 1/steps" in findings["advantages"].next_step


def test_zero_advantages_with_untaken_candidates_are_a_finding():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.3) as memory:
        for _ in range(30):
            ids = [f"{action} #{rng.integers(10**9)}" for action in ACTIONS]
            prior = dict.fromkeys(ids, -math.log(3))
            played = [Step(page, str(rng.choice(ids)), float(rng.random()), prior, 1 / 3) for page in PAGES]
            memory.add(Episode("shop", played))
        findings = found_by(memory)
    assert {"advantages", "remembered actions on offer"} == set(findings)
    assert "name actions alike" in findings["advantages"].next_step


def test_mask_for_volatile_states_is_advised_and_makes_the_memory_healthy():
    def volatile(page, number):
        return f"{page} order {number} of {number + 1} total {number % 977} at {number % 1009} ref {number % 1013}"

    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, state=volatile)
        findings = found_by(memory, last=12, policy="means")
    assert {"states that come back", "neighbours"} <= set(findings)
    check = findings["states that come back"]
    assert "masks=[NUMBERS]" in check.next_step
    assert check.numbers["distinct_with_masks"] == 4
    assert "States do not recur" in findings["neighbours"].next_step
    with Memory.open(":memory:", gamma=0.3, encoder=TokenEncoder(masks=[NUMBERS])) as memory:
        fill(memory, state=volatile)
        assert diagnose(memory, policy="means").healthy


def test_volatile_words_without_a_mask_are_listed():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(
            memory,
            state=lambda page, number: " ".join(f"{word}{chr(97 + number % 26)}{number}x" for word in page.split()),
        )
        check = found_by(memory, policy="means")["states that come back"]
    assert "template" in check.next_step
    assert check.numbers["volatile"]


def test_states_compared_by_rarity_need_not_recur_nor_differ():
    words = [f"word{i}" for i in range(200)]
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.0) as memory:
        for _ in range(40):
            text = " ".join(rng.choice(words, 6, replace=False))
            memory.add(Episode("desk", [Step(text, ACTIONS[rng.integers(3)], float(rng.random()), EVEN, 1 / 3)]))
        checks = {check.name: check for check in diagnose(memory).checks}
        assert "states that come back" in found_by(memory, policy="means")
    assert checks["states that come back"].verdict == "not checked"
    assert "need not recur" in checks["states that come back"].seen
    assert checks["states that are told apart"].verdict == "not checked"


def test_similar_states_are_a_finding():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.0) as memory:
        frame = " ".join(f"menu{i}" for i in range(100))
        for _ in range(40):
            page = f"{frame} page-{rng.integers(15)}"
            memory.add(Episode("shop", [Step(page, ACTIONS[rng.integers(3)], float(rng.random()), EVEN, 1 / 3)]))
        check = found_by(memory, policy="means")["states that are told apart"]
    assert check.numbers["similar_pairs"] == check.numbers["pairs"]
    assert "Raise the threshold" in check.next_step


def test_repeated_action_is_a_finding():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 20)
        for _ in range(5):
            again = [Step("a locked door", "open door", 0.0, EVEN, 0.5)] * 12
            memory.add(Episode("shop", [*again, *steps(rng)]))
        findings = found_by(memory)
    assert set(findings) == {"loops"}
    assert "'open door', 50 times" in findings["loops"].seen
    assert findings["loops"].numbers["looped_episodes"] == 5


def test_harmful_flips_are_a_finding():
    """`pay` is right in the first 40 episodes only; `means` still prefer it afterwards, `default` does not."""
    prior = {"back": -0.6, "pay": -0.8}
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.0) as memory:
        for number in range(60):
            action = ("pay", "back")[number % 2]
            right = "pay" if number < 40 else "back"
            reward = (9.0 if number < 40 else 1.0) * (action == right) + rng.normal(0, 0.01)
            memory.add(Episode("shop", [Step("page:cart", action, reward, prior, 0.4)]))
        findings = found_by(memory, policy="means", last=20)
        assert "flipped decisions" not in found_by(memory, last=20)
    assert "flipped decisions" in findings
    assert findings["flipped decisions"].numbers["high"] < 0.0


def test_fallen_returns_and_changed_transitions_are_findings():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 40)
        rng = np.random.default_rng(1)
        for _ in range(25):
            worse = [Step(page, ACTIONS[rng.integers(3)], -1.0, EVEN, 1 / 3) for page in (PAGES[0], PAGES[3], PAGES[2])]
            memory.add(Episode("shop", worse))
        findings = found_by(memory)
    assert {"recent against older returns", "actions that lead where they led"} <= set(findings)
    assert "'shop'" in findings["recent against older returns"].seen
    assert findings["actions that lead where they led"].numbers["elsewhere"] >= 10


def test_many_aborted_or_quarantined_episodes_are_a_finding():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30)
        rng = np.random.default_rng(5)
        memory.add_many(Episode("shop", steps(rng), ending="aborted") for _ in range(10))
        assert set(found_by(memory)) == {"aborted episodes"}
    with Memory.open(":memory:", gamma=0.3) as memory:  # the units of a holdout are no aborts
        fill(memory, 30)
        for number in range(10):
            memory.assign(family="shop", epoch="0" * 16, bounds=(0.0, 1.0), unit=f"unit {number}")
        assert "aborted episodes" not in found_by(memory)
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30)
        fill(memory, 10, seed=1, task="bad")
        memory.quarantine(Selection(task="bad"), "wrong")
        findings = found_by(memory)
    assert set(findings) == {"quarantined episodes"}
    assert findings["quarantined episodes"].numbers == {"episodes": 40, "quarantined": 10}


@pytest.mark.parametrize(
    ("rewards", "name"),
    [
        ({"judge": lambda true: -true or 0.5}, "'judge' against the environment"),
        ({"ada": lambda true: 1.0, "bob": lambda true: -1.0}, "feedback on one step"),
        ({"votes": lambda true: true}, None),
    ],
)
def test_contradictory_feedback_is_a_finding(rewards, name):
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30)
        for episode in memory.episodes():
            for source, reward in rewards.items():
                for at, step in enumerate(episode.steps):
                    memory.feedback(episode.id, reward(2 * step.reward - 1), at, source)
        findings = found_by(memory)
    assert name in findings if name else not findings


def test_low_weight_of_a_source_is_a_finding():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 10)
        for episode in memory.episodes():
            memory.feedback(episode.id, 1.0, source="judge", weight=0.01)
        assert "weight of 'judge'" in found_by(memory)


def test_revoked_feedback_is_not_checked():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30)
        for episode in memory.episodes():
            memory.revoke(memory.feedback(episode.id, -9.0, source="judge", weight=0.01))
        assert diagnose(memory).healthy


def test_large_states_are_a_finding():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 8, state=lambda page, _: page + " " + " ".join(f"w{i}" for i in range(3000)))
        assert "size of states" in found_by(memory)


def test_slow_queries_are_a_finding():
    assert query_speed([0.001] * 9 + [3.0], 10).verdict == "fine"
    slow = query_speed([0.05] * 10, 123)
    assert slow.verdict == "finding"
    assert slow.numbers["p50_s"] == 0.05
    assert "123 distinct states" in slow.next_step


def test_policy_and_number_of_replayed_episodes_can_be_chosen():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory)
        diagnosis = diagnose(memory, policy="seed", last=10)
        assert diagnosis.policy == "seed"
        [check] = (check for check in diagnosis.checks if check.name == "neighbours")
        assert check.numbers["decisions"] == 20  # the later half of 10 episodes of 4 steps
        before = memory.verify().hash
        diagnose(memory)
        assert memory.verify().hash == before


def test_unknown_preset_and_bad_number_are_refused():
    with Memory.open(":memory:") as memory:
        with pytest.raises(NotFoundError):
            diagnose(memory)
        fill(memory, 3)
        for error, options in ((UnknownNameError, {"policy": "defualt"}), (InputError, {"last": 0})):
            with pytest.raises(error) as caught:
                diagnose(memory, **options)
            assert caught.value.seen and caught.value.rule and caught.value.next_step


def test_fine_check_has_no_next_step():
    fine = finding_if(False, "a", "1 of 2", rule="r", next_step="do it", numbers={"n": 1})
    assert (fine.verdict, fine.next_step) == ("fine", None)
    assert not_checked("a", "too few", "r", n=1).numbers == {"n": 1}


def test_sampled_episodes_of_the_default_policy_are_healthy():
    """The task has one good action per page; 200 decisions are sampled."""
    with Memory.open(":memory:", gamma=0.3) as memory:
        policy = JitRL(memory)
        for number in range(50):
            with memory.episode(task="shop") as episode:
                for at, page in enumerate(PAGES):
                    decision = policy.decide(page, EVEN, step=at, seed=number)
                    episode.record(page, decision, float((decision.action == "pay") == (at < 2)))
        assert diagnose(memory).healthy


@pytest.mark.parametrize("wrong", [None, "agent.db"])
def test_other_object_than_a_memory_is_refused(wrong):
    with pytest.raises(InputError, match="memory must be a Memory"):
        diagnose(wrong)


@pytest.mark.parametrize("options", [{"policy": None}, {"policy": 5}, {"policy": []}, {"seed": None}, {"last": "5"}])
def test_options_of_a_wrong_type_are_refused(options):
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 3)
        with pytest.raises(SeasonedError) as caught:
            diagnose(memory, **options)
    assert caught.value.seen and caught.value.rule and caught.value.next_step


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
def test_no_discount_is_advised_without_rewards(gamma):
    with Memory.open(":memory:", gamma=gamma) as memory:
        fill(memory, reward=0.0)
        findings = found_by(memory)
    assert {"rewards", "advantages"} == set(findings)
    assert "gamma" not in findings["advantages"].next_step
    assert "'rewards'" in findings["advantages"].next_step


def numbered(page, number):
    """Return a text in which only numbers identify the page and the order."""
    return f"screen {PAGES.index(page)} of order {number}"


def test_masks_that_merge_all_states_are_not_advised():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 30, state=numbered)
        check = found_by(memory)["states that come back"]
    assert check.numbers["distinct_states"] == 120
    assert check.numbers["distinct_with_masks"] == 1
    assert "masks=[" not in check.next_step
    assert "1 of 120" in check.next_step
    for way_out in ("TemplateEncoder", "narrower than NUMBERS"):
        assert way_out in check.next_step


def test_masks_that_leave_one_dominant_state_are_not_advised():
    """With the mask, three of four steps of each episode are at one state."""

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


def test_dominant_state_is_a_finding():
    with Memory.open(":memory:", gamma=0.3, encoder=TokenEncoder(masks=[NUMBERS])) as memory:
        fill(memory, 30, state=numbered)
        check = found_by(memory)["states that are told apart"]
    assert "30 of 30 episodes" in check.seen
    assert "'screen " in check.seen
    assert (check.numbers["carried_episodes"], check.numbers["long_episodes"]) == (30, 30)
    assert "masks" in check.next_step


@pytest.mark.parametrize(("merged", "is_finding"), [(10, False), (25, True)])
def test_dominant_state_of_few_episodes_is_fine(merged, is_finding):
    rng = np.random.default_rng(0)
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory, 40 - merged)
        memory.add_many(Episode("shop", steps(rng, state=lambda *_: PAGES[0])) for _ in range(merged))
        assert ("states that are told apart" in found_by(memory)) == is_finding


def test_a_store_of_decisions_by_argmax_with_a_holdout_and_labels_raises_no_false_alarm():
    desks, rng = {"sales": 0.6, "refunds": 0.25, "it": 0.15}, np.random.default_rng(0)
    tickets = {"broken lamp": "refunds", "new order": "sales", "no network": "it", "late parcel": "refunds"}
    with Memory.open(":memory:") as memory:
        decider = Decider(memory, desks, policy=Holdout(JitRL(memory), memory), choose="argmax")
        for number in range(80):
            ticket = str(rng.choice(list(tickets)))
            decision = decider.decide(f"ticket: {ticket}", list(desks), question="desk")
            if number % 2:
                decider.learn(decision, right=tickets[ticket])
            else:
                decider.learn(decision, float(decision.action == tickets[ticket]))
        for number in range(30):
            memory.assign(family="desk", epoch="0" * 16, bounds=(0.0, 1.0), unit=f"later-{number}")
        memory.pause("desk", "new desks", author="ann")
        checks = {check.name: check for check in diagnose(memory).checks}
        stats = memory.stats()
    assert checks["priors and propensities"].verdict == "fine", checks["priors and propensities"].seen
    assert checks["priors and propensities"].numbers["steps"] == 80
    assert checks["aborted episodes"].numbers["aborted"] == 0
    departure = checks["priors against the agent's own choices"]
    assert departure.verdict == "not checked", departure.seen
    assert "took the most probable action" in departure.seen
    assert (stats.episodes - stats.answers, stats.aborted, stats.log_entries) == (80, 0, 31)


def test_control_episodes_of_a_wrapped_client_need_no_prior():
    with Memory.open(":memory:", gamma=0.3) as memory:
        fill(memory)
        for number in range(40):
            step = Step(PAGES[number % 4], ACTIONS[number % 3], 0.5)
            memory.add(Episode("shop", [step], f"control-{number}", arm="control"))
        assert "priors and propensities" not in found_by(memory)
        memory.add_many(Episode("shop", [Step(PAGES[0], "pay", 0.5)] * 4, f"plain-{n}") for n in range(10))
        assert "priors and propensities" in found_by(memory)
