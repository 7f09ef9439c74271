"""Each preset on a memory small enough to work out by hand, every recorded field included."""

from __future__ import annotations

import math

import pytest

from seasoned import Episode, JitRL, Memory, Step
from seasoned.core import ExplorationBonus
from seasoned.policies import PRESETS, JitRLSettings

CART = "page:cart total:12"
THREE = {"pay": math.log(0.25), "back": math.log(0.25), "wait": math.log(0.5)}
ALWAYS = ExplorationBonus(alpha=0.1, rate=1.0)


@pytest.fixture
def memory():
    with Memory.open(":memory:", gamma=1.0) as opened:
        yield opened


def singles(memory, *outcomes, state=CART):
    memory.add_many([Episode("t", [Step(state, action, reward)]) for action, reward in outcomes])


def recorded(decision):
    return dict(decision.values), dict(decision.counts), dict(decision.advantages)


# ------------------------------------------------------------------------------- the table of sources


@pytest.mark.parametrize(
    ("name", "k", "unit", "threshold", "gamma", "baseline", "scale", "beta", "min_neighbors", "selection", "bonus"),
    [
        ("seed", 10, "steps", 0.8, 0.95, "neighbors", "none", 1.0, 3, "sample", (0.1, 0.3)),
        ("snippet", 10, "steps", 0.0, 0.9, "neighbors", "none", 1.0, 0, "argmax", (5.0, 1.0)),
        ("means", 10, "states", 0.8, None, "base_policy", "spread", 4.0, 3, "sample", None),
        ("paper-games", 10, "steps", 0.95, 0.5, "neighbors", "max_abs", 1.0, 1, "sample", (5.0, 0.65, "zero")),
        ("paper-web", 10, "steps", 0.8, 0.1, "neighbors", "max_abs", 1.0, 1, "sample", (5.0, 0.05, "zero")),
        ("released-web", 2**31 - 1, "steps", 0.8, 0.1, "action_means", "max", 1.0, 1, "argmax", (1.0, 0.05, "zero")),
    ],
)
def test_the_presets_have_the_settings_of_their_sources(
    name, k, unit, threshold, gamma, baseline, scale, beta, min_neighbors, selection, bonus
):
    preset = PRESETS[name]
    assert (preset.k, preset.unit, preset.threshold, preset.gamma) == (k, unit, threshold, gamma)
    assert (preset.baseline, preset.scale, preset.beta) == (baseline, scale, beta)
    assert (preset.min_neighbors, preset.selection) == (min_neighbors, selection)
    assert preset.exploration == (None if bonus is None else ExplorationBonus(*bonus))
    assert (preset.memory_prior, preset.similarity_power, preset.decay) == (0.1, 0.0, 1.0)
    assert not preset.exclude_same_task


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"default"}))
def test_every_other_preset_states_means_of_jaccard_neighbours(name):
    preset = PRESETS[name]
    assert (preset.estimation, preset.similarity, preset.nats_per_step) == ("means", "jaccard", None)


def test_default_is_a_process_over_64_states_by_rarity():
    preset = PRESETS["default"]
    assert (preset.estimation, preset.similarity, preset.k, preset.threshold) == ("process", "rarity", 64, 0.0)
    assert (preset.beta, preset.nats_per_step, preset.min_neighbors) == (50.0, 1.0, 1)
    assert (preset.unit, preset.gamma, preset.exploration) == ("states", None, None)


def test_the_default_policy_is_the_default_preset(memory):
    assert JitRL(memory).settings == PRESETS["default"] == JitRLSettings()
    assert JitRL(memory, k=2).settings == JitRL.preset("default", memory, k=2).settings == JitRLSettings(k=2)


# ------------------------------------------------------------------------------- seed


@pytest.fixture
def shop(memory):
    """Returns at the cart, gamma 0.95: pay 0.95 * 1 and 0.55, back -1, help 1.5."""
    memory.add(Episode("t", [Step(CART, "pay", 0.0), Step("page:receipt number:7", "close", 1.0)]))
    singles(memory, ("pay", 0.55), ("back", -1.0), ("help", 1.5))
    return memory


