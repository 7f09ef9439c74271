"""Pure maths on arrays, each function from its equation. NumPy only."""

from seasoned.core.advantage import AdvantageEstimate, AdvantageEstimator
from seasoned.core.change_point import LatestReturns, faded
from seasoned.core.choice_model import ChoiceModel, UtilityEstimate
from seasoned.core.costs import break_even, ratio_interval
from seasoned.core.effects.call_group import CallShapes
from seasoned.core.effects.task_effects import TaskCells, share_of_identifying_steps, task_effects, within_tasks
from seasoned.core.exploration import (
    UCB,
    CandidateStats,
    ConfidenceBonus,
    CountBonus,
    Exploration,
    ExplorationBonus,
    FrontierGraph,
    Thompson,
    frontier_shift,
)
from seasoned.core.gaussian_process import ProcessEstimator, SimilarStates
from seasoned.core.modulation import (
    capped_beta,
    check_beta,
    kl_bound,
    kl_divergence,
    kl_objective,
    log_softmax,
    mix_in,
    moderate,
    modulate,
    redraw_index,
    sample_index,
    softmax,
)
from seasoned.core.returns import check_gamma, discounted_returns, gamma_for_horizon
from seasoned.core.shrinkage import (
    Cells,
    Sums,
    additive_values,
    derived_kappa,
    level_variance,
    noise_variance,
    scatter_variance,
    shared_values,
)
from seasoned.core.similarity import CosineIndex, jaccard, multiset_jaccard
from seasoned.core.statistics import (
    N_RECENT,
    Interval,
    mean_interval,
    recent_moments,
    robust_moments,
    robust_spread,
    t_quantile,
)
from seasoned.core.value_graph import TERMINAL, UNKNOWN, ValueGraph

__all__ = [
    "N_RECENT",
    "TERMINAL",
    "UCB",
    "UNKNOWN",
    "AdvantageEstimate",
    "AdvantageEstimator",
    "CallShapes",
    "CandidateStats",
    "Cells",
    "ChoiceModel",
    "ConfidenceBonus",
    "CosineIndex",
    "CountBonus",
    "Exploration",
    "ExplorationBonus",
    "FrontierGraph",
    "Interval",
    "LatestReturns",
    "ProcessEstimator",
    "SimilarStates",
    "Sums",
    "TaskCells",
    "Thompson",
    "UtilityEstimate",
    "ValueGraph",
    "additive_values",
    "break_even",
    "capped_beta",
    "check_beta",
    "check_gamma",
    "derived_kappa",
    "discounted_returns",
    "faded",
    "frontier_shift",
    "gamma_for_horizon",
    "jaccard",
    "kl_bound",
    "kl_divergence",
    "kl_objective",
    "level_variance",
    "log_softmax",
    "mean_interval",
    "mix_in",
    "moderate",
    "modulate",
    "multiset_jaccard",
    "noise_variance",
    "ratio_interval",
    "recent_moments",
    "redraw_index",
    "robust_moments",
    "robust_spread",
    "sample_index",
    "scatter_variance",
    "share_of_identifying_steps",
    "shared_values",
    "softmax",
    "t_quantile",
    "task_effects",
    "within_tasks",
]
