"""The protocols between parts. Environment and model calls are async; everything else is synchronous."""

from seasoned.protocols.chat_context import ChatContext
from seasoned.protocols.chat_messages import Message, Tool, ToolCall
from seasoned.protocols.embedders import Embedder
from seasoned.protocols.encoders import StateEncoder
from seasoned.protocols.environments import DelayedFeedback, Environment, Observation, TrulyScored
from seasoned.protocols.judges import Judge, Judgement, ModelJudge
from seasoned.protocols.memory import AgentMemory, EpisodeMemory, EvidenceSource, MomentSource, ReadableMemory
from seasoned.protocols.models import (
    LLM,
    Capabilities,
    Chooser,
    Completion,
    CompletionRequest,
    ContextReader,
    ModelChoice,
    PriorReader,
    PriorReading,
    Proposer,
    StreamingLLM,
    TokenIds,
    TokenLogprob,
    Usage,
    check_model,
)
from seasoned.protocols.policies import Admissible, Policy

__all__ = [
    "LLM",
    "Admissible",
    "AgentMemory",
    "Capabilities",
    "ChatContext",
    "Chooser",
    "Completion",
    "CompletionRequest",
    "ContextReader",
    "DelayedFeedback",
    "Embedder",
    "Environment",
    "EpisodeMemory",
    "EvidenceSource",
    "Judge",
    "Judgement",
    "Message",
    "ModelChoice",
    "ModelJudge",
    "MomentSource",
    "Observation",
    "Policy",
    "PriorReader",
    "PriorReading",
    "Proposer",
    "ReadableMemory",
    "StateEncoder",
    "StreamingLLM",
    "TokenIds",
    "TokenLogprob",
    "Tool",
    "ToolCall",
    "TrulyScored",
    "Usage",
    "check_model",
]
