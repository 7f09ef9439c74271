"""The default preset, a Gaussian process, on a real memory: it learns from sentences, and no outlier silences it."""

from __future__ import annotations

import dataclasses
import math
import random
from collections import Counter

import numpy as np
import pytest

from seasoned import Episode, JitRL, Memory, Step
from seasoned.core import UCB, Cells, ProcessEstimator, SimilarStates
from seasoned.errors import InputError
from seasoned.policies import PRESETS
from seasoned.types import EvidenceQuery

TOPICS = {
    "bank": ["account", "balance", "card", "transfer", "loan", "interest", "payment", "deposit", "credit", "savings"],
    "travel": ["flight", "hotel", "luggage", "passport", "airport", "visa", "booking", "train", "ticket", "resort"],
    "kitchen": ["recipe", "oven", "flour", "butter", "salt", "pan", "calories", "dinner", "soup", "spice"],
    "car": ["tire", "engine", "oil", "brake", "fuel", "mileage", "battery", "wheel", "garage", "insurance"],
}
FILLERS = [
    *("please", "can", "you", "tell", "me", "about", "my", "the", "a", "what", "is", "how", "do", "i", "need", "to"),
    *("know", "now", "with", "for", "and"),
]
EVEN = dict.fromkeys(TOPICS, -1.386)


def sentences(seed, n):
    """Sentences of 4 fillers and 2 words of a topic, in random order, each with its topic."""
    rng = random.Random(seed)
    for _ in range(n):
        topic = rng.choice(list(TOPICS))
        words = [*rng.sample(FILLERS, 4), *rng.sample(TOPICS[topic], 2)]
        rng.shuffle(words)
        yield " ".join(words), topic


def mean_reward(preset, n=240, seed=0):
    """The mean reward of the last third of n rounds."""
    rewards = []
    with Memory.open(":memory:") as memory:
        policy = JitRL.preset(preset, memory)
        for i, (text, topic) in enumerate(sentences(seed, n)):
            decision = policy.decide(text, EVEN, seed=i)
            rewards.append(float(decision.action == topic))
            memory.add(Episode("route", [Step(text, decision.action, rewards[-1])]))
    return sum(rewards[-n // 3 :]) / (n // 3)


def test_preset_learns_topics_of_sentences_that_share_few_words():
    assert mean_reward("default") > 0.8
    assert mean_reward("means") < 0.4  # one in four is chance


def pages(memory, n_pages=8, n_each=6):
    for page in range(n_pages):
        for i in range(n_each):
            action = "pay" if i % 2 else "back"
            memory.add(Episode("shop", [Step(f"state {page} zz{page}", action, float(i % 2))]))


PRIOR = {"pay": -2.4, "back": -0.1}


@pytest.mark.parametrize("reward", [0.0, 1.0, -1.0, 10.0, -1000.0, 1e6, 1e100])
def test_reward_at_an_unrelated_state_changes_no_other_decision(reward):
    with Memory.open(":memory:") as memory:
        pages(memory)
        policy = JitRL(memory)
        before = policy.decide("state 3 zz3", PRIOR).probs["pay"]
        memory.add(Episode("poison", [Step("unrelated q", "junk", reward)]))
        after = policy.decide("state 3 zz3", PRIOR).probs["pay"]
    assert before > 0.9
    assert abs(after - before) < 0.05


def test_twenty_episodes_at_near_duplicates_do_not_flip_a_thousand_at_the_state():
    page = " ".join(f"w{i}" for i in range(40))
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("t", [Step(page, "pay" if i % 2 else "back", float(i % 2))]) for i in range(1000)])
        policy = JitRL(memory)
        before = policy.decide(page, PRIOR).probs["pay"]
        for j in range(10):
            copy = f"{page} extra z{j}"
            memory.add_many([Episode("t", [Step(copy, "back", 1.0)]), Episode("t", [Step(copy, "pay", 0.0)])])
        after = policy.decide(page, PRIOR).probs["pay"]
    assert before > 0.95
    assert after > before - 0.1


def test_twenty_episodes_at_near_duplicates_do_not_flip_a_page_with_the_word_that_they_share():
    page = " ".join(f"w{i}" for i in range(40))
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("t", [Step(page, "pay" if i % 2 else "back", float(i % 2))]) for i in range(1000)])
        policy = JitRL(memory)
        before = policy.decide(f"{page} extra", PRIOR).probs["pay"]
        for j in range(10):
            copy = f"{page} extra z{j}"
            memory.add_many([Episode("t", [Step(copy, "back", 1.0)]), Episode("t", [Step(copy, "pay", 0.0)])])
        after = policy.decide(f"{page} extra", PRIOR).probs["pay"]
    assert before > 0.95
    assert after > before - 0.1


