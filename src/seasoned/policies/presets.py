"""Named settings of the one estimator, so that anyone can reproduce each source."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from seasoned.core import AdvantageEstimator, ExplorationBonus, check_beta, check_gamma
from seasoned.core.advantage import Baseline, Scale
from seasoned.errors import InputError, UnknownNameError, excerpt
from seasoned.registry import suggest
from seasoned.types import check_finite

__all__ = ["PRESETS", "JitRLSettings", "preset"]

Unit = Literal["steps", "states"]
Selection = Literal["sample", "argmax"]

_RANGES: tuple[tuple[str, str, Callable[[float], bool]], ...] = (
    ("threshold", "a similarity threshold is in [0, 1]", lambda x: 0.0 <= x <= 1.0),
    ("kappa", "it is at least 0 steps", lambda x: x >= 0.0),
    ("memory_prior", "it is a probability in (0, 1)", lambda x: 0.0 < x < 1.0),
    ("similarity_power", "it is at least 0; 0 weighs all alike", lambda x: x >= 0.0),
    ("decay", "a decay per episode is in (0, 1]; 1 forgets nothing", lambda x: 0.0 < x <= 1.0),
)


@dataclass(frozen=True, slots=True)
class JitRLSettings:
    """Everything that a `JitRL` policy can be told.

    Args:
        k: how many neighbours, in `unit`s.
        unit: `steps`: the k nearest stored steps. `states`: all steps at the k nearest distinct states.
        threshold: smallest similarity of a neighbour, in [0, 1].
        gamma: discount of the returns; None: the memory's own. `seasoned.core.gamma_for_horizon` gives one.
        baseline, scale, kappa: see `seasoned.core.AdvantageEstimator`.
        exploration: bonus for untried actions; None: they are left where the model has them.
        beta: nats per unit of advantage, >= 0.
        min_neighbors: with fewer stored steps among the neighbours, the model's own policy is left as it is.
        selection: `sample` from the policy, or take its `argmax`.
        memory_prior: joint prior probability of the actions that only memory proposes, in (0, 1).
        similarity_power: a neighbour's weight is `similarity^similarity_power`.
        decay: times `decay^age_in_episodes`, in (0, 1].
        exclude_same_task: the leave-one-task-out guard: ignore what was stored under the task being played.
        memory_actions: whether memory may add actions that the model did not propose (where `admissible` lets it).

    Raises:
        InputError: a value breaks its rule.
    """

    k: int = 10
    unit: Unit = "states"
    threshold: float = 0.8
    gamma: float | None = None
    baseline: Baseline = "base_policy"
    scale: Scale = "spread"
    kappa: float = 1.0
    exploration: ExplorationBonus | None = None
    beta: float = 4.0
    min_neighbors: int = 3
    selection: Selection = "sample"
    memory_prior: float = 0.1
    similarity_power: float = 0.0
    decay: float = 1.0
    exclude_same_task: bool = False
    memory_actions: bool = True

    def __post_init__(self) -> None:
        for name, kind, least in (("k", "a number of neighbours", 1), ("min_neighbors", "a number of steps", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InputError(f"{name} = {value!r}", f"{kind} is whole and at least {least}", "Change it.")
        for name, choices in (("unit", get_args(Unit)), ("selection", get_args(Selection))):
            if getattr(self, name) not in choices:
                raise InputError(
                    f"{name} = {getattr(self, name)!r}", f"it is one of {', '.join(choices)}", "Choose one."
                )
        for name in ("exclude_same_task", "memory_actions"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} = {excerpt(getattr(self, name))}", "it is True or False", "Choose one.")
        for name, rule, holds in _RANGES:
            if not holds(check_finite(name, value := getattr(self, name))):
                raise InputError(f"{name} = {value!r}", rule, f"The default is {getattr(PRESETS['default'], name)}.")
        if self.exploration is not None and not isinstance(self.exploration, ExplorationBonus):
            raise InputError(
                f"exploration = {excerpt(self.exploration)}",
                "exploration is an ExplorationBonus or None",
                "Pass seasoned.core.ExplorationBonus(alpha=..., rate=...).",
            )
        if self.gamma is not None:
            check_gamma(self.gamma)
        check_beta(self.beta)
        _ = self.estimator  # refuses its own settings

    @property
    def estimator(self) -> AdvantageEstimator:
        """The estimator that these settings configure."""
        return AdvantageEstimator(self.baseline, self.scale, self.kappa, self.exploration)


PRESETS: dict[str, JitRLSettings] = {
    "default": JitRLSettings(),
    # The method as its written description gives it.
    "seed": JitRLSettings(
        k=10, unit="steps", threshold=0.8, gamma=0.95, baseline="neighbors", scale="none", kappa=0.0,
        exploration=ExplorationBonus(alpha=0.1, rate=0.3), beta=1.0, min_neighbors=3,
    ),
    # The short listing beside it: every untried action gets V + 5/n, and the best action is taken.
    "snippet": JitRLSettings(
        k=10, unit="steps", threshold=0.0, gamma=0.9, baseline="neighbors", scale="none", kappa=0.0,
        exploration=ExplorationBonus(alpha=5.0, rate=1.0), beta=1.0, min_neighbors=0, selection="argmax",
        memory_actions=False,
    ),
}  # fmt: skip
"""Preset name to settings. `paper-*` and `released-*` will join them."""


def preset(name: str, **overrides: Any) -> JitRLSettings:
    """Return a preset's settings, with some of them changed.

    Raises:
        UnknownNameError: no preset has this name.
        InputError: no setting has this name, a value breaks its rule, or the name is not a str.

    Example:
        >>> preset("seed", exploration=None).k
        10
    """
    if not isinstance(name, str):
        raise InputError(f"preset {excerpt(name)}", f"a preset's name is a str, not {type(name).__name__}", "Name one.")
    if name not in PRESETS:
        raise UnknownNameError(f"preset {excerpt(name)}", "no preset has this name", suggest(name, PRESETS))
    known = [field.name for field in dataclasses.fields(JitRLSettings)]
    for given in overrides:
        if given not in known:
            raise InputError(f"setting {given!r}", "JitRL has no such setting", suggest(given, known))
    return dataclasses.replace(PRESETS[name], **overrides)
