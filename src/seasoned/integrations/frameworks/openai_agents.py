"""Memory in the agents of the OpenAI Agents SDK, as a provider of models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from seasoned.integrations.clients.wires.responses_wire import ResponsesWire
from seasoned.integrations.frameworks.agent_calls import AgentCall, AgentCalls
from seasoned.memory import Memory
from seasoned.registry import load_extra

__all__ = ["openai_agents_provider"]

_EXTRA = "openai-agents"
_WIRE = ResponsesWire()
_PLACES = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")
_UNKNOWN_ID = "__fake_id__"  # which the SDK gives the responses of Chat Completions
_READ_EVENTS = ("response.created", "response.output_item.done", "response.output_text.delta")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def openai_agents_provider(memory: Memory, provider: Any = None, **options: Any) -> Any:
    """Return a `ModelProvider` for `RunConfig(model_provider=...)`, whose models record and use a memory.

    It covers the agents whose model is a name. For an agent whose model is an object, `provider.wrapped(model)` returns
    a model that does the same. An episode goes from a user's message to the answer without calls, handoffs included, as
    with `seasoned.wrap`; a `with seasoned.episode(...)` block around a run makes the run one episode, whose id is known
    and which an error makes aborted. `memory.feedback` takes the id of a response (`result.last_response_id`; models of
    Chat Completions have none) or of the block. What memory adds is in the request alone: neither in the items of the
    run or its session, nor in what is stored.

    Args:
        memory: an open memory.
        provider: of the models; None: that of the SDK, `MultiProvider()`.
        options: `mode` (`observe`, `examples` or `advice`), `holdout`, `task`, `awaits_feedback`, `timeout_s`,
            `on_error`, `rewards`, as of `seasoned.wrap`.

    Raises:
        InputError: an argument breaks a rule.
        MissingExtraError: the package `openai-agents` is not installed.
    """
    provider_class, _ = _classes()
    return provider_class(AgentCalls(memory, "openai-agents", **options), provider)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of a call of a model, which the SDK passes by place or by name."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def body(self) -> dict[str, Any]:
        """Return the request in the form of the Responses API."""
        given = self._get("input")
        offered = [
            {"type": "function" if hasattr(tool, "params_json_schema") else "other", "name": tool.name}
            for tool in self._get("tools") or ()
        ]
        offered += [{"type": "function", "name": one.tool_name} for one in self._get("handoffs") or ()]
        return {
            "input": given if isinstance(given, str) else list(given),
            "tools": offered,
            "previous_response_id": self._get("previous_response_id"),
            "conversation": self._get("conversation_id"),
        }

    def extended(self, block: str) -> _Arguments:
        """Return these with a text at the end of the last message of a user or result of a tool."""
        extended = _WIRE.extended({"input": self._get("input")}, block)
        if extended is None:
            return self
        if "input" in self.kwargs:
            return _Arguments(self.args, {**self.kwargs, **extended})
        at = _PLACES.index("input")
        return _Arguments((*self.args[:at], extended["input"], *self.args[at + 1 :]), self.kwargs)

    def _get(self, name: str) -> Any:
        if name in self.kwargs:
            return self.kwargs[name]
        at = _PLACES.index(name) if name in _PLACES else len(self.args)
        return self.args[at] if at < len(self.args) else None


class _MemoryModel:
    """A model whose calls are recorded, with what memory says to them."""

    def __init__(self, model: Any, calls: AgentCalls) -> None:
        self._model, self._calls = model, calls

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the model within."""
        return getattr(self.__dict__["_model"], name)

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """Return the response of the model."""
        own = _Arguments(args, kwargs)
        call = self._begun(own)
        asked = _asked(call, own, await call.block_async() if call else None)
        try:
            response = await self._model.get_response(*asked.args, **asked.kwargs)
        except Exception as error:
            if asked is own or call is None or not call.refused(error):
                raise
            response = await self._model.get_response(*args, **kwargs)
        if call is not None:
            call.finish(lambda: self._response(response))
        return response

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield the events of the model's response."""
        own = _Arguments(args, kwargs)
        call = self._begun(own)
        asked = _asked(call, own, await call.block_async() if call else None)
        events: list[Any] = []
        try:
            try:
                async for event in self._model.stream_response(*asked.args, **asked.kwargs):
                    events.append(event)
                    yield event
            except Exception as error:
                if events or asked is own or call is None or not call.refused(error):
                    raise
                async for event in self._model.stream_response(*args, **kwargs):
                    events.append(event)
                    yield event
        finally:
            if call is not None and events:
                _record(call, events)

    async def close(self) -> None:
        """Release what the model holds."""
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        """Return the model's advice on a retry."""
        return self._model.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)

    def _begun(self, asked: _Arguments) -> AgentCall | None:
        return self._calls.begin(_WIRE, lambda: {"model": self._name, **asked.body()})

    @property
    def _name(self) -> str | None:
        name = getattr(self._model, "model", None)
        return None if name is None else str(name)

    def _response(self, response: Any) -> dict[str, Any]:
        """Return a response of the SDK in the form of the Responses API."""
        usage = {"input_tokens": response.usage.input_tokens, "output_tokens": response.usage.output_tokens}
        output = [_as_json(one) for one in response.output]
        head = {"id": response.response_id, "model": self._name, "status": "completed"}
        return {**head, "output": output, "usage": usage}


class _MemoryProvider:
    """A provider whose models record and use a memory."""

    def __init__(self, calls: AgentCalls, provider: Any) -> None:
        self._calls = calls
        self._provider = load_extra("agents", _EXTRA).MultiProvider() if provider is None else provider

    def get_model(self, model_name: str | None) -> Any:
        """Return a model by its name."""
        return self.wrapped(self._provider.get_model(model_name))

    def wrapped(self, model: Any) -> Any:
        """Return a model that does what this one does, and records and uses the memory."""
        _, model_class = _classes()
        return model_class(model, self._calls)

    async def aclose(self) -> None:
        """Release what the provider holds."""
        await self._provider.aclose()


@cache
def _classes() -> tuple[Any, Any]:
    """Return the classes of the provider and of its models."""
    interface = load_extra("agents.models.interface", _EXTRA)
    return (
        type("MemoryProvider", (_MemoryProvider, interface.ModelProvider), {"__doc__": _MemoryProvider.__doc__}),
        type("MemoryModel", (_MemoryModel, interface.Model), {"__doc__": _MemoryModel.__doc__}),
    )


def _asked(call: AgentCall | None, own: _Arguments, block: str | None) -> _Arguments:
    if call is None or block is None:
        return own
    return call.extended(own, lambda: own.extended(block))


def _record(call: AgentCall, events: Sequence[Any]) -> None:
    """Record a stream; one that did not come to its end, as far as it came."""

    def response() -> dict[str, Any]:
        read = [_as_json(event) for event in events if event.type in (*_READ_EVENTS, *_ENDS)]
        whole, _ = _WIRE.streamed(read)
        if is_whole:  # which a model of Chat Completions does not say
            whole.setdefault("status", "completed")
        return whole | {"id": None} if whole.get("id") == _UNKNOWN_ID else whole

    is_whole = events[-1].type in _ENDS
    if is_whole:
        call.finish(response)
    else:
        call.cut(response)


def _as_json(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else value.model_dump(mode="json", exclude_none=True)