def test_near_duplicates_do_not_flip_a_page_among_a_hundred_states():
    page = " ".join(f"w{i}" for i in range(40))
    likely = {"pay": -0.1, "back": -2.4}
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("t", [Step(page, "pay" if i % 2 else "back", float(i % 2))]) for i in range(1000)])
        for i in range(100):
            state = f"other{i} page{i}"
            memory.add_many([Episode("t", [Step(state, "back", 0.0)]), Episode("t", [Step(state, "pay", 1.0)])])
        policy = JitRL(memory)
        before = policy.decide(f"{page} extra", likely).probs["pay"]
        for j in range(10):
            copy = f"{page} extra z{j}"
            memory.add_many([Episode("t", [Step(copy, "back", 1.0)]), Episode("t", [Step(copy, "pay", 0.0)])])
        after = policy.decide(f"{page} extra", likely).probs["pay"]
    assert before > 0.95
    assert after > before - 0.1


def test_many_steps_at_a_hardly_similar_state_move_a_sure_model_little():
    sure = {"a": math.log(0.02), "b": math.log(0.98)}
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("t", [Step("open the store", a, r)]) for a, r in [("a", 1.0), ("b", 0.0)] * 500])
        decision = JitRL(memory).decide("my stove leaks", sure)
    assert decision.mode == "memory"
    assert decision.neighbors[0].similarity < 0.1
    assert decision.probs["a"] < 0.1


def test_random_ids_do_not_hide_what_the_states_have_in_common():
    rng = random.Random(0)
    with Memory.open(":memory:") as memory:
        for i in range(100):
            status = ("open", "paid")[i % 2]
            state = f"{rng.getrandbits(160):040x} status:{status}"
            memory.add(Episode("t", [Step(state, f"handle {status}", 1.0)]))
        found = memory.search(f"{rng.getrandbits(160):040x} status:paid", k=10, threshold=0.0, similarity="rarity")
    assert all("status:paid" in near.experience.state for near in found)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_swap_after_a_hundred_episodes_is_followed_within_forty(seed):
    rng, even = random.Random(seed), {"a": -0.693, "b": -0.693}
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("t", [Step("page", "ab"[i % 10 == 0], float(i % 10 > 0))]) for i in range(100)])
        policy = JitRL(memory)
        assert policy.decide("page", even).probs["a"] > 0.9
        for i in range(40):
            action = policy.decide("page", even, seed=seed, step=i).action
            memory.add(Episode("t", [Step("page", action, rng.gauss(float(action == "b"), 0.3))]))
        assert policy.decide("page", even).probs["b"] > 0.9


@pytest.mark.parametrize("state", ["page cart total", "page cart sum", "page list filter"])
def test_the_default_moderates_by_half_of_the_deviation_times_the_eighth_power_of_the_nearest_similarity(state):
    actions, even = ("a", "b", "c"), {"a": 0.0, "b": 0.0, "c": 0.0}
    with Memory.open(":memory:") as memory:
        memory.add_many(
            [Episode("t", [Step("page cart total", a, r)]) for a, r in (("a", 1.0), ("b", 0.0), ("a", 0.8))]
        )
        policy = JitRL(memory)
        evidence = policy.evidence(state)
        plain = JitRL(memory, moderation=0.0).decide(state, even)
        decision = policy.decide(state, even)
    sums = evidence.by_state
    estimate = ProcessEstimator().estimate(
        Cells(sums.states, sums.actions, sums.counts, sums.weights, sums.totals, sums.squares, sums.shares),
        SimilarStates(evidence.similarities, evidence.state_similarities),
        rows=np.array([evidence.actions.index(a) if a in evidence.actions else -1 for a in actions]),
        base_probs=np.full(3, 1 / 3),
        mean=evidence.recent.mean,
        unit=evidence.recent.spread,
        n_returns=evidence.recent.n,
        moderation_nats=PRESETS["default"].beta * 0.5 * evidence.similarities.max() ** 8,
    )
    assert [decision.advantages[a] for a in actions] == pytest.approx(estimate.advantages.tolist(), abs=1e-12)
    assert decision.estimated_advantages == plain.estimated_advantages == pytest.approx(plain.advantages)
    assert decision.intervals == plain.intervals
    assert decision.advantages["a"] <= decision.estimated_advantages["a"]


