"""One call of a wrapped client: the requests that it takes, and what is recorded of it."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from seasoned.errors import InputError, ModelAnswerError, ModelError
from seasoned.integrations.clients.call_decisions import CallDecisions, actions_of, options_to_decide
from seasoned.integrations.clients.call_holdout import CallArms
from seasoned.integrations.clients.call_modes import CallMode, CallVotes
from seasoned.integrations.clients.call_recorder import CallRecorder
from seasoned.integrations.clients.conversations import CallContext
from seasoned.integrations.clients.label_question import label_reading
from seasoned.integrations.clients.observed_call import REFUSED, CallGuard, ObservedCall
from seasoned.integrations.clients.prompt_block import framed_block
from seasoned.integrations.clients.tool_evidence import TEXT_ANSWER, tool_of
from seasoned.integrations.clients.wires.answers import is_event_stream, read_answer
from seasoned.integrations.clients.wires.event_stream import json_events
from seasoned.integrations.clients.wires.wire_format import ModelAnswer, RequestMoment, ToolOptions, WireFormat
from seasoned.integrations.json_parts import dumps_in_parts, loads_in_parts
from seasoned.protocols import Usage
from seasoned.types import Prior, StepRef

__all__ = ["Requests", "WrappedCall"]

Requests: TypeAlias = Generator[list[bytes], list[Any], Any]
"""Yields requests that are answered all at once, is sent their responses or errors, and returns the request that is the
call, the response that is its answer, or the error that is raised."""

_LOG = logging.getLogger("seasoned.clients")


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What memory has to say before a call: the request with its text, or what there is to choose from."""

    moment: RequestMoment
    body: bytes
    shown: tuple[StepRef, ...] = ()
    options: ToolOptions | None = None


class _Vote(NamedTuple):
    """The first action of an answer."""

    action: str
    is_call: bool


@dataclass(frozen=True, slots=True)
class _Reading:
    """The model's policy, what the questions cost, and the answers that it was counted from, with their tools."""

    prior: Prior
    usage: Usage
    responses: Sequence[Any] = ()
    tools: Sequence[str] = ()

    def answer(self, tool: str) -> Any:
        """Return the first answer that calls this tool; None if none does."""
        return next((one for one, called in zip(self.responses, self.tools, strict=True) if called == tool), None)


