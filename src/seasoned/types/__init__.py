"""The vocabulary: what was experienced, what memory knows about it, and what was decided."""

from seasoned.types.decision import Decision, Mode, Prior
from seasoned.types.experience import (
    Ending,
    Episode,
    Evidence,
    Experience,
    Floats,
    Neighbor,
    Step,
    check_finite,
    check_logprobs,
    check_reward,
    check_text,
    normalize_action,
)

__all__ = [
    "Decision",
    "Ending",
    "Episode",
    "Evidence",
    "Experience",
    "Floats",
    "Mode",
    "Neighbor",
    "Prior",
    "Step",
    "check_finite",
    "check_logprobs",
    "check_reward",
    "check_text",
    "normalize_action",
]