@pytest.mark.parametrize("seed", range(6))
def test_with_moderation_safe_reward_that_came_first_does_not_keep_a_better_one_from_being_found(seed):
    rewards = {"safe": 5.0, "poor": 1.0, "best": 8.0, "nothing": 0.0, "none": 0.0}
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("hall lamp door", "safe", 5.0)]))
        policy, earned = JitRL(memory, moderation=1.0), []
        for i in range(60):
            action = policy.decide("hall lamp door", dict.fromkeys(rewards, 0.0), seed=seed, step=i).action
            earned.append(rewards[action])
            memory.add(Episode("t", [Step("hall lamp door", action, rewards[action])]))
    assert earned[-10:] == [8.0] * 10


def test_with_moderation_one_step_of_each_action_is_not_followed_like_many():
    def bad(n_steps):
        with Memory.open(":memory:") as memory:
            memory.add_many([Episode("t", [Step("page cart", a, r)]) for a, r in (("a", 1.0), ("b", 0.0))] * n_steps)
            memory.add_many([Episode("t", [Step("other", "c", float(i % 2))]) for i in range(20)])
            return JitRL(memory, moderation=1.0).decide("page cart", {"a": 0.0, "b": 0.0}).probs["b"]

    assert 1e-4 < bad(1) < 0.1
    assert bad(50) < 1e-6


def test_with_moderation_what_the_model_finds_unlikely_stays_unlikely_where_nothing_is_known_of_it():
    prior = {"tried": -0.7, "likely": -0.8, "unlikely": -7.0}
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("t", [Step("page cart", "tried", float(i % 2))]) for i in range(20)])
        probs = JitRL(memory, moderation=1.0).decide("page cart", prior).probs
    assert probs["unlikely"] < 0.01 < probs["likely"]


SURE = {"sure": math.log(0.999), "other": math.log(0.001)}


def elsewhere(memory):
    memory.add_many([Episode("t", [Step(f"elsewhere{i}", "x", float(i % 2))]) for i in range(16)])


def test_action_of_which_the_model_is_sure_is_given_up_for_an_untried_one_when_it_failed_ten_times_of_ten():
    probs = []
    for n_failures in (1, 3, 10):
        with Memory.open(":memory:") as memory:
            elsewhere(memory)
            memory.add_many([Episode("t", [Step("page cart", "sure", 0.0)])] * n_failures)
            probs.append(JitRL(memory).decide("page cart", SURE).probs["other"])
    assert probs[0] < 0.25 < probs[1] < probs[2]  # one nat a step
    assert probs[2] > 0.99


def test_untried_action_of_which_the_model_is_sure_is_tried_and_given_up_when_it_fails():
    with Memory.open(":memory:") as memory:
        elsewhere(memory)
        memory.add_many([Episode("t", [Step("page cart", "other", 1.0)])] * 40)
        policy = JitRL(memory)
        assert policy.decide("page cart", SURE).probs["sure"] > 0.5
        memory.add(Episode("t", [Step("page cart", "sure", 0.0)]))
        assert policy.decide("page cart", SURE).probs["other"] > 0.99


def test_one_step_spends_at_most_one_nat():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("page:cart", "pay", 1.0)]))
        decision = JitRL(memory).decide("page:cart", {"pay": -7.0, "back": -0.001})
    assert decision.kl_nats <= 1.0 + 1e-9


def test_without_evidence_the_decision_is_the_prior():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("alpha beta", "pay", 1.0)]))
        decision = JitRL(memory).decide("gamma delta", PRIOR)
    assert decision.mode == "base" and decision.probs == decision.base_probs


def test_memory_of_aborted_episodes_leaves_the_prior():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("page:cart", "pay", 1.0)], ending="aborted"))
        decision = JitRL(memory).decide("page:cart", PRIOR)
    assert decision.mode == "base" and decision.probs == decision.base_probs


@pytest.mark.parametrize("reward", [2.0, 0.1, 0.3, -0.7, 0.0, 1e100])
def test_equal_rewards_shift_nothing(reward):
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("t", [Step("page:cart", "pay", reward)])] * 3)
        memory.add_many([Episode("t", [Step("page:cart", "back", reward)])] * 4)
        decision = JitRL(memory).decide("page:cart", PRIOR)
    assert decision.probs == pytest.approx(decision.base_probs)


