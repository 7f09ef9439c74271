"""Memory in agents of LangChain, Pydantic AI and the OpenAI Agents SDK, and in the calls of LiteLLM."""

from seasoned.integrations.frameworks.agent_calls import AgentCall, AgentCalls
from seasoned.integrations.frameworks.langchain_agents import langchain_middleware
from seasoned.integrations.frameworks.litellm_callbacks import litellm_logger
from seasoned.integrations.frameworks.openai_agents import openai_agents_provider
from seasoned.integrations.frameworks.pydantic_agents import pydantic_ai_capability

__all__ = [
    "AgentCall",
    "AgentCalls",
    "langchain_middleware",
    "litellm_logger",
    "openai_agents_provider",
    "pydantic_ai_capability",
]