class WrappedCall(ObservedCall):
    """One call of a wrapped client.

    Args:
        guard: runs what needs the memory.
        recorder: records the call.
        mode: what memory does with it; None: nothing.
        arms: assigns its episode to memory or to the control group; None: there is no holdout.
        wire: its API.
        body: its request.
        context: what is recorded of it.
    """

    def __init__(
        self,
        guard: CallGuard,
        recorder: CallRecorder,
        mode: CallMode | None,
        arms: CallArms | None,
        wire: WireFormat,
        body: bytes,
        context: CallContext,
    ) -> None:
        super().__init__(guard, recorder, mode, arms, wire, functools.partial(_parsed, body), context)
        self._body = body

    def requests(self) -> Requests:
        """Take part in the call, as the mode says; see `Requests`."""
        mode = self._permitted_mode()
        if mode is None:
            return self._body
        prepared = self._guard.ask_memory(functools.partial(self._prepared, mode))
        if prepared is None:
            return self._body
        if isinstance(mode, CallVotes):
            return (yield from self._by_votes(mode, prepared.moment))
        if isinstance(mode, CallDecisions) and prepared.options is not None:
            return (yield from self._by_decision(mode, prepared.moment, prepared.options))
        self._context = replace(self._context, shown=prepared.shown)
        return prepared.body

    def after_refusal(self, sent: bytes, status: int) -> bytes | None:
        """Return the agent's own request if another one was sent and refused, as a prompt that is too long is."""
        if sent == self._body or status not in REFUSED:
            return None
        _LOG.warning("The endpoint refused (%d) a request that memory changed: it gets the agent's own.", status)
        self._context = self._plain
        return self._body

    def finish(self, response: Any, body: bytes | None) -> None:
        """Record the call in the background."""
        self._record(lambda: self._answer(response, response.content if body is None else _decoded(response, body)))

    # ---------------------------------------------------------------------------------------------- before the call

    def _prepared(self, mode: CallMode) -> _Prepared | None:
        """Return what memory has to say about the request; None: nothing.

        It changes nothing of the call, which may have gone on without memory by then.
        """
        body = self._request()
        moment = self._moment(body)
        if moment is None:
            return None
        if not isinstance(mode, CallVotes | CallDecisions):  # a protocol is slow to check
            recalled = self._recalled(mode, body, moment)
            extended = self._wire.extended(body, framed_block(recalled.text)) if recalled.text else None
            return None if extended is None else _Prepared(moment, dumps_in_parts(extended), recalled.shown)
        options = options_to_decide(self._wire, body)
        may_ask = self._wire.may_repeat(body) if isinstance(mode, CallVotes) else options is not None
        return _Prepared(moment, self._body, options=options) if may_ask and mode.knows(moment, self._task) else None

    # ------------------------------------------------------------------------------------------------------- votes

    def _by_votes(self, mode: CallVotes, moment: RequestMoment) -> Requests:
        """Ask several times, and return the answer that memory chooses; the first one if it cannot choose."""
        answered = yield [self._body] * mode.n
        whole = [one for one in answered if _is_whole(one)]
        if not whole:
            return _failure(answered)
        votes = self._guard.run(lambda: self._first_actions(whole)) or []
        chosen = self._guard.ask_memory(lambda: mode.choose(votes, moment, self._task)) if votes else None
        index = 0 if chosen is None else chosen.index
        usage = self._usage_of([*whole[:index], *whole[index + 1 :]])
        self._context = replace(self._context, usage=usage)
        if chosen is not None:
            self._context = replace(self._context, prior=chosen.prior, propensities=chosen.propensities)
        return whole[index]

    def _first_actions(self, whole: Sequence[Any]) -> list[str | None]:
        """Return the first action of each answer; answers without a call are one action, the first text."""
        votes = [self._vote(response) for response in whole]
        text = next((vote.action for vote in votes if vote is not None and not vote.is_call), None)
        return [None if vote is None else vote.action if vote.is_call else text for vote in votes]

    # --------------------------------------------------------------------------------------------------- decisions

    def _by_decision(self, mode: CallDecisions, moment: RequestMoment, options: ToolOptions) -> Requests:
        """Read the model's policy over the tools, let memory decide, and demand that call unless an answer has it."""
        body = _parsed(self._body)
        model = str(body.get("model") or "model")
        reading: _Reading | None = None
        if options.can_force and mode.reads_labels(model):
            try:
                read = yield from label_reading(self._wire, body, moment.state, actions_of(options))
                reading = _Reading(read.prior, read.usage)
            except ModelAnswerError as error:
                mode.without_labels(model)
                _LOG.info("%s is not asked for letters: %s", model, error)
            except ModelError as error:
                _LOG.warning("The model decides alone, since its policy could not be read: %s", error)
                return self._body
        if reading is None and mode.reads_votes:
            answered = yield [self._body] * mode.n
            whole = [one for one in answered if _is_whole(one)]
            if not whole:
                return _failure(answered)
            reading = self._guard.run(lambda: self._voted(mode, whole, options))
            if reading is None:
                return whole[0]
        return self._body if reading is None else self._decided(mode, moment, reading, body)

    def _voted(self, mode: CallDecisions, whole: Sequence[Any], options: ToolOptions) -> _Reading | None:
        """Return the policy by the tools of some answers; None if they call no tool that was offered."""
        votes = [self._vote(response) for response in whole]
        tools = ["" if vote is None else tool_of(vote.action) if vote.is_call else TEXT_ANSWER for vote in votes]
        prior = mode.voted(tools, options)
        return None if prior is None else _Reading(prior, Usage(), whole, tools)

    def _decided(self, mode: CallDecisions, moment: RequestMoment, reading: _Reading, body: Mapping[str, Any]) -> Any:
        """Return the answer that calls the decided tool, or the request that demands it, or what the model would do."""
        choice = self._guard.ask_memory(lambda: mode.choose(reading.prior, moment, self._task))
        tool = None if choice is None else choice.tool
        answer = next(iter(reading.responses), None) if tool is None else reading.answer(tool)
        others = [one for one in reading.responses if one is not answer]
        self._context = replace(self._context, usage=reading.usage + self._usage_of(others))
        if choice is not None:
            self._context = replace(self._context, prior=choice.prior, propensities=choice.propensities)
        if answer is not None:
            return answer
        if tool is None:
            return self._body
        return dumps_in_parts(self._wire.with_choice(body, None if tool == TEXT_ANSWER else tool))

    # ---------------------------------------------------------------------------------------------- after the answer

    def _usage_of(self, responses: Sequence[Any]) -> Usage:
        """Return what some responses cost, as far as they say it."""
        usage = Usage()
        for response in responses:
            counted = self._guard.run(functools.partial(self._counted, response))
            usage += Usage(1, cost_usd=None) if counted is None else counted
        return usage

    def _counted(self, response: Any) -> Usage:
        """Return what a response cost; of a stream, as far as its events make up a response with a usage."""
        streamed = _is_stream(response)
        answered = self._wire.streamed(json_events(response.content))[0] if streamed else _parsed(response.content)
        return self._wire.usage(answered)

    def _vote(self, response: Any) -> _Vote | None:
        """Return the first action of an answer; None if it has none."""
        answer = self._answer(response, response.content)
        actions = () if answer is None else self._wire.actions(answer.units)
        return None if answer is None or not actions else _Vote(actions[0], answer.has_calls)

    def _answer(self, response: Any, content: bytes) -> ModelAnswer | None:
        """Return the answer of a response; None of one that was not received to its end, and is no stream."""
        return read_answer(self._wire, response.headers.get("content-type", ""), content)


def _is_whole(response: Any) -> bool:
    return not isinstance(response, Exception) and bool(response.is_success)


def _failure(answered: Sequence[Any]) -> Any:
    """Return the first response that is no success, or else the first error."""
    return next((one for one in answered if not isinstance(one, Exception)), answered[0])


def _is_stream(response: Any) -> bool:
    return is_event_stream(response.headers.get("content-type", ""))


def _parsed(body: bytes) -> Mapping[str, Any]:
    value = loads_in_parts(body.decode(json.detect_encoding(body), "surrogatepass"))
    if not isinstance(value, dict):
        raise InputError(f"a body that is a {type(value).__name__}", "a call is a JSON object", "Leave it out.")
    return value


def _decoded(response: Any, body: bytes) -> bytes:
    """Return the body of a stream without its content encoding, by the codecs of the HTTP client."""
    encoding = response.headers.get("content-encoding")
    if not encoding:
        return body
    content: bytes = type(response)(200, headers={"content-encoding": encoding}, content=body).content
    return content
