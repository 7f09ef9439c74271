"""Memory in the agents of Pydantic AI, as a capability."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.frameworks.agent_calls import AgentCall, AgentCalls
from seasoned.integrations.frameworks.chat_forms import chat_call, chat_response, with_text
from seasoned.memory import Memory
from seasoned.registry import load_extra

__all__ = ["pydantic_ai_capability"]

_EXTRA = "pydantic-ai"
_WIRE = ChatWire()


def pydantic_ai_capability(memory: Memory, **options: Any) -> Any:
    """Return a capability for `Agent(model, capabilities=[...])`, which records and uses a memory.

    A run of the agent is one episode, with the run's id: `memory.feedback(result.run_id, reward=1.0)`. An error or a
    cancellation that leaves the run makes it aborted. What memory adds is in the request alone: neither in the history
    of messages nor in what is stored. All methods of the agent are covered: `run`, `run_sync`, `run_stream`, `iter`.

    Args:
        memory: an open memory.
        options: `mode` (`observe`, `examples` or `advice`), `holdout`, `task`, `awaits_feedback`, `timeout_s`,
            `on_error`, `rewards`, as of `seasoned.wrap`.

    Raises:
        InputError: an argument breaks a rule.
        MissingExtraError: the package `pydantic-ai-slim` is not installed.
    """
    capability = _capability_class()
    return capability(AgentCalls(memory, "pydantic-ai", **options))


class _MemoryCapability:
    """Records the calls of one run, and adds what memory says to them."""

    def __init__(self, calls: AgentCalls) -> None:
        self._calls = calls
        self._call: AgentCall | None = None
        self._is_refused = False

    async def for_run(self, ctx: Any) -> Any:
        """Return a capability with the calls of this run alone."""
        return type(self)(self._calls)

    async def wrap_run(self, ctx: Any, *, handler: Callable[[], Awaitable[Any]]) -> Any:
        """Store the episode when the run ends."""
        try:
            result = await handler()
        except BaseException as error:
            is_left = isinstance(error, asyncio.CancelledError | GeneratorExit)
            self._calls.end(ctx.run_id, "truncated" if is_left else "aborted")
            raise
        self._calls.end(ctx.run_id, "terminated")
        return result

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Add what memory says to an attempt at a request."""
        self._call = call = self._calls.begin(_WIRE, lambda: _body(request_context), ctx.run_id)
        if call is None or self._is_refused:
            self._is_refused = False
            return request_context
        block = await call.block_async()
        if block is None:
            return request_context
        return call.extended(request_context, lambda: _extended(request_context, block))

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        """Record the answer of an attempt."""
        if self._call is not None:
            self._call.finish(lambda: _response(response))
        return response

    async def on_model_request_error(self, ctx: Any, *, request_context: Any, error: Exception) -> Any:
        """Send the agent's own request where the endpoint refused what memory had changed."""
        if self._call is not None and self._call.refused(error):
            self._is_refused = True
            raise load_extra("pydantic_ai.exceptions", _EXTRA).RetryModelRequest from error
        raise error


@cache
def _capability_class() -> Any:
    base = load_extra("pydantic_ai.capabilities", _EXTRA).AbstractCapability
    return type("MemoryCapability", (_MemoryCapability, base), {"__doc__": _MemoryCapability.__doc__})


def _body(request_context: Any) -> dict[str, Any]:
    """Return a request in the form of Chat Completions."""
    parameters = request_context.model_request_parameters
    tools = [*parameters.function_tools, *parameters.output_tools]
    messages = [one for message in request_context.messages for one in _messages(message)]
    offered = [{"function": {"name": tool.name}} for tool in tools]
    return {"model": request_context.model.model_name, "messages": messages, "tools": offered}


def _messages(message: Any) -> list[dict[str, Any]]:
    if message.kind == "response":
        return [_answer(message)]
    return [one for one in map(_input, message.parts) if one is not None]


def _input(part: Any) -> dict[str, Any] | None:
    """Return what a part of a request is to the model; None of one that is not text."""
    kind = part.part_kind
    if kind == "system-prompt":
        return {"role": "system", "content": part.content}
    if kind == "user-prompt":
        said = part.content
        return {"role": "user", "content": said if isinstance(said, str) else [_content(one) for one in said]}
    if kind == "retry-prompt" and part.tool_name is None:
        return {"role": "user", "content": part.model_response()}
    if kind in ("tool-return", "retry-prompt"):
        is_retry = kind == "retry-prompt"
        text = part.model_response() if is_retry else part.model_response_str()
        named = {"name": part.tool_name, "tool_call_id": part.tool_call_id}
        return {"role": "tool", **named, "content": text, **({"is_error": True} if is_retry else {})}
    return None


def _content(one: Any) -> dict[str, Any]:
    if isinstance(one, str):
        return {"type": "text", "text": one}
    text = getattr(one, "content", None)
    if isinstance(text, str):
        return {"type": "text", "text": text}
    return {"type": "image_url" if "image" in str(getattr(one, "media_type", "")) else "file"}


def _answer(response: Any) -> dict[str, Any]:
    """Return an answer as a message of Chat Completions."""
    texts = [part.content for part in response.parts if part.part_kind == "text"]
    calls = [
        chat_call(part.tool_name, part.args_as_json_str(), part.tool_call_id)
        for part in response.parts
        if part.part_kind == "tool-call"
    ]
    return {"role": "assistant", "content": "\n\n".join(filter(None, texts)) or None, "tool_calls": calls or None}


def _response(response: Any) -> dict[str, Any]:
    return chat_response(
        _answer(response),
        id_=response.provider_response_id,
        model=response.model_name,
        finish=response.finish_reason,
        tokens=(response.usage.input_tokens, response.usage.output_tokens),
    )


def _extended(request_context: Any, block: str) -> Any:
    """Return a request with a text at the end of its last message, which the user or tools wrote."""
    messages = request_context.messages
    if not messages or not messages[-1].parts:
        return request_context
    return replace(request_context, messages=_with_block(messages, block))


def _with_block(messages: Sequence[Any], block: str) -> list[Any]:
    last = messages[-1]
    part = last.parts[-1]
    content = with_text(part.content, block) if isinstance(part.content, str) else None
    if part.part_kind == "tool-return" and content is None:
        content = with_text(part.model_response_str(), block)
    if content is None:
        user = load_extra("pydantic_ai.messages", _EXTRA).UserPromptPart(block)
        return [*messages[:-1], replace(last, parts=[*last.parts, user])]
    return [*messages[:-1], replace(last, parts=[*last.parts[:-1], replace(part, content=content)])]
