"""Settings of the `JitRL` policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from seasoned.checks import check_flag, check_number, check_one_of, check_whole
from seasoned.core import AdvantageEstimator, Exploration, ProcessEstimator, check_beta, check_gamma
from seasoned.core.advantage import Baseline, Levels, Scale
from seasoned.errors import InputError, excerpt
from seasoned.types import Backup
from seasoned.types.queries import Similarity

__all__ = ["JitRLSettings", "check_used"]

Unit = Literal["steps", "states"]
ActionSelection = Literal["sample", "argmax"]
PriorScale = Literal["logprobs", "probabilities"]
MemoryBase = Literal["mass", "zero"]
Estimation = Literal["means", "process"]
ChoiceUse = Literal["comparisons", "rewards"]

_THRESHOLD_STEPS = 20
_BETA_EPISODES = 50
_RANGES: dict[str, dict[str, Any]] = {
    "threshold": {"at_least": 0, "at_most": 1},
    "threshold_fall": {"at_least": 0, "at_most": 1},
    "all_above": {"at_least": 0, "at_most": 1},
    "kappa": {"at_least": 0},
    "beta_ramp": {"at_least": 0},
    "max_kl_nats": {"above": 0},
    "memory_prior": {"above": 0, "below": 1},
    "memory_return_above": {},
    "similarity_power": {"at_least": 0},
    "propensity_floor": {"at_least": 1e-6, "at_most": 1},
    "decay": {"above": 0, "at_most": 1},
    "nats_per_step": {"above": 0},
    "change_rate": {"at_least": 0, "at_most": 0.5},
    "moderation": {"at_least": 0, "at_most": 1},
}
_OPTIONAL = ("all_above", "kappa", "max_kl_nats", "memory_return_above", "nats_per_step", "propensity_floor")
_OF_MEANS = ("baseline", "scale", "kappa", "levels", "exploration", "similarity_power", "propensity_floor")
_NEUTRAL: dict[str, Any] = {"exploration": None, "similarity_power": 0.0, "propensity_floor": None}
_CHOICES = {
    "unit": Unit,
    "selection": ActionSelection,
    "prior_scale": PriorScale,
    "memory_base": MemoryBase,
    "similarity": Similarity,
    "estimation": Estimation,
    "choices": ChoiceUse,
}


@dataclass(frozen=True, slots=True)
class JitRLSettings:
    """The settings of a `JitRL` policy. The defaults are the preset `default`.

    Args:
        k: the number of neighbours, in `unit`s.
        unit: `steps`: the k nearest stored steps. `states`: all steps at the k nearest distinct states.
        threshold: the smallest similarity of a neighbour, in [0, 1].
        threshold_fall: the linear fall of the threshold over the first 20 steps of an episode, in [0, 1].
        all_above: all neighbours at this similarity or more count, if there are more than k of them.
        gamma: discount of the returns; None: the memory's own. `seasoned.core.gamma_for_horizon` computes one.
        backup: a `seasoned.types.Backup`, or its beta alone: values are backed up through the memory's graph
            (`seasoned.core.ValueGraph`); None: values are means of the stored returns.
        baseline, scale, kappa, levels: of `estimation="means"`; see `seasoned.core.AdvantageEstimator`.
        exploration: of `estimation="means"`: a rule of `seasoned.core.exploration`; None: untried actions get no shift
            from exploration.
        beta: nats per unit of advantage, >= 0. The unit of `process` is the standard deviation of the latest returns.
        beta_ramp: the linear growth of beta over the first 50 episodes, as a share of beta.
        max_kl_nats: the largest KL of a decision; beta is lowered to meet it. None: no cap.
        min_neighbors: with fewer stored steps among the neighbours, the decision is the model's own policy.
        clear_only: an advantage whose 95 % interval contains 0 counts as 0; if none is clear, the decision is the
            model's own policy.
        selection: `sample` from the policy, or take its `argmax`.
        prior_scale: advantages are added to the model's `logprobs`, or to its `probabilities` (the rule of the public
            code, for comparison; it has no exact property).
        memory_actions: whether memory may add admissible actions that the model did not propose.
        memory_base: such actions together have `memory_prior` of the base policy (`mass`), or each has the base logit 0
            on the prior's scale (`zero`, as in the paper: among logprobs 0 beats every action of the model).
        memory_prior: joint prior probability of the actions that memory adds, in (0, 1).
        memory_return_above: memory adds only actions whose mean return is above this; None: all.
        similarity_power: of `estimation="means"`: a neighbour's weight is `similarity^similarity_power`.
        decay: times `decay^age_in_episodes`, in (0, 1].
        propensity_floor: of `estimation="means"`: off-policy correction: times `1 / max(propensity, floor)`, in
            [1e-6, 1], so that an action is not credited with the states (and times) at which it was likely to be taken.
            An action's mean is Hajek's (1971), its evidence Kish's effective number of steps (1965); a step weighs at
            most `1 / floor` (Ionides 2008). A step without a propensity gets the frequency of its action at its
            distinct state (Hirano, Imbens and Ridder 2003). All steps at the neighbours are read: the cost grows with
            their visits. None: no such weight.
        exclude_same_task: the leave-one-task-out guard: ignore the steps stored under the task being played. How rare a
            feature is still counts over the states of all tasks.
        similarity: of states: `jaccard`, the share of common features; `rarity`, the cosine of feature sets by their
            words and character 4-grams, of which rare ones weigh more.
        estimation: of values: `means`, by `seasoned.core.AdvantageEstimator`, or `process`, a Gaussian process over the
            similar states (`seasoned.core.ProcessEstimator`), with the mean and the spread of the latest returns, and
            its default shares of level and noise. Returns are compared within tasks where actions tell tasks apart and
            states do not (`seasoned.core.within_tasks`), and calls of one tool lend to each other
            (`seasoned.core.CallShapes`). It needs `similarity="rarity"`, and refuses every setting that is of
            `means` alone.
        nats_per_step: a decision spends at most so many nats of KL for each stored step at the neighbours, a step
            counting by the similarity of its state, and a choice like a step: beta is lowered to meet it. None: no such
            cap.
        change_rate: of `process`: the prior probability that a state changes between two of its steps, in [0, 0.5]; a
            step counts with the probability that its state has not changed since (`seasoned.core.faded`), except with
            a `decay` or a `backup`. 0: never.
        choices: `comparisons`: a choice of people or judges among N options is one observation of their utilities
            (`seasoned.core.ChoiceModel`), in nats, which are added to the logits beside `beta * A`; its N - 1 other
            answers are no steps. `rewards`: each of the N answers is a stored step with a reward, as in search and in
            prompts; so too with `unit="steps"`, `backup` or `propensity_floor`.
        moderation: of `process`, in [0, 1]: the evidence against an action counts less the less is known about it
            (`seasoned.core.moderate`), with this share of its deviation (`seasoned.core.ProcessEstimator`), times
            `k^8`, k the similarity of the nearest state. 1: an untried action at a state that comes back is taken about
            as often as it may be the best; for long games. 0: uncertainty changes nothing.
        frontier: of `process`: while the task is on a plateau (its latest episodes earned nothing, or all the same
            while there are untried actions; see `EvidenceQuery`), go back to the nearest action that nobody tried,
            through the graph of stored steps, from states after which the task never paid, for no more nats than the
            entropy of the model's own policy (`seasoned.core.FrontierGraph`, `frontier_shift`). `True`: the task's
            environment pays, from its first episode on. `None`: only where the memory says so, since a task that nobody
            rates has rewards of 0 too, and the model's choices would be explored against. `False`: never.
        prior_slope: of `process`: where returns rise with the probability that the model gave to the action taken, an
            action that the model prefers is expected to return more (`seasoned.core.prior_slope`). Steps with a `prior`
            tell of it; an even policy says nothing.

    Raises:
        InputError: a value breaks its rule.
    """

    k: int = 64
    unit: Unit = "states"
    threshold: float = 0.0
    threshold_fall: float = 0.0
    all_above: float | None = None
    gamma: float | None = None
    backup: Backup | float | None = None
    baseline: Baseline = "base_policy"
    scale: Scale = "spread"
    kappa: float | None = 1.0
    levels: Levels = "shared"
    exploration: Exploration | None = None
    beta: float = 50.0
    beta_ramp: float = 0.0
    max_kl_nats: float | None = None
    min_neighbors: int = 1
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
    similarity: Similarity = "rarity"
    estimation: Estimation = "process"
    nats_per_step: float | None = 1.0
    change_rate: float = 0.002
    choices: ChoiceUse = "comparisons"
    moderation: float = 0.5
    frontier: bool | None = None
    prior_slope: bool = True

    def __post_init__(self) -> None:
        check_whole("k", self.k, 1)
        check_whole("min_neighbors", self.min_neighbors, 0)
        for name, choices in _CHOICES.items():
            check_one_of(name, getattr(self, name), get_args(choices))
        for name in ("exclude_same_task", "memory_actions", "clear_only", "prior_slope"):
            check_flag(name, getattr(self, name))
        defaults = {field.name: field.default for field in fields(self)}
        for name, bounds in _RANGES.items():
            if not (getattr(self, name) is None and name in _OPTIONAL):
                check_number(name, getattr(self, name), **bounds, next_step=f"The default is {defaults[name]}.")
        if self.exploration is not None and (
            isinstance(self.exploration, type) or not isinstance(self.exploration, Exploration)
        ):
            raise InputError(
                f"exploration = {excerpt(self.exploration)}",
                "exploration must be a rule such as ExplorationBonus, or None",
                "Pass seasoned.core.ExplorationBonus(alpha=..., rate=...).",
            )
        capped = "max_kl_nats" if self.max_kl_nats is not None else "nats_per_step"
        if getattr(self, capped) is not None and (self.selection != "sample" or self.prior_scale != "logprobs"):
            raise InputError(
                f"{capped} = {getattr(self, capped)}, selection = {self.selection!r}, "
                f"prior_scale = {self.prior_scale!r}",
                "a cap on KL needs actions that are sampled from shifted logprobs",
                f"Use {capped}=None, or selection='sample' and prior_scale='logprobs'.",
            )
        if self.estimation == "process" and self.similarity != "rarity":
            raise InputError(
                f"estimation = 'process', similarity = {self.similarity!r}",
                "the Gaussian process needs similarity by rarity",
                "Use similarity='rarity', or JitRL.preset('means', memory).",
            )
        if max(self.change_rate, self.moderation) > 0.0 and self.estimation != "process":
            raise InputError(
                f"change_rate = {self.change_rate}, moderation = {self.moderation}, estimation = {self.estimation!r}",
                "fading and moderation are of the process alone",
                "Use decay or exploration=Thompson(), or estimation='process'.",
            )
        if self.similarity == "rarity" and self.all_above is not None:
            raise InputError(
                f"similarity = 'rarity', all_above = {self.all_above}",
                "states by rarity are compared with each other, so there must be a limit to their number",
                "Use all_above=None and a k, or JitRL.preset('means', memory, all_above=...).",
            )
        if (self.nats_per_step is not None or self.similarity == "rarity") and self.unit != "states":
            raise InputError(
                f"nats_per_step = {self.nats_per_step}, similarity = {self.similarity!r}, unit = 'steps'",
                "nats_per_step and similarity by rarity are of distinct states",
                "Use unit='states', or JitRL.preset('means', memory, unit='steps').",
            )
        if (self.levels == "own" or self.propensity_floor is not None) and self.unit != "states":
            raise InputError(
                f"levels = {self.levels!r}, propensity_floor = {self.propensity_floor}, unit = 'steps'",
                "levels and propensity_floor need sums by distinct state",
                "Use unit='states'.",
            )
        object.__setattr__(self, "backup", _backup(self.backup))
        if self.gamma is not None:
            check_gamma(self.gamma)
        check_beta(self.beta)
        _ = self.estimator  # checks its own settings
        _check_frontier(self)
        check_used(self, {name: getattr(self, name) for name in _OF_MEANS if getattr(self, name) != defaults[name]})

    @property
    def estimator(self) -> AdvantageEstimator:
        """The estimator that these settings configure."""
        return AdvantageEstimator(self.baseline, self.scale, self.kappa, self.exploration, self.levels)

    @property
    def process(self) -> ProcessEstimator:
        """The estimator of `estimation="process"`."""
        return ProcessEstimator()

    @property
    def compares_choices(self) -> bool:
        """Whether a choice counts as one comparison, not as rewards of steps."""
        plain = self.unit == "states" and self.backup is None and self.propensity_floor is None
        return self.choices == "comparisons" and plain

    @property
    def uses_labels(self) -> bool:
        """Whether a label is an observation of every option of its decision, also of those that no step took."""
        return self.estimation == "process" and self.backup is None

    @property
    def explores_frontier(self) -> bool | None:
        """`frontier`, or False where the settings leave no frontier to explore."""
        return self.frontier if self.estimation == "process" and not self.exclude_same_task else False

    @property
    def reads_leads(self) -> bool:
        """Whether the model's own policy counts in the expected return."""
        return self.prior_slope and self.estimation == "process" and self.backup is None

    def threshold_at(self, step: int) -> float:
        """Return the smallest similarity of a neighbour at this step of an episode."""
        return max(0.0, self.threshold - self.threshold_fall * min(step, _THRESHOLD_STEPS) / _THRESHOLD_STEPS)

    def beta_after(self, episodes: int) -> float:
        """Return beta when the memory holds this number of episodes."""
        return self.beta * (1.0 + self.beta_ramp * min(episodes / _BETA_EPISODES, 1.0))


