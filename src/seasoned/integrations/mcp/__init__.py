"""A memory for agents that speak the Model Context Protocol."""

from seasoned.integrations.mcp.memory_tools import AdviceResult, DecisionResult, MemoryTools
from seasoned.integrations.mcp.server import make_server

__all__ = ["AdviceResult", "DecisionResult", "MemoryTools", "make_server"]
