"""Deployed LLM agents that learn from their own episodes at inference time, with no gradient update.

Example:
    >>> from seasoned import Episode, JitRL, Memory, Step
    >>> memory = Memory.open(":memory:")
    >>> for action, reward in [("pay", 1.0), ("pay", 1.0), ("back", 0.0)]:
    ...     _ = memory.add(Episode(task="checkout", steps=[Step("page:cart", action, reward)]))
    >>> decision = JitRL(memory).decide("page:cart", {"pay": -1.4, "back": -0.3}, seed=0)
    >>> decision.probs["pay"] > decision.base_probs["pay"]
    True
"""

from seasoned.errors import SeasonedError
from seasoned.memory import Budget, Memory, Selection
from seasoned.policies import JitRL, ModelAlone
from seasoned.types import (
    Choice,
    Correction,
    Decision,
    Edit,
    Episode,
    Evidence,
    EvidenceQuery,
    Experience,
    Neighbor,
    Outcome,
    OwnAnswer,
    Prior,
    RecallQuery,
    Review,
    Score,
    Step,
    Thumbs,
)

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Choice",
    "Correction",
    "Decision",
    "Edit",
    "Episode",
    "Evidence",
    "EvidenceQuery",
    "Experience",
    "JitRL",
    "Memory",
    "ModelAlone",
    "Neighbor",
    "Outcome",
    "OwnAnswer",
    "Prior",
    "RecallQuery",
    "Review",
    "Score",
    "SeasonedError",
    "Selection",
    "Step",
    "Thumbs",
    "__version__",
]
