"""Notes, rewards and typed feedback on stored episodes: a part of `Memory`."""

from __future__ import annotations

import contextlib
import functools
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from seasoned.checks import check_number, check_reward, check_text, check_texts, check_whole, suggest
from seasoned.errors import EpisodeConflictError, InputError, StoreError, excerpt
from seasoned.memory.parts.spool_entries import (
    RewardRequest,
    check_speaker,
    checked_reward,
    feedback_entry,
    note_entry,
    reward_entry,
)
from seasoned.memory.session import Session
from seasoned.memory.values.author_cap import AuthorCap
from seasoned.memory.values.events import Event
from seasoned.memory.values.redacted import RedactedNote
from seasoned.memory.values.text_limits import check_size
from seasoned.memory.writing.feedback_events import FeedbackWriter
from seasoned.memory.writing.note_records import NoteWriter, latest_response, read_notes, without_excluded
from seasoned.memory.writing.typed_feedback import AnswerContext, FeedbackRequest, TypedFeedbackWriter, read_feedback
from seasoned.types import (
    FEEDBACK_KINDS,
    JSON,
    AnswerRewards,
    Feedback,
    FeedbackRecord,
    Note,
    StepRef,
    check_kind,
    check_step,
)
from seasoned.types.notes import check_known_body, response_note_id

__all__ = ["FeedbackLog"]


