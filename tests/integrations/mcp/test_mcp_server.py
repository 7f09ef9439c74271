"""The MCP server, asked by the client of the official SDK, in this process and over a pipe."""

from __future__ import annotations

import json
import os
import sys

import pytest

from seasoned import Memory
from seasoned.integrations.mcp import MemoryTools, make_mcp_server

pytest.importorskip("mcp.server.mcpserver")

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

STATE = "the build fails: no module named yaml"
STEPS = [{"state": STATE, "action": "uv sync", "reward": 1}]


def asked(server, conversation):
    """Return what a conversation with the server's client returns."""

    async def run():
        async with Client(server) as client:
            return await conversation(client)

    return anyio.run(run)


def text_of(result):
    return result.content[0].text


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        yield opened


def test_each_tool_and_argument_is_described(memory):
    async def conversation(client):
        return client.instructions, (await client.list_tools()).tools

    instructions, tools = asked(make_mcp_server(MemoryTools(memory)), conversation)
    assert "not orders" in instructions
    assert [tool.name for tool in tools] == ["advise", "explain", "lift", "decide", "record", "feedback"]
    for tool in tools:
        assert tool.description
        assert tool.output_schema
        assert tool.annotations.read_only_hint == (tool.name in {"advise", "explain", "lift"})
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), (tool.name, name)


def test_an_agent_records_is_advised_decides_and_learns(memory):
    async def conversation(client):
        for _ in range(3):
            await client.call_tool("record", {"task": "fix", "steps": STEPS})
            await client.call_tool(
                "record", {"task": "fix", "steps": [{**STEPS[0], "action": "rm -r .", "reward": -1}]}
            )
        advice = await client.call_tool("advise", {"state": STATE})
        decision = await client.call_tool("decide", {"state": STATE, "options": ["uv sync", "rm -r ."], "task": "fix"})
        id_ = decision.structured_content["id"]
        given = await client.call_tool("feedback", {"id": id_, "right": "uv sync"})
        explained = await client.call_tool("explain", {"id": id_})
        lift = await client.call_tool("lift", {})
        stats = await client.read_resource("seasoned://stats")
        return advice, decision, given, explained, lift, json.loads(stats.contents[0].text)

    advice, decision, given, explained, lift, stats = asked(make_mcp_server(MemoryTools(memory)), conversation)
    assert 'prefer "uv sync"' in advice.structured_content["text"]
    assert sum(decision.structured_content["probabilities"].values()) == pytest.approx(1)
    assert not given.is_error
    assert "as memory decides now" in text_of(explained)
    assert lift.structured_content["result"][0]["n_treated"] + lift.structured_content["result"][0]["n_control"] == 1
    assert stats["episodes"] - stats["answers"] == 7  # a label on an option that was not taken is an answer


def test_errors_of_the_memory_are_told_to_the_model(memory):
    async def conversation(client):
        return [
            await client.call_tool(name, arguments)
            for name, arguments in (
                ("record", {"task": "fix", "steps": [{"state": STATE, "action": "go", "reward": 7}]}),
                ("record", {"task": "fix", "steps": "go"}),
                ("feedback", {"id": "no such id", "good": True}),
                ("decide", {"state": "", "options": ["go"]}),
                ("explain", {"id": "no such id"}),
            )
        ]

    results = asked(make_mcp_server(MemoryTools(memory)), conversation)
    assert all(result.is_error for result in results)
    assert "at least -1 and at most 1" in text_of(results[0])
    assert "no such id" in text_of(results[2])
    assert memory.stats().episodes == 0


def test_read_only_server_offers_no_tool_that_writes(memory):
    async def conversation(client):
        names = [tool.name for tool in (await client.list_tools()).tools]
        refused = await client.call_tool("record", {"task": "fix", "steps": STEPS})
        return names, refused, client.instructions

    names, refused, instructions = asked(make_mcp_server(MemoryTools(memory), read_only=True), conversation)
    assert "call advise" in instructions and "not orders" in instructions
    assert not any(f"call {name}" in instructions for name in ("decide", "record", "feedback"))
    assert names == ["advise", "explain", "lift"]
    assert refused.is_error
    assert memory.stats().episodes == 0


def test_command_serves_over_a_pipe_and_ends_with_its_client(tmp_path):
    path = tmp_path / "agent.db"
    arguments = ["-m", "seasoned", "mcp", str(path), "--create"]
    command = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def conversation(client):
        return await client.call_tool("record", {"task": "fix", "steps": STEPS})

    recorded = asked(stdio_client(command), conversation)
    with Memory.open(path) as memory:
        assert memory.get(recorded.structured_content["result"]).steps[0].action == "uv sync"
