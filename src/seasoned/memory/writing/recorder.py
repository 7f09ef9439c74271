"""Recorder of a running episode, which commits it when it ends."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from seasoned.core import log_softmax
from seasoned.errors import InputError, excerpt
from seasoned.memory.values.redacted import RedactedNote
from seasoned.protocols.recorded_episode import RecordedEpisode, begin_recording, end_recording
from seasoned.types import JSON, Decision, Ending, Episode, Note, Step
from seasoned.types.episode_cost import EpisodeCost
from seasoned.types.notes import ASSIGNMENT, COST, SHADOW

__all__ = ["EpisodeRecorder"]

_MIN_GAP_S = 1e-6  # notes are ordered by their times, and a clock may be coarse


class EpisodeRecorder:
    """A running episode. Leaving the context commits it, whole; before that, memory holds nothing of it.

    An exception (or Ctrl-C) commits the recorded steps as an `aborted` episode, and is raised. Ctrl-C during the commit
    of an ended episode lets the commit finish, with the episode's own ending. `id` is known from the start. If the
    store fails (a full disk, for example), the recorder still has everything: call `commit` again later.

    An episode that a `Holdout` assigned gets a note with its seconds, from entering to leaving, unless a note of the
    kind `episode.cost` has them: `Memory.lift` compares them. `episode.note("episode.cost", {"tokens": 412})` adds
    tokens.

    Example:
        >>> from seasoned import Memory
        >>> with Memory.open(":memory:") as memory:
        ...     with memory.episode(task="checkout") as episode:
        ...         episode.record("page:pay", "click(confirm)", reward=1.0)
        ...     len(memory)
        1
    """

    def __init__(
        self,
        add: Callable[[Episode, Sequence[RedactedNote], bool], str],
        task: str,
        fields: Mapping[str, str | None],
        checked: Callable[[Note], RedactedNote],
        awaits_feedback: bool | None = None,
        memory: object = None,
    ) -> None:
        self._awaits_feedback = awaits_feedback
        self._add = add
        self._checked = checked
        self._notes: list[RedactedNote] = []
        self._task = task
        self._fields = dict(fields)
        self._steps: list[Step] = []
        self._entered = self._done = self._is_timed = False
        self._began_s = self._shadows_s = 0.0
        self.ending: Ending = "terminated"
        self.final_state: str | None = None
        self.id: str = self._fields.pop("id", None) or uuid.uuid4().hex
        self._commit_id, self._unnamed = self.id, uuid.uuid4().hex
        self._recorded = RecordedEpisode(self.id, task, memory, self.note)

    def record(
        self,
        state: str,
        decision: Decision | str,
        reward: float = 0.0,
        *,
        prior: Mapping[str, float] | None = None,
        propensity: float | None = None,
    ) -> None:
        """Add an executed step: a decision (with its prior and propensity), or an action's text.

        Raises:
            InputError: a value breaks a rule, or the episode is over.
        """
        self._check_running("record")
        if isinstance(decision, Decision):
            prior = _own_prior(decision) if prior is None else prior
            propensity = decision.propensity if propensity is None else propensity
            if self._fields.get("policy") is None:
                self._fields["policy"] = decision.policy
            if self._fields.get("model") is None and decision.prior is not None:
                self._fields["model"] = decision.prior.model
            action = decision.action
        elif isinstance(decision, str):
            action = decision
        else:
            raise InputError(
                f"decision = {excerpt(decision)}", "a step records a Decision or an action's text", "Pass one."
            )
        self._steps.append(Step(state, action, reward, prior, propensity))
        if isinstance(decision, Decision) and decision.shadow is not None:
            self.note(SHADOW, decision.shadow.record(), step=len(self._steps) - 1)
            self._shadows_s += decision.shadow.took_s

    def note(
        self,
        kind: str,
        body: Mapping[str, JSON],
        step: int | None = None,
        *,
        source: str = "agent",
        author: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """Add a note; it is committed with the episode, in one transaction.

        A note on a next step that is never recorded (the episode broke off) becomes a note on the whole episode.

        Args:
            kind, source, author: see `Memory.note`.
            body: a JSON object.
            step: index of a recorded step, or of the next one (`len(recorder)`); None for the whole episode.
            id: of the note; None: `ID/0`, `ID/1`, ... with the episode's id. An id that another episode's note has is
                lengthened.

        Raises:
            InputError: a value breaks a rule, or the episode is over.

        Example:
            >>> from seasoned import Memory
            >>> with Memory.open(":memory:") as memory:
            ...     with memory.episode(task="checkout") as episode:
            ...         episode.note("reasoning", {"text": "the total is right"}, step=0)
            ...         episode.record("page:pay", "click(confirm)", reward=1.0)
            ...     memory.notes()[0].step
            0
        """
        self._check_running("note")
        at = max(time.time(), self._notes[-1].created_at + _MIN_GAP_S) if self._notes else time.time()
        note = self._checked(
            Note(self._unnamed if id is None else id, self._commit_id, step, kind, body, source, author, at)
        )
        if note.step is not None and note.step > len(self._steps):
            raise InputError(
                f"step = {step}",
                f"{len(self._steps)} steps were recorded so far",
                "Add the note after the steps before it.",
            )
        self._notes.append(note)
        if kind == ASSIGNMENT and self._fields.get("arm") is None:
            self._fields["arm"] = str(body["arm"])
        if kind == COST:
            self._is_timed |= body.get("seconds") is not None

    def _check_running(self, call: str) -> None:
        if self._done:
            raise InputError(
                f"{call}() after the end", "an episode is committed once", "Open another: memory.episode(...)."
            )

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The recorded steps."""
        return tuple(self._steps)

    def noted(self, first: int = 0) -> list[dict[str, Any]]:
        """Return the notes from number `first` on, each as the arguments of `note` that add it to another recorder."""
        return [
            {
                "kind": note.kind,
                "body": dict(note.body),
                "step": note.step,
                "source": note.source,
                "author": note.author,
                "id": None if note.id == self._unnamed else note.id,
            }
            for note in self._notes[first:]
        ]

    def __enter__(self) -> Self:
        if self._entered:
            raise InputError(
                "a second `with` on one recorder", "it records one episode", "Open another: memory.episode(...)."
            )
        self._entered = True
        self._began_s = time.perf_counter()
        begin_recording(self._recorded)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._recorded.is_compared and not self._is_timed and not self._done:
            seconds = max(0.0, time.perf_counter() - self._began_s - self._shadows_s)
            self.note(COST, EpisodeCost(seconds=seconds).record())
        self._done = True
        end_recording(self._recorded)
        if kind is not None:
            self.ending = "aborted"
        try:
            self.commit()
        except Exception:
            raise
        except BaseException:  # Ctrl-C during the commit: if it was committed, this is a no-op
            self.commit()
            raise

    def commit(self, *, is_new: bool = False) -> str:
        """Store the episode, and return its id. Leaving the context calls it; a second call is a no-op.

        Args:
            is_new: whether an episode that is stored under the id is another one, also with equal contents.

        Raises:
            InputError: nothing was recorded.
            EpisodeConflictError: another episode is stored under the id.
            StoreError: the store failed; nothing was written, and the recorder still has everything.
        """
        self._done = True
        self._commit_id = self.id
        episode = Episode(
            self._task,
            self._steps,
            self._commit_id,
            self.final_state,
            self.ending,
            **self._fields,
            awaits_feedback=self._awaits_feedback,
        )
        notes = [
            replace(note, id=self._note_id(note, number), episode_id=self._commit_id, step=self._taken(note.step))
            for number, note in enumerate(self._notes)
        ]
        self.id = self._add(episode, notes, is_new)
        return self.id

    def _note_id(self, note: RedactedNote, number: int) -> str:
        return f"{self._commit_id}/{number}" if note.id == self._unnamed else note.id

    def _taken(self, step: int | None) -> int | None:
        return step if step is not None and step < len(self._steps) else None


def _own_prior(decision: Decision) -> Mapping[str, float] | None:
    """Return the model's own logprobs, without the candidates that memory added."""
    if decision.prior is not None:
        return decision.prior
    own = {action: logprob for action, logprob in decision.logprobs.items() if action not in decision.memory_only}
    if not decision.memory_only or not own:
        return own or None
    return dict(zip(own, log_softmax(list(own.values())).tolist(), strict=True))
