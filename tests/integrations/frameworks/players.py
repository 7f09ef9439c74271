"""Agents of each framework with the same tools, against the local model server: what the shared tests play."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import time
import uuid
from dataclasses import dataclass

from client_loops import Loop
from model_server import MODEL

import seasoned

INSTRUCTIONS = "You are on call."


class ToolFailure(RuntimeError):
    """What the tool `rollback` raises when it is told to."""


@dataclass(frozen=True)
class Played:
    """What a caller has in hand after a run: an id for feedback, and the answer."""

    id: str
    answer: str | None


def restart(service: str) -> str:
    """Restart a service."""
    return f"{service}: ok"


def rollback(service: str) -> str:
    """Roll back a service."""
    if service == "broken":
        raise ToolFailure("no earlier version")
    return f"{service}: rolled back"


TOOL_FUNCTIONS = {"restart": restart, "rollback": rollback}
SCHEMA = {"type": "object", "properties": {"service": {"type": "string"}}, "required": ["service"]}
OFFERED = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in TOOL_FUNCTIONS]


class Player:
    """One framework. `run` plays a ticket in one of its `ways`."""

    name, packages = "", ()
    ways = ("sync", "async", "stream")

    def __init__(self, memory, server, **options):
        self.memory, self.server = memory, server
        self.build(memory, server, **options)

    @classmethod
    def is_installed(cls):
        try:
            return all(importlib.metadata.version(one) for one in cls.packages)
        except importlib.metadata.PackageNotFoundError:
            return False

    def run(self, ticket, way="sync"):
        return asyncio.run(self.play(ticket, way)) if way != "sync" else self.play_sync(ticket)


class WrapPlayer(Player):
    """`seasoned.wrap` around the client of OpenAI, in a loop."""

    name, packages, ways = "wrap", ("openai",), ("sync",)

    def build(self, memory, server, **options):
        import openai

        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)
        self.client = seasoned.wrap(client, memory, **options)

    def play_sync(self, ticket):
        loop = Loop(self.client, "chat")
        loop.user(ticket)
        while True:
            response = loop.call()
            message = response.choices[0].message
            calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
            if not loop.add(response, [call_tool(*one) for one in calls]):
                return Played(response.id, message.content)


def call_tool(name, arguments):
    return TOOL_FUNCTIONS[name](**json.loads(arguments))


class LangChainPlayer(Player):
    name, packages = "langchain", ("langchain", "langchain-openai")

    def build(self, memory, server, **options):
        from seasoned.integrations.frameworks import langchain_middleware

        self.middleware = [langchain_middleware(memory, **options)]

    def agent(self):
        from langchain.agents import create_agent
        from langchain_openai import ChatOpenAI

        model = ChatOpenAI(model=MODEL, base_url=f"{self.server.url}/v1", api_key="k", max_retries=0)
        tools = list(TOOL_FUNCTIONS.values())
        return create_agent(model, tools, middleware=self.middleware, system_prompt=INSTRUCTIONS)

    def play_sync(self, ticket):
        answer = self.agent().invoke({"messages": [{"role": "user", "content": ticket}]})["messages"][-1]
        return Played(answer.id, answer.text)

    async def play(self, ticket, way="async"):
        given, run_id = {"messages": [{"role": "user", "content": ticket}]}, uuid.uuid4()
        if way == "async":
            answer = (await self.agent().ainvoke(given, {"run_id": run_id}))["messages"][-1].text
            return Played(str(run_id), answer)
        texts = {}
        async for piece, _ in self.agent().astream(given, {"run_id": run_id}, stream_mode="messages"):
            texts[piece.id] = texts.get(piece.id, "") + piece.text
        return Played(str(run_id), list(texts.values())[-1])


class PydanticPlayer(Player):
    name, packages = "pydantic-ai", ("pydantic-ai-slim",)

    def build(self, memory, server, **options):
        from seasoned.integrations.frameworks import pydantic_ai_capability

        self.capability = pydantic_ai_capability(memory, **options)

    def agent(self):
        from openai import AsyncOpenAI
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        client = AsyncOpenAI(base_url=f"{self.server.url}/v1", api_key="k", max_retries=0)
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
        tools = list(TOOL_FUNCTIONS.values())
        return Agent(model, tools=tools, capabilities=[self.capability], system_prompt=INSTRUCTIONS)

    def play_sync(self, ticket):
        result = self.agent().run_sync(ticket)
        return Played(result.run_id, result.output)

    async def play(self, ticket, way="async"):
        if way == "async":
            result = await self.agent().run(ticket)
            return Played(result.run_id, result.output)
        async with self.agent().run_stream_events(ticket) as events:
            *_, last = [event async for event in events]
        return Played(last.result.run_id, last.result.output)


class OpenAIAgentsPlayer(Player):
    name, packages = "openai-agents", ("openai-agents",)
    responses = True

    def build(self, memory, server, **options):
        self.options = options

    def start(self):
        from openai import AsyncOpenAI

        import agents
        from seasoned.integrations.frameworks import openai_agents_provider

        agents.set_tracing_disabled(True)
        tools = [agents.function_tool(one, failure_error_function=None) for one in TOOL_FUNCTIONS.values()]
        client = AsyncOpenAI(base_url=f"{self.server.url}/v1", api_key="k", max_retries=0)
        own = agents.OpenAIProvider(openai_client=client, use_responses=self.responses)
        provider = openai_agents_provider(self.memory, own, **self.options)
        agent = agents.Agent(name="oncall", instructions=INSTRUCTIONS, tools=tools, model=MODEL)
        return agents.Runner, agent, agents.RunConfig(model_provider=provider)

    def play_sync(self, ticket):
        runner, agent, config = self.start()
        result = runner.run_sync(agent, ticket, run_config=config)
        return Played(result.last_response_id, result.final_output)

    async def play(self, ticket, way="async"):
        runner, agent, config = self.start()
        if way == "async":
            result = await runner.run(agent, ticket, run_config=config)
        else:
            result = runner.run_streamed(agent, ticket, run_config=config)
            async for _ in result.stream_events():
                pass
        return Played(result.last_response_id, result.final_output)


class ChatAgentsPlayer(OpenAIAgentsPlayer):
    """The Agents SDK over Chat Completions, whose responses have no id: the block's is used."""

    name, responses = "openai-agents-chat", False

    def play_sync(self, ticket):
        with seasoned.episode() as running:
            return Played(running.id, super().play_sync(ticket).answer)

    async def play(self, ticket, way="async"):
        with seasoned.episode() as running:
            return Played(running.id, (await super().play(ticket, way)).answer)


