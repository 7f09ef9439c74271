"""The conformance checks pass sound objects, and name the first violation of faulty ones."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from seasoned.checks import check_number, check_text
from seasoned.core import kl_divergence, log_softmax, sample_index, softmax
from seasoned.envs import ContextualBandit, Grid
from seasoned.errors import EnvError, InputError
from seasoned.protocols import Capabilities, Completion, Observation, TokenLogprob, Usage
from seasoned.testing import check_encoder, check_environment, check_judge, check_llm, check_policy
from seasoned.types import Decision

COUNT = itertools.count(1)  # a different number at every call


def raises_for(error, match, check, broken):
    with pytest.raises(error, match=match) as caught:
        check(broken)
    assert caught.value.seen and caught.value.rule and caught.value.next_step


# ------------------------------------------------------------------------------------------------ environments


class Altered(Grid):
    """A sound grid whose observations pass through `alter`, a function of the step and the observation."""

    def __init__(self, alter, **options):
        super().__init__(["S..G"], **({"max_steps": 4, "step_cost": 0.1} | options))
        self.alter, self.steps = alter, 0

    async def reset(self, *, seed=None):
        self.steps = 0
        return self.alter(0, await super().reset(seed=seed))

    async def step(self, action):
        seen = await super().step(action)
        self.steps += 1
        return self.alter(self.steps, seen)


def altered(**fields):
    """Return a factory of environments whose observations after the first step have these fields."""
    return lambda: Altered(lambda step, seen: dataclasses.replace(seen, **fields) if step else seen)


class Lenient(Grid):
    """An environment that executes any action at any time."""

    async def step(self, action):
        return await super().reset()


class Careless(Grid):
    """An environment that refuses with the wrong error."""

    async def step(self, action):
        raise KeyError(action)


class Unseeded(ContextualBandit):
    """An environment that ignores the seed of reset."""

    async def reset(self, *, seed=None):
        return await super().reset(seed=next(COUNT))


class Nameless(Grid):
    name = ""


class Boundless(Grid):
    max_score = math.nan


class Timeless(Grid):
    """An environment whose first observation depends on earlier steps."""

    stepped = False

    async def step(self, action):
        self.stepped = True
        return await super().step(action)

    async def reset(self, *, seed=None):
        first = await super().reset(seed=seed)
        return dataclasses.replace(first, state=f"{first.state} later") if self.stepped else first


class Choosy(Grid):
    """An environment that accepts small seeds only."""

    async def reset(self, *, seed=None):
        if seed is not None and seed >= 2**31:
            raise ValueError(seed)
        return await super().reset(seed=seed)


class Plain(Grid):
    """An environment whose reset is not async."""

    def reset(self, *, seed=None):
        return Observation("a cell", ("east",))


class PlainEnd(Grid):
    def aclose(self):
        return None


def test_sound_environment_passes():
    assert check_environment(lambda: Altered(lambda step, seen: seen), episodes=3) is None


@pytest.mark.parametrize(
    ("make_env", "rule"),
    [
        (altered(state=" "), "a state is not blank"),
        (altered(admissible=["east", "west"]), "a tuple"),
        (altered(admissible=("east", "EAST ")), "distinct"),
        (altered(admissible=()), "an action is admissible"),
        (altered(admissible=("",)), "not blank"),
        (altered(terminated=True, truncated=True), "not terminated and truncated at once"),
        (altered(reward=math.nan), "finite"),
        (altered(score=0.7), "add up"),
        (altered(reward=5.0, score=5.0), "at most max_score"),
        (lambda: Altered(lambda step, seen: dataclasses.replace(seen, reward=1.0)), "begins with reward"),
        (lambda: Altered(lambda step, seen: None if step else seen), "Observation"),
        (lambda: Altered(lambda step, seen: None), "Observation"),
        (lambda: Altered(lambda step, seen: "a cell"), "Observation"),
        (lambda: Plain(["S.G"]), "reset is `async def`"),
        (lambda: PlainEnd(["S.G"]), "aclose is `async def`"),
        (lambda: Lenient(["S.G"]), "raises EnvError"),
        (lambda: Careless(["S.G"]), "raises EnvError"),
        (lambda: Unseeded({c: {"a": 0.0, "b": 1.0} for c in "pqrs"}, noise="gaussian", rounds=9), "equal observations"),
        (lambda: Nameless(["S.G"]), "a name is a text"),
        (lambda: Boundless(["S.G"]), "max_score is finite"),
        (lambda: Timeless(["S.....G"], max_steps=6), "equal first observations"),
        (lambda: Choosy(["S.G"]), "every seed of 32 bits"),
        (object, "it has name"),
    ],
)
def test_faulty_environment_is_refused(make_env, rule):
    raises_for(EnvError, rule, lambda make: check_environment(make, episodes=3), make_env)


# ------------------------------------------------------------------------------------------------ encoders


class Encoder:
    """A sound encoder, unless the arguments change that."""

    def __init__(self, features=lambda text: frozenset(text.lower().split()), identity="test/1"):
        self._features, self._identity = features, identity

    @property
    def identity(self):
        return self._identity() if callable(self._identity) else self._identity

    def features(self, state):
        return self._features(state)


def test_sound_encoder_passes():
    assert check_encoder(Encoder()) is None


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (object(), "it has identity"),
        (Encoder(identity=""), "an identity"),
        (Encoder(identity=lambda: f"test/{next(COUNT)}"), "does not change"),
        (Encoder(lambda text: set(text.split())), "frozenset"),
        (Encoder(lambda text: frozenset(map(len, text.split()))), "a feature is a text"),
        (Encoder(lambda text: frozenset({""})), "not empty"),
        (Encoder(lambda text: frozenset({str(next(COUNT))})), "equal features"),
        (Encoder(lambda text: frozenset({"same"})), "differ"),
    ],
)
def test_faulty_encoder_is_refused(broken, rule):
    raises_for(InputError, rule, check_encoder, broken)


# ------------------------------------------------------------------------------------------------ policies


class SoundPolicy:
    """A policy that returns the candidates' own distribution; `fields` replaces parts of each decision."""

    name = "sound"

    def __init__(self, careful=True, **fields):
        self.careful, self.fields = careful, fields

    def decide(self, state, candidates, *, admissible=None, task=None, step=0, seed=None):
        if self.careful:
            check_text("state", state)
            for logprob in candidates.values():
                check_number("logprob", logprob)
            if not candidates:
                raise InputError("candidates = {}", "one or more", "Pass one.")
        elif not candidates or not all(map(math.isfinite, candidates.values())):
            candidates = {"a": 0.0}
        actions = list(candidates)
        p = softmax(np.array([candidates[a] for a in actions]))
        index = sample_index(p, np.random.default_rng(seed))
        probs = dict(zip(actions, map(float, p), strict=True))
        decision = Decision(
            state=state or "?",
            action=actions[index],
            probs=probs,
            base_probs=dict(probs),
            logprobs=dict(
                zip(actions, map(float, log_softmax(np.array([candidates[a] for a in actions]))), strict=True)
            ),
            advantages=dict.fromkeys(actions, 0.0),
            values=dict.fromkeys(actions),
            counts=dict.fromkeys(actions, 0),
            baseline=None,
            beta=0.0,
            scale=1.0,
            gamma=None,
            kl_nats=0.0,
            mode="base",
            reason="no memory",
            policy="sound",
            propensity=float(p[index]),
        )
        fields = {name: value(decision) if callable(value) else value for name, value in self.fields.items()}
        return dataclasses.replace(decision, **fields)


