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

from typing import TYPE_CHECKING

from seasoned.errors import SeasonedError
from seasoned.lazy_names import lazy_names

if TYPE_CHECKING:
    from seasoned.agents import Agent
    from seasoned.build import open_memory
    from seasoned.decisions import Decider
    from seasoned.integrations.clients import episode, wrap
    from seasoned.llms import LabelReader, VerbalizedReader, VotesReader, open_llm, reader_for
    from seasoned.memory import Budget, Memory, Selection
    from seasoned.policies import FailOpen, JitRL, ModelAlone
    from seasoned.policies.advice import Advisor
    from seasoned.policies.examples import ExampleQuery, Examples
    from seasoned.policies.holdout import Holdout
    from seasoned.protocols import ChatContext, CompletionRequest, Message, Tool
    from seasoned.states import ALL_MASKS, Redactor, SubwordEncoder, TemplateEncoder, TokenEncoder, TranscriptEncoder
    from seasoned.sync import Sync
    from seasoned.types import (
        Choice,
        Correction,
        Decision,
        Edit,
        Episode,
        Evidence,
        EvidenceQuery,
        Experience,
        Label,
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
    "ALL_MASKS",
    "Advisor",
    "Agent",
    "Budget",
    "ChatContext",
    "Choice",
    "CompletionRequest",
    "Correction",
    "Decider",
    "Decision",
    "Edit",
    "Episode",
    "Evidence",
    "EvidenceQuery",
    "ExampleQuery",
    "Examples",
    "Experience",
    "FailOpen",
    "Holdout",
    "JitRL",
    "Label",
    "LabelReader",
    "Memory",
    "Message",
    "ModelAlone",
    "Neighbor",
    "Outcome",
    "OwnAnswer",
    "Prior",
    "RecallQuery",
    "Redactor",
    "Review",
    "Score",
    "SeasonedError",
    "Selection",
    "Step",
    "SubwordEncoder",
    "Sync",
    "TemplateEncoder",
    "Thumbs",
    "TokenEncoder",
    "Tool",
    "TranscriptEncoder",
    "VerbalizedReader",
    "VotesReader",
    "__version__",
    "episode",
    "open_llm",
    "open_memory",
    "reader_for",
    "wrap",
]

# Imported when they are first used, so that `import seasoned` stays light.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "seasoned.agents": ["Agent"],
        "seasoned.build": ["open_memory"],
        "seasoned.decisions": ["Decider"],
        "seasoned.integrations.clients": ["episode", "wrap"],
        "seasoned.llms": ["LabelReader", "VerbalizedReader", "VotesReader", "open_llm", "reader_for"],
        "seasoned.memory": ["Budget", "Memory", "Selection"],
        "seasoned.policies": ["FailOpen", "JitRL", "ModelAlone"],
        "seasoned.policies.advice": ["Advisor"],
        "seasoned.policies.examples": ["ExampleQuery", "Examples"],
        "seasoned.policies.holdout": ["Holdout"],
        "seasoned.protocols": ["ChatContext", "CompletionRequest", "Message", "Tool"],
        "seasoned.states": [
            "ALL_MASKS",
            "Redactor",
            "SubwordEncoder",
            "TemplateEncoder",
            "TokenEncoder",
            "TranscriptEncoder",
        ],
        "seasoned.sync": ["Sync"],
        "seasoned.types": [
            "Choice",
            "Correction",
            "Decision",
            "Edit",
            "Episode",
            "Evidence",
            "EvidenceQuery",
            "Experience",
            "Label",
            "Neighbor",
            "Outcome",
            "OwnAnswer",
            "Prior",
            "RecallQuery",
            "Review",
            "Score",
            "Step",
            "Thumbs",
        ],
    },
)
