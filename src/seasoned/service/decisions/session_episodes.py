"""Episodes of sessions: the decisions under one `/sessions/{id}` are the steps of one episode, until it ends."""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from seasoned.decisions.decider import DecidedStep, Decider
from seasoned.decisions.named_options import NamedOptions
from seasoned.errors import EpisodeConflictError, StoreBusyError, StoreError
from seasoned.memory import EpisodeRecorder, Memory
from seasoned.protocols.recorded_episode import RecordedEpisode
from seasoned.service.decisions.session_spool import SessionSpool, SpooledEpisode
from seasoned.service.gateway.named_episode_ids import free_episode_id
from seasoned.types import Decision, Ending, Prior, Step
from seasoned.types.notes import RESPONSE, STEP_TASK, response_note_id

__all__ = ["JudgedSteps", "SessionEpisode", "SessionEpisodes", "end_decisions"]

_IDLE_S = 1800.0
_MOST_OPEN = 10_000
_MOST_STEPS = 10_000
_MAX_BYTES = 256 * 1024 * 1024
_STEP_BYTES, _OPTION_BYTES = 4096, 256  # of a step and its notes, and of an option, without their texts


@dataclass(eq=False)
class SessionEpisode:
    """A running episode.

    Args:
        recorder: of its steps.
        recorded: the episode as the policy knows it, so that one assignment holds for all of its steps.
        subject: whom it is about.
        responses: the ids under which its steps are judged, with their places.
        used_at: time of the latest decision.
        n_bytes: of its steps.
        spooled: its files; None: it has none.
    """

    recorder: EpisodeRecorder
    recorded: RecordedEpisode
    subject: str | None = None
    responses: dict[str, int] = field(default_factory=dict)
    used_at: float = 0.0
    n_bytes: int = 0
    spooled: SpooledEpisode | None = None
    is_over: bool = False
    is_stored: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def takes(self, subject: str | None) -> bool:
        """Return whether another step may be added, about this subject."""
        is_same = subject is None or subject == self.subject
        return is_same and not self.is_over and len(self.recorder) < _MOST_STEPS


class JudgedSteps(NamedTuple):
    """The steps of a running episode, the one that feedback is about (None: all of them), and the episode's task."""

    steps: Sequence[Step]
    at: int | None
    task: str


