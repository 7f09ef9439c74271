"""Agent that plans, reasons and acts with any model, and learns by examples, by logits, or by both."""

from seasoned.agents.react.agent import Agent
from seasoned.agents.react.agent_result import (
    AgentMode,
    AgentResult,
    ModelCall,
    OnStep,
    PromptImpression,
    Purpose,
    StepEvent,
    Verify,
    VerifyResult,
)
from seasoned.agents.react.agent_settings import AgentSettings, ExampleRetriever
from seasoned.agents.react.player import current_state
from seasoned.agents.react.prompt_evidence import DiscountedEvidence
from seasoned.agents.react.prompt_templates import FIELDS, TOOL_TEMPLATES, Templates, fill

__all__ = [
    "FIELDS",
    "TOOL_TEMPLATES",
    "Agent",
    "AgentMode",
    "AgentResult",
    "AgentSettings",
    "DiscountedEvidence",
    "ExampleRetriever",
    "ModelCall",
    "OnStep",
    "PromptImpression",
    "Purpose",
    "StepEvent",
    "Templates",
    "Verify",
    "VerifyResult",
    "current_state",
    "fill",
]