def uniform(decision):
    return dict.fromkeys(decision.probs, 1.0 / len(decision.probs))


def sharper(decision):
    logits = 2.0 * np.array(list(decision.logprobs.values()))
    return dict(zip(decision.probs, map(float, softmax(logits)), strict=True))


def test_sound_policy_passes():
    assert check_policy(SoundPolicy()) is None
    kl = lambda d: kl_divergence(list(sharper(d).values()), list(d.base_probs.values()))
    assert check_policy(SoundPolicy(probs=sharper, kl_nats=kl, beta=1.0, mode="memory")) is None


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (object(), "it has name"),
        (SoundPolicy(action="elsewhere"), "a key of probs"),
        (SoundPolicy(probs=lambda d: dict.fromkeys(d.probs, 0.7)), "sum to 1"),
        (SoundPolicy(base_probs=lambda d: {**d.base_probs, "more": 0.0}), "the keys of probs"),
        (SoundPolicy(kl_nats=-0.1), "at least 0"),
        (SoundPolicy(kl_nats=0.3), "KL"),
        (SoundPolicy(propensity=0.0), "propensity"),
        (
            SoundPolicy(
                probs=uniform, kl_nats=lambda d: kl_divergence(list(uniform(d).values()), list(d.probs.values()))
            ),
            "probs equals base_probs",
        ),
        (SoundPolicy(action=lambda d: list(d.probs)[next(COUNT) % len(d.probs)]), "equal decisions"),
        (SoundPolicy(careful=False), "refused"),
    ],
)
def test_faulty_policy_is_refused(broken, rule):
    raises_for(InputError, rule, check_policy, broken)


