"""One call of a model: the arm of its episode, what memory says before it, and its record."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from seasoned.errors import SeasonedError
from seasoned.integrations.clients.call_holdout import CallArms
from seasoned.integrations.clients.call_modes import CallMode, PromptText, Recalled
from seasoned.integrations.clients.call_recorder import CallRecorder
from seasoned.integrations.clients.conversations import CallContext, RecordedCall, ShadowNote
from seasoned.integrations.clients.prompt_block import without_blocks
from seasoned.integrations.clients.wires.wire_format import ModelAnswer, RequestMoment, WireFormat
from seasoned.policies.fallback.fail_open import MemoryFallback

__all__ = ["REFUSED", "CallGuard", "ObservedCall"]

REFUSED = (400, 413, 422)
"""Statuses of a request that is refused for what it says, as a prompt that is too long is."""

Result = TypeVar("Result")
_LOG = logging.getLogger("seasoned.clients")


class CallGuard:
    """Runs what this package does in a call, so that no error of it reaches the agent, unless that was asked for.

    Args:
        recorder: of the memory.
        timeout_s: the longest that a call waits for memory at a time, in seconds.
        raises: whether errors are raised, those of the background too.
    """

    def __init__(self, recorder: CallRecorder, timeout_s: float, *, raises: bool) -> None:
        self._recorder, self._raises = recorder, raises
        what = "memory's part of a call"
        self._fallback = MemoryFallback(timeout_s, on_error="raise" if raises else "base", what=what)

    def run(self, work: Callable[[], Result]) -> Result | None:
        """Return the result of some work, or None after an error, which is logged or raised."""
        try:
            if self._raises:
                self._recorder.raise_error()
            return work()
        except Exception as error:
            if self._raises:
                raise
            _LOG.warning("Memory had no part in a call: %s", error, exc_info=not isinstance(error, SeasonedError))
            return None

    def ask_memory(self, work: Callable[[], Result]) -> Result | None:
        """Return the result of some work that needs the memory; None also if it fails or takes too long."""
        return self.run(lambda: self._fallback.run(work, otherwise=lambda reason: None))


class ObservedCall:
    """One call of a model, however it is sent.

    Args:
        guard: runs what needs the memory.
        recorder: records the call.
        mode: what memory does with it; None: nothing.
        arms: assigns its episode to memory or to the control group; None: there is no holdout.
        wire: the API whose form its request and answer have.
        request: returns its request.
        context: what is recorded of it.
    """

    def __init__(
        self,
        guard: CallGuard,
        recorder: CallRecorder,
        mode: CallMode | None,
        arms: CallArms | None,
        wire: WireFormat,
        request: Callable[[], Mapping[str, Any]],
        context: CallContext,
    ) -> None:
        self._guard, self._recorder, self._mode, self._arms = guard, recorder, mode, arms
        self._wire, self._request = wire, request
        self._plain = self._context = context

    @property
    def context(self) -> CallContext:
        """What is recorded of the call, with what memory did in it so far."""
        return self._context

    # ---------------------------------------------------------------------------------------------- before the call

    @property
    def _task(self) -> str | None:
        scope = self._context.scope
        return (scope and scope.task) or self._context.task

    def _permitted_mode(self) -> CallMode | None:
        """Return what memory may do with the call; None: nothing, as in the control group."""
        return None if self._arms is not None and not self._is_treated(self._arms) else self._mode

    def _is_treated(self, arms: CallArms) -> bool:
        """Assign the episode of this call if that was not done, and return whether memory may take part in it."""
        body = self._guard.run(self._request)
        if body is None:
            return False

        def settle() -> None:
            self._guard.ask_memory(self._recorder.settle)

        unit = self._guard.run(lambda: arms.unit(self._wire, body, self._context.scope, settle))
        if unit is None:
            return False
        model = str(body.get("model") or "model")
        arm = self._guard.ask_memory(lambda: arms.arm(unit, self._task, model))
        policy = self._context.policy if arm == "treated" else arms.control_policy
        self._plain = self._context = replace(self._context, unit=unit, arm=arm, policy=policy)
        return arm == "treated"

    def _moment(self, body: Mapping[str, Any]) -> RequestMoment | None:
        """Return the moment of a request; None if it has no message."""
        units = without_blocks(self._wire.units(body))
        return self._wire.moment(units) if units else None

    def _recalled(self, mode: PromptText, body: Mapping[str, Any], moment: RequestMoment) -> Recalled:
        """Return what memory says about a request. It changes nothing of the call, which may have gone on by then."""
        return mode.recall(moment, self._task, functools.partial(self._wire.can_call, body))

    # ---------------------------------------------------------------------------------------------- after the answer

    def _record(self, read_answer: Callable[[], ModelAnswer | None]) -> None:
        """Record the call in the background, with the answer that is read there; None is no answer."""
        self._guard.run(lambda: self._recorder.submit(functools.partial(self._recorded, read_answer)))

    def _recorded(self, read_answer: Callable[[], ModelAnswer | None]) -> RecordedCall | None:
        answer = read_answer()
        if answer is None:
            return None
        if self._arms is not None and self._context.unit is not None and answer.id is not None:
            self._arms.answered(answer.id, self._context.unit)
        request = self._request()
        if self._arms is not None and self._context.arm == "control":
            self._context = replace(self._context, shadow=self._shadow(self._arms, request, answer))
        return RecordedCall(self._wire, request, answer, self._context)

    def _shadow(self, arms: CallArms, request: Mapping[str, Any], answer: ModelAnswer) -> ShadowNote | None:
        """Return what memory would have done; None also where it cannot say, so that the call is recorded anyway."""
        if self._recorder.is_waiting_for_store:
            return None
        try:
            return arms.shadow(self._wire, request, answer, self._task)
        except SeasonedError as error:
            _LOG.info("Memory could not say what it would have done: %s", error)
            return None
