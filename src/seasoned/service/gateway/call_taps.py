"""Recording of forwarded calls, and the seam for a mode.

Where a call belongs is found while the upstream server works, and its answer is read after its end, both by the
recorder's thread. What is recorded is the client's request, never the one that a mode made of it.

**A mode is a function** from a parsed call to an altered one (`CallChange`). It runs in a thread before the request is
sent, with the id of the episode known, and it may also say what is recorded of the call: the arm, the steps that it
showed, its policy. It *fails open*: None, an error, or more than 50 ms send the client's own bytes, and the header
`x-seasoned-reason` says why. A changed request that the upstream server refuses is sent again as the client made it.
Side calls and sub-agents are never changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

from seasoned.errors import InputError, SeasonedError
from seasoned.integrations.clients.call_recorder import CallRecorder
from seasoned.integrations.clients.conversations import (
    VALUE_BYTES,
    CallContext,
    Conversations,
    RecordedCall,
    ShadowNote,
)
from seasoned.integrations.clients.http_client import advanced
from seasoned.integrations.clients.planned_call import WrappedCall
from seasoned.integrations.clients.wires.answers import read_answer
from seasoned.integrations.clients.wires.wire_format import ModelAnswer, WireFormat
from seasoned.integrations.clients.wrapped_client import WIRE_FORMATS
from seasoned.integrations.json_parts import dumps_in_parts
from seasoned.memory import Memory
from seasoned.service.bearer_tokens import Token
from seasoned.service.decisions.http_messages import REASON, header_text
from seasoned.service.gateway.buffered_answers import AskModel, BufferedAnswer, decoded_content
from seasoned.service.gateway.call_spool import CallFile, CallSpool, SpooledCall
from seasoned.service.gateway.client_ids import ID_HEADERS
from seasoned.service.gateway.forwarder import GatewayRequest
from seasoned.service.gateway.gateway_episodes import CallPlace, GatewayEpisodes
from seasoned.service.gateway.gateway_shares import ModeThreads, WorkTime
from seasoned.service.gateway.proxy_headers import RawHeaders
from seasoned.service.gateway.session_paths import PathSession
from seasoned.service.json_documents import parse_call_body

__all__ = [
    "ID_WAIT_S",
    "MODE_WAIT_S",
    "CallChange",
    "ChangedCall",
    "GatewayMode",
    "ParsedCall",
    "RecordedTap",
    "restore_call",
]

MODE_WAIT_S = 0.05
"""Seconds that our work may add to a call, over all steps of its mode."""

ID_WAIT_S = 0.015
"""Seconds that an answer waits for the id of its episode, once the upstream server has begun it."""

MAX_RECORDED_BYTES = 16 * 1024 * 1024
"""Bytes of an answer that is recorded; a longer one is forwarded alone."""

_LARGE_BYTES = 256 * 1024
_MANY_VALUES = 10_000
_ROOM_POLL_S = 0.05
_LAST_EVENT = re.compile(
    rb"\n(?:data: ?\[DONE\]|event: ?(?:message_stop|response\.(?:completed|incomplete|failed))\r?\n)"
)
_LAST_EVENT_BYTES = 64
_REFUSED = (400, 413, 422)
_log = logging.getLogger("seasoned.service")
_Answer = TypeVar("_Answer")

GatewayMode = Literal["observe", "memory", "base", "holdout"]


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call before it is sent.

    Args:
        memory: of its namespace.
        wire: its API.
        body: the client's request.
        place: its episode, and what is recorded of it.
        content: the request as the client sent it.
    """

    memory: Memory
    wire: WireFormat
    body: Mapping[str, Any]
    place: CallPlace
    content: bytes


@dataclass(frozen=True, slots=True)
class ChangedCall:
    """What a mode makes of a call.

    Args:
        body: the request to send; None: the client's own.
        context: what is recorded of it: that of the call's place, with the mode's own fields.
        mode: what the answer's header says.
        reason: why memory has no part in it, if it has none.
        shadow: in the control group, returns what memory would have done, once the model has answered; None of any
            other call.
        asking: what asks the model several times, and chooses among its answers or demands a call; None: nothing.
    """

    body: Mapping[str, Any] | None
    context: CallContext
    mode: GatewayMode
    reason: str | None = None
    shadow: Callable[[ModelAnswer], ShadowNote | None] | None = None
    asking: WrappedCall | None = None


