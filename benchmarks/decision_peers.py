"""Arms of `decisions.py` from other libraries: Vowpal Wabbit, LinUCB and LinTS, and a learner with full information.

Their settings were chosen from a grid by the mean reward on the tasks `domains` and `desks-8` at seeds 100 and 101.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from decision_arms import ArmKind, Choice, draw

__all__ = ["PEERS"]

_BITS = 20
_FEATURES = 512  # of LinUCB and LinTS, whose round costs the square of it


class VowpalWabbit:
    """Vowpal Wabbit's contextual bandit over words and word pairs.

    The cost is `cost_offset` - reward, by default 1 - reward, so that an untried option looks best. With `adf` options
    have features: their number, joined with every word of the sentence, and their prior if there is one. Without it,
    options are numbers and the prior is not used.
    """

    def __init__(
        self, arguments: str, options: tuple[str, ...], seed: int, settings: Mapping[str, Any], *, adf: bool
    ) -> None:
        values = dict(settings)
        self._offset = float(values.pop("cost_offset", 1.0))
        self._options, self._adf = options, adf
        form = "--cb_explore_adf -q wa" if adf else f"--cb_explore {len(options)}"
        self._workspace = _workspace(f"{form} {arguments}", seed, values)

    def decide(self, text: str, prior: Mapping[str, float], rng: np.random.Generator) -> Choice:
        return draw(self._options, self._workspace.predict(self._example(text, prior)), rng)

    def learn(self, text: str, prior: Mapping[str, float], choice: Choice, reward: float) -> None:
        self._workspace.learn(self._example(text, prior, choice, reward))

    def _example(self, text: str, prior: Mapping[str, float], choice: Choice | None = None, reward: float = 0.0) -> str:
        words = " ".join(_words(text))
        cost = self._offset - reward
        if not self._adf:
            label = "" if choice is None else f"{self._options.index(choice.option) + 1}:{cost}:{choice.propensity} "
            return f"{label}|w {words}"
        known = len(set(prior.values())) > 1
        lines = [f"shared |w {words}"]
        for i, option in enumerate(self._options):
            label = f"0:{cost}:{choice.propensity} " if choice is not None and choice.option == option else ""
            lines.append(f"{label}|a o{i}" + (f" |p logprob:{prior[option]:.6f}" if known else ""))
        return "\n".join(lines)


class VowpalWabbitLabels:
    """Vowpal Wabbit's one-against-all logistic regression on every label; the likeliest option."""

    def __init__(self, options: tuple[str, ...], seed: int, settings: Mapping[str, Any]) -> None:
        self._options = options
        self._workspace = _workspace(f"--oaa {len(options)} --loss_function logistic", seed, settings)

    def decide(self, text: str, prior: Mapping[str, float], rng: np.random.Generator) -> Choice:
        return Choice(self._options[int(self._workspace.predict(f"|w {' '.join(_words(text))}")) - 1], 1.0)

    def learn(self, text: str, prior: Mapping[str, float], choice: Choice, reward: float) -> None:
        self._workspace.learn(f"{self._options.index(choice.option) + 1} |w {' '.join(_words(text))}")


class LinearBandit:
    """LinUCB or LinTS of the package contextualbandits, over 512 hashed words and word pairs."""

    def __init__(self, name: str, options: tuple[str, ...], seed: int, settings: Mapping[str, Any]) -> None:
        from contextualbandits import online

        self._options = options
        self._model = getattr(online, name)(len(options), random_state=seed + 1, njobs=1, **settings)
        self._fitted = False

    def decide(self, text: str, prior: Mapping[str, float], rng: np.random.Generator) -> Choice:
        if not self._fitted:
            return draw(self._options, np.ones(len(self._options)), rng)
        return Choice(self._options[int(self._model.predict(self._features(text))[0])], 1.0)

    def learn(self, text: str, prior: Mapping[str, float], choice: Choice, reward: float) -> None:
        chosen = np.array([self._options.index(choice.option)])
        self._model.partial_fit(self._features(text), chosen, np.array([reward]))
        self._fitted = True

    def _features(self, text: str) -> np.ndarray[Any, Any]:
        """Shape (1, _FEATURES): signed counts of hashed words and word pairs, of length 1."""
        row, words = np.zeros((1, _FEATURES)), _words(text)
        for feature in (*words, *map(" ".join, itertools.pairwise(words))):
            code = zlib.crc32(feature.encode())
            row[0, code // 2 % _FEATURES] += 1.0 if code % 2 else -1.0
        return row / max(1e-9, float(np.linalg.norm(row)))


def _workspace(arguments: str, seed: int, settings: Mapping[str, Any]) -> Any:
    from vowpalwabbit import Workspace

    added = " ".join(f"--{name} {value}" for name, value in settings.items())
    return Workspace(f"{arguments} --ngram w2 -b {_BITS} --random_seed {seed + 1} --quiet {added}")


def _words(text: str) -> list[str]:
    """The words of a text, without characters that have a meaning in Vowpal Wabbit's format."""
    return re.findall(r"\w+", text.lower())


def _vw(rule: str, *, adf: bool = False, flag: bool = False, **defaults: Any) -> ArmKind:
    """An exploration rule of Vowpal Wabbit; `flag`: it is switched on by its name, else by its value."""
    arguments = f"--{rule}" if flag else ""
    return ArmKind(
        f"Vowpal Wabbit, --cb_explore{'_adf' * adf} --{rule}",
        lambda options, seed, **settings: VowpalWabbit(arguments, options, seed, {**defaults, **settings}, adf=adf),
        ("vowpalwabbit",),
    )


def _linear(name: str, **defaults: Any) -> ArmKind:
    return ArmKind(
        f"{name}, {_FEATURES} hashed words and word pairs",
        lambda options, seed, **settings: LinearBandit(name, options, seed, {**defaults, **settings}),
        ("contextualbandits",),
    )


PEERS: dict[str, ArmKind] = {
    "vw-epsilon": _vw("epsilon", epsilon=0.02),
    "vw-cover": _vw("cover", cover=4, psi=0.01, epsilon=0.01),
    "vw-squarecb": _vw("squarecb", flag=True, gamma_scale=500),
    "vw-softmax": _vw("softmax", flag=True, **{"lambda": 100}),
    "vw-adf-epsilon": _vw("epsilon", adf=True, epsilon=0.02),
    "vw-adf-cover": _vw("cover", adf=True, cover=4, psi=0.01, epsilon=0.01),
    "vw-adf-squarecb": _vw("squarecb", adf=True, flag=True, gamma_scale=200, learning_rate=0.25),
    "vw-adf-softmax": _vw("softmax", adf=True, flag=True, **{"lambda": 100}),
    "linucb": _linear("LinUCB", alpha=0.3, lambda_=0.1),
    "lints": _linear("LinTS", v_sq=0.01, lambda_=0.1, sample_from="ci", method="sm", use_float=True),
    "full": ArmKind(
        "full information: Vowpal Wabbit's logistic regression, --oaa",
        lambda options, seed, **settings: VowpalWabbitLabels(options, seed, settings),
        ("vowpalwabbit",),
        full=True,
    ),
}