def test_seed_equals_hand_computed_values_without_the_bonus(shop):
    decision = JitRL.preset("seed", shop, exploration=None).decide(CART, THREE, seed=0)
    # V = (0.95 + 0.55 - 1 + 1.5) / 4 = 0.5; Q(pay) = 0.75, Q(back) = -1; wait was never tried, help is no candidate.
    assert decision.baseline == pytest.approx(0.5)
    values, counts, advantages = recorded(decision)
    assert values == {"pay": pytest.approx(0.75), "back": pytest.approx(-1.0), "wait": None}
    assert counts == {"pay": 2, "back": 1, "wait": 0}
    assert advantages == pytest.approx({"pay": 0.25, "back": -1.5, "wait": 0.0})
    # Weights 0.25 e^0.25 = 0.3210064, 0.25 e^-1.5 = 0.0557825, 0.5: in all 0.8767889.
    assert decision.probs == pytest.approx({"pay": 0.366116, "back": 0.063621, "wait": 0.570263}, abs=1e-6)
    # KL = E_p[beta A] - log 0.8767889 = 0.25 * 0.366116 - 1.5 * 0.063621 + 0.131489 = 0.127586.
    assert decision.kl_nats == pytest.approx(0.127586, abs=2e-6)
    assert (decision.beta, decision.scale, decision.gamma) == (1.0, 1.0, 0.95)
    assert (decision.n_steps, decision.n_states, len(decision.neighbors)) == (4, 1, 4)
    assert (decision.mode, decision.explored, decision.memory_only) == ("memory", {}, ())
    assert "4 stored steps" in decision.reason
    assert "2 of 3" in decision.reason


def test_seed_equals_hand_computed_values_with_the_bonus(shop):
    decision = JitRL.preset("seed", shop, exploration=ALWAYS).decide(CART, THREE, seed=0)
    # Four neighbours: A(wait) = 0.1 / 4. Weights as above, but 0.5 e^0.025 = 0.5126576 for wait: in all 0.8894464.
    assert decision.explored == pytest.approx({"wait": 0.025})
    assert decision.advantages == pytest.approx({"pay": 0.25, "back": -1.5, "wait": 0.025})
    assert decision.values["wait"] is None
    assert decision.probs == pytest.approx({"pay": 0.360906, "back": 0.062716, "wait": 0.576378}, abs=1e-6)
    # KL = 0.25 * 0.360906 - 1.5 * 0.062716 + 0.025 * 0.576378 - log 0.8894464 = 0.127718.
    assert decision.kl_nats == pytest.approx(0.127718, abs=2e-6)


def test_bonus_of_seed_is_added_at_rate_three_tenths(shop):
    policy = JitRL.preset("seed", shop)
    fired = sum("wait" in policy.decide(CART, THREE, seed=seed).explored for seed in range(1000))
    assert abs(fired - 300) < 4 * math.sqrt(1000 * 0.3 * 0.7)


def test_seed_uses_the_ten_latest_steps(memory):
    singles(memory, *[("back", 5.0)] * 7, *[("pay", 1.0)] * 6, *[("wait", 0.0)] * 4)
    decision = JitRL.preset("seed", memory, exploration=None).decide(CART, THREE, seed=0)
    assert dict(decision.counts) == {"pay": 6, "back": 0, "wait": 4}
    assert decision.baseline == pytest.approx(0.6)  # six of ten brought 1


def test_seed_includes_states_at_the_threshold_and_none_below(memory):
    singles(memory, ("pay", 1.0), state="a b c d")  # 4 words of 5 in common: 0.8
    singles(memory, ("back", 1.0), state="a b c")  # 0.6
    singles(memory, ("wait", 1.0), state="a b c d e")
    decision = JitRL.preset("seed", memory, min_neighbors=1).decide("a b c d e", THREE, seed=0)
    assert dict(decision.counts) == {"pay": 1, "back": 0, "wait": 1}
    assert [n.similarity for n in decision.neighbors] == [1.0, 0.8]


# ------------------------------------------------------------------------------- snippet


