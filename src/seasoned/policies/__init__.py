"""Policies: the model alone, the model with memory, and advice for models that show no logprobs."""

from typing import TYPE_CHECKING

from seasoned.lazy_names import lazy_names

if TYPE_CHECKING:
    from seasoned.policies.advice import Advice, AdvisedAction, Advisor
    from seasoned.policies.base_policy import ModelAlone
    from seasoned.policies.calibration.tempered_prior import PriorTemperatures, TemperedPrior
    from seasoned.policies.cascade import CascadePrior, CascadeReader, CascadeReading
    from seasoned.policies.fallback.fail_open import FailOpen, FailOpenAdvisor, FailOpenExamples, MemoryFallback
    from seasoned.policies.holdout import Holdout
    from seasoned.policies.jitrl import JitRL
    from seasoned.policies.jitrl_settings import JitRLSettings
    from seasoned.policies.mixed_prior import AgentChoices, MixedPrior
    from seasoned.policies.placebo.shuffled_returns import ShuffledReturns
    from seasoned.policies.presets import PRESETS
    from seasoned.policies.server_side_decision import decide_on_server

__all__ = [
    "PRESETS",
    "Advice",
    "AdvisedAction",
    "Advisor",
    "AgentChoices",
    "CascadePrior",
    "CascadeReader",
    "CascadeReading",
    "FailOpen",
    "FailOpenAdvisor",
    "FailOpenExamples",
    "Holdout",
    "JitRL",
    "JitRLSettings",
    "MemoryFallback",
    "MixedPrior",
    "ModelAlone",
    "PriorTemperatures",
    "ShuffledReturns",
    "TemperedPrior",
    "decide_on_server",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "seasoned.policies.advice": ["Advice", "AdvisedAction", "Advisor"],
        "seasoned.policies.base_policy": ["ModelAlone"],
        "seasoned.policies.calibration.tempered_prior": ["PriorTemperatures", "TemperedPrior"],
        "seasoned.policies.cascade": ["CascadePrior", "CascadeReader", "CascadeReading"],
        "seasoned.policies.fallback.fail_open": ["FailOpen", "FailOpenAdvisor", "FailOpenExamples", "MemoryFallback"],
        "seasoned.policies.holdout": ["Holdout"],
        "seasoned.policies.jitrl": ["JitRL"],
        "seasoned.policies.jitrl_settings": ["JitRLSettings"],
        "seasoned.policies.mixed_prior": ["AgentChoices", "MixedPrior"],
        "seasoned.policies.placebo.shuffled_returns": ["ShuffledReturns"],
        "seasoned.policies.presets": ["PRESETS"],
        "seasoned.policies.server_side_decision": ["decide_on_server"],
    },
)