class LiteLLMPlayer(Player):
    name, packages = "litellm", ("litellm",)

    def build(self, memory, server, **options):
        import litellm

        from seasoned.integrations.frameworks import litellm_logger

        self.logger = litellm_logger(memory, **options)
        litellm.logging_callback_manager._reset_all_callbacks()
        litellm.callbacks = [self.logger]
        litellm.suppress_debug_info = True

    def request(self, messages, **more):
        head = {"model": f"openai/{MODEL}", "api_base": f"{self.server.url}/v1", "api_key": "k", "max_retries": 0}
        return {**head, "messages": messages, "tools": OFFERED, **more}

    def play_sync(self, ticket):
        import litellm

        messages = self.begin(ticket)
        while True:
            response = litellm.completion(**self.request(messages))
            self.wait()
            if self.is_over(messages, response):
                return Played(response.id, response.choices[0].message.content)

    async def play(self, ticket, way="async"):
        import litellm

        messages, stream = self.begin(ticket), way == "stream"
        while True:
            response = await litellm.acompletion(**self.request(messages, stream=stream))
            if stream:
                response = litellm.stream_chunk_builder([chunk async for chunk in response], messages=messages)
                while self.logger._open:
                    await asyncio.sleep(0.01)
            if self.is_over(messages, response):
                return Played(response.id, response.choices[0].message.content)

    def wait(self):
        """Wait for LiteLLM's thread, which reports a synchronous call."""
        until = time.monotonic() + 5
        while self.logger._open and time.monotonic() < until:
            time.sleep(0.005)

    @staticmethod
    def begin(ticket):
        return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": ticket}]

    @staticmethod
    def is_over(messages, response):
        message = response.choices[0].message
        messages.append(message)
        for call in message.tool_calls or ():
            result = call_tool(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return not message.tool_calls


PLAYERS = (WrapPlayer, LangChainPlayer, PydanticPlayer, OpenAIAgentsPlayer, ChatAgentsPlayer, LiteLLMPlayer)
INSTALLED = tuple(one for one in PLAYERS if one.is_installed())