def test_snippet_equals_hand_computed_values(memory):
    memory.add(Episode("t", [Step(CART, "pay", 0.0), Step("another world", "close", 1.0)]))
    singles(memory, ("back", -1.0))
    decision = JitRL.preset("snippet", memory).decide(CART, dict.fromkeys(THREE, 7.0), admissible="any", seed=0)
    # Without a threshold all three steps are neighbours, gamma 0.9: pay 0.9, close 1, back -1, so that V = 0.3.
    # A(pay) = 0.6, A(back) = -1.3, and the untried wait gets 5 / 3. Memory adds no action here.
    assert decision.baseline == pytest.approx(0.3)
    values, counts, advantages = recorded(decision)
    assert values == {"pay": pytest.approx(0.9), "back": pytest.approx(-1.0), "wait": None}
    assert counts == {"pay": 1, "back": 1, "wait": 0}
    assert advantages == pytest.approx({"pay": 0.6, "back": -1.3, "wait": 5 / 3})
    assert decision.explored == pytest.approx({"wait": 5 / 3})
    # e^0.6 = 1.822119, e^-1.3 = 0.272532, e^(5/3) = 5.294490: in all 7.389141.
    assert decision.probs == pytest.approx({"pay": 0.246594, "back": 0.036883, "wait": 0.716523}, abs=1e-6)
    # KL = 0.6 * 0.246594 - 1.3 * 0.036883 + 5/3 * 0.716523 - log(7.389141 / 3) = 0.392815.
    assert decision.kl_nats == pytest.approx(0.392815, abs=2e-6)
    assert (decision.action, decision.propensity) == ("wait", 1.0)
    assert (decision.n_steps, decision.n_states) == (3, 2)
    assert decision.memory_only == ()


def test_snippet_with_an_empty_memory_takes_the_most_likely_action(memory):
    decision = JitRL.preset("snippet", memory).decide(CART, THREE, seed=0)
    assert decision.probs == pytest.approx({"pay": 0.25, "back": 0.25, "wait": 0.5})
    assert (decision.action, decision.baseline, decision.n_steps) == ("wait", None, 0)
    assert decision.kl_nats == pytest.approx(0.0, abs=1e-12)


# ------------------------------------------------------------------------------- means


@pytest.mark.parametrize("visits", [2, 50])
def test_means_equals_hand_computed_values_at_any_number_of_visits(memory, visits):
    prior = {"pay": math.log(0.2), "back": math.log(0.3), "wait": math.log(0.5)}
    singles(memory, *[("pay", 1.0)] * visits, *[("back", 0.0)] * visits)
    decision = JitRL.preset("means", memory).decide(CART, prior, seed=0)
    # One action's mean is 1, the other's 0: spread 0.5. All neighbours' mean is 0.5: Q(pay) = (n + 0.5) / (n + 1) and
    # Q(back) = 0.5 / (n + 1); V = 0.4 Q(pay) + 0.6 Q(back) = (0.4 n + 0.5) / (n + 1); A(pay) = 0.6 n/(n+1) / 0.5,
    # A(back) = -0.4 n/(n+1) / 0.5.
    shrink = visits / (visits + 1)
    value = (0.4 * visits + 0.5) / (visits + 1)
    assert (decision.baseline, decision.scale, decision.beta) == (pytest.approx(value), pytest.approx(0.5), 4.0)
    values, counts, advantages = recorded(decision)
    assert values == {"pay": 1.0, "back": 0.0, "wait": None}
    assert counts == {"pay": visits, "back": visits, "wait": 0}
    assert advantages == pytest.approx({"pay": 1.2 * shrink, "back": -0.8 * shrink, "wait": 0.0})
    pay, back = 0.2 * math.exp(4.8 * shrink), 0.3 * math.exp(-3.2 * shrink)
    total = pay + back + 0.5
    assert decision.probs == pytest.approx({"pay": pay / total, "back": back / total, "wait": 0.5 / total})
    assert decision.kl_nats == pytest.approx((4.8 * pay - 3.2 * back) * shrink / total - math.log(total))
    assert (decision.n_steps, decision.n_states, decision.gamma) == (2 * visits, 1, 1.0)
    assert len(decision.neighbors) == min(2 * visits, 50)
    assert decision.explored == {}
    # In numbers, for 2 visits: shrink 2/3, weights 0.2 e^3.2 = 4.906506, 0.3 e^-2.1333 = 0.035533, 0.5.
    if visits == 2:
        assert decision.probs["pay"] == pytest.approx(0.901593, abs=1e-6)