@pytest.mark.parametrize("reward", [1.0, 0.0])
@pytest.mark.parametrize("outlier", [1e6, -1e6])
def test_outlier_among_equal_rewards_moves_no_other_decision(reward, outlier):
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("t", [Step("page:cart", "back", reward)])] * 60)
        memory.add(Episode("t", [Step("elsewhere", "junk", outlier)]))
        decision = JitRL(memory).decide("page:cart", PRIOR)
    assert decision.probs["pay"] == pytest.approx(decision.base_probs["pay"], abs=0.05)


def test_shown_steps_add_no_shift_to_any_action():
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("t", [Step("elsewhere", "x", 0.0)])] * 6)  # so that `pay` is better than the mean
        ids = [memory.add(Episode(f"t{i}", [Step("page:cart", "pay", 1.0 + i)])) for i in range(3)]
        shown = EvidenceQuery(
            "page:cart", k=64, unit="states", threshold=0.0, similarity="rarity", shown_steps=[(id_, 0) for id_ in ids]
        )
        policy = JitRL(memory)
        unshown = dataclasses.replace(shown, shown_steps=())
        shifts = [
            policy.estimate(("pay", "back"), np.array([0.5, 0.5]), memory.evidence(query), np.random.default_rng(0))
            for query in (shown, unshown)
        ]
    assert shifts[0].advantages.tolist() == [0.0, 0.0]
    assert shifts[1].advantages[0] > 0.0 > shifts[1].advantages[1]  # `back` is untried


def test_clear_only_silences_untried_actions_too():
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("t", [Step("elsewhere", "x", float(i % 2))]) for i in range(8)])
        memory.add_many([Episode("t", [Step("page:cart", "pay", float(i % 3 == 0))]) for i in range(3)])
        shifted = JitRL(memory).decide("page:cart", PRIOR)
        decision = JitRL(memory, clear_only=True).decide("page:cart", PRIOR)
    assert shifted.counts["back"] == 0 and shifted.advantages["back"] > 0.0
    assert shifted.intervals["back"][0] < 0.0 < shifted.intervals["back"][1]
    assert decision.mode == "base"
    assert "clear" in decision.reason


@pytest.mark.parametrize("settings", [{"min_neighbors": 0}, {"decay": 0.5}])
def test_steps_without_weight_leave_the_prior(settings):
    with Memory.open(":memory:") as memory:
        if "decay" in settings:
            memory.add(Episode("t", [Step("page:cart", "pay", 1.0)]))
            memory.add_many([Episode("t", [Step("elsewhere", "x", 0.0)])] * 1100)
        decision = JitRL(memory, **settings).decide("page:cart", PRIOR)
    assert decision.mode == "base"
    assert decision.probs == decision.base_probs


def test_reopened_memory_decides_alike(tmp_path):
    rows = [Episode("t", [Step(text, topic, float(i % 3 > 0))]) for i, (text, topic) in enumerate(sentences(3, 300))]
    with Memory.open(tmp_path / "m.db") as memory:
        policy = JitRL(memory)
        for row in rows:  # one by one, so that the index grows while it answers
            memory.add(row)
            policy.decide("please tell me about my flight", EVEN, seed=0)
        grown = policy.decide("hotel and visa please", EVEN, seed=0)
    with Memory.open(tmp_path / "m.db") as memory:
        opened = JitRL(memory).decide("hotel and visa please", EVEN, seed=0)
    assert opened.probs == pytest.approx(grown.probs, abs=1e-12)
    assert [n.experience for n in opened.neighbors] == [n.experience for n in grown.neighbors]


def test_recent_returns_are_of_the_task_where_it_has_enough():
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("big", [Step(f"level {i}", "go", 350.0 * (i % 2))]) for i in range(40)])
        memory.add_many([Episode("small", [Step(f"page {i}", "go", float(i % 2))]) for i in range(40)])

        def recent(task):
            query = EvidenceQuery("page 1", k=5, unit="states", threshold=0.0, similarity="rarity", current_task=task)
            return memory.evidence(query).recent

        assert (recent("small").mean, recent("small").spread, recent("small").n) == (0.5, 0.5, 40)
        assert (recent("big").mean, recent("big").n) == (175.0, 40)
        assert recent("unknown").n == recent(None).n == 80


