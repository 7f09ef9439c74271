"""Writer of typed feedback: stores and revokes it, inside a transaction of the caller.

Feedback is stored as one note; reward events `ID.0`, `ID.1`, ... of its kind; and, for each answer that was not
executed, an episode `ID-0`, `ID-1`, ... of one step and the arm `alternative`. The episodes of revoked, superseded or
quarantined feedback stay stored and are excluded from retrieval (`exclusions`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from seasoned.checks import check_number
from seasoned.errors import EpisodeConflictError, InputError, StoreBusyError, excerpt
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import MAX_STEPS, STEP_BITS
from seasoned.memory.values.author_cap import AuthorCap
from seasoned.memory.values.corruption import damaged, decode, decode_first, decode_ints, decode_texts, decoding
from seasoned.memory.values.derived_ids import answer_id, event_id, event_number
from seasoned.memory.values.events import Event
from seasoned.memory.values.redacted import RedactedFeedback, RedactedNote, RedactedText, already_redacted
from seasoned.memory.writing.episode_writer import TimedEpisode, Writer
from seasoned.memory.writing.exclusions import active_selections
from seasoned.memory.writing.feedback_events import FeedbackWriter
from seasoned.memory.writing.note_records import NoteWriter, check_place, note_digest, read_notes
from seasoned.memory.writing.quarantine import QuarantineWriter
from seasoned.types import (
    ALTERNATIVE,
    FEEDBACK_KINDS,
    AnswerRewards,
    Episode,
    FeedbackRecord,
    Note,
    Step,
    StepReward,
    feedback_from_record,
    feedback_record,
)

__all__ = ["AnswerContext", "FeedbackRequest", "TypedFeedbackWriter", "read_feedback", "record_of"]

Rewards = Callable[[str | None], AnswerRewards]
"""`Feedback.rewards`, or a cache of it."""


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """The place of answers: their task, state, executed action (None: no action was executed) and subject."""

    task: RedactedText
    state: RedactedText
    action: str | None
    subject: str | None


@dataclass(frozen=True, slots=True)
class FeedbackRequest:
    """Checked and redacted feedback, before it is stored; `context` is set for feedback on no stored episode."""

    id: str
    feedback: RedactedFeedback
    episode_id: str | None
    step: int | None
    source: str
    author: str | None
    weight: float
    at: float
    context: AnswerContext | None = None
    cap: AuthorCap | None = None

    def __post_init__(self) -> None:
        if not self.weight > 0.0:
            raise InputError(
                f"weight = {self.weight}",
                "a weight must be finite and greater than 0",
                "Pass the opposite feedback instead, such as Thumbs(up=False).",
            )


def record_of(note: Note, rewards: Iterable[StepReward]) -> FeedbackRecord:
    """Return the stored feedback of a note."""
    return FeedbackRecord(
        note.id,
        tuple(rewards),
        tuple(note.body["alternatives"]),  # type: ignore[arg-type]
        feedback_from_record(note.kind, note.body),
        note.episode_id,
        note.step,
        note.source,
        note.author,
        float(note.body["weight"]),  # type: ignore[arg-type]
        note.created_at,
        note.revoked_at,
    )


def _check_rewards(kind: str, rewards: AnswerRewards) -> AnswerRewards:
    """Return the rewards of feedback if each is in [-1, 1].

    Raises:
        InputError: one is not.
    """
    for reward in (() if rewards.executed is None else (rewards.executed,)) + tuple(each for _, each in rewards.others):
        check_number(
            f"a reward of {kind}", reward, -1, 1, next_step=f"Correct a field of the feedback, or {kind}'s rewards()."
        )
    return rewards


def _event_ids(note: Note) -> list[str]:
    """Return the ids that the events of a feedback note may have."""
    return [event_id(note.id, n) for n in range(len(note.body["alternatives"]) + 1)]  # type: ignore[arg-type]


def _is_on_state(note: Note) -> bool:
    """Return whether a named author gave this feedback on no episode: its note is on one of its own answers.

    People without a name cannot be told apart, so that none of theirs replaces another's.
    """
    return note.author is not None and note.episode_id in note.body["alternatives"]  # type: ignore[operator]


class _AnswerState(NamedTuple):
    id: str
    task: str
    state_id: int


class _EpisodeRow(NamedTuple):
    ordinal: int
    n_steps: int
    task: str
    subject: str | None


class _EpisodeLength(NamedTuple):
    id: str
    n_steps: int


class _StepTexts(NamedTuple):
    state: str
    action: str


class _RewardRow(NamedTuple):
    id: str
    episode_id: str
    visit: int
    reward: float


def read_feedback(store: Store, namespace_id: int, notes: Sequence[Note]) -> list[FeedbackRecord]:
    """Return the stored feedback of these notes, with its rewards, revoked or not.

    Raises:
        IntegrityError: a stored value is damaged.
    """
    with decoding(store.path):
        note_of = {id_: note.id for note in notes for id_ in _event_ids(note)}
    rewards: dict[str, list[tuple[int, StepReward]]] = {note.id: [] for note in notes}
    rows = store.execute_in(
        "SELECT feedback.id, episode.id, visit, reward FROM feedback INDEXED BY feedback_by_id "
        f"JOIN episode ON episode.namespace_id = feedback.namespace_id AND ordinal = visit >> {STEP_BITS} "
        "WHERE feedback.namespace_id = ? AND feedback.id IN {values}",
        (namespace_id,),
        list(note_of),
    )
    for row in decode(store.path, rows, _RewardRow):
        reward = StepReward(row.id, row.episode_id, row.visit & (MAX_STEPS - 1), row.reward)
        with decoding(store.path):
            rewards[note_of[row.id]].append((event_number(row.id), reward))
    with decoding(store.path):
        return [record_of(note, (reward for _, reward in sorted(rewards[note.id]))) for note in notes]


class TypedFeedbackWriter:
    """Stores and revokes the typed feedback of one namespace."""

    def __init__(self, store: Store, namespace_id: int, writer: Writer, *, cap: AuthorCap | None = None) -> None:
        self._store = store
        self._ns = namespace_id
        self._writer = writer
        self._notes = NoteWriter(store, namespace_id)
        self._feedback = FeedbackWriter(store, namespace_id, cap=cap)

    def context(self, episode_id: str, step: int | None) -> tuple[AnswerContext, int]:
        """Return the context of a stored step, and the index of the step: the last, if `step` is None.

        Raises:
            NotFoundError: the episode or the step is not there.
        """
        path = self._store.path
        rows = self._rows(
            "SELECT ordinal, steps, task, subject FROM episode WHERE namespace_id = ? AND id = ?", episode_id
        )
        episodes = decode(path, rows, _EpisodeRow)
        check_place(episode_id, 0 if step is None else step, episodes[0].n_steps if episodes else None)
        ordinal, n_steps, task, subject = episodes[0]
        if ordinal < 0:
            if self._store.pending is not None:
                self._store.pending.rescan(self._ns)
            raise StoreBusyError(f"episode {excerpt(episode_id)}", "it was added just now", "Try again.")
        at = n_steps - 1 if step is None else step
        rows = self._rows(
            "SELECT state.text, action.text FROM step "
            "JOIN state ON state.namespace_id = step.namespace_id AND state.id = state_id "
            "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
            "WHERE step.namespace_id = ? AND visit = ?",
            ordinal << STEP_BITS | at,
        )
        texts = decode_first(path, rows, _StepTexts)
        if texts is None:
            raise damaged(path, f"step {at} of episode {excerpt(episode_id)} is not there, or has no text")
        return AnswerContext(already_redacted(task), already_redacted(texts.state), texts.action, subject), at

    def add(self, request: FeedbackRequest, rewards_of: Rewards) -> FeedbackRecord:
        """Store feedback with its events and its answers; feedback that is stored under its id is left unchanged.

        Raises:
            NotFoundError: the episode or the step is not there.
            EpisodeConflictError: its id is stored with other content.
            InputError: it cannot be stored, or a reward of it is outside [-1, 1].
        """
        known = self._notes.find(request.id)
        if known is not None:
            self._check_same(known, request)
            return read_feedback(self._store, self._ns, [known])[0]
        context, at = (
            (request.context, 0) if request.episode_id is None else self.context(request.episode_id, request.step)
        )
        if context is None:
            raise InputError("no episode, no state", "feedback is on an episode or a state", "Pass episode_id.")
        own, answers = _check_rewards(request.feedback.kind, rewards_of(context.action))
        if request.episode_id is None and (own is not None or not answers):
            raise InputError(
                f"{request.feedback.kind} without an episode",
                "without an episode, feedback rewards answers that were not executed, and no executed one",
                "Pass episode_id.",
            )
        answer_ids = [answer_id(request.id, n) for n in range(len(answers))]
        episode_id = answer_ids[0] if request.episode_id is None else request.episode_id
        note = self._note(request, episode_id, answer_ids)
        self._add_episodes(request, context, answer_ids, [text for text, _ in answers])
        rivals = self._rivals(note)
        self._notes.add([note])
        places = [] if own is None else [(episode_id, at, own)]
        places += [(id_, 0, reward) for id_, (_, reward) in zip(answer_ids, answers, strict=True)]
        rewards = [StepReward(event_id(note.id, n), *place) for n, place in enumerate(places)]
        self._feedback.add_many(
            [
                Event(
                    one.event_id,
                    one.episode_id,
                    one.step,
                    one.reward,
                    request.weight,
                    note.source,
                    note.author,
                    note.created_at,
                    kind=note.kind,
                )
                for one in rewards
            ]
        )
        for rival in rivals:
            self.revoke(rival, at=note.created_at)
        self.exclude_answers([note])
        return record_of(note, rewards)

    def supersede_rivals(self) -> int:
        """Supersede unrevoked feedback by later feedback of the same kind and author on its target; return how many."""
        rows = self._rows("SELECT id, steps FROM episode WHERE namespace_id = ?")
        steps = {row.id: row.n_steps for row in decode(self._store.path, rows, _EpisodeLength)}
        rows = self._rows(
            "SELECT episode.id, task, state_id FROM episode "
            f"JOIN step ON step.namespace_id = episode.namespace_id AND visit = ordinal << {STEP_BITS} "
            "WHERE episode.namespace_id = ? AND arm = ?",
            ALTERNATIVE,
        )
        states = {row.id: row[1:] for row in decode(self._store.path, rows, _AnswerState)}
        unrevoked: defaultdict[tuple[object, ...], list[Note]] = defaultdict(list)
        for kind in FEEDBACK_KINDS:
            for _, note in read_notes(self._store, self._ns, kind=kind, unrevoked=True):
                at = steps[note.episode_id] - 1 if note.step is None else note.step
                target: tuple[object, ...] = note.episode_id, at
                if _is_on_state(note):
                    target = states.get(note.episode_id, target)
                unrevoked[kind, target, note.source, note.author].append(note)
        superseded = [(note, rivals[-1]) for rivals in unrevoked.values() for note in rivals[:-1]]
        for note, by in superseded:
            self.revoke(note, at=by.created_at)
        return len(superseded)

    def _note(self, request: FeedbackRequest, episode_id: str, answer_ids: Sequence[str]) -> RedactedNote:
        body = {**feedback_record(request.feedback), "weight": request.weight, "alternatives": list(answer_ids)}
        note = Note(
            request.id,
            episode_id,
            request.step,
            request.feedback.kind,
            body,
            request.source,
            request.author,
            request.at,
        )
        return already_redacted(note)  # its texts are those of the request

    def _check_same(self, known: Note, request: FeedbackRequest) -> None:
        """Refuse other content under a known id; the time may differ."""
        stored_ids = known.body.get("alternatives")
        answer_ids = stored_ids if isinstance(stored_ids, list) else []
        episode_id = request.episode_id or ""
        if request.context is not None and known.episode_id in answer_ids:
            stored, _ = self.context(known.episode_id, 0)
            episode_id = known.episode_id if replace(stored, action=None) == request.context else ""
        elif episode_id in answer_ids:  # the stored feedback is on no episode
            episode_id = ""
        same = episode_id == known.episode_id and note_digest(
            replace(self._note(request, episode_id, answer_ids), created_at=known.created_at)
        ) == note_digest(known)
        if not same:
            raise EpisodeConflictError(
                f"feedback {excerpt(request.id)} is stored with other content",
                "one id names one feedback",
                "Leave the id to the memory.",
            )

    def import_note(self, note: RedactedNote) -> bool:
        """Store a note of another memory, and return whether it was new; events and answers are imported on their own.

        Unrevoked feedback supersedes earlier feedback, as in `add`.

        Raises:
            NotFoundError: the episode or the step is not there.
            EpisodeConflictError: its id is stored with other content.
        """
        rivals = self._rivals(note) if note.kind in FEEDBACK_KINDS and note.revoked_at is None else []
        new = bool(self._notes.add([note]))
        for rival in rivals if new else []:
            self.revoke(rival, at=note.created_at)
        return new

    def _rivals(self, note: Note) -> list[Note]:
        """Return the unrevoked feedback of the same kind, source and author on the same step, or task and state."""
        if _is_on_state(note):
            return self._rivals_on_state(note)
        rows = self._rows("SELECT steps - 1 FROM episode WHERE namespace_id = ? AND id = ?", note.episode_id)
        if not rows:  # feedback of an anonymous author on one of its own answers, or on an unknown episode
            return []
        [last] = decode_ints(self._store.path, "the number of steps", rows)
        at = last if note.step is None else note.step
        return [
            other
            for _, other in read_notes(
                self._store, self._ns, kind=note.kind, episode_id=note.episode_id, unrevoked=True
            )
            if (other.source, other.author) == (note.source, note.author)
            and at == (last if other.step is None else other.step)
        ]

    def _rivals_on_state(self, note: Note) -> list[Note]:
        """Return the unrevoked feedback on no episode of the same kind, source and author on the task and the state."""
        # A source in quarantine has answers that the index of live steps lacks.
        live = "" if active_selections(self._store, self._ns, of_events=True) else "AND other.live "
        rows = self._rows(
            "SELECT note.id FROM episode "
            f"JOIN step ON step.namespace_id = episode.namespace_id AND step.visit = episode.ordinal << {STEP_BITS} "
            "JOIN step AS other ON other.namespace_id = step.namespace_id AND other.set_id = step.set_id "
            f"AND other.state_id = step.state_id {live}"
            "JOIN episode AS answer ON answer.namespace_id = other.namespace_id "
            f"AND answer.ordinal = other.visit >> {STEP_BITS} "
            "AND answer.task = episode.task AND answer.arm = episode.arm "
            "JOIN note INDEXED BY note_by_episode ON note.namespace_id = answer.namespace_id "
            "AND note.episode_id = answer.id "
            "WHERE episode.namespace_id = ? AND episode.id = ? "
            "AND note.kind = ? AND note.source = ? AND note.author = ? AND note.revoked_at IS NULL",
            note.episode_id,
            note.kind,
            note.source,
            note.author,
        )
        ids = decode_texts(self._store.path, "note", rows)
        return [
            other
            for _, other in read_notes(self._store, self._ns, ids=ids)
            if _is_on_state(other) and other.id != note.id
        ]

    def _add_episodes(
        self, request: FeedbackRequest, context: AnswerContext, answer_ids: Sequence[str], texts: Sequence[str]
    ) -> None:
        episodes = [
            Episode(
                context.task,
                [Step(context.state, text)],
                id_,
                policy=request.source,
                arm=ALTERNATIVE,
                subject=context.subject,
            )
            for id_, text in zip(answer_ids, texts, strict=True)
        ]
        for id_ in answer_ids:
            self._store.check_key("feedback id", id_)
        # Their texts are those of the request and of its context.
        timed = [TimedEpisode(already_redacted(episode), request.at) for episode in episodes]
        if self._writer.add(timed) < len(episodes):
            raise EpisodeConflictError(
                f"an episode {excerpt(answer_ids[0])} or the like is stored already",
                "each answer of feedback is an episode with an id of its own",
                "Leave the id to the memory.",
            )

    def exclude_answers(self, notes: Iterable[Note]) -> None:
        """Exclude the answers of new feedback that is revoked, or whose source or author is in quarantine."""
        selections = active_selections(self._store, self._ns, of_events=True)
        QuarantineWriter(self._store, self._ns).update_answers(
            str(id_)
            for note in notes
            if note.kind in FEEDBACK_KINDS
            and (
                note.revoked_at is not None
                or any(one.covers_event(note.source, note.author, note.created_at) for one in selections)
            )
            for id_ in note.body["alternatives"]  # type: ignore[union-attr]
        )

    def revoke(self, note: Note, *, at: float) -> None:
        """Revoke a stored note, with the events and answers of feedback; again is a no-op.

        Args:
            note: the stored note.
            at: the time, in seconds since 1970.
        """
        if note.revoked_at is not None:
            return
        self._notes.revoke(note.id, at=at)
        if note.kind not in FEEDBACK_KINDS:
            return
        self._feedback.revoke_all(_event_ids(note), at=at)
        QuarantineWriter(self._store, self._ns).update_answers(note.body["alternatives"])  # type: ignore[arg-type]

    def _rows(self, sql: str, *parameters: object) -> list[Any]:
        return self._store.execute(sql, (self._ns, *parameters)).fetchall()
