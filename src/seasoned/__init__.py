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

import importlib
from typing import TYPE_CHECKING

from seasoned.errors import SeasonedError

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
_LAZY = {
    "ALL_MASKS": "seasoned.states",
    "Advisor": "seasoned.policies.advice",
    "Agent": "seasoned.agents",
    "Budget": "seasoned.memory",
    "ChatContext": "seasoned.protocols",
    "Choice": "seasoned.types",
    "CompletionRequest": "seasoned.protocols",
    "Correction": "seasoned.types",
    "Decider": "seasoned.decisions",
    "Decision": "seasoned.types",
    "Edit": "seasoned.types",
    "Episode": "seasoned.types",
    "Evidence": "seasoned.types",
    "EvidenceQuery": "seasoned.types",
    "ExampleQuery": "seasoned.policies.examples",
    "Examples": "seasoned.policies.examples",
    "Experience": "seasoned.types",
    "FailOpen": "seasoned.policies",
    "Holdout": "seasoned.policies.holdout",
    "JitRL": "seasoned.policies",
    "Label": "seasoned.types",
    "LabelReader": "seasoned.llms",
    "Memory": "seasoned.memory",
    "Message": "seasoned.protocols",
    "ModelAlone": "seasoned.policies",
    "Neighbor": "seasoned.types",
    "Outcome": "seasoned.types",
    "OwnAnswer": "seasoned.types",
    "Prior": "seasoned.types",
    "RecallQuery": "seasoned.types",
    "Redactor": "seasoned.states",
    "Review": "seasoned.types",
    "Score": "seasoned.types",
    "Selection": "seasoned.memory",
    "Step": "seasoned.types",
    "SubwordEncoder": "seasoned.states",
    "Sync": "seasoned.sync",
    "TemplateEncoder": "seasoned.states",
    "Thumbs": "seasoned.types",
    "TokenEncoder": "seasoned.states",
    "Tool": "seasoned.protocols",
    "TranscriptEncoder": "seasoned.states",
    "VerbalizedReader": "seasoned.llms",
    "VotesReader": "seasoned.llms",
    "episode": "seasoned.integrations.clients",
    "open_llm": "seasoned.llms",
    "open_memory": "seasoned.build",
    "reader_for": "seasoned.llms",
    "wrap": "seasoned.integrations.clients",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'seasoned' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