def test_unit_of_a_task_holds_where_another_task_has_all_of_the_latest_returns():
    with Memory.open(":memory:") as memory:
        for page in range(5):
            memory.add_many([Episode("small", [Step(f"page{page}", "ab"[i % 2], float(i % 2))]) for i in range(10)])
        memory.add_many([Episode("big", [Step(f"level{i}", "go", 350.0 * (i % 2))]) for i in range(300)])
        decision = JitRL.preset("default", memory).decide("page1", {"a": -0.69, "b": -0.69}, task="small")
    assert decision.probs["b"] > 0.9
    assert decision.scale == 0.5


def test_task_of_a_query_is_redacted_as_it_was_stored():
    with Memory.open(":memory:", redact=lambda text: text.replace("Ann", "[name]")) as memory:
        memory.add_many([Episode("for Ann", [Step("page:cart", "pay", 1.0)])] * 20)
        memory.add_many([Episode("for Bob", [Step("page:cart", "pay", 0.0)])] * 20)
        query = EvidenceQuery(
            "page:cart", k=5, unit="states", threshold=0.0, similarity="rarity", current_task="for Ann"
        )
        assert memory.evidence(query).recent.mean == 1.0


def test_feedback_moves_the_recent_returns():
    with Memory.open(":memory:") as memory:
        id_ = memory.add(Episode("t", [Step("page:cart", "pay", 0.0)]))
        query = EvidenceQuery("page:cart", k=5, unit="states", threshold=0.0, similarity="rarity")
        assert memory.evidence(query).recent.mean == 0.0
        memory.feedback(id_, reward=1.0, step=0, source="human")
        assert memory.evidence(query).recent.mean == 1.0


def test_left_out_task_lends_nothing():
    def decision(reward):
        with Memory.open(":memory:") as memory:
            memory.add_many(
                [Episode("other", [Step("page:cart", "back", 1.0)]), Episode("other", [Step("x", "y", 0.0)])]
            )
            memory.add_many([Episode("mine", [Step("page:cart", "pay", reward)])] * 20)
            policy = JitRL(memory, exclude_same_task=True)
            return policy.decide("page:cart", PRIOR, task="mine")

    assert decision(1.0).n_steps == 1
    assert decision(1.0).probs == decision(-50.0).probs


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("baseline", "base_policy"),
        ("scale", "spread"),
        ("kappa", 1.0),
        ("levels", "shared"),
        ("exploration", UCB()),
        ("similarity_power", 1.0),
        ("propensity_floor", 0.1),
    ],
)
def test_setting_of_the_means_is_refused_with_the_preset_that_has_it(name, value):
    with Memory.open(":memory:") as memory:
        with pytest.raises(InputError, match=rf"{name} = .*JitRL\.preset\('means', memory, {name}=\.\.\.\)"):
            JitRL(memory, **{name: value})
        assert getattr(JitRL.preset("means", memory, **{name: value}).settings, name) == value


def test_neutral_settings_of_the_means_are_accepted():
    with Memory.open(":memory:") as memory:
        same = JitRL(memory, exploration=None, similarity_power=0.0, propensity_floor=None)
    assert same.name == "default"


def decided(memory, state="page cart total", **settings):
    candidates = {"pay": -2.4, "back": -0.1}
    return JitRL(memory, **settings).decide(state, candidates, admissible="any", task="shop", seed=0)


@pytest.fixture
def shop():
    """`pay` leads to a page on which `close` earns 1 and `cancel` nothing; `back` earns a little at once."""
    with Memory.open(":memory:", gamma=0.9) as memory:
        for i in range(12):
            end = Step("page paid thanks", "cancel" if i % 2 else "close", float(i % 2 == 0))
            memory.add(Episode("shop", [Step("page cart total", "pay", 0.0), end]))
            memory.add(Episode("shop", [Step("page cart total", "back", 0.1 + 0.1 * (i % 2))]))
        memory.add(Episode("other", [Step("page cart coupon", "help", 0.1)]))
        yield memory


def test_gamma_of_a_decision_is_the_settings(shop):
    assert decided(shop).values["pay"] == pytest.approx(0.45, abs=0.01)
    assert decided(shop, gamma=0.5).values["pay"] == pytest.approx(0.25, abs=0.01)


def test_backup_replaces_the_returns(shop):
    """Closing is what the improved policy does on the next page: paying is worth 0.9, not the mean of both."""
    assert decided(shop, backup=50.0).values["pay"] == pytest.approx(0.9, abs=0.02)


