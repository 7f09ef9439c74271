"""A memory for agents that speak the Model Context Protocol."""

from seasoned.integrations.mcp.mcp_server import make_mcp_server
from seasoned.integrations.mcp.memory_tools import AdviceResult, DecisionResult, MemoryTools

__all__ = ["AdviceResult", "DecisionResult", "MemoryTools", "make_mcp_server"]
