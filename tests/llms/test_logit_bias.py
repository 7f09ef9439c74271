"""The choice inside the server: it follows the closed form, and refuses settings that would change it."""

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from true_policy import TruePolicy, softmax

from seasoned import errors
from seasoned.llms import BiasChooser, CachedLLM, ScriptedLLM, label_prior, label_prompt

WEIGHTS = {"go north": -0.2, "open fridge": -1.1, "wait": -2.5}
SHIFTS = {"go north": -1.0, "open fridge": 0.7, "wait": 2.0}


def choose(llm, candidates=tuple(WEIGHTS), shifts=SHIFTS, seed=None, **kwargs):
    return asyncio.run(BiasChooser(llm, **kwargs).choose("a kitchen", "leave", list(candidates), shifts, seed))


def g_statistic(counts, probs):
    """2 sum n_c log(n_c / (n p_c)): chi-squared with C - 1 degrees of freedom if the counts are draws from probs."""
    n = sum(counts.values())
    return 2 * sum(k * math.log(k / (n * probs[name])) for name, k in counts.items() if k)


ALPHA = 1e-6
LIMIT_2_DEGREES = -2 * math.log(ALPHA)  # chi-squared with 2 degrees of freedom is exponential with mean 2


def test_draw_test_detects_a_wrong_policy():
    n = 3000
    true = softmax({name: WEIGHTS[name] + SHIFTS[name] for name in WEIGHTS})
    counts = {name: round(n * p) for name, p in softmax(WEIGHTS).items()}  # as if the shift were ignored
    assert g_statistic(counts, true) > LIMIT_2_DEGREES


@pytest.mark.parametrize("biased_logprobs", [False, True])
def test_draws_follow_the_closed_form(biased_logprobs):
    model = TruePolicy(WEIGHTS, biased_logprobs=biased_logprobs)
    counts = dict.fromkeys(WEIGHTS, 0)
    for seed in range(3000):
        counts[choose(model, seed=seed).action] += 1
    true = softmax({name: WEIGHTS[name] + SHIFTS[name] for name in WEIGHTS})
    assert g_statistic(counts, true) < LIMIT_2_DEGREES
    assert len(model.requests) == 3000


@given(
    st.lists(st.tuples(st.floats(-5, 0), st.floats(-20, 20)), min_size=2, max_size=8), st.booleans(), st.integers(0, 99)
)
def test_prior_and_policy_of_the_draw_are_recovered(pairs, biased_logprobs, seed):
    weights = {f"action {i}": weight for i, (weight, _) in enumerate(pairs)}
    shifts = {f"action {i}": shift for i, (_, shift) in enumerate(pairs)}
    model = TruePolicy(weights, biased_logprobs=biased_logprobs)
    choice = choose(model, list(weights), shifts, seed=seed)
    assert {name: math.exp(logprob) for name, logprob in choice.prior.items()} == pytest.approx(model.policy)
    exact = softmax({name: math.log(model.policy[name]) + shifts[name] for name in weights})
    assert choice.probs == pytest.approx(exact)
    by_label = asyncio.run(label_prior(model, "a kitchen", list(weights), task="leave")).prior
    assert dict(choice.prior) == pytest.approx(dict(by_label))


def test_request_has_the_biases():
    model = TruePolicy(WEIGHTS)
    choice = choose(model, seed=7)
    (request,) = model.requests
    assert request.messages[-1].content == label_prompt("a kitchen", "leave", list(WEIGHTS))  # no prompt growth
    assert (request.max_tokens, request.temperature, request.seed) == (1, 1.0, 7)
    ids = {
        name: (model.vocabulary[letter], model.vocabulary[f" {letter}"])
        for letter, name in zip("ABC", WEIGHTS, strict=True)
    }
    assert {token for pair in ids.values() for token in pair} == set(request.logit_bias)
    for name, (plain, blank) in ids.items():
        assert request.logit_bias[plain] == request.logit_bias[blank]
        assert request.logit_bias[plain] == pytest.approx(100 + SHIFTS[name] - max(SHIFTS.values()))
    assert choice.usage.calls == 1
    assert (choice.prior.method, choice.prior.bounded) == ("bias", ())
    assert choice.shifts == SHIFTS


def test_choice_without_logprobs_has_no_prior():
    choice = choose(TruePolicy(WEIGHTS, top=0), seed=1)
    assert choice.action in WEIGHTS
    assert (choice.prior, choice.probs) == (None, None)


def test_missing_letter_is_bounded():
    model = TruePolicy({"x": 0.0, "y": -9.0}, top=4)
    choice = choose(model, ["x", "y"], {"x": 0.0, "y": 0.0}, seed=0)
    assert choice.prior.bounded == ("y",)


def test_single_candidate_costs_no_call():
    choice = choose(ScriptedLLM([]), ["only"], {"only": 3.0})
    assert (choice.action, choice.probs, choice.usage.calls) == ("only", {"only": 1.0}, 0)


