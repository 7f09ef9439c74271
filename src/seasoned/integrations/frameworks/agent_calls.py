"""Model calls of agent frameworks, with what memory does in them: every integration shares it, and so does `wrap`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from seasoned.errors import InputError
from seasoned.integrations.clients.call_decisions import CallDecisions
from seasoned.integrations.clients.call_modes import CallVotes, PromptText, Recalled
from seasoned.integrations.clients.call_settings import CallSettings, call_settings
from seasoned.integrations.clients.observed_call import REFUSED, ObservedCall
from seasoned.integrations.clients.prompt_block import framed_block
from seasoned.integrations.clients.wires.wire_format import ModelAnswer, WireFormat
from seasoned.integrations.frameworks.agent_runs import AgentRuns, runs_of
from seasoned.memory import Memory
from seasoned.types import Ending

__all__ = ["AgentCall", "AgentCalls"]

Request = TypeVar("Request")
_LOG = logging.getLogger("seasoned.clients")


class AgentCall(ObservedCall):
    """One call of a model by an agent framework."""

    def block(self) -> str | None:
        """Return the marked text for the end of the last message of a user or a tool; None: memory says nothing.

        Nothing is raised, unless that was asked for: memory's errors and delays do not reach the agent.
        """
        mode = self._permitted_mode()
        if not isinstance(mode, PromptText):
            return None
        recalled = self._guard.ask_memory(lambda: self._said(mode))
        if recalled is None or not recalled.text:
            return None
        self._context = replace(self._context, shown=recalled.shown)
        return framed_block(recalled.text)

    async def block_async(self) -> str | None:
        """Return `block`, without a wait of the event loop for memory."""
        if self._mode is None:
            return None
        import anyio.to_thread  # a dependency of every framework with asynchronous calls

        return await anyio.to_thread.run_sync(self.block)

    def extended(self, own: Request, extend: Callable[[], Request]) -> Request:
        """Return the request with memory's text; the agent's own where it has no place, or that fails."""
        changed = self._guard.run(extend)
        if changed is None or changed is own:
            self._context = self._plain
            return own
        return changed

    def refused(self, error: BaseException) -> bool:
        """Return whether the endpoint refused a request that memory changed, as a prompt that is too long is.

        Then the agent's own request is sent, and recorded as one without memory.
        """
        if self._context is self._plain or getattr(error, "status_code", None) not in REFUSED:
            return False
        _LOG.warning("The endpoint refused a request that memory changed: it gets the agent's own. %s", error)
        self._context = self._plain
        return True

    def finish(self, response: Callable[[], Mapping[str, Any]]) -> None:
        """Record the call, with a response in the form of its API."""
        self._record(lambda: self._wire.answer(response()))

    def cut(self, response: Callable[[], Mapping[str, Any]]) -> None:
        """Record the call, with as much of its response as came before a stream broke off."""

        def answer() -> ModelAnswer:
            return replace(self._wire.answer(response()), is_cut=True, is_broken_off=True, tokens=None)

        self._record(answer)

    def _said(self, mode: PromptText) -> Recalled | None:
        body = self._request()
        moment = self._moment(body)
        return None if moment is None else self._recalled(mode, body, moment)


class AgentCalls:
    """The model calls of a framework's agents.

    Args:
        memory: an open memory.
        client: the name of the framework, which begins the stored name of an episode's policy.
        options: as of `seasoned.wrap`, with the modes `observe`, `examples` and `advice`.

    Raises:
        InputError: an argument breaks a rule.

    Example:
        >>> from seasoned import Memory
        >>> from seasoned.integrations.clients.wires.chat_wire import ChatWire
        >>> with Memory.open(":memory:") as memory:
        ...     calls = AgentCalls(memory, "mine")
        ...     call = calls.begin(ChatWire(), lambda: {"messages": [{"role": "user", "content": "Hi"}]}, "run-1")
        ...     message = {"role": "assistant", "content": "Hello."}
        ...     call.finish(lambda: {"id": "r1", "choices": [{"message": message, "finish_reason": "stop"}]})
        ...     calls.end("run-1", "terminated")
        ...     memory.get("run-1").steps[0].action
        'Hello.'
    """

    def __init__(self, memory: Memory, client: str, **options: Any) -> None:
        self._settings: CallSettings = call_settings(memory, client, **options)
        if isinstance(self._settings.mode, CallVotes | CallDecisions):
            raise InputError(
                f"mode = {self._settings.mode.name!r} in an agent framework",
                "its modes are observe, examples and advice",
                "Wrap the client of the model: seasoned.wrap(client, memory, mode=...).",
            )
        self._runs: AgentRuns = runs_of(memory, self._settings.recorder)
        self._settings.warm_up()

    def begin(
        self, wire: WireFormat, request: Callable[[], Mapping[str, Any]], run_id: str | None = None
    ) -> AgentCall | None:
        """Return the call that a request begins; None after an error, which was logged or raised.

        Args:
            wire: the API whose form the request has.
            request: returns the request; called at once.
            run_id: of the agent's run, which is one episode outside of a `with seasoned.episode(...)` block; None: the
                messages say what belongs together, as with `seasoned.wrap`.
        """
        return self._settings.guard.run(lambda: self._begun(wire, request(), run_id))

    def fail(self, run_id: str) -> None:
        """Note that an error left a run; see `AgentRuns.fail`."""
        self._settings.guard.run(lambda: self._runs.fail(run_id))

    def end(self, run_id: str, ending: Ending) -> None:
        """Store the episode of a run, in the background; nothing inside of a block."""
        self._settings.guard.run(lambda: self._runs.end(run_id, ending))

    def _begun(self, wire: WireFormat, body: Mapping[str, Any], run_id: str | None) -> AgentCall:
        own = self._settings
        scope = own.current_episode()
        if scope is None and run_id is not None:
            scope = self._runs.scope(run_id)
        context = own.context(scope)
        return AgentCall(own.guard, own.recorder, own.mode, own.arms, wire, lambda: body, context)
