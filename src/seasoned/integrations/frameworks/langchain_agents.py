"""Memory in the agents of LangChain (`langchain.agents.create_agent`), as a middleware."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.frameworks.agent_calls import AgentCall, AgentCalls
from seasoned.integrations.frameworks.chat_forms import chat_response, with_text
from seasoned.memory import Memory
from seasoned.registry import load_extra

__all__ = ["langchain_middleware"]

_EXTRA = "langchain"
_RUN = "seasoned_run_id"
_WIRE = ChatWire()
_Handler = Callable[[Any], Any]


def langchain_middleware(memory: Memory, **options: Any) -> Any:
    """Return an `AgentMiddleware` for `create_agent(model, tools, middleware=[...])`, which records and uses a memory.

    A run of the agent is one episode, from its first call of the model to its end; a run that is interrupted goes on
    when it is resumed. Its id is the `run_id` of the configuration (LangSmith's id of the run), if there is one.
    `memory.feedback` takes this id, or that of an answer (`result["messages"][-1].id`). What memory adds is in the
    request alone: neither in the state of the agent nor in what is stored. All methods of the agent are covered:
    `invoke`, `stream`, their asynchronous forms, threads with a checkpointer.

    An error that leaves the agent makes the episode aborted. LangChain does not report it, so that the episode is
    stored at feedback on it, or when the memory is closed.

    Args:
        memory: an open memory.
        options: `mode` (`observe`, `examples` or `advice`), `holdout`, `task`, `awaits_feedback`, `timeout_s`,
            `on_error`, `rewards`, as of `seasoned.wrap`.

    Raises:
        InputError: an argument breaks a rule.
        MissingExtraError: the package `langchain` is not installed.
    """
    middleware = _middleware_class()
    return middleware(AgentCalls(memory, "langchain", **options))


class _MemoryMiddleware:
    """Records the calls of an agent's runs, and adds what memory says to them."""

    def __init__(self, calls: AgentCalls) -> None:
        self._calls = calls
        self.tools: list[Any] = []

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Give the run an id, which its state keeps while it is interrupted."""
        info = getattr(runtime, "execution_info", None)
        return {_RUN: str(getattr(info, "run_id", None) or uuid.uuid4().hex)}

    def wrap_model_call(self, request: Any, handler: _Handler) -> Any:
        """Call the model with what memory says, and record the call."""
        call = self._begun(request)
        asked = _asked(call, request, call.block() if call else None)
        try:
            response = handler(asked)
        except Exception as error:
            if asked is request or call is None or not call.refused(error):
                self._note(request.state, error)
                raise
            try:
                response = handler(request)
            except Exception as second:
                self._note(request.state, second)
                raise
        return _recorded(call, response)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the model with what memory says, and record the call."""
        call = self._begun(request)
        asked = _asked(call, request, await call.block_async() if call else None)
        try:
            response = await handler(asked)
        except Exception as error:
            if asked is request or call is None or not call.refused(error):
                self._note(request.state, error)
                raise
            try:
                response = await handler(request)
            except Exception as second:
                self._note(request.state, second)
                raise
        return _recorded(call, response)

    def wrap_tool_call(self, request: Any, handler: _Handler) -> Any:
        """Run a tool; an error that it raises may end the run."""
        try:
            return handler(request)
        except Exception as error:
            self._note(request.state, error)
            raise

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run a tool; an error that it raises may end the run."""
        try:
            return await handler(request)
        except Exception as error:
            self._note(request.state, error)
            raise

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Store the episode."""
        self._calls.end(str(state.get(_RUN)), "terminated")

    def _begun(self, request: Any) -> AgentCall | None:
        return self._calls.begin(_WIRE, lambda: _body(request), request.state.get(_RUN))

    def _note(self, state: Any, error: Exception) -> None:
        """Note an error that leaves a tool; an interrupt is none."""
        if not isinstance(error, load_extra("langgraph.errors", _EXTRA).GraphBubbleUp):
            self._calls.fail(str(state.get(_RUN)))


@cache
def _middleware_class() -> Any:
    types = load_extra("langchain.agents.middleware.types", _EXTRA)
    typing = load_extra("typing_extensions", _EXTRA)
    private = typing.NotRequired[typing.Annotated[str, types.PrivateStateAttr]]

    class MemoryMiddleware(_MemoryMiddleware, types.AgentMiddleware):  # type: ignore[misc, name-defined]
        __doc__ = _MemoryMiddleware.__doc__
        state_schema = typing.TypedDict("MemoryState", {**types.AgentState.__annotations__, _RUN: private})

    return MemoryMiddleware


def _body(request: Any) -> dict[str, Any]:
    """Return a request in the form of Chat Completions."""
    convert = load_extra("langchain_core.messages", _EXTRA).convert_to_openai_messages
    messages = convert(list(request.messages))
    for message, given in zip(messages, request.messages, strict=True):
        if getattr(given, "status", None) == "error":
            message["is_error"] = True
    model = getattr(request.model, "model_name", None) or getattr(request.model, "model", None)
    tools = [tool if isinstance(tool, dict) else {"function": {"name": tool.name}} for tool in request.tools]
    return {"model": model, "messages": messages, "tools": tools}


def _asked(call: AgentCall | None, request: Any, block: str | None) -> Any:
    if call is None or block is None:
        return request
    return call.extended(request, lambda: _extended(request, block))


def _extended(request: Any, block: str) -> Any:
    """Return the request with a text at the end of its last message of a user or a tool."""
    for index in range(len(request.messages) - 1, -1, -1):
        message = request.messages[index]
        if message.type in ("human", "tool", "function"):
            content = with_text(message.content, block)
            if content is None:
                break
            copy = message.model_copy(update={"content": content})
            messages = [*request.messages[:index], copy, *request.messages[index + 1 :]]
            return request.override(messages=messages)
    return request


def _recorded(call: AgentCall | None, response: Any) -> Any:
    if call is not None:
        call.finish(lambda: _response(response))
    return response


def _response(response: Any) -> Mapping[str, Any]:
    """Return an answer in the form of Chat Completions."""
    whole = getattr(response, "model_response", response)
    answers = [one for one in getattr(whole, "result", [whole]) if getattr(one, "type", None) == "ai"]
    convert = load_extra("langchain_core.messages", _EXTRA).convert_to_openai_messages
    message, said = convert(answers[-1]), answers[-1].response_metadata
    usage = answers[-1].usage_metadata or {}
    return chat_response(
        message,
        id_=answers[-1].id,
        model=said.get("model_name") or said.get("model"),
        finish=said.get("finish_reason") or said.get("stop_reason"),
        tokens=(usage.get("input_tokens"), usage.get("output_tokens")),
    )