@pytest.mark.parametrize("visits", [2, 50])
def test_derived_kappa_is_small_for_constant_returns(memory, visits):
    singles(memory, *[("pay", 1.0)] * visits, *[("back", 0.0)] * visits)
    decision = JitRL.preset("means", memory, kappa=None).decide(CART, {"pay": 0.0, "back": 0.0}, seed=0)
    # Spread 0.5; returns never vary about their action's: d = 2 (n - 1) degrees of freedom without a deviation and one
    # at the spread, s2 = 0.25 / (1 + d); that much of it, over n, in the means: t2 = 0.25 (1 - d / (1 + d)^2 / n).
    d = 2 * (visits - 1)
    kappa = 1 / (1 + d) / (1 - d / (1 + d) ** 2 / visits)
    assert decision.advantages["pay"] == pytest.approx(visits / (visits + kappa))


def test_means_reads_every_step_at_the_k_nearest_distinct_states(memory):
    query = "a b c d e f g h i j"
    for extra in range(6):  # each is 10/11 from the query; the two oldest are one state too many
        singles(memory, ("pay", 10.0 * (extra < 2)), state=f"{query} x{extra}")
    singles(memory, *[("back", 0.0)] * 30, state=query)
    singles(memory, ("wait", 1.0), state="j i h g f e d c b a")  # other text, the same words
    decision = JitRL.preset("means", memory, k=5).decide(query, THREE, seed=0)
    assert dict(decision.counts) == {"pay": 4, "back": 30, "wait": 1}
    assert decision.values == {"pay": 0.0, "back": 0.0, "wait": 1.0}
    assert (decision.n_states, decision.n_steps) == (5, 35)


def test_a_weighted_neighbor_counts_by_its_similarity(memory):
    singles(memory, ("pay", 1.0), state="a b c d")  # 0.8 from the query, weight 0.64
    singles(memory, ("pay", 0.0), ("back", 0.0), state="a b c d e")
    policy = JitRL.preset("seed", memory, similarity_power=2.0, exploration=None)
    decision = policy.decide("a b c d e", THREE, seed=0)
    assert decision.values["pay"] == pytest.approx(0.64 / 1.64)
    assert decision.baseline == pytest.approx(0.64 / 2.64)
    assert dict(decision.counts) == {"pay": 2, "back": 1, "wait": 0}


def test_means_without_a_spread_gives_the_base_policy(memory):
    singles(memory, ("pay", 2.0), ("pay", 2.0), ("back", 2.0))
    decision = JitRL.preset("means", memory).decide(CART, THREE, seed=0)
    assert (decision.mode, decision.scale, decision.baseline) == ("memory", 1.0, pytest.approx(2.0))
    assert decision.probs == pytest.approx({"pay": 0.25, "back": 0.25, "wait": 0.5})


def test_means_is_invariant_to_the_reward_unit(memory):
    outcomes = [("pay", 1.0), ("pay", 0.25), ("back", -0.5), ("back", 0.0), ("wait", 0.5)]
    singles(memory, *outcomes)
    one = JitRL.preset("means", memory).decide(CART, THREE, seed=0)
    with Memory.open(":memory:") as cents:
        singles(cents, *((action, 100 * reward) for action, reward in outcomes))
        other = JitRL.preset("means", cents).decide(CART, THREE, seed=0)
    assert other.probs == pytest.approx(dict(one.probs))
    assert other.scale == pytest.approx(100 * one.scale)