class SessionEpisodes:
    """The running episodes of the sessions of one memory. Its methods may run in any thread.

    A decision is a step. Feedback on the episode or on one of its decisions ends the episode, and stores it; so do half
    an hour without a decision, and the end of the service. Where the episodes are too many, or have too many bytes, the
    one without a decision for the longest time ends. What follows in a session begins another episode, whose id has a
    number.

    Args:
        memory: stores the episodes. This is one of its background recorders.
        idle_s: seconds after which an episode without another decision is over.
        max_bytes: of the steps of all running episodes; decisions at work while the limit is reached are above it.
        spool: keeps the running episodes on disk; None: a process that is killed loses them.
    """

    def __init__(
        self, memory: Memory, *, idle_s: float = _IDLE_S, max_bytes: int = _MAX_BYTES, spool: SessionSpool | None = None
    ) -> None:
        self._memory, self._spool = memory, spool
        self._idle_s, self._max_bytes = idle_s, max_bytes
        self._n_bytes = 0
        # The one without a decision for the longest time first, after those that are over and wait for the store.
        self._running: OrderedDict[tuple[str | None, str], SessionEpisode] = OrderedDict()
        self._lock = threading.Lock()
        memory.session.recorders.append(self)

    def episode(self, session: str, owner: str | None, *, task: str, subject: str | None) -> SessionEpisode:
        """Return the running episode of a session, a new one if there is none.

        Args:
            session: its id.
            owner: whose session it is: another author's one of the same id is another session.
            task: of a new episode.
            subject: of the decision; None: unknown. An episode has one subject, so that erasing a person erases all
                that was decided about this person: another one begins another episode.

        Raises:
            StoreBusyError: there is no room, since the store takes no episode.
        """
        self.end_stale()
        with self._lock:
            if self._n_over():
                raise StoreBusyError(
                    f"{len(self._running)} running episodes of {self._n_bytes} bytes",
                    f"at most {_MOST_OPEN} with {self._max_bytes} bytes wait for a store that fails",
                    "Decide again when the store is up.",
                )
            running = self._running.get((owner, session))
            if running is not None and not running.takes(subject):
                running.is_over, running.used_at = True, 0.0  # stored as a stale one
                aside = owner, f"{session}\n{running.recorder.id}"  # no session has a line break
                self._running[aside] = running
                self._running.move_to_end(aside, last=False)
                running = None
            if running is None:
                id_ = free_episode_id(self._memory, session, self._running_ids())
                recorder = self._memory.episode(task, id=id_, subject=subject, awaits_feedback=True)
                running = SessionEpisode(recorder, RecordedEpisode(id_, task, self._memory, recorder.note), subject)
                if self._spool is not None:
                    running.spooled = SpooledEpisode(self._memory.namespace, task, subject)
                self._running[owner, session] = running
            running.used_at = time.time()
            self._running.move_to_end((owner, session))
        return running

    def decide(
        self, episode: SessionEpisode, decider: Decider, asked: NamedOptions, prior: Prior, **options: Any
    ) -> DecidedStep:
        """Return the next step of an episode; it is not recorded."""
        return decider.decide_step(episode.recorded, asked, prior, number=len(episode.recorder), **options)

    def record(self, episode: SessionEpisode, step: DecidedStep, response_id: str) -> Decision:
        """Record a step, whose decision was answered under an id; return the decision, without an id if it is late."""
        with episode.lock:
            if episode.is_over:
                return step.shown
            step.record_in(episode.recorder)
            at, task = len(episode.recorder) - 1, step.asked.task
            own_task = {} if task == episode.recorded.task else {STEP_TASK: task}
            episode.recorder.note(RESPONSE, own_task, at, id=response_note_id(response_id))
            episode.responses[response_id] = at
            if self._spool is not None and episode.spooled is not None:
                decided, prior = step.decision, step.decision.prior
                model = None if prior is None else prior.model
                self._spool.write(episode.spooled, episode.recorder, response_id, policy=decided.policy, model=model)
            n_bytes = _step_bytes(step)
            episode.n_bytes += n_bytes
            with self._lock:
                self._n_bytes += n_bytes
            return replace(step.shown, id=episode.recorder.id)

    def end(self, id_: str, owner: str | None, ending: Ending) -> list[str]:
        """Store the running episode with this id, or of this session of the owner's; return its id, or nothing.

        Raises:
            StoreError: the store failed.
        """
        with self._lock:
            named = [
                one
                for key, one in self._running.items()
                if key == (owner, id_) or (one.recorder.id == id_ and owner in (None, key[0]))
            ]
        for one in named:
            self._store(one, ending)
        return [one.recorder.id for one in named]

    def session_episode(self, id_: str, owner: str | None) -> str | None:
        """Return the id of the running episode of an owner's session; None: none runs."""
        with self._lock:
            running = self._running.get((owner, id_))
            return None if running is None else running.recorder.id

    def judged(self, id_: str) -> JudgedSteps | None:
        """Return what feedback with this id would be on: a running episode, or a decision of one; None: neither."""
        with self._lock:
            for one in self._running.values():
                if one.recorder.id == id_ or id_ in one.responses:
                    return JudgedSteps(one.recorder.steps, one.responses.get(id_), one.recorded.task)
        return None

    def is_anothers(self, id_: str, owner: str) -> bool:
        """Return whether the running episode with this id, or of this decision, has another owner."""
        with self._lock:
            return any(
                key[0] != owner and (one.recorder.id == id_ or id_ in one.responses)
                for key, one in self._running.items()
            )

    def settle(self, id_: str | None = None) -> None:
        """Store the running episode with this id, or that of this decision, since there is feedback on it."""
        if id_ is None:
            return
        with self._lock:
            named = [one for one in self._running.values() if one.recorder.id == id_ or id_ in one.responses]
        for one in named:
            self._store(one, "terminated")

    def end_stale(self) -> None:
        """Store the episodes without another decision in time, and the oldest of too many."""
        with self._lock:
            before, n_over = time.time() - self._idle_s, self._n_over()
            stale = []
            for number, one in enumerate(self._running.values()):
                if number >= n_over and one.used_at >= before:
                    break
                stale.append(one)
        for one in stale:
            try:
                self._store(one, "truncated")
            except StoreError:  # they wait until the store is up
                break

    def _n_over(self) -> int:
        """Return how many of the oldest episodes must end, so that the others are not too many and not too large."""
        n_over, n_bytes = len(self._running) - _MOST_OPEN, self._n_bytes
        for number, one in enumerate(self._running.values()):
            if number >= n_over and n_bytes <= self._max_bytes:
                return number
            n_bytes -= one.n_bytes
        return len(self._running)

    def close(self) -> None:
        """Store what is left."""
        with self._lock:
            left = list(self._running.values())
        for one in left:
            self._store(one, "truncated")

    def _store(self, episode: SessionEpisode, ending: Ending) -> None:
        """Commit an episode; after an error of the store it is still there."""
        with episode.lock:
            episode.is_over = True
            if len(episode.recorder) and not episode.is_stored:  # two ends can meet
                episode.recorder.ending = ending
                try:
                    episode.recorder.commit()
                except EpisodeConflictError:  # another process, or another address, took the id
                    with self._lock:
                        running = self._running_ids()
                    episode.recorder.id = free_episode_id(self._memory, episode.recorder.id, running)
                    episode.recorder.commit()
                episode.is_stored = True
            if episode.spooled is not None:
                episode.spooled.release()
        with self._lock:
            for key in [key for key, one in self._running.items() if one is episode]:
                del self._running[key]
                self._n_bytes -= episode.n_bytes

    def _running_ids(self) -> set[str]:
        """Return the ids of the running episodes; the caller holds the lock."""
        return {one.recorder.id for one in self._running.values()}


def _step_bytes(step: DecidedStep) -> int:
    """Return the bytes that a recorded step holds, rounded up."""
    asked = step.asked
    return _STEP_BYTES + sys.getsizeof(asked.state) + sum(_OPTION_BYTES + sys.getsizeof(one) for one in asked.actions)


def end_decisions(memory: Memory, id_: str, owner: str | None, ending: Ending | None) -> list[str]:
    """Store the running episode of decisions with this id, or of this session; return its id, or nothing."""
    sessions = [one for one in memory.session.recorders if isinstance(one, SessionEpisodes)]
    return [ended for one in sessions for ended in one.end(id_, owner, ending or "terminated")]
