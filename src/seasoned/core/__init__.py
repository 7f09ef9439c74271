"""Pure maths on arrays, each function from its equation. NumPy only."""

from seasoned.core.advantage import AdvantageEstimator, Estimate
from seasoned.core.exploration import ExplorationBonus
from seasoned.core.modulation import (
    check_beta,
    kl_divergence,
    kl_objective,
    log_softmax,
    mix_in,
    modulate,
    sample_index,
    softmax,
)
from seasoned.core.returns import check_gamma, discounted_returns, gamma_for_horizon
from seasoned.core.similarity import jaccard, multiset_jaccard
from seasoned.core.statistics import Interval, mean_interval, robust_spread, t_quantile

__all__ = [
    "AdvantageEstimator",
    "Estimate",
    "ExplorationBonus",
    "Interval",
    "check_beta",
    "check_gamma",
    "discounted_returns",
    "gamma_for_horizon",
    "jaccard",
    "kl_divergence",
    "kl_objective",
    "log_softmax",
    "mean_interval",
    "mix_in",
    "modulate",
    "multiset_jaccard",
    "robust_spread",
    "sample_index",
    "softmax",
    "t_quantile",
]
