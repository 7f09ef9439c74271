"""What the parts are to each other. Environment and model calls are async; everything else is synchronous."""

from seasoned.protocols.environments import Environment, Observation
from seasoned.protocols.learning import Admissible, EvidenceSource, Judge, Judgement, ModelJudge, Policy, StateEncoder
from seasoned.protocols.models import (
    LLM,
    Capabilities,
    Choice,
    Chooser,
    Completion,
    CompletionRequest,
    Message,
    PriorReader,
    PriorReading,
    TokenIds,
    TokenLogprob,
    Tool,
    ToolCall,
    Usage,
)

__all__ = [
    "LLM",
    "Admissible",
    "Capabilities",
    "Choice",
    "Chooser",
    "Completion",
    "CompletionRequest",
    "Environment",
    "EvidenceSource",
    "Judge",
    "Judgement",
    "Message",
    "ModelJudge",
    "Observation",
    "Policy",
    "PriorReader",
    "PriorReading",
    "StateEncoder",
    "TokenIds",
    "TokenLogprob",
    "Tool",
    "ToolCall",
    "Usage",
]
