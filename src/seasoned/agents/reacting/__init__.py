"""An agent that plans, reasons and acts with any model, and learns by examples, by logits, or by both."""

from seasoned.agents.reacting.agent import Agent
from seasoned.agents.reacting.evidence import AgentMemory, Unshown
from seasoned.agents.reacting.observing import observed
from seasoned.agents.reacting.results import (
    AgentResult,
    Asked,
    Mode,
    OnStep,
    Purpose,
    Shown,
    StepEvent,
    Verdict,
    Verify,
)
from seasoned.agents.reacting.settings import AgentSettings, Retriever
from seasoned.agents.reacting.templates import FIELDS, TOOL_TEMPLATES, Templates, fill

__all__ = [
    "FIELDS",
    "TOOL_TEMPLATES",
    "Agent",
    "AgentMemory",
    "AgentResult",
    "AgentSettings",
    "Asked",
    "Mode",
    "OnStep",
    "Purpose",
    "Retriever",
    "Shown",
    "StepEvent",
    "Templates",
    "Unshown",
    "Verdict",
    "Verify",
    "fill",
    "observed",
]