class FeedbackLog:
    """Stores the notes and the feedback of one namespace."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._store = session.store
        self._ns = session.namespace_id

    # ------------------------------------------------------------------------------------------ feedback

    def feedback(
        self,
        episode_id: str | None = None,
        feedback: Feedback | float | None = None,
        step: int | None = None,
        source: str = "human",
        *,
        reward: float | None = None,
        author: str | None = None,
        weight: float = 1.0,
        task: str | None = None,
        state: str | None = None,
        subject: str | None = None,
        id: str | None = None,  # noqa: A002
        cap: AuthorCap | None = None,
    ) -> str:
        """Store a reward or typed feedback on a step, with the rewards that follow from it, in one transaction.

        A number is added to the step's reward, times `weight`. Typed feedback, of one of the kinds that
        `seasoned.types.FEEDBACK_KINDS` lists, has the rewards that its `rewards` method returns, each in [-1, 1] before
        `weight`: one of the executed answer and one of each other answer. A table of the shipped kinds is in
        `docs/how-to/feedback.md`.

        Each reward is an event (`events`); returns and evidence are derived again. An answer that was not executed
        becomes an episode of one step: state, task and subject of the target, arm `alternative`, policy the source. The
        same source and author supersedes its earlier feedback of the same kind on the same step, and a named author
        also that on no episode at the same task and state; a bare reward is a kind of its own. Everything else
        adds up: seven thumbs up and three down are +4, or +0.4 where each has `weight` 1 / 10.

        Args:
            episode_id: the episode, as `add` returned it; or the id of a response that a wrapped client recorded
                (`seasoned.wrap`), for the last step that it made. An episode of a wrapped client that still goes on
                ends.
            feedback: a reward, in reward units, or typed feedback.
            step: index of the step; None for the last, or that of the response.
            source: `human`, `judge`, `tests`, `reviewer`, ...
            author: the person or program of that source, so that their feedback can be erased.
            weight: factor of the rewards; above 0 for typed feedback.
            reward: a reward, by name, instead of `feedback`.
            task, state, subject: of a choice or an own answer on no stored episode.
            id: the caller's key; the same id and content again is a no-op. None: the memory makes one.
            cap: on what the author's feedback on the step may count in all; None: there is none.

        Returns:
            The feedback's id: `revoke(id)` takes all of it back, `feedback_records(id=id)` reads typed feedback.

        Raises:
            InputError: a value breaks a rule; or both or neither of `feedback` and `reward` are given.
            NotFoundError: no such episode or step; it may have been erased.
            EpisodeConflictError: its id is stored with other content.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> from seasoned.types import Choice
            >>> with Memory.open(":memory:") as memory:
            ...     _ = memory.add(Episode("support", [Step("where is my order?", "It is lost.")], "e1"))
            ...     _ = memory.feedback("e1", Choice(("It is lost.", "It comes on Monday."), chosen=1))
            ...     _ = memory.feedback("e1", reward=-0.5, source="tests")
            ...     {n.experience.action: n.experience.reward for n in memory.search("where is my order?")}
            {'It comes on Monday.': 1.0, 'It is lost.': -1.5}
        """
        if (feedback is None) == (reward is None):
            raise InputError(
                "neither feedback nor reward" if reward is None else f"feedback and reward = {excerpt(reward)}",
                "feedback is one of the two: a reward, or typed feedback",
                "Pass reward=-1.0 or Thumbs(up=False), for example.",
            )
        value = reward if feedback is None else feedback
        if isinstance(episode_id, str):
            episode_id, step = self._target(check_text("episode id", episode_id), step)
        if reward is not None or type(value) not in FEEDBACK_KINDS.values():
            if (task, state, subject) != (None, None, None) or episode_id is None:
                raise InputError(
                    f"a reward with episode_id = {excerpt(episode_id)}",
                    "a reward is on a step of a stored episode, and has no task, state or subject",
                    "Name the episode alone.",
                )
            rewarded = checked_reward(value, episode_id, step, source, author, weight, id, cap)
            return self._session.write_or_spool(
                lambda: reward_entry(rewarded), lambda: self.store_reward(rewarded), rewarded.id
            )
        request = self._request(cast(Feedback, value), episode_id, step, source, author, weight, id)
        request = request if cap is None else replace(request, cap=cap)
        if episode_id is None:
            request = replace(request, context=self._context(request, step, task, state, subject))
        elif (task, state, subject) != (None, None, None):
            raise InputError(
                "episode_id, and a task, a state or a subject", "those are the episode's own", "Give one or the other."
            )
        rewards_of = functools.cache(request.feedback.rewards)
        if request.feedback.slow_rewards and episode_id is not None:  # computed outside the transaction
            with self._spooling():
                for executed in self._session.read(lambda: self._executed(episode_id, request.step)):
                    rewards_of(executed)
        return self._session.write_or_spool(
            lambda: feedback_entry(request), lambda: self.store_feedback(request, rewards_of), request.id
        )

    def store_feedback(self, request: FeedbackRequest, rewards_of: Callable[[str | None], AnswerRewards]) -> str:
        """Store typed feedback, and return its id; again is a no-op."""
        return self._session.write(lambda: self.write_feedback(request, rewards_of))

    def write_feedback(self, request: FeedbackRequest, rewards_of: Callable[[str | None], AnswerRewards]) -> str:
        """Store typed feedback, inside a transaction."""
        if self._session.outbox is not None and request.episode_id is not None:
            episode_id, step = self._target_of(request.episode_id, request.step)
            request = replace(request, episode_id=episode_id, step=step)
        return self._typed_feedback_writer(request.cap).add(request, rewards_of).id

    def _target(self, id_: str, step: int | None) -> tuple[str, int | None]:
        """Return the episode and step that an id names; with a spool as they are, until the feedback is written."""
        for recorder in self._session.recorders:
            recorder.settle(id_)
        if self._session.outbox is not None:
            return id_, step
        return self._session.read(lambda: self._target_of(id_, step))

    def _target_of(self, id_: str, step: int | None) -> tuple[str, int | None]:
        """Return the episode and step that an id names: those of a response, or the id and step as they are."""
        _, note = latest_response(self._store, self._ns, id_)
        if note is None:
            return id_, step
        if step is not None:
            raise InputError(
                f"step = {excerpt(step)} with the id of a response",
                "a response names its own step",
                "Leave the step out, or name the episode.",
            )
        return note.episode_id, note.step

    def response_step(self, response_id: str) -> StepRef | None:
        """Return the stored step of the latest response of a model with this id; None if no client recorded it.

        Example:
            >>> from seasoned import Memory
            >>> with Memory.open(":memory:") as memory:
            ...     memory.response_step("chatcmpl-7") is None
            True
        """
        _, note = self._session.read(lambda: latest_response(self._store, self._ns, response_id))
        return None if note is None else (note.episode_id, note.step or 0)

    def next_response_note_id(self, response_id: str) -> str:
        """Return the id for a note of the kind `response` on the step of a new response with this id.

        Feedback by the id of a response is on the latest response that has it.

        Example:
            >>> from seasoned import Memory
            >>> with Memory.open(":memory:") as memory:
            ...     memory.next_response_note_id("chatcmpl-7")
            'response:chatcmpl-7'
        """
        number = 0
        with self._spooling():
            number, _ = self._session.read(lambda: latest_response(self._store, self._ns, response_id))
        return response_note_id(response_id, number + 1)

    def _spooling(self) -> contextlib.suppress:
        """Pass over errors of the store, if the write that follows is spooled."""
        return contextlib.suppress(*(() if self._session.outbox is None else (StoreError,)))

    def feedback_batch(self, given: Iterable[Mapping[str, Any]]) -> list[str]:
        """Store feedback on episodes in one transaction, all or none; with a spool, one after another.

        Args:
            given: the arguments of `feedback` for each, by name: `episode_id` and `feedback`, not of a response, and
                maybe `step`, `source`, `author`, `weight`, `id`.

        Raises:
            InputError, NotFoundError, EpisodeConflictError, StoreError: as for `feedback`; nothing was stored.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> with Memory.open(":memory:") as memory:
            ...     ids = [memory.add(Episode("t", [Step("s", "a")], id_)) for id_ in ("e1", "e2")]
            ...     _ = memory.feedback_batch({"episode_id": id_, "feedback": -0.5, "source": "rules"} for id_ in ids)
            ...     [event.reward for event in memory.events()]
            [-0.5, -0.5]
        """
        listed = list(given)
        if self._session.outbox is not None:
            return [self.feedback(**one) for one in listed]
        writes: list[Callable[[], str]] = []
        for one in listed:
            target = (one["episode_id"], one.get("step"), one.get("source", "human"), one.get("author"))
            about = (one.get("weight", 1.0), one.get("id"))
            if isinstance(one["feedback"], Feedback):
                request = self._request(one["feedback"], *target, *about)
                writes.append(functools.partial(self.write_feedback, request, request.feedback.rewards))
            else:
                writes.append(functools.partial(self._written, checked_reward(one["feedback"], *target, *about)))
        return self._session.write(lambda: [write() for write in writes])

    def _written(self, request: RewardRequest) -> str:
        self.write_reward(request)
        return request.id

    def store_reward(self, request: RewardRequest) -> str:
        """Store a reward, and return its id; again is a no-op."""
        return self._session.write(lambda: self._written(request))

    def write_reward(self, request: RewardRequest) -> None:
        """Store a reward, inside a transaction."""
        if self._session.outbox is not None:
            episode_id, step = self._target_of(request.episode_id, request.step)
            request = replace(request, episode_id=episode_id, step=step)
        writer = FeedbackWriter(self._store, self._ns, cap=request.cap)
        target = writer.last_step(request.episode_id) if request.step is None else request.step
        event = Event(
            request.id,
            request.episode_id,
            target,
            request.reward,
            request.weight,
            request.source,
            request.author,
            request.at,
        )
        if request.is_callers_id:
            self._check_reward_id(request.id)
            known = [one for _, one in self._session.reader.events(request.episode_id) if one.id == request.id]
            event = replace(event, created_at=known[0].created_at) if known else event
        writer.add(event)

    def _check_reward_id(self, id_: str) -> None:
        """Refuse a caller's key that a note or typed feedback has."""
        self._store.check_key("feedback id", id_)
        if NoteWriter(self._store, self._ns).find(id_) is not None:
            raise EpisodeConflictError(
                f"{excerpt(id_)} is the id of a note or of typed feedback",
                "one id names one thing",
                "Leave the id to the memory.",
            )

    def events(self, episode_id: str | None = None, *, id: str | None = None) -> list[Event]:  # noqa: A002
        """Return the feedback events in the order of storage, revoked ones included, or one by its id."""
        for name, text in (("episode id", episode_id), ("event id", id)):
            if text is not None:
                check_text(name, text)
        reader = self._session.reader
        return [event for _, event in self._session.read(lambda: list(reader.events(episode_id, id_=id)))]

    def revoke(self, event_id: str) -> None:
        """Revoke feedback, a note or an event; returns are derived again.

        Feedback is revoked with all its events, and its answers stay stored but are not retrieved. Superseded feedback
        stays superseded. An event is revoked with its reweighted successors, by the id of any of them. Again is a
        no-op.

        Args:
            event_id: the id that `feedback` or `note` returned, or that of an event.

        Raises:
            NotFoundError: nothing has this id.
        """
        check_text("event id", event_id)
        at = time.time()

        def change() -> None:
            note = NoteWriter(self._store, self._ns).find(event_id)
            if note is None:
                FeedbackWriter(self._store, self._ns).revoke(event_id, at=at)
            else:
                self._typed_feedback_writer().revoke(note, at=at)

        self._session.write(change)

    # ------------------------------------------------------------------------------------------ notes

    def note(
        self,
        episode_id: str,
        kind: str,
        body: Mapping[str, JSON],
        *,
        step: int | None = None,
        source: str = "agent",
        author: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> str:
        """Store a note on a stored episode or on one of its steps, and return the note's id.

        A note has no effect on returns and evidence. The same id and content again is a no-op. For a running episode,
        use `EpisodeRecorder.note`.

        Args:
            episode_id: as `add` returned it.
            kind: `plan`, `reasoning`, `shown`, or a name of your own; the kinds of feedback are for `feedback`.
            body: a JSON object; of the kinds `shown`, `decided` and `question`, one of their form.
            step: index of the step; None for the whole episode.
            source: `agent`, `human`, `judge`, ...
            author: the person or program of that source.
            id: the caller's key; None: the memory makes one.

        Raises:
            InputError: a value breaks a rule, or the body is larger than a text may be.
            NotFoundError: no such episode or step.
            EpisodeConflictError: its id is stored with other content.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> with Memory.open(":memory:") as memory:
            ...     episode_id = memory.add(Episode("shop", [Step("cart", "pay")]))
            ...     _ = memory.note(episode_id, "reasoning", {"text": "the total is right"}, step=0)
            ...     [note.body["text"] for note in memory.notes(kind="reasoning")]
            ['the total is right']
        """
        note = self.callers_note(
            Note(uuid.uuid4().hex if id is None else id, episode_id, step, kind, body, source, author, time.time())
        )
        return self._session.write_or_spool(lambda: note_entry(note), lambda: self.store_note(note), note.id)

    def store_note(self, note: RedactedNote) -> str:
        """Store a note, and return its id; again is a no-op."""
        self._session.write(lambda: self.write_note(note))
        return note.id

    def write_note(self, note: RedactedNote) -> None:
        """Store a note, inside a transaction."""
        NoteWriter(self._store, self._ns).add([note], ignore_time=True)

    def notes(
        self,
        *,
        kind: str | None = None,
        episode_id: str | None = None,
        quarantined: bool = False,
        after: tuple[float, str] | None = None,
        limit: int | None = None,
    ) -> list[Note]:
        """Return the unrevoked notes, the oldest first.

        Args:
            kind: only notes of this kind.
            episode_id: only notes on this episode.
            quarantined: include the notes of quarantined episodes and sources.
            after: `(created_at, id)` of a note; only the notes behind it, without reading those before.
            limit: at most so many; None: all.
        """
        if kind is not None:
            check_kind(kind)
        if episode_id is not None:
            check_text("episode id", episode_id)

        _check_page(after, limit)

        def query() -> list[Note]:
            notes: list[Note] = []
            begin = after
            while True:
                size = None if limit is None else limit - len(notes)
                rows = read_notes(
                    self._store, self._ns, kind=kind, episode_id=episode_id, unrevoked=True, after=begin, limit=size
                )
                found = [note for _, note in rows]
                notes += found if quarantined else without_excluded(self._store, self._ns, found)
                if size is None or len(found) < size or len(notes) == limit:
                    return notes
                begin = found[-1].created_at, found[-1].id

        return self._session.read(query)

    def callers_note(self, note: Note) -> RedactedNote:
        """Return a caller's note as it is stored.

        Raises:
            InputError: its kind is that of feedback, which is stored with its rewards; or its body is not of its kind.
        """
        if note.kind in FEEDBACK_KINDS:
            raise InputError(f"kind = {note.kind!r}", "feedback is stored with its rewards", "Call feedback().")
        check_known_body(note.kind, note.body)
        return self._session.redaction.note(note)

    def feedback_records(
        self,
        episode_id: str | None = None,
        *,
        kinds: Collection[str] | None = None,
        id: str | None = None,  # noqa: A002
        after: tuple[float, str] | None = None,
        limit: int | None = None,
    ) -> list[FeedbackRecord]:
        """Return the stored typed feedback, the oldest first, revoked feedback included.

        Args:
            episode_id: only feedback on this episode.
            kinds: only feedback of these kinds (`choice`, `edit`, ...).
            id: only the feedback with this id; an empty list if there is none.
            after: `(created_at, id)` of a record; only the records behind it, without reading those before.
            limit: at most so many; None: all.

        Raises:
            InputError: no feedback is of such a kind.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> from seasoned.types import Thumbs
            >>> with Memory.open(":memory:") as memory:
            ...     _ = memory.add(Episode("support", [Step("where is it?", "It is lost.")], "e1"))
            ...     for name in ("ann", "bob", "eve"):
            ...         _ = memory.feedback("e1", Thumbs(True), author=name)
            ...     first = memory.feedback_records(limit=2)
            ...     rest = memory.feedback_records(after=(first[-1].created_at, first[-1].id))
            >>> [one.author for one in first], [one.author for one in rest]
            (['ann', 'bob'], ['eve'])
        """
        _check_page(after, limit)
        for name, value in (("episode id", episode_id), ("feedback id", id)):
            if value is not None:
                check_text(name, value)
        for kind in () if kinds is None else check_texts("kinds", kinds):
            if kind not in FEEDBACK_KINDS:
                raise InputError(
                    f"kind = {excerpt(kind)}", "no feedback is of this kind", suggest(kind, FEEDBACK_KINDS)
                )
        wanted = tuple(FEEDBACK_KINDS) if kinds is None else tuple(dict.fromkeys(kinds))
        ids = None if id is None else [id]

        def query() -> list[FeedbackRecord]:
            # Notes of other kinds may be many and large, so each kind is read on its own.
            by_kind = [None] if ids is not None or (episode_id is not None and limit is None) else wanted
            found = [
                note
                for kind in by_kind
                for _, note in read_notes(
                    self._store, self._ns, ids=ids, kind=kind, episode_id=episode_id, after=after, limit=limit
                )
                if note.kind in wanted
            ]
            found.sort(key=lambda note: (note.created_at, note.id))
            return read_feedback(self._store, self._ns, found[:limit])

        return self._session.read(query)

    def _executed(self, episode_id: str, step: int | None) -> list[str]:
        """Return the action of a stored step, pending or derived, as a list of one; empty for no such step."""
        at = -1 if step is None else step
        every = [one.steps for _, _, _, one in self._session.reader.episodes(id_=episode_id)]
        return [steps[at].action for steps in every if at < len(steps) and steps]

    def _typed_feedback_writer(self, cap: AuthorCap | None = None) -> TypedFeedbackWriter:
        return TypedFeedbackWriter(self._store, self._ns, self._session.writer, cap=cap)

    def _request(
        self,
        feedback: Feedback,
        episode_id: str | None,
        step: int | None,
        source: str,
        author: str | None,
        weight: float,
        id_: str | None,
    ) -> FeedbackRequest:
        if episode_id is not None:
            check_text("episode id", episode_id)
        if step is not None:
            step = check_step(step)
        check_speaker(source, author)
        weight = check_reward("weight", weight)
        if id_ is not None:
            check_text("feedback id", id_)
        redacted = self._session.redaction.feedback(feedback)
        id_ = uuid.uuid4().hex if id_ is None else id_
        return FeedbackRequest(id_, redacted, episode_id, step, source, author, weight, time.time())

    def _context(
        self, request: FeedbackRequest, step: int | None, task: str | None, state: str | None, subject: str | None
    ) -> AnswerContext:
        """Return the context of answers that are on no stored episode."""
        if request.feedback.needs_episode:
            others = ", ".join(sorted(name for name, kind in FEEDBACK_KINDS.items() if not kind.needs_episode))
            raise InputError(
                f"{request.feedback.kind} without an episode",
                f"feedback of this kind is on a stored episode (without one: {others})",
                "Pass episode_id.",
            )
        if task is None or state is None:
            raise InputError(
                f"episode_id = None, task = {excerpt(task)}, state = {excerpt(state)}",
                "feedback is about a stored episode, or about answers to a state of a task",
                "Name the episode; or give task and state.",
            )
        if step is not None:
            raise InputError(f"step = {step}, without an episode", "a step is one of an episode", "Name the episode.")
        redacted = self._session.redaction.text
        context = AnswerContext(redacted("task", task), redacted("state", state), None, subject)
        if subject is not None:
            check_size("subject", check_text("subject", subject), self._session.max_text_bytes)
        return context


def _check_page(after: object, limit: object) -> None:
    if after is not None:
        if not isinstance(after, tuple) or len(after) != 2:
            rule = "it is (created_at, id) of an item"
            raise InputError(f"after = {excerpt(after)}", rule, "Pass those of the last item before.")
        check_number("after[0]", after[0])
        check_text("after[1]", after[1])
    if limit is not None:
        check_whole("limit", limit, 1)
