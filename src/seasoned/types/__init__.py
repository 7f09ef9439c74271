"""The vocabulary: what was experienced, what memory knows about it, and what was decided."""

from seasoned.types.decision import Decision, Mode, Prior
from seasoned.types.evidence import Backup, Evidence, Floats, Ints, StateSums
from seasoned.types.experience import (
    Ending,
    Episode,
    Experience,
    Neighbor,
    Step,
    check_finite,
    check_logprobs,
    check_reward,
    check_text,
    normalize_action,
)

__all__ = [
    "Backup",
    "Decision",
    "Ending",
    "Episode",
    "Evidence",
    "Experience",
    "Floats",
    "Ints",
    "Mode",
    "Neighbor",
    "Prior",
    "StateSums",
    "Step",
    "check_finite",
    "check_logprobs",
    "check_reward",
    "check_text",
    "normalize_action",
]