class CallChange(Protocol):
    """A mode: takes part in the calls of one memory."""

    def mode_of(self, context: CallContext) -> str | None:
        """Return the name of what takes part in a call, which has threads of its own; None: nothing does."""

    def __call__(self, call: ParsedCall) -> ChangedCall | None:
        """Return what becomes of a call; None: it is left as it is."""


class RecordedTap:
    """Records one call: see `seasoned.service.gateway.forwarder.CallTap`.

    Args:
        request: the call.
        memory: of its namespace.
        recorder: of the memory.
        episodes: of the memory.
        threads: in which modes work.
        spool: keeps the call until its episode is stored; None: nothing does.
        change: the mode; None: `observe`.
        mode_wait_s: seconds that all of our work may add to the call.
        id_wait_s: seconds of these that an answer waits for the id of its episode.
    """

    def __init__(
        self,
        request: GatewayRequest,
        memory: Memory,
        recorder: CallRecorder,
        episodes: GatewayEpisodes,
        *,
        threads: ModeThreads,
        spool: CallSpool | None = None,
        change: CallChange | None = None,
        mode_wait_s: float = MODE_WAIT_S,
        id_wait_s: float = ID_WAIT_S,
    ) -> None:
        self._request, self._memory = request, memory
        self._recorder, self._episodes, self._spool, self._change = recorder, episodes, spool, change
        self._time, self._threads, self._mode = WorkTime(mode_wait_s), threads, ""
        self._id_wait_s = id_wait_s
        self._began_s = time.perf_counter()
        self._fresh_id = uuid.uuid4().hex
        self._n_values = _counted_values(request.body)
        self._parsed: Mapping[str, Any] | None = None
        self._sent = request.body
        self._changed: ChangedCall | None = None
        self._reason: str | None = None
        self._status = 0
        self._content_type = self._encoding = ""
        self._parts: list[bytes] = []
        self._size_bytes = 0
        self._line = b"\n"  # the last bytes of a stream
        self._is_ending = self._is_submitted = False
        self._is_spooled = spool is None
        self._file: CallFile | None = None
        self._n_answers = 0
        self._place: Future[CallPlace] = recorder.ask(self._find)

    def _find(self, conversations: Conversations) -> CallPlace:
        body = parse_call_body(self._request.body)
        if self._n_values <= _MANY_VALUES:
            self._parsed = body
        return self._episodes.place(self._request, body, self._fresh_id, conversations)

    def _body(self) -> Mapping[str, Any]:
        """Return the request, parsed; one of many values is parsed again, since it takes many times its length."""
        return parse_call_body(self._request.body) if self._parsed is None else self._parsed

    # ----------------------------------------------------------------------------------------------- before the answer

    async def request(self, ask: AskModel) -> bytes | BufferedAnswer:
        """Return the body to send, the client's unless a mode changed it; or the answer that a mode chose.

        Where too much of what was answered waits to be recorded, the call waits for that first: a part of its time.
        """
        try:
            async with self._time.taken():
                if (room := self._recorder.room()) is not None:
                    await asyncio.wrap_future(room)
                if self._change is None:
                    return self._request.body
                place = await self._found()
                mode = None if place.context.is_side else self._change.mode_of(place.context)
                if mode is not None:
                    self._mode = mode
                    changed_by = functools.partial(self._changed_by, self._change, place)
                    self._changed, self._sent = await self._in_thread(changed_by)
                elif not place.context.is_side:
                    self._changed = ChangedCall(None, place.context, "observe")
        except TimeoutError:
            self._reason = self._out_of_time
        except Exception as error:
            self._reason = str(error) if isinstance(error, SeasonedError) else "an error in the mode"
            if not isinstance(error, SeasonedError):
                _log.error("A mode failed", exc_info=error)
        if self._changed is not None and self._changed.asking is not None:
            return await self._asked(self._changed, self._changed.asking, ask)
        return self._sent

    def _changed_by(self, change: CallChange, place: CallPlace) -> tuple[ChangedCall | None, bytes]:
        """Return what becomes of the call, and the request to send."""
        call = ParsedCall(self._memory, self._request.wire, self._body(), place, self._request.body)
        changed = change(call)
        if changed is None or changed.body is None:
            return changed, call.content
        try:
            return changed, dumps_in_parts(changed.body)
        except (TypeError, ValueError) as error:  # a lone surrogate, which the client may have escaped
            self._reason = f"the changed request cannot be written: {error}"
            return None, call.content

    @property
    def _out_of_time(self) -> str:
        return f"memory took more than {1000 * self._time.limit_s:g} ms"

    async def _in_thread(self, work: Callable[[], _Answer]) -> _Answer:
        return await self._threads.run(self._memory.namespace, self._mode, work)

    async def _asked(self, changed: ChangedCall, asking: WrappedCall, ask: AskModel) -> bytes | BufferedAnswer:
        """Ask the model as a mode wants, and return what comes of it.

        After an error, or where memory takes too long, that is an answer to the client's own request, or else the
        request itself.
        """
        requests, answers, outcome, own = asking.requests(), None, None, list[BufferedAnswer]()
        try:
            while True:
                async with self._time.taken():
                    bodies, outcome = await self._in_thread(functools.partial(advanced, requests, answers))
                if bodies is None:
                    break
                answers = await ask(bodies, self._time)
                self._n_answers += len(bodies)
                if bodies[0] == self._request.body:
                    own = [one for one in answers if isinstance(one, BufferedAnswer) and one.is_success]
        except TimeoutError:
            self._reason = self._out_of_time
            if own:
                return own[0]
            outcome = None
        except Exception as error:
            _log.error("A mode that asks the model failed", exc_info=error)
            self._reason = "an error in the mode"
            outcome = None
        if isinstance(outcome, BufferedAnswer) and (outcome.is_success or outcome.status_code not in _REFUSED):
            context = asking.context
            if outcome.is_one_of_several:  # the usage of all is in its body
                context = replace(context, usage=None)
            self._changed = _chosen(changed, context)
            return outcome
        if isinstance(outcome, bytes):
            self._sent = outcome
            self._changed = _chosen(changed, asking.context) if self._n_answers else changed
        else:
            self._reason = self._reason or "the model gave no answer to choose from"
        self._n_answers += 1 if self._n_answers else 0
        return self._sent

    def after_refusal(self, status: int) -> bytes | None:
        """Return the client's own request if another one was sent and refused; else None."""
        if status not in _REFUSED or self._sent == self._request.body:
            return None
        self._sent = self._request.body
        if self._changed is not None:  # the arm stays: the episode is one that memory was to take part in
            context = replace(self._changed.context, shown=(), prior=None, propensities=None)
            self._changed = ChangedCall(None, context, "base")
        self._reason = f"the upstream server refused ({status}) the changed request"
        return self._sent

    async def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that are added to the answer."""
        place = await self._placed(min(self._id_wait_s, self._time.left_s))
        mode = "observe" if self._change is None else "base" if self._changed is None else self._changed.mode
        headers: dict[str, str] = {"x-seasoned-mode": mode}
        if place is not None:
            headers["x-seasoned-episode-id"] = place.episode_id
        if self._changed is not None and self._changed.context.arm is not None:
            headers["x-seasoned-arm"] = self._changed.context.arm
        if self._n_answers:
            headers["x-seasoned-answers"] = str(self._n_answers)
        reason = self._reason or (self._changed.reason if self._changed is not None else None)
        if reason:
            headers[REASON] = header_text(reason)
        return [(name.encode(), header_text(value).encode()) for name, value in headers.items()]

    async def _found(self) -> CallPlace:
        """Return where the call belongs, once that is known. A caller that waits no longer leaves no error unread."""
        found = asyncio.wrap_future(self._place)
        found.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return await asyncio.shield(found)

    async def _placed(self, wait_s: float) -> CallPlace | None:
        """Return where the call belongs; None if that is not known in time, or the request cannot be read."""
        try:
            if self._place.done():  # mostly: it was found while the upstream server worked
                return self._place.result()
            async with asyncio.timeout(wait_s):
                return await self._found()
        except TimeoutError:
            return None
        except Exception as error:
            if not isinstance(error, SeasonedError | ValueError):
                _log.error("The episode of a call was not found", exc_info=error)
            return None

    # ----------------------------------------------------------------------------------------------- the answer

    def begin(self, status: int, headers: RawHeaders) -> None:
        """Take the head of the answer."""
        given = {name: value.decode("latin-1") for name, value in headers}
        self._status = status
        self._content_type, self._encoding = given.get(b"content-type", ""), given.get(b"content-encoding", "")

    @property
    def _is_recorded(self) -> bool:
        return 200 <= self._status < 300 and self._size_bytes <= MAX_RECORDED_BYTES

    async def add(self, part: bytes) -> None:
        """Take a part of the answer, and write it to disk.

        With the last event of a stream the call is recorded: the client may go on before the connection ends.
        """
        if self._is_submitted:
            return
        self._size_bytes += len(part)
        if not self._is_recorded:
            if self._parts:
                _log.warning("An answer of more than %d bytes is not recorded.", MAX_RECORDED_BYTES)
            self._forget()
            return
        self._parts.append(part)
        if not self._is_spooled and self._spool is not None:
            self._is_spooled = True
            place = self._place.result() if self._place.done() and self._place.exception() is None else None
            facts, body = self._facts(place), self._request.body
            if len(body) > _LARGE_BYTES:
                self._file = await self._spool.begin_later(facts, body)
            else:
                self._file = self._spool.begin(facts, body)
        if self._file is not None and not self._file.add(part):
            self._file = None
        if self._is_last(part):
            self.finish()

    def _is_last(self, part: bytes) -> bool:
        """Return whether a stream is whole with this part; False also where that is not known before its end."""
        if self._encoding not in ("", "identity") or not self._content_type.startswith("text/event-stream"):
            return False
        seen = self._line + part
        self._line = seen[-_LAST_EVENT_BYTES:]
        self._is_ending = self._is_ending or _LAST_EVENT.search(seen) is not None
        return self._is_ending and seen.endswith((b"\n\n", b"\n\r\n"))

    def _forget(self) -> None:
        self._parts.clear()
        _release(self._file)
        self._file = None

    def finish(self) -> None:
        """Take the end of the answer, or of what has arrived of it."""
        if self._is_recorded and not self._is_submitted:
            self._is_submitted = True
            self._submit(time.time(), time.perf_counter() - self._began_s)

    def _submit(self, at: float, seconds: float) -> None:
        content = b"".join(self._parts)
        self._parts.clear()
        kept, self._file = self._file, None
        if kept is not None:
            kept.end()
        if self._recorder.is_full:
            self._recorder.refuse(is_kept=kept is not None)
            left = "it is lost" if kept is None else f"the next process records it from {kept.path.name}"
            _log.error("Too many calls wait to be recorded, so one is not recorded here: %s.", left)
            return
        n_bytes = len(self._request.body) + len(content) + VALUE_BYTES * min(self._n_values, _MANY_VALUES)
        self._recorder.submit(functools.partial(self._read, content, kept, at, seconds), n_bytes)
        self._place.add_done_callback(self._end_single)

    def _end_single(self, place: Future[CallPlace]) -> None:
        if place.exception() is None:
            self._episodes.end_single(place.result())

    def _read(self, content: bytes, kept: CallFile | None, at: float, seconds: float) -> RecordedCall | None:
        """Return the call as it was answered; None if it cannot be read."""
        with _released_if_unreadable(kept):
            place = self._place.result()  # which was asked for before
            answer = read_answer(self._request.wire, self._content_type, decoded_content(content, self._encoding))
        if answer is None:
            _release(kept)
            return None
        context = place.context if self._changed is None else self._changed.context
        context = replace(self._episodes.reopened(place, context), kept=kept, shadow=self._shadow(answer))
        n_bytes = len(self._request.body) + len(content)
        return RecordedCall(self._request.wire, self._body(), answer, context, at=at, seconds=seconds, n_bytes=n_bytes)

    def _shadow(self, answer: ModelAnswer) -> ShadowNote | None:
        """Return what memory would have done; None also where it cannot say, so that the call is recorded anyway."""
        ask = None if self._changed is None else self._changed.shadow
        if ask is None or self._recorder.is_waiting_for_store:
            return None
        try:
            return ask(answer)
        except SeasonedError as error:
            _log.info("Memory could not say what it would have done: %s", error)
            return None

    # ----------------------------------------------------------------------------------------------- the spool

    def _facts(self, place: CallPlace | None) -> dict[str, Any]:
        session = self._request.session
        return {
            "namespace": self._memory.namespace,
            "api": self._request.wire.name,
            "session": None if session is None else [session.id, session.is_episode],
            "author": self._request.holder.author,
            "headers": {name: value for name in ID_HEADERS if (value := self._request.header(name)) is not None},
            "episode": None if place is None else place.episode_id,
            "new_episode": self._fresh_id,
            "at": time.time(),
            "status": self._status,
            "type": self._content_type,
            "encoding": self._encoding,
        }


def _counted_values(body: bytes) -> int:
    """Return the number of values in JSON or more, as those in texts count too; more than `_MANY_VALUES` if many.

    It runs on the event loop, so it ends with the first part that shows that there are many.
    """
    n_values = 0
    for at in range(0, len(body), _LARGE_BYTES):
        part = body[at : at + _LARGE_BYTES]
        n_values += sum(map(part.count, (b",", b"[", b"{")))
        if n_values > _MANY_VALUES:
            break
    return n_values


def _chosen(changed: ChangedCall, context: CallContext) -> ChangedCall:
    """Return a call for which the model was asked several times; without a prior memory chose nothing."""
    if context.prior is None:
        return replace(changed, context=context, reason="the model's answers left memory nothing to choose from")
    return replace(changed, context=context, mode="memory", reason=None)


def restore_call(
    spooled: SpooledCall,
    kept: CallFile,
    memory: Memory,
    recorder: CallRecorder,
    episodes: GatewayEpisodes,
    is_stopping: threading.Event,
) -> None:
    """Record a call of an earlier process, as if it came in again, and wait until there is room for the next one.

    The wait ends with the service.
    """
    facts = spooled.facts
    wire = next(one for one in WIRE_FORMATS if one.name == facts["api"])
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in facts["headers"].items()]
    session = None if facts["session"] is None else PathSession(*facts["session"])
    holder = Token("restored-from-the-spool", facts["author"])
    request = GatewayRequest(wire, memory.namespace, session, holder, headers, spooled.body)

    def place(conversations: Conversations) -> CallPlace:
        body, fresh_id = parse_call_body(spooled.body), facts["new_episode"]
        return episodes.place(request, body, fresh_id, conversations, restored_id=facts["episode"])

    placed = recorder.ask(place)

    def read() -> RecordedCall | None:
        with _released_if_unreadable(kept):
            answer = read_answer(wire, facts["type"], decoded_content(spooled.content, facts["encoding"]))
            context = replace(placed.result().context, kept=kept)
        if answer is None:
            kept.release()
            return None
        n_bytes = len(spooled.body) + len(spooled.content)
        return RecordedCall(wire, parse_call_body(spooled.body), answer, context, at=facts["at"], n_bytes=n_bytes)

    recorder.submit(read, len(spooled.body) + len(spooled.content))
    episodes.end_single(placed.result())
    room = recorder.room()
    while room is not None and not room.done():
        if is_stopping.wait(_ROOM_POLL_S):
            room.cancel()
            return


@contextlib.contextmanager
def _released_if_unreadable(kept: CallFile | None) -> Iterator[None]:
    """Keep a call no longer that no process can read."""
    try:
        yield
    except (InputError, ValueError):
        _release(kept)
        raise


def _release(kept: CallFile | None) -> None:
    if kept is not None:
        kept.release()
