"""Recording of model calls as episodes of a memory, by two threads in the background."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal, TypeVar, get_args

from seasoned.errors import InputError, SeasonedError, StoreError, excerpt
from seasoned.integrations.clients.backlog import Backlog
from seasoned.integrations.clients.conversations import Conversation, Conversations, RecordedCall
from seasoned.integrations.clients.ended_episode import ended_episode, kept_calls
from seasoned.integrations.clients.episode_scope import CurrentEpisode
from seasoned.memory import Memory
from seasoned.types import Ending

__all__ = ["CallRecorder", "recorder_of"]

_IDLE_S = 1800.0
_MAX_WAITING_BYTES = 256 * 1024 * 1024
_MAX_WAITING = 4096
_LOG = logging.getLogger("seasoned.clients")
_LOCK = threading.Lock()
Answer = TypeVar("Answer")
_Duty = Literal["group", "store"]


class CallRecorder:
    """Stores the calls of one memory's wrapped clients as episodes.

    One thread groups the calls in the order in which they ended, and another one stores the episodes in the order in
    which these ended. So neither a call nor the id of its episode waits for the store. While the store fails, episodes
    wait here (`Backlog`). Another error is logged; `raise_error` raises it.

    Where calls come faster than these threads work, the next ones wait for `room`. A caller that cannot wait may still
    submit until it `is_full`.

    Args:
        memory: stores the episodes. Closing it stores the open ones as truncated.
        idle_s: an episode whose next call does not come within this time is over.
        max_bytes: of the calls and episodes that wait for the threads, above which there is no room.
        max_waiting: how many of them may wait.

    Attributes:
        before_close: called first when this is closed, to end episodes that know no end of their own.
        n_left, n_lost: calls that were not recorded since it was full: left on disk for the next process, and lost.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        idle_s: float = _IDLE_S,
        max_bytes: int = _MAX_WAITING_BYTES,
        max_waiting: int = _MAX_WAITING,
    ) -> None:
        self._memory = memory
        self._idle_s, self._max_bytes, self._max_waiting = idle_s, max_bytes, max_waiting
        self.before_close: list[Callable[[], None]] = []
        self.n_left = self.n_lost = 0
        self._error: Exception | None = None
        self._start()
        atexit.register(self.close)

    def _start(self) -> None:
        self._pid = os.getpid()
        self._conversations = Conversations(self._idle_s)
        self._backlog = Backlog(self._memory, self._report)
        self._threads: dict[_Duty, ThreadPoolExecutor] = {
            duty: ThreadPoolExecutor(1, f"seasoned-recorder-{duty}") for duty in get_args(_Duty)
        }
        self._thread_ids: set[int] = set()
        self._n_waiting = self._waiting_bytes = 0
        self._rooms: list[Future[None]] = []  # for which calls wait
        self._waiting_lock = threading.Lock()

    # ------------------------------------------------------------------------------------------ from other threads

    def submit(self, read_call: Callable[[], RecordedCall | None], n_bytes: int = 0) -> None:
        """Record a call, which `read_call` reads in the background; None is no call.

        Args:
            read_call: is called once.
            n_bytes: that it holds until then.
        """

        def record() -> None:
            call = read_call()
            scope = None if call is None else call.context.scope
            if scope is not None and scope.is_stored:
                _LOG.warning("An answer was read after the end of its block, so it is no step of episode %s.", scope.id)
                return
            if call is None:
                return
            try:
                over = self._conversations.add(call)
            except Exception as error:
                if call.context.kept is not None:
                    call.context.kept.set_aside(error)
                raise
            for conversation in over:
                self._store_later([conversation], conversation.ending)

        self._later("group", record, n_bytes)

    def room(self) -> Future[None] | None:
        """Return what is done once there is room for another call; None: there is."""
        with self._waiting_lock:
            if self._has_room:
                return None
            self._rooms = [*(one for one in self._rooms if not one.cancelled()), room := Future[None]()]
        return room

    def refuse(self, *, is_kept: bool) -> None:
        """Count a call that is not recorded here, since this is full; it is on disk, or lost."""
        with self._waiting_lock:
            self.n_left += is_kept
            self.n_lost += not is_kept

    def counts(self) -> dict[str, int]:
        """Return what waits to be recorded, and how many calls were not recorded here."""
        with self._waiting_lock:
            return {
                "waiting": self._n_waiting,
                "waiting_bytes": self._waiting_bytes,
                "left_on_disk": self.n_left,
                "lost": self.n_lost,
            }

    @property
    def is_full(self) -> bool:
        """Whether twice as much waits as there is room for."""
        return self._n_waiting > 2 * self._max_waiting or self._waiting_bytes > 2 * self._max_bytes

    @property
    def _has_room(self) -> bool:
        return self._n_waiting <= self._max_waiting and self._waiting_bytes <= self._max_bytes

    def ask(self, question: Callable[[Conversations], Answer]) -> Future[Answer]:
        """Return the answer to a question about the open conversations, once the calls so far are recorded."""
        return self._run("group", lambda: question(self._conversations))

    def end_stale(self) -> None:
        """Store the episodes whose next call did not come in time."""

        def end() -> None:
            for conversation in self._conversations.close_stale(time.time()):
                self._store_later([conversation], conversation.ending)

        self._later("group", end)

    def end(self, id_: str, owner: str | None, ending: Ending | None = None) -> list[str]:
        """Store the open episode with this id or of this response, or those of a session, and return their ids.

        Args:
            id_: of an episode, a response or a session, none of them in a block.
            owner: whose session it is.
            ending: None: as the calls say.
        """

        def close(conversations: Conversations) -> list[str]:
            found = conversations.with_id(id_, owner)
            named = conversations.of_session(id_, owner) or ([] if found is None else [found])
            ended = [one for one in named if one.last.context.scope is None]
            for conversation in ended:
                self._store_later([conversations.close(conversation)], ending or conversation.ending)
            return [one.id for one in ended]

        return self.ask(close).result()

    def session_episode(self, id_: str, owner: str | None) -> str | None:
        """Return the id of the latest running episode of an owner's session; None: none runs."""
        if self.is_own_thread:
            return None
        found = self.ask(lambda conversations: conversations.of_session(id_, owner)).result()
        return (found[0].last.scope_id or found[0].id) if found else None

    def is_anothers(self, id_: str, owner: str) -> bool:
        """Return whether the open episode of this id, or of this response, has another owner."""
        if self.is_own_thread:
            return False
        found = self.ask(lambda conversations: conversations.with_id(id_)).result()
        return found is not None and found.last.context.owner != owner

    def is_open(self, id_: str) -> bool:
        """Return whether an open episode, or a response in one, has this id."""
        return (
            not self.is_own_thread and self.ask(lambda conversations: conversations.with_id(id_) is not None).result()
        )

    def end_scope(self, scope: CurrentEpisode, ending: Ending) -> None:
        """Store the episode of a block that has ended."""

        def end() -> None:
            scope.is_stored = True
            conversations = self._conversations.close_all(scope.id)
            if not conversations:
                level = logging.WARNING if scope.feedback_given else logging.INFO
                _LOG.log(
                    level, "No call was recorded in the episode %s, so neither it nor its feedback is stored.", scope.id
                )
                return
            cut = any(one.last.answer.is_cut for one in conversations)
            self._store_later(conversations, "truncated" if cut and ending == "terminated" else ending, scope)

        self._later("group", end)

    def settle(self, id_: str | None = None) -> None:
        """Wait until all calls that have ended are recorded and stored; the open episode with this id ends.

        Args:
            id_: of an episode or a response; None: no episode ends.

        Raises:
            InputError: its `with` block is still running.
            StoreError: the store failed, so that episodes wait.
        """
        if self.is_own_thread:  # feedback of a block, with its episode
            return

        def end(conversations: Conversations) -> bool:
            found = None if id_ is None else conversations.with_id(id_)
            if found is None:
                return False
            if found.last.context.scope is not None:
                raise InputError(
                    f"feedback on {excerpt(id_)}",
                    "the `with` block of its episode is still running",
                    "Give feedback after the block, or by `feedback()` of what the block returned.",
                )
            self._store_later([conversations.close(found)], "terminated")
            return True

        self._flush()  # before an episode ends: it goes on where the store fails
        if self.ask(end).result():
            self._flush()

    def raise_error(self) -> None:
        """Raise the first error of the background that was not raised yet."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """Record what has ended, and store the open episodes as truncated. The memory can still be used."""
        atexit.unregister(self.close)
        if self._pid != os.getpid():  # a forked process has neither the thread nor the calls
            return
        for end_running in self.before_close:
            end_running()

        def end(conversations: Conversations) -> None:
            left = conversations.close_all()
            # What is kept on disk goes on in the next process.
            over = [one for one in left if one.last.context.scope is None and one.last.context.kept is None]
            self._later("store", lambda: store(over))

        def store(over: Sequence[Conversation]) -> None:
            for conversation in over:
                episode = ended_episode([conversation], "truncated")
                if episode is not None:
                    self._backlog.keep(episode)
            with contextlib.suppress(StoreError):
                self._backlog.flush()
            self._backlog.lose()

        self._later("group", lambda: end(self._conversations))
        for duty in get_args(_Duty):
            self._threads[duty].shutdown()

    # ------------------------------------------------------------------------------------------ in the background

    @property
    def is_waiting_for_store(self) -> bool:
        """Whether the store failed, and has taken no episode since."""
        return self._backlog.has_failed

    @property
    def is_own_thread(self) -> bool:
        """Whether the caller is the background itself, which must not wait for it."""
        return threading.get_ident() in self._thread_ids

    def _run(self, duty: _Duty, work: Callable[[], Answer]) -> Future[Answer]:
        """Run work after all that the thread of this duty was given before."""
        if self._pid != os.getpid():
            self._start()

        def run() -> Answer:
            self._thread_ids.add(threading.get_ident())
            return work()

        try:
            return self._threads[duty].submit(run)
        except RuntimeError:  # at the end of the process the threads have ended before this
            done: Future[Answer] = Future()
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)
            return done

    def _later(self, duty: _Duty, work: Callable[[], None], n_bytes: int = 0) -> None:
        """Let a thread work, on something that holds so many bytes until it is done."""

        def guarded() -> None:
            try:
                work()
            except Exception as error:
                self._report(error)
            finally:
                self._count(-1, -n_bytes)

        self._run(duty, guarded)
        self._count(1, n_bytes)

    def _count(self, n_more: int, n_bytes: int) -> None:
        """Count what waits, and let the calls go on that waited for room if there is."""
        with self._waiting_lock:
            self._n_waiting += n_more
            self._waiting_bytes += n_bytes
            rooms = self._rooms if self._has_room else []
            self._rooms = [] if rooms else self._rooms
        for room in rooms:
            if room.set_running_or_notify_cancel():  # False: who waited has gone on
                room.set_result(None)

    def _store_later(
        self, conversations: Sequence[Conversation], ending: Ending, scope: CurrentEpisode | None = None
    ) -> None:
        """Store one episode, of a block if there is one; it waits while the store fails."""

        def store() -> None:
            try:
                episode = ended_episode(conversations, ending)
            except Exception as error:
                for kept in kept_calls(conversations):
                    kept.set_aside(error)
                raise
            if episode is not None:
                self._backlog.add(episode)
            elif scope is not None and scope.feedback_given:
                _LOG.warning("The feedback on episode %s is not stored: no action was recorded in it.", scope.id)

        self._later("store", store, sum(one.n_bytes for one in conversations))

    def _flush(self) -> None:
        """Wait until the calls so far are grouped, and the episodes that have ended are stored. Raises: StoreError."""
        self.ask(lambda _: None).result()
        self._run("store", self._backlog.flush).result()

    def _report(self, error: Exception) -> None:
        self._error = self._error or error
        _LOG.warning("A call was not recorded: %s", error, exc_info=not isinstance(error, SeasonedError))


def recorder_of(memory: Memory, *, idle_s: float = _IDLE_S) -> CallRecorder:
    """Return the recorder of a memory, which all its wrapped clients share; the first caller says what is idle."""
    with _LOCK:
        for recorder in memory.session.recorders:
            if isinstance(recorder, CallRecorder):
                return recorder
        recorder = CallRecorder(memory, idle_s=idle_s)
        memory.session.recorders.append(recorder)
        return recorder
