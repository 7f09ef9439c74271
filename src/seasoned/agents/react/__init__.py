"""An agent that plans, reasons and acts with any model, and learns by examples, by logits, or by both."""

from seasoned.agents.react.agent import Agent
from seasoned.agents.react.agent_result import (
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
from seasoned.agents.react.agent_settings import AgentSettings, Retriever
from seasoned.agents.react.current_state import observed
from seasoned.agents.react.prompt_evidence import AgentMemory, Unshown
from seasoned.agents.react.prompt_templates import FIELDS, TOOL_TEMPLATES, Templates, fill

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