def test_means_keeps_its_preference_as_visits_concentrate(memory):
    """With a baseline weighted by visits the advantage of a dominant action vanishes; with ours it remains."""
    singles(memory, ("back", 0.0), ("back", 0.0), *[("pay", 1.0)] * 98)
    even = {"pay": 0.0, "back": 0.0}
    assert JitRL.preset("means", memory).decide(CART, even).probs["pay"] > 0.99
    by_visits = JitRL.preset("means", memory, baseline="neighbors").decide(CART, even)
    assert by_visits.advantages["pay"] < 0.1 < 0.6 < JitRL.preset("means", memory).decide(CART, even).advantages["pay"]


# ------------------------------------------------------------------------------- paper-*

NEVER = ExplorationBonus(alpha=5.0, rate=0.0, otherwise="zero")
SURE = ExplorationBonus(alpha=5.0, rate=1.0, otherwise="zero")


def test_paper_games_equals_hand_computed_values(memory):
    singles(memory, ("pay", 2.0), ("pay", 1.0), ("back", 0.0))
    decision = JitRL.preset("paper-games", memory, exploration=NEVER).decide(CART, THREE, seed=0)
    # V = 1; Q(pay) = 1.5, Q(back) = 0, and the untried wait is worth 0: 0.5, -1, -1, divided by the largest size, 1.
    assert (decision.baseline, decision.scale) == (pytest.approx(1.0), pytest.approx(1.0))
    assert decision.advantages == pytest.approx({"pay": 0.5, "back": -1.0, "wait": -1.0})
    # 0.25 e^0.5 = 0.412180, 0.25 e^-1 = 0.091970, 0.5 e^-1 = 0.183940: in all 0.688090.
    assert decision.probs == pytest.approx({"pay": 0.599021, "back": 0.133660, "wait": 0.267319}, abs=2e-6)
    lucky = JitRL.preset("paper-games", memory, exploration=SURE).decide(CART, THREE, seed=0)
    # The bonus fires: Q(wait) = 1 + 5/3, its advantage is the largest, and the others are divided by it.
    assert lucky.scale == pytest.approx(5 / 3)
    assert lucky.advantages == pytest.approx({"pay": 0.3, "back": -0.6, "wait": 1.0})
    assert lucky.explored == pytest.approx({"wait": 1.0})


def test_paper_gives_added_actions_the_logit_0(memory):
    singles(memory, ("help", 1.0), ("pay", 1.0))
    sure = {"pay": math.log(0.9), "back": math.log(0.1)}
    decision = JitRL.preset("paper-web", memory, exploration=NEVER).decide(CART, sure, admissible="any", seed=0)
    # Among logprobs 0 is e^0 = 1: as much as everything the model proposed.
    assert decision.base_probs == pytest.approx({"pay": 0.45, "back": 0.05, "help": 0.5})


def test_paper_web_has_a_lower_threshold_and_discount_than_paper_games(memory):
    memory.add(Episode("t", [Step("a b c d", "pay", 0.0), Step("elsewhere", "close", 1.0)]))  # 0.8 from a b c d e
    web = JitRL.preset("paper-web", memory, exploration=NEVER).decide("a b c d e", THREE, seed=0)
    assert web.values["pay"] == pytest.approx(0.1)
    assert JitRL.preset("paper-games", memory).decide("a b c d e", THREE, seed=0).mode == "base"


# ------------------------------------------------------------------------------- released-*


def test_released_web_lets_a_tiny_return_override_the_prior(memory):
    """A prior of 0.98 against one stored return of +0.01: 0.98 < 0.02 + 1, after the return is divided by itself."""
    singles(memory, ("back", 0.01), ("pay", 0.0))
    sure = {"pay": math.log(0.98), "back": math.log(0.02)}
    decision = JitRL.preset("released-web", memory).decide(CART, sure, seed=0)
    assert (decision.baseline, decision.scale) == (pytest.approx(0.005), pytest.approx(0.005))
    assert decision.advantages == pytest.approx({"pay": -1.0, "back": 1.0})
    assert (decision.action, decision.propensity) == ("back", 1.0)
    assert decision.base_probs == pytest.approx({"pay": 0.98, "back": 0.02})
    # e^(0.98 - 1) against e^(0.02 + 1)
    assert decision.probs["pay"] == pytest.approx(1 / (1 + math.exp(1.04)))
    ours = JitRL.preset("means", memory, min_neighbors=1, scale="none").decide(CART, sure, seed=0)
    assert ours.probs["pay"] > 0.97