def _check_frontier(settings: JitRLSettings) -> None:
    if settings.frontier is None:
        return
    if check_flag("frontier", settings.frontier) and (settings.estimation != "process" or settings.exclude_same_task):
        raise InputError(
            f"frontier = True, estimation = {settings.estimation!r}, exclude_same_task = {settings.exclude_same_task}",
            "the frontier is of the process, and of all stored steps",
            "Use estimation='process' and exclude_same_task=False.",
        )


def check_used(settings: JitRLSettings, given: Mapping[str, Any]) -> None:
    """Refuse given settings of the means if these settings estimate values by the process, which does not use them.

    `exploration=None`, `similarity_power=0` and `propensity_floor=None` hold for the process too.

    Raises:
        InputError: one of them is of the means alone.
    """
    if settings.estimation == "means":
        return
    for name in _OF_MEANS:
        if name in given and not (name in _NEUTRAL and given[name] == _NEUTRAL[name]):
            raise InputError(
                f"{name} = {excerpt(given[name])}, estimation = 'process'",
                f"{name} is a setting of the means, which the Gaussian process does not use",
                f"Use JitRL.preset('means', memory, {name}=...), or leave it out.",
            )


def _backup(value: object) -> Backup | None:
    if value is None or isinstance(value, Backup):
        return value
    return Backup(check_number("backup", value, at_least=0, next_step="Pass Backup(beta=4.0), for example."))
