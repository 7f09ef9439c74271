"""Arms of `decisions.py` that need no other library: memory policies, their placebo, and two without learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from seasoned import Episode, JitRL, Memory, Step
from seasoned.lab.arms.preset_settings import preset_settings
from seasoned.policies import PRESETS, ShuffledReturns
from seasoned.states.encoder_names import named_encoder

__all__ = ["ARMS", "Arm", "ArmKind", "Choice", "draw"]


class Choice(NamedTuple):
    """The chosen option, and the probability with which it was chosen."""

    option: str
    propensity: float


class Arm(Protocol):
    """One way to decide and learn. `prior` maps each option to the model's logprob."""

    def decide(self, text: str, prior: Mapping[str, float], rng: np.random.Generator) -> Choice:
        """Choose an option for a sentence; every random number comes from `rng`."""
        ...

    def learn(self, text: str, prior: Mapping[str, float], choice: Choice, reward: float) -> None:
        """Learn from the reward of an earlier choice.

        For an arm with full information, `choice` is the right option, after every round, and `reward` is 1.
        """
        ...


class ArmKind(NamedTuple):
    """A kind of arm.

    Args:
        about: what it is, in words.
        make: makes it from the options of the task, a seed, and settings by name.
        needs: the libraries that it needs.
        full: it learns the right option of every round, at once and without noise.
    """

    about: str
    make: Callable[..., Arm]
    needs: tuple[str, ...] = ()
    full: bool = False


def draw(options: Sequence[str], probs: Any, rng: np.random.Generator) -> Choice:
    """Draw an option with probabilities that may not quite sum to 1."""
    p = np.asarray(probs, dtype=np.float64)
    p = p / p.sum()
    i = int(rng.choice(len(options), p=p))
    return Choice(options[i], float(p[i]))


class Unlearned:
    """Draws from the prior to a power, and never learns: 0 is uniform, 1 the prior, infinity its likeliest option."""

    def __init__(self, power: float) -> None:
        self._power = power

    def decide(self, text: str, prior: Mapping[str, float], rng: np.random.Generator) -> Choice:
        logprobs = np.array(list(prior.values()))
        behind = logprobs - logprobs.max()
        probs = np.ones(len(behind))
        probs[behind < 0.0] = np.exp(self._power * behind[behind < 0.0])
        return draw(list(prior), probs, rng)

    def learn(self, text: str, prior: Mapping[str, float], choice: Choice, reward: float) -> None:
        pass


class MemoryPolicy:
    """`JitRL` over a memory of its own; each round is an episode of one step, stored when its reward arrives.

    The setting `encoder` names the memory's encoder; the others are the preset's.
    """

    def __init__(self, preset: str, seed: int, settings: Mapping[str, Any], *, placebo: bool = False) -> None:
        others = dict(settings)
        self._memory = Memory.open(":memory:", encoder=named_encoder(others.pop("encoder", "words")))
        name, changes = preset_settings({"preset": preset, **others})
        source: Any = ShuffledReturns(self._memory, seed) if placebo else self._memory
        self._policy = JitRL.preset(name, source, **changes)

    def decide(self, text: str, prior: Mapping[str, float], rng: np.random.Generator) -> Choice:
        decision = self._policy.decide(text, prior, seed=int(rng.integers(2**31)))
        return Choice(decision.action, decision.propensity)

    def learn(self, text: str, prior: Mapping[str, float], choice: Choice, reward: float) -> None:
        step = Step(text, choice.option, reward, prior=prior, propensity=choice.propensity)
        self._memory.add(Episode("decisions", [step]))


def _memory_kind(preset: str) -> ArmKind:
    return ArmKind(
        f"JitRL over a memory, preset {preset}", lambda options, seed, **settings: MemoryPolicy(preset, seed, settings)
    )


ARMS: dict[str, ArmKind] = {
    "uniform": ArmKind("each option with the same probability", lambda options, seed: Unlearned(0.0)),
    "alone": ArmKind("the model's prior alone", lambda options, seed: Unlearned(1.0)),
    "likeliest": ArmKind("the model's likeliest option", lambda options, seed: Unlearned(np.inf)),
    **{preset: _memory_kind(preset) for preset in PRESETS},
    "placebo": ArmKind(
        "preset default with the stored returns shuffled",
        lambda options, seed, **settings: MemoryPolicy("default", seed, settings, placebo=True),
    ),
}
