"""Memory in the calls of LiteLLM, as a callback."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from typing import Any

from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.frameworks.agent_calls import AgentCall, AgentCalls
from seasoned.memory import Memory
from seasoned.registry import load_extra

__all__ = ["litellm_logger"]

_EXTRA = "litellm"
_WIRE = ChatWire()
_MOST_OPEN = 10_000
_CALL_TYPES = ("completion", "acompletion")


def litellm_logger(memory: Memory, **options: Any) -> Any:
    """Return a `CustomLogger` for `litellm.callbacks`, which records and uses a memory.

    `acompletion`, the router's and the proxy's Chat Completions get what memory says. LiteLLM has no hook by which a
    synchronous `completion` could get it: such a call is recorded, and leaves unchanged. An episode goes from a user's
    message to the answer without calls, or over a `with seasoned.episode(...)` block, as with `seasoned.wrap`;
    `memory.feedback(response.id, reward=1.0)` judges it. LiteLLM reports a stream and a synchronous call a moment after
    their end, in a thread of its own, so that earlier feedback on them is refused. A stream that is dropped is no step.
    A request that the endpoint refuses is not sent again without what memory added: LiteLLM has no hook for it.

    Args:
        memory: an open memory.
        options: `mode` (`observe`, `examples` or `advice`), `holdout`, `task`, `awaits_feedback`, `timeout_s`,
            `on_error`, `rewards`, as of `seasoned.wrap`.

    Raises:
        InputError: an argument breaks a rule.
        MissingExtraError: the package `litellm` is not installed.
    """
    logger = _logger_class()
    return logger(AgentCalls(memory, "litellm", **options))


class _MemoryLogger:
    """Records the calls of LiteLLM, and adds what memory says to them."""

    def __init__(self, calls: AgentCalls) -> None:
        super().__init__()
        self._calls = calls
        self._open: OrderedDict[str, AgentCall] = OrderedDict()  # by the ids that LiteLLM gives calls
        self._lock = threading.Lock()

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Add what memory says to a request."""
        call = self._begun(kwargs, kwargs) if getattr(call_type, "value", call_type) in _CALL_TYPES else None
        block = None if call is None else await call.block_async()
        if call is None or block is None:
            return None
        return call.extended(kwargs, lambda: _WIRE.extended(kwargs, block) or kwargs)

    async def async_post_call_success_deployment_hook(self, request_data: Any, response: Any, call_type: Any) -> None:
        """Record an asynchronous call before its caller has the response, so that feedback finds it; no stream."""
        call = self._taken(request_data) if hasattr(response, "model_dump") else None
        if call is not None:
            call.finish(response.model_dump)

    def log_pre_api_call(self, model: str, messages: Any, kwargs: dict[str, Any]) -> None:
        """Begin a synchronous call, which has no other hook."""
        with self._lock:
            is_known = kwargs.get("litellm_call_id") in self._open
        if not is_known and kwargs.get("call_type") in _CALL_TYPES:
            self._begun(kwargs, kwargs.get("optional_params") or {})

    def log_success_event(self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Record a call."""
        call = self._taken(kwargs)
        if call is not None:
            call.finish(response_obj.model_dump)

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Record a call."""
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    def log_failure_event(self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Forget a call that failed: it is no step."""
        self._taken(kwargs)

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Forget a call that failed: it is no step."""
        self._taken(kwargs)

    def _begun(self, kwargs: Mapping[str, Any], offered: Mapping[str, Any]) -> AgentCall | None:
        """Return the call that a request begins."""

        def body() -> dict[str, Any]:
            messages = [one if isinstance(one, dict) else one.model_dump() for one in kwargs.get("messages") or ()]
            return {"model": kwargs.get("model"), "messages": messages, "tools": offered.get("tools")}

        call, id_ = self._calls.begin(_WIRE, body), kwargs.get("litellm_call_id")
        if call is not None and id_ is not None:
            with self._lock:
                self._open[id_] = call
                while len(self._open) > _MOST_OPEN:
                    self._open.popitem(last=False)
        return call

    def _taken(self, kwargs: Mapping[str, Any]) -> AgentCall | None:
        with self._lock:
            return self._open.pop(str(kwargs.get("litellm_call_id")), None)


@cache
def _logger_class() -> Any:
    base = load_extra("litellm.integrations.custom_logger", _EXTRA).CustomLogger
    return type("MemoryLogger", (_MemoryLogger, base), {"__doc__": _MemoryLogger.__doc__})
