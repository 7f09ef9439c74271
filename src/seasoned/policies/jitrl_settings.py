"""Everything that a `JitRL` policy can be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np

from seasoned.checks import check_number
from seasoned.core import AdvantageEstimator, Exploration, check_beta, check_gamma
from seasoned.core.advantage import Baseline, Levels, Scale
from seasoned.errors import InputError, excerpt
from seasoned.types import Backup

__all__ = ["JitRLSettings"]

Unit = Literal["steps", "states"]
ActionSelection = Literal["sample", "argmax"]
PriorScale = Literal["logprobs", "probabilities"]
MemoryBase = Literal["mass", "zero"]

_THRESHOLD_STEPS = 20
_BETA_EPISODES = 50
_RANGES: tuple[tuple[str, str, Callable[[float], bool]], ...] = (
    ("threshold", "a similarity threshold is in [0, 1]", lambda x: 0.0 <= x <= 1.0),
    ("threshold_fall", "it is in [0, 1]; 0 keeps the threshold", lambda x: 0.0 <= x <= 1.0),
    ("all_above", "a similarity threshold is in [0, 1]", lambda x: 0.0 <= x <= 1.0),
    ("kappa", "it is at least 0 steps", lambda x: x >= 0.0),
    ("beta_ramp", "it is at least 0; 0 keeps beta", lambda x: x >= 0.0),
    ("max_kl_nats", "a cap on KL is above 0 nats; None sets none", lambda x: x > 0.0),
    ("memory_prior", "it is a probability in (0, 1)", lambda x: 0.0 < x < 1.0),
    ("memory_return_above", "it is a return", lambda _: True),
    ("similarity_power", "it is at least 0; 0 weighs all alike", lambda x: x >= 0.0),
    ("propensity_floor", "a floor of propensities is in [1e-6, 1]; None weighs all alike", lambda x: 1e-6 <= x <= 1.0),
    ("decay", "a decay per episode is in (0, 1]; 1 forgets nothing", lambda x: 0.0 < x <= 1.0),
)
_CHOICES = {"unit": Unit, "selection": ActionSelection, "prior_scale": PriorScale, "memory_base": MemoryBase}
_OPTIONAL = ("all_above", "kappa", "max_kl_nats", "memory_return_above", "propensity_floor")


@dataclass(frozen=True, slots=True)
class JitRLSettings:
    """Everything that a `JitRL` policy can be told.

    Args:
        k: how many neighbours, in `unit`s.
        unit: `steps`: the k nearest stored steps. `states`: all steps at the k nearest distinct states.
        threshold: smallest similarity of a neighbour, in [0, 1].
        threshold_fall: how far the threshold falls over the first 20 steps of an episode, evenly.
        all_above: all neighbours at this similarity or more count, if there are more than k of them.
        gamma: discount of the returns; None: the memory's own. `seasoned.core.gamma_for_horizon` gives one.
        backup: a `seasoned.types.Backup`, or its beta alone: values come through the memory's graph
            (`seasoned.core.ValueGraph`); None: they are means of the returns that were played.
        baseline, scale, kappa, levels: see `seasoned.core.AdvantageEstimator`.
        exploration: a rule of `seasoned.core.exploration`; None: untried actions are left where the model has them.
        beta: nats per unit of advantage, >= 0.
        beta_ramp: beta grows by this share of itself over the first 50 episodes, evenly.
        max_kl_nats: a decision may spend this much KL at most; beta is lowered until it does.
        min_neighbors: with fewer stored steps among the neighbours, the model's own policy is left as it is.
        clear_only: an advantage whose 95 % interval holds 0 counts as 0; if none is clear, the policy is left.
        selection: `sample` from the policy, or take its `argmax`.
        prior_scale: what advantages are added to: the model's `logprobs`, or its `probabilities` (the public code's
            rule, for comparison: nothing about it is exact).
        memory_actions: whether memory may add actions that the model did not propose (where `admissible` lets it).
        memory_base: such actions together hold `memory_prior` of the base policy (`mass`), or each has the base logit 0
            on the prior's scale (`zero`, as in the paper: among logprobs 0 beats every action of the model).
        memory_prior: joint prior probability of the actions that only memory proposes, in (0, 1).
        memory_return_above: only such actions whose mean return is above this; None: all.
        similarity_power: a neighbour's weight is `similarity^similarity_power`.
        decay: times `decay^age_in_episodes`, in (0, 1].
        propensity_floor: off-policy care: times `1 / max(propensity, floor)`, in [1e-6, 1], so that an action is not
            credited with the states (and times) at which it was likely to be taken. An action's mean is Hajek's (1971),
            its evidence Kish's effective number of steps (1965); a step weighs `1 / floor` at most (Ionides 2008). A
            step without a propensity gets the frequency of its action at its distinct state (Hirano, Imbens and Ridder
            2003). All steps at the neighbours are read: the cost grows with their visits. None: no such weight.
        exclude_same_task: the leave-one-task-out guard: ignore what was stored under the task being played.

    Raises:
        InputError: a value breaks its rule.
    """

    k: int = 10
    unit: Unit = "states"
    threshold: float = 0.8
    threshold_fall: float = 0.0
    all_above: float | None = None
    gamma: float | None = None
    backup: Backup | float | None = None
    baseline: Baseline = "base_policy"
    scale: Scale = "spread"
    kappa: float | None = 1.0
    levels: Levels = "shared"
    exploration: Exploration | None = None
    beta: float = 4.0
    beta_ramp: float = 0.0
    max_kl_nats: float | None = None
    min_neighbors: int = 3
    clear_only: bool = False
    selection: ActionSelection = "sample"
    prior_scale: PriorScale = "logprobs"
    memory_actions: bool = True
    memory_base: MemoryBase = "mass"
    memory_prior: float = 0.1
    memory_return_above: float | None = None
    similarity_power: float = 0.0
    decay: float = 1.0
    propensity_floor: float | None = None
    exclude_same_task: bool = False

    def __post_init__(self) -> None:
        for name, kind, least in (("k", "a number of neighbours", 1), ("min_neighbors", "a number of steps", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InputError(f"{name} = {value!r}", f"{kind} is whole and at least {least}", "Change it.")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in get_args(choices):
                raise InputError(
                    f"{name} = {getattr(self, name)!r}", f"it is one of {', '.join(get_args(choices))}", "Choose one."
                )
        for name in ("exclude_same_task", "memory_actions", "clear_only"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} = {excerpt(getattr(self, name))}", "it is True or False", "Choose one.")
        defaults = {field.name: field.default for field in fields(self)}
        for name, rule, holds in _RANGES:
            value = getattr(self, name)
            if not (value is None and name in _OPTIONAL) and not holds(check_number(name, value)):
                raise InputError(f"{name} = {value!r}", rule, f"The default is {defaults[name]}.")
        if self.exploration is not None and (
            isinstance(self.exploration, type) or not isinstance(self.exploration, Exploration)
        ):
            raise InputError(
                f"exploration = {excerpt(self.exploration)}",
                "exploration is a rule such as ExplorationBonus, or None",
                "Pass seasoned.core.ExplorationBonus(alpha=..., rate=...).",
            )
        if self.max_kl_nats is not None and (self.selection != "sample" or self.prior_scale != "logprobs"):
            raise InputError(
                f"max_kl_nats = {self.max_kl_nats}, selection = {self.selection!r}, prior_scale = {self.prior_scale!r}",
                "a cap on KL holds for actions that are sampled from shifted logprobs",
                "Leave it out, or use selection='sample' and prior_scale='logprobs'.",
            )
        if (self.levels == "own" or self.propensity_floor is not None) and self.unit != "states":
            raise InputError(
                f"levels = {self.levels!r}, propensity_floor = {self.propensity_floor}, unit = 'steps'",
                "levels, and frequencies of actions, are those of distinct states",
                "Use unit='states'.",
            )
        object.__setattr__(self, "backup", _backup(self.backup))
        if self.gamma is not None:
            check_gamma(self.gamma)
        check_beta(self.beta)
        _ = self.estimator  # refuses its own settings

    @property
    def estimator(self) -> AdvantageEstimator:
        """The estimator that these settings configure."""
        return AdvantageEstimator(self.baseline, self.scale, self.kappa, self.exploration, self.levels)

    def threshold_at(self, step: int) -> float:
        """Return the smallest similarity of a neighbour at this step of an episode."""
        return max(0.0, self.threshold - self.threshold_fall * min(step / _THRESHOLD_STEPS, 1.0))

    def beta_after(self, episodes: int) -> float:
        """Return beta once the memory was given so many episodes."""
        return self.beta * (1.0 + self.beta_ramp * min(episodes / _BETA_EPISODES, 1.0))


def _backup(value: object) -> Backup | None:
    if value is None or isinstance(value, Backup):
        return value
    beta = check_number("backup", value)
    if beta < 0.0:
        raise InputError(f"backup = {beta}", "the beta of a backup is at least 0", "Pass Backup(beta=4.0), say.")
    return Backup(beta)