def test_cache_stores_one_draw_a_seed(tmp_path):
    model = TruePolicy(WEIGHTS)
    cached = CachedLLM(model, tmp_path / "answers.db")
    first = [choose(cached, seed=seed).action for seed in range(20)]
    assert [choose(cached, seed=seed).action for seed in range(20)] == first
    assert len(set(first)) > 1
    assert len(model.requests) == 20


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.floats(-30, 0), st.floats(-40, 40)), min_size=2, max_size=6),
    st.sampled_from([1e-3, 0.1, 1.0]),
    st.sampled_from([0, 20]),
)
def test_kl_cap_holds_for_every_prior_and_without_logprobs(pairs, cap, top):
    weights = {f"action {i}": weight for i, (weight, _) in enumerate(pairs)}
    requested = {f"action {i}": shift for i, (_, shift) in enumerate(pairs)}
    model = TruePolicy(weights, top=top)
    choice = choose(model, list(weights), requested, seed=1, max_kl_nats=cap)
    own = softmax(weights)
    drawn_from = softmax({name: weights[name] + choice.shifts[name] for name in weights})
    assert sum(p * math.log(p / own[name]) for name, p in drawn_from.items() if p > 0) <= cap + 1e-9
    gaps = {name: (choice.shifts[name], requested[name]) for name in weights}
    by = max(requested.values()) - min(requested.values())
    if by**2 / 8 <= cap:
        assert choice.shifts == requested
    else:  # shrunk alike, and no further than needed
        share = math.sqrt(8 * cap) / by
        assert all(gap == pytest.approx(share * want) for gap, want in gaps.values())
    sent = next(iter(model.requests)).logit_bias
    assert max(sent.values()) - min(sent.values()) <= math.sqrt(8 * cap) + 1e-9


@pytest.mark.parametrize("cap", [0.0, -1.0, math.nan, "much"])
def test_invalid_kl_cap_is_refused(cap):
    with pytest.raises(errors.InputError, match="max_kl_nats"):
        BiasChooser(TruePolicy(WEIGHTS), max_kl_nats=cap)


REFUSED = {
    "too far apart": ({"go north": 0.0, "open fridge": 90.0, "wait": 0.0}, errors.InputError),
    "missing": ({"go north": 0.0, "wait": 0.0}, errors.InputError),
    "unknown": ({**SHIFTS, "dance": 1.0}, errors.InputError),
    "nan": ({**SHIFTS, "wait": math.nan}, errors.InputError),
    "infinite": ({**SHIFTS, "wait": -math.inf}, errors.InputError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_shifts_are_refused_before_any_call(name):
    shifts, error = REFUSED[name]
    model = TruePolicy(WEIGHTS)
    with pytest.raises(error) as raised:
        choose(model, shifts=shifts)
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))
    assert model.requests == []


def test_models_without_bias_or_token_ids_are_refused():
    with pytest.raises(errors.ModelError, match="logit_bias"):
        choose(TruePolicy(WEIGHTS, honours_bias=False))
    with pytest.raises(errors.ConfigError, match="token"):
        choose(ScriptedLLM([]))
    many = [f"action {i}" for i in range(27)]
    with pytest.raises(errors.InputError, match="26"):
        choose(TruePolicy(WEIGHTS), many, dict.fromkeys(many, 0.0))
    with pytest.raises(errors.InputError):
        BiasChooser(ScriptedLLM([]), limit_nats=5)

    class Spells(TruePolicy):
        async def token_ids(self, text):
            return (1, 2)

    with pytest.raises(errors.ConfigError, match="one token"):
        choose(Spells(WEIGHTS))

    class Ignores(TruePolicy):  # claims to honour the bias
        async def complete(self, request):
            self.honours_bias = False
            return await super().complete(request)

    ignored = 0
    for seed in range(20):
        try:
            choose(Ignores(dict.fromkeys(WEIGHTS, -8.0)), seed=seed)
        except errors.ModelAnswerError:
            ignored += 1
    assert ignored > 15


@pytest.mark.slow
def test_label_and_bias_agree_on_the_local_model():
    """400 draws of one token at a fixed shift, against the closed form over the label prior of the same prompt.

    The prefix cache is on, so that every call after the first evaluates the same thing.
    """
    from seasoned.llms import LocalLLM

    async def go():
        llm = LocalLLM(context_tokens=512, threads=1, prefix_cache=True)
        chooser = BiasChooser(llm)
        names, task = ["go north", "open fridge", "wait"], "Find something to eat."
        shifts = {"go north": 0.0, "open fridge": 1.5, "wait": -0.5}
        state = "You are in a kitchen. There is a table, a fridge and a door."
        assert (await llm.capabilities()).biased_logprobs is False
        for _ in range(2):
            prior = (await label_prior(llm, state, names, task=task)).prior
        counts = dict.fromkeys(names, 0)
        for seed in range(400):
            choice = await chooser.choose(state, task, names, shifts, seed)
            counts[choice.action] += 1
            assert dict(choice.prior) == pytest.approx(dict(prior), abs=1e-4)
        await llm.aclose()
        return counts, softmax({name: prior[name] + shifts[name] for name in names}), choice

    counts, probs, choice = asyncio.run(go())
    print(f"label against bias, n = 400: counts {counts}, closed form {probs}, G = {g_statistic(counts, probs):.2f}")
    assert choice.probs == pytest.approx(probs, abs=1e-4)
    assert g_statistic(counts, probs) < LIMIT_2_DEGREES


@pytest.mark.parametrize("shifts", [None, [0.0, 0.0, 0.0], 3, {**SHIFTS, 3: 1.0, None: 2.0}])
def test_shifts_of_other_candidates_are_refused(shifts):
    with pytest.raises(errors.InputError, match="shifts") as raised:
        choose(TruePolicy(WEIGHTS), shifts=shifts)
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))


def test_chooser_without_a_model_is_refused():
    with pytest.raises(errors.InputError, match="LLM"):
        BiasChooser(None)
