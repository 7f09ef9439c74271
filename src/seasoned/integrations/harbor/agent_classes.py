"""Subclasses of Harbor's agent class, created on first access."""

from __future__ import annotations

from functools import cache
from typing import Any

from seasoned.integrations.harbor.acting_agent import ActingAgent
from seasoned.integrations.harbor.agent_options import acting_options, wrapping_options
from seasoned.integrations.harbor.harbor_package import load_harbor
from seasoned.integrations.harbor.wrapped_agent import WrappedAgent

__all__ = ["seasoned_agent", "with_examples"]

_HOME = __name__.rpartition(".")[0]


@cache
def seasoned_agent() -> Any:
    """Return `SeasonedAgent`: `ActingAgent`, as a Harbor agent.

    Raises:
        MissingExtraError: Harbor is not installed.
    """
    return _subclass("SeasonedAgent", ActingAgent, acting_options())


@cache
def with_examples() -> Any:
    """Return `WithExamples`: `WrappedAgent`, as a Harbor agent.

    Raises:
        MissingExtraError: Harbor is not installed.
    """
    return _subclass("WithExamples", WrappedAgent, wrapping_options())


def _subclass(name: str, part: type, options: Any) -> Any:
    base = load_harbor("harbor.agents.base").BaseAgent
    capabilities = load_harbor("harbor.agents.capabilities").AgentCapabilities(atif=True)
    body = {"options_model": options, "capabilities": capabilities, "__module__": _HOME, "__doc__": part.__doc__}
    return type(base)(name, (part, base), body)
