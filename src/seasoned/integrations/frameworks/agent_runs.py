"""Running episodes of agent frameworks: each run of an agent is one."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from seasoned.integrations.clients.call_recorder import CallRecorder
from seasoned.integrations.clients.episode_scope import CurrentEpisode
from seasoned.memory import Memory
from seasoned.types import Ending

__all__ = ["AgentRuns", "runs_of"]

_IDLE_S = 1800.0
_MOST_RUNNING = 1000
_LOCK = threading.Lock()


@dataclass(slots=True)
class _Running:
    scope: CurrentEpisode
    used_at: float
    has_failed: bool = False


class AgentRuns:
    """The running episodes of one memory's agents, by the ids of their runs.

    A run ends when its framework says so. A framework that does not, as after an error that the agent's program
    catches, leaves it running: it ends at feedback on it, after `idle_s` without a call, when too many run, or when the
    memory is closed. It is one of the memory's background recorders, before the `CallRecorder`.

    Args:
        memory: that stores the episodes.
        recorder: of the memory.
        idle_s: seconds without a call after which a run is over.
        most_running: beyond it the run without a call for the longest time ends.
    """

    def __init__(
        self, memory: Memory, recorder: CallRecorder, *, idle_s: float = _IDLE_S, most_running: int = _MOST_RUNNING
    ) -> None:
        self._recorder, self._idle_s, self._most_running = recorder, idle_s, most_running
        self._running: OrderedDict[str, _Running] = OrderedDict()  # the longest unused first
        self._lock = threading.Lock()
        memory.session.recorders.insert(0, self)
        recorder.before_close.append(self._end_all)

    def scope(self, run_id: str) -> CurrentEpisode:
        """Return the episode of a run, which begins with its first call.

        It is stored under the id of the run, or as `ID~2` if another episode has that id.
        """
        now, over = time.time(), []
        with self._lock:
            found = self._running.get(run_id)
            if found is None:
                found = self._running[run_id] = _Running(
                    CurrentEpisode(None, run_id, None, None, takes_free_id=True), now
                )
            found.used_at, found.has_failed = now, False
            self._running.move_to_end(run_id)
            while len(self._running) > self._most_running or self._oldest_at() < now - self._idle_s:
                over.append(self._running.popitem(last=False)[1])
        for one in over:
            self._end(one, "truncated")
        return found.scope

    def fail(self, run_id: str) -> None:
        """Note that an error left a run: it is aborted, unless another call follows."""
        with self._lock:
            if run_id in self._running:
                self._running[run_id].has_failed = True

    def end(self, run_id: str, ending: Ending) -> None:
        """Store the episode of a run; nothing if none runs with this id."""
        with self._lock:
            found = self._running.pop(run_id, None)
        if found is not None:
            self._end(found, ending)

    # ---------------------------------------------------------------------------------------- as the memory's recorder

    def settle(self, id_: str | None = None) -> None:
        """End the run with this id, or of this response: there is feedback on it."""
        if id_ is None or self._recorder.is_own_thread:
            return
        found = self._recorder.ask(lambda conversations: conversations.with_id(id_)).result()
        scope = None if found is None else found.last.context.scope
        self.end(id_ if scope is None else scope.id, "terminated")

    def session_episode(self, id_: str, owner: str | None) -> str | None:
        """Return the id of a running episode of an owner's session: runs have none."""
        return None

    def is_anothers(self, id_: str, owner: str) -> bool:
        """Return whether feedback on this id would end a run: runs are those of this process, of no owner."""
        with self._lock:
            return id_ in self._running

    def close(self) -> None:
        """Leave what runs: the recorder ended it before."""

    def _end_all(self) -> None:
        with self._lock:
            over = list(self._running.values())
            self._running.clear()
        for one in over:
            self._end(one, "truncated")

    def _end(self, running: _Running, ending: Ending) -> None:
        running.scope.is_over = True
        self._recorder.end_scope(running.scope, "aborted" if running.has_failed else ending)

    def _oldest_at(self) -> float:
        return next(iter(self._running.values())).used_at


def runs_of(memory: Memory, recorder: CallRecorder) -> AgentRuns:
    """Return the runs of a memory, which all its frameworks share."""
    with _LOCK:
        found = next((one for one in memory.session.recorders if isinstance(one, AgentRuns)), None)
        return AgentRuns(memory, recorder) if found is None else found
