"""Policies: the model alone, and the model with memory."""

from seasoned.policies.alone import ModelAlone
from seasoned.policies.jitrl import JitRL
from seasoned.policies.presets import PRESETS
from seasoned.policies.settings import JitRLSettings
from seasoned.policies.shuffled import ShuffledReturns

__all__ = ["PRESETS", "JitRL", "JitRLSettings", "ModelAlone", "ShuffledReturns"]