def test_decay_lowers_the_evidence(shop):
    widths = [high - low for low, high in (decided(shop, decay=d).intervals["pay"] for d in (1.0, 0.5))]
    assert widths[0] < widths[1]


def test_max_kl_nats_and_nats_per_step_cap_a_decision(shop):
    free = decided(shop).kl_nats
    n_at = Counter((n.experience.state, n.similarity) for n in decided(shop).neighbors)  # all 37 steps are listed
    weight = sum(k * n / (1 + (n - 1) * (1 - k)) for (_, k), n in n_at.items())
    assert decided(shop, max_kl_nats=free / 2).kl_nats == pytest.approx(free / 2, rel=1e-6)
    assert decided(shop, nats_per_step=free / 100).kl_nats == pytest.approx(weight * free / 100, rel=1e-6)


def test_threshold_and_k_limit_the_states(shop):
    assert decided(shop).n_states == 3
    assert decided(shop, threshold=0.9).n_states == decided(shop, k=1).n_states == 1
    assert decided(shop, threshold=0.9, threshold_fall=0.9).n_states == 1  # at the first step of an episode
    late = JitRL(shop, threshold=0.9, threshold_fall=0.9).decide("page cart total", {"pay": 0.0, "back": 0.0}, step=20)
    assert late.n_states == 3


def test_exclude_same_task_leaves_the_other_tasks(shop):
    assert {n.experience.task for n in decided(shop, exclude_same_task=True).neighbors} == {"other"}


def test_beta_scales_the_shift(shop):
    decisions = [decided(shop, beta=b, moderation=0.0) for b in (0.0, 0.5, 1.0)]
    odds = [np.log(decision.probs["pay"] / decision.probs["back"]) for decision in decisions]
    assert odds[2] - odds[0] == pytest.approx(2 * (odds[1] - odds[0]))
    assert decided(shop, beta=0.5, beta_ramp=1.0).beta == pytest.approx(0.5 * (1 + 25 / 50))


def test_memory_settings_govern_the_added_actions(shop):
    assert set(decided(shop).memory_only) == {"help", "close", "cancel"}
    assert decided(shop, memory_actions=False).memory_only == ()
    assert set(decided(shop, memory_return_above=0.5).memory_only) == {"close"}
    assert sum(decided(shop, memory_prior=0.4).base_probs[a] for a in ("help", "close", "cancel")) == pytest.approx(0.4)
    zero = decided(shop, memory_base="zero", memory_return_above=0.5)
    assert zero.base_probs["close"] == pytest.approx(0.5)


def test_an_untried_action_has_the_widest_interval(shop):
    decision = JitRL(shop).decide("page cart total", {"pay": 0.0, "back": 0.0, "wait": 0.0}, seed=0)
    widths = {action: high - low for action, (low, high) in decision.intervals.items()}
    assert widths["wait"] == max(widths.values()) > widths["pay"]


def test_argmax_needs_no_cap(shop):
    with pytest.raises(InputError, match="nats_per_step=None"):
        decided(shop, selection="argmax")
    assert decided(shop, selection="argmax", nats_per_step=None).action == "pay"


@pytest.mark.parametrize(
    "changes",
    [
        {"similarity": "jaccard"},
        {"exploration": UCB()},
        {"propensity_floor": 0.05},
        {"unit": "steps"},
        {"nats_per_step": 0.0},
        {"estimation": "guess"},
        {"selection": "argmax"},
        {"similarity_power": 2.0},
        {"all_above": 0.9},
        {"change_rate": 0.6},
        {"estimation": "means", "change_rate": 0.1},
        {"estimation": "means", "moderation": 0.5},
    ],
)
def test_settings_that_contradict_are_refused(changes):
    with Memory.open(":memory:") as memory, pytest.raises(InputError):
        JitRL(memory, **changes)


def test_memory_without_similarities_between_states_is_refused():
    class Means:
        """A source of evidence that ignores the similarity it is asked for."""

        def __init__(self, memory):
            self._memory = memory

        def evidence(self, query):
            asked = EvidenceQuery(query.state, k=query.k, unit="states", threshold=0.0)
            return self._memory.evidence(asked)

    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("page:cart", "pay", 1.0)]))
        with pytest.raises(InputError, match="similarities between states"):
            JitRL(Means(memory)).decide("page:cart", PRIOR)