# ------------------------------------------------------------------------------------------------ models


class Model:
    """A model with a fixed completion; `fields` replaces parts of it."""

    name = "model"

    def __init__(self, can=lambda: Capabilities(True, 3), **fields):
        self.can, self.fields, self.closed = can, fields, False

    async def capabilities(self):
        return self.can()

    async def complete(self, request):
        top = tuple(TokenLogprob(t, lp) for t, lp in (("green", -0.1), ("red", -3.0))[: request.top_logprobs])
        answer = Completion("green", "model", Usage(calls=1, prompt_tokens=9, completion_tokens=1), "stop", (top,))
        return dataclasses.replace(answer, **self.fields)

    async def aclose(self):
        self.closed = True


def test_sound_model_passes_and_is_closed():
    model = Model()
    assert check_llm(model) is None
    assert model.closed


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (object(), "it has name"),
        (Model(can=lambda: "all"), "Capabilities"),
        (Model(can=lambda: Capabilities(False, 5)), "0 top logprobs"),
        (Model(can=lambda: Capabilities(True, next(COUNT))), "probed once"),
        (Model(text=b"green"), "a str"),
        (Model(model=""), "names its model"),
        (Model(usage=Usage(calls=1, prompt_tokens=-1)), "negative"),
        (Model(usage=Usage()), "counts as a call"),
        (Model(top_logprobs=((TokenLogprob("green", -0.1),) * 9,)), "at most the requested number"),
        (Model(can=lambda: Capabilities(True, 5), top_logprobs=((),), text=None), "a str"),
    ],
)
def test_faulty_model_is_refused(broken, rule):
    raises_for(InputError, rule, check_llm, broken)


@pytest.mark.parametrize(("logprobs", "rule"), [((0.4, -1.0), "at most 0"), ((-2.0, -0.1), "most likely comes first")])
def test_wrong_top_logprobs_are_refused(logprobs, rule):
    class Wrong(Model):
        async def complete(self, request):
            top = tuple(TokenLogprob("x", lp) for lp in logprobs[: request.top_logprobs])
            return dataclasses.replace(await super().complete(request), top_logprobs=(top,))

    raises_for(InputError, rule, check_llm, Wrong())


# ------------------------------------------------------------------------------------------------ judges


class Opinion:
    def __init__(self, score, source="test"):
        self.source, self._score = source, score

    def score(self, episode):
        return self._score(episode)


def test_sound_judge_passes():
    assert check_judge(Opinion(lambda episode: {len(episode.steps) - 1: 1.0})) is None
    assert check_judge(Opinion(lambda episode: {})) is None


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (object(), "it has source"),
        (Opinion(lambda episode: {}, source=""), "a source"),
        (Opinion(lambda episode: {len(episode.steps): 1.0}), "step index"),
        (Opinion(lambda episode: {"0": 1.0}), "step index"),
        (Opinion(lambda episode: {0: math.nan}), "finite"),
        (Opinion(lambda episode: {0: float(next(COUNT))}), "equal scores"),
    ],
)
def test_faulty_judge_is_refused(broken, rule):
    raises_for(InputError, rule, check_judge, broken)
