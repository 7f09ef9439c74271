"""Questions to people: which of these answers is better? Kept in the memory itself, as notes."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_text
from seasoned.errors import EpisodeConflictError, InputError, NotFoundError, ReadOnlyStoreError, excerpt
from seasoned.memory import Memory
from seasoned.policies import JitRL
from seasoned.service.answer_form import MAX_CANDIDATES, Candidate, Reply
from seasoned.service.feedback_json import read_record
from seasoned.types import Choice, Decision, Edit, Episode, FeedbackRecord, Note, OwnAnswer, Step, normalize_action

__all__ = ["Learned", "Question", "Questions", "Queue"]

ARM = "question"
KIND = "question"
_ANSWERS = (Choice.kind, Edit.kind, OwnAnswer.kind)
_NOT_EXECUTED = "(a question to people: nothing was executed)"


@dataclass(frozen=True, slots=True)
class Question:
    """What people are asked about one moment: which of several candidates is better.

    Args:
        candidates: 2 to 9, distinct by more than case and blanks.
        task, state: the moment; with `episode_id` they are those of the step, and may be left out.
        id: the caller's key; the same question under it is asked once. None: made of the content.
        prompt: what people are asked.
        episode_id: an episode in which the moment was played; what it executed may be among the candidates.
        step: where in it; None: its last step.
        subject: the person whom it is about, so that it can be erased; with `episode_id`, the episode's.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Question([Candidate("Dear Ann"), Candidate("Hi")], task="greet", state="mail from Ann").candidates[1].text
        'Hi'
    """

    candidates: Sequence[Candidate]
    task: str | None = None
    state: str | None = None
    id: str | None = None
    prompt: str | None = None
    episode_id: str | None = None
    step: int | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        for name in ("task", "state", "id", "prompt", "episode_id", "subject"):
            if (value := getattr(self, name)) is not None:
                check_text(name, value)
        candidates = tuple(self.candidates)
        for index, candidate in enumerate(candidates):
            if not isinstance(candidate, Candidate):
                raise InputError(f"candidates[{index}] = {excerpt(candidate)}", "it is a Candidate", "Build one.")
        if len(candidates) > MAX_CANDIDATES:
            raise InputError(
                f"{len(candidates)} candidates", f"people choose among at most {MAX_CANDIDATES}", "Leave some out."
            )
        Choice(tuple(candidate.text for candidate in candidates), 0)  # two or more, and distinct
        if len({candidate.logprob is None for candidate in candidates}) > 1:
            raise InputError("logprobs of some candidates", "all have one, or none has", "Give all, or none.")
        object.__setattr__(self, "candidates", candidates)
        if self.episode_id is None and (self.task is None or self.state is None):
            raise InputError(
                f"task = {excerpt(self.task)}, state = {excerpt(self.state)}",
                "a question is about a moment: a task and a state, or a step of an episode",
                "Name both, or an episode_id.",
            )
        if self.step is not None and (isinstance(self.step, bool) or not isinstance(self.step, int) or self.step < 0):
            raise InputError(f"step = {excerpt(self.step)}", "a step is named by its index", "Count from 0.")
        if self.step is not None and self.episode_id is None:
            raise InputError(f"step = {self.step} of no episode", "a step belongs to an episode", "Name episode_id.")

    @property
    def target(self) -> tuple[str, int]:
        """The episode and the step that answers are about; of a question that is stored."""
        return (str(self.id), 0) if self.episode_id is None else (self.episode_id, int(self.step or 0))

    @property
    def priors(self) -> dict[str, float]:
        """The candidates' logprobs in nats; equal ones where the model's are not known."""
        equal = -math.log(len(self.candidates))
        return {one.text: equal if one.logprob is None else one.logprob for one in self.candidates}


@dataclass(frozen=True, slots=True)
class Queue:
    """Questions that wait for somebody, each with how many have answered it; and how many there are."""

    questions: tuple[tuple[Question, int], ...]
    n_open: int
    n_total: int


@dataclass(frozen=True, slots=True)
class Learned:
    """What an answer was kept as, and the policy over the candidates before it and after it."""

    record: FeedbackRecord
    before: Decision
    after: Decision


class Questions:
    """The questions of a memory's namespace.

    Each is an aborted episode (kept, never retrieved) with a note of the kind `question`. So it is on disk when `add`
    returns, it is asked once, several people can answer it, and it goes when its subject is erased. An answer is typed
    feedback at the moment that the question is about: of one author, the last one counts.

    Example:
        >>> with Memory.open(":memory:") as memory:
        ...     questions = Questions(memory)
        ...     id_ = questions.add(Question([Candidate("Dear Ann"), Candidate("Hi")], task="greet", state="mail: Ann"))
        ...     learned = questions.answer(id_, Reply("choice", "bob", chosen=0))
        ...     questions.queue(author="bob").n_open, questions.queue(author="eve").n_open
        (0, 1)
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def add(self, question: Question) -> str:
        """Store a question and return its id. The same question again is a no-op.

        Raises:
            InputError: it does not fit the step that it is about.
            NotFoundError: there is no such episode or step.
            EpisodeConflictError: its id is stored with other content.
        """
        placed = self._placed(question)
        content = {**asdict(placed), "id": None}
        digest = hashlib.sha256(canonical_json(content).encode()).hexdigest()
        placed = replace(placed, id=placed.id or f"question-{digest[:32]}")
        id_ = str(placed.id)
        known = self._memory.notes(kind=KIND, episode_id=id_, quarantined=True)
        if known:
            if known[0].body.get("digest") != digest:
                raise EpisodeConflictError(
                    f"question {excerpt(id_)}", "this id is stored with other content", "Leave the id out."
                )
            return id_
        recorder = self._memory.episode(str(placed.task), id=id_, arm=ARM, subject=placed.subject)
        recorder.ending = "aborted"
        recorder.record(str(placed.state), _NOT_EXECUTED)
        body = {
            "digest": digest,
            "candidates": [asdict(one) for one in placed.candidates],
            "prompt": placed.prompt,
            "episode_id": placed.episode_id,
            "step": placed.step,
        }
        recorder.note(KIND, body)
        recorder.commit()  # not as a context: what is refused above must leave nothing behind
        if not self._memory.notes(kind=KIND, episode_id=id_, quarantined=True):  # it was asked before, and revoked
            self._memory.note(id_, KIND, body)
        return id_

    def get(self, question_id: str) -> Question:
        """Return a stored question.

        Raises:
            NotFoundError: no such question.
        """
        for note in self._memory.notes(kind=KIND, episode_id=check_text("question id", question_id)):
            return self._read(note)
        raise NotFoundError(f"question {excerpt(question_id)}", "nobody asked it", "See: the open questions.")

    def queue(self, *, author: str | None = None, limit: int = 20) -> Queue:
        """Return the questions that `author` has not answered, those with the fewest answers first, then the oldest.

        None: those that nobody has answered. What it is about may have been erased meanwhile: then it is left out.
        """
        said: defaultdict[tuple[str, int | None], set[str | None]] = defaultdict(set)
        notes = self._asked()
        for record in self._standing(map(_target, notes)):
            said[record.episode_id, record.step].add(record.author)
        waiting = [note for note in notes if not _answered(said[_target(note)], author)]
        waiting.sort(key=lambda note: len(said[_target(note)]))
        found: list[tuple[Question, int]] = []
        gone = 0
        for note in waiting:
            if len(found) == limit:
                break
            question = self._read(note)
            try:
                if question.episode_id is not None:
                    self._memory.get(question.episode_id)
            except NotFoundError:
                gone += 1
                continue
            found.append((question, len(said[question.target])))
        return Queue(tuple(found), len(waiting) - gone, len(notes))

    def answers(self, question: Question) -> list[FeedbackRecord]:
        """Return the answers that stand, in the order in which they were given: of one author, the last."""
        return self._standing([question.target], question.target[0])

    def decide(self, question: Question) -> Decision:
        """Return the policy over the candidates, and over what people wrote instead, as memory shifts it now."""
        written = [
            record.feedback.text for record in self.answers(question) if isinstance(record.feedback, Edit | OwnAnswer)
        ]
        spelt: dict[str, str] = {}  # people may write what is there, or what others wrote: each action once
        for text in (*question.priors, *written):
            spelt.setdefault(normalize_action(text), text)
        admissible = list(spelt.values())
        return JitRL(self._memory).decide(str(question.state), question.priors, admissible=admissible, seed=0)

    def answer(self, question_id: str, reply: Reply, *, source: str = "human") -> Learned:
        """Store somebody's answer, and return what was learned from it. `Memory.revoke` takes it back.

        Raises:
            InputError: the reply does not fit the question.
            NotFoundError: no such question, or what it is about is gone.
        """
        question = self.get(question_id)
        episode_id, step = question.target
        if question.episode_id is not None:
            self._memory.get(episode_id)  # gone, it is refused before the policy is asked
        feedback = reply.feedback([one.text for one in question.candidates])
        before = self.decide(question)
        id_ = self._memory.feedback(episode_id, feedback, step, source, author=reply.author)
        return Learned(read_record(self._memory, id_), before, self.decide(question))

    def positions(self) -> dict[str, list[int]]:
        """Count the choices and edits that stand by the place at which the chosen or edited candidate was shown.

        By the number of candidates; equal counts within a list mean that nobody just takes the first.
        """
        counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for record in self._standing(map(_target, self._asked())):
            match record.feedback:
                case Choice(candidates=shown, chosen=place) | Edit(candidates=tuple(shown), chosen=int(place)):
                    counts[len(shown)][place] += 1
        return {str(n): [counts[n][place] for place in range(n)] for n in sorted(counts)}

    def _asked(self) -> list[Note]:
        """Return the notes that keep the questions, each question once."""
        return list({note.episode_id: note for note in self._memory.notes(kind=KIND)}.values())

    def _standing(self, targets: Iterable[tuple[str, int]], episode_id: str | None = None) -> list[FeedbackRecord]:
        """Return the answers to questions about these moments that stand: of one author, the last.

        Answers of one kind supersede each other; an earlier one of another kind is taken back here, when the next look
        is taken: whoever gave the last one may have been killed before that.
        """
        wanted = set(targets)
        latest: dict[tuple[object, ...], FeedbackRecord] = {}
        for record in self._memory.feedback_records(
            episode_id, kinds=_ANSWERS
        ):  # in the order in which they were given
            if record.revoked_at is not None or (record.episode_id, record.step) not in wanted:
                continue
            key = record.episode_id, record.step, record.source, record.author
            earlier = latest.pop(key, None)
            if earlier is not None:
                with contextlib.suppress(ReadOnlyStoreError):
                    self._memory.revoke(earlier.id)
            latest[key] = record
        return list(latest.values())

    def _placed(self, question: Question) -> Question:
        """The question with all that its step says."""
        if question.episode_id is None:
            return question
        episode = self._memory.get(question.episode_id)
        at = len(episode.steps) - 1 if question.step is None else question.step
        if not 0 <= at < len(episode.steps):
            raise NotFoundError(
                f"step {at} of episode {excerpt(question.episode_id)}",
                f"it has {len(episode.steps)} steps",
                "Name one.",
            )
        state = episode.steps[at].state
        for name, value in (("task", episode.task), ("state", state), ("subject", episode.subject)):
            if getattr(question, name) not in (None, value):
                raise InputError(
                    f"{name} = {excerpt(getattr(question, name))}",
                    f"with episode_id, it is the stored one: {excerpt(value)}",
                    "Leave it out.",
                )
        return replace(question, step=at, task=episode.task, state=state, subject=episode.subject)

    def _read(self, note: Note) -> Question:
        body: Any = note.body
        asked: Episode = self._memory.get(note.episode_id)
        first: Step = asked.steps[0]
        return Question(
            [Candidate(**one) for one in body["candidates"]],
            asked.task,
            first.state,
            asked.id,
            body["prompt"],
            body["episode_id"],
            body["step"],
            asked.subject,
        )


def _target(note: Note) -> tuple[str, int]:
    body: Any = note.body
    return (note.episode_id, 0) if body["episode_id"] is None else (body["episode_id"], int(body["step"]))


def _answered(authors: set[str | None], author: str | None) -> bool:
    return bool(authors) if author is None else author in authors
