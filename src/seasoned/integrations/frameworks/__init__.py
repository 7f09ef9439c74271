"""Memory in agents of LangChain, Pydantic AI and the OpenAI Agents SDK, in calls of LiteLLM, and OpenTelemetry."""

from seasoned.integrations.frameworks.agent_calls import AgentCall, AgentCalls
from seasoned.integrations.frameworks.langchain_agents import langchain_middleware
from seasoned.integrations.frameworks.litellm_callbacks import litellm_logger
from seasoned.integrations.frameworks.openai_agents import openai_agents_provider
from seasoned.integrations.frameworks.otel_signals import TracedPolicy, trace_lift
from seasoned.integrations.frameworks.otel_spans import otel_span_recorder
from seasoned.integrations.frameworks.pydantic_agents import pydantic_ai_capability

__all__ = [
    "AgentCall",
    "AgentCalls",
    "TracedPolicy",
    "langchain_middleware",
    "litellm_logger",
    "openai_agents_provider",
    "otel_span_recorder",
    "pydantic_ai_capability",
    "trace_lift",
]