def test_released_counts_exploration_values_in_its_baseline(memory):
    singles(memory, ("pay", 1.0), ("pay", 1.0), ("pay", 1.0), ("back", 0.0))
    never = ExplorationBonus(1.0, 0.0, otherwise="zero")
    decision = JitRL.preset("released-web", memory, exploration=never).decide(CART, THREE, seed=0)
    # Means 1 and 0, the untried wait counts as 0: V = 1/3, not 3/4. Largest advantage 2/3.
    assert decision.baseline == pytest.approx(1 / 3)
    assert decision.advantages == pytest.approx({"pay": 1.0, "back": -0.5, "wait": -0.5})
    tried = JitRL.preset("released-web", memory, exploration=never).decide(CART, {"pay": -1.0, "back": -1.0}, seed=0)
    assert tried.baseline == pytest.approx(3 / 4)


def test_released_web_divides_negative_advantages_by_the_largest_size(memory):
    singles(memory, ("pay", 1.0), ("back", 1.0), state=CART)
    estimate = JitRL.preset("released-web", memory).decide(CART, {"pay": -1.0, "back": -1.0}, seed=0)
    assert estimate.advantages == {"pay": 0.0, "back": 0.0}
    singles(memory, ("wait", 4.0))  # no candidate below: V = 2, both are 1 under it
    worse = JitRL.preset("released-web", memory).decide(CART, {"pay": -1.0, "back": -1.0}, seed=0)
    assert worse.advantages == pytest.approx({"pay": -1.0, "back": -1.0})


def test_released_games_uses_all_equal_states_or_ten_steps(memory):
    singles(memory, *[("pay", 1.0)] * 15)
    assert JitRL.preset("released-games", memory).decide(CART, THREE, seed=0).n_steps == 15
    other = " ".join("abcdefghijklmnopqrst")
    singles(memory, *[("pay", 1.0)] * 15, state=f"{other} u")  # 20/21 = 0.952
    assert JitRL.preset("released-games", memory).decide(other, THREE, seed=0).n_steps == 10


@pytest.mark.parametrize(("step", "n_steps"), [(0, 0), (9, 0), (10, 2), (20, 2), (500, 2)])
def test_the_threshold_of_released_falls_with_the_steps(memory, step, n_steps):
    singles(memory, ("pay", 1.0), ("pay", 1.0), state="a b c d e f g h i")  # 9/10 from the query
    decision = JitRL.preset("released-games", memory).decide("a b c d e f g h i j", THREE, step=step, seed=0)
    assert decision.n_steps == n_steps


@pytest.mark.parametrize(("episodes", "beta"), [(10, 1.1), (50, 1.5), (60, 1.5)])
def test_the_beta_of_released_games_grows_with_the_episodes(memory, episodes, beta):
    singles(memory, *[("pay", 1.0)] * episodes)
    assert JitRL.preset("released-games", memory).decide(CART, THREE, seed=0).beta == pytest.approx(beta)


def test_released_games_adds_actions_with_positive_returns_at_probability_0(memory):
    singles(memory, ("help", 1.0), ("cry", -1.0), ("pay", 0.5))
    never = ExplorationBonus(1.0, 0.0, otherwise="zero")
    policy = JitRL.preset("released-games", memory, exploration=never)
    decision = policy.decide(CART, THREE, admissible="any", seed=0)
    assert decision.memory_only == ("help",)
    assert decision.base_probs["help"] < 1e-300
    assert math.isfinite(decision.kl_nats)


def test_released_web_at_beta_zero_gives_the_base_policy(memory):
    singles(memory, ("back", 1.0), ("pay", 0.0))
    decision = JitRL.preset("released-web", memory, beta=0.0).decide(CART, THREE, seed=0)
    assert decision.probs == pytest.approx({"pay": 0.25, "back": 0.25, "wait": 0.5})
    assert decision.action == "wait"
