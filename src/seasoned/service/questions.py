"""Questions to people about the better of several answers; stored in the memory as notes."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_instance, check_text, check_whole
from seasoned.errors import EpisodeConflictError, InputError, NotFoundError, ReadOnlyStoreError, excerpt
from seasoned.memory import Memory
from seasoned.policies import JitRL
from seasoned.service.answer_form import MAX_QUESTION_CANDIDATES, AnswerCandidate, QuestionAnswer
from seasoned.service.feedback_json import read_record
from seasoned.types import (
    QUESTION,
    Choice,
    Decision,
    Edit,
    Episode,
    FeedbackRecord,
    Note,
    OwnAnswer,
    QuestionBody,
    normalize_action,
)

__all__ = ["AnswerEffect", "Question", "QuestionPage", "QuestionQueue", "Questions"]

ARM = "question"
_ANSWERS = (Choice.kind, Edit.kind, OwnAnswer.kind)
_NOT_EXECUTED = "(a question to people: nothing was executed)"


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one moment: which of several candidates is better.

    Args:
        candidates: 2 to 9, which differ by more than case and blanks.
        task, state: the moment; optional with `episode_id`, which gives them.
        id: the caller's key, under which the question is stored once. None: a hash of the content.
        prompt: the text of the question.
        episode_id: an episode with this moment; its executed action may be one of the candidates.
        step: the moment's step in the episode; None: the last step.
        subject: the person concerned, so that the question can be erased; with `episode_id`, the episode's subject.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> candidates = [AnswerCandidate("Dear Ann"), AnswerCandidate("Hi")]
        >>> Question(candidates, task="greet", state="mail from Ann").candidates[1].text
        'Hi'
    """

    candidates: Sequence[AnswerCandidate]
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
            rule = "a candidate is an AnswerCandidate"
            check_instance(f"candidates[{index}]", candidate, AnswerCandidate, rule, "Build one.")
        if len(candidates) > MAX_QUESTION_CANDIDATES:
            raise InputError(
                f"{len(candidates)} candidates",
                f"people choose among at most {MAX_QUESTION_CANDIDATES}",
                "Leave some out.",
            )
        Choice(tuple(candidate.text for candidate in candidates), 0)  # two or more, and distinct
        if len({candidate.logprob is None for candidate in candidates}) > 1:
            raise InputError("logprobs of some candidates", "all have one, or none has", "Give all, or none.")
        object.__setattr__(self, "candidates", candidates)
        if self.episode_id is None and (self.task is None or self.state is None):
            raise InputError(
                f"task = {excerpt(self.task)}, state = {excerpt(self.state)}",
                "a question needs a moment: a task and a state, or a step of an episode",
                "Name both, or an episode_id.",
            )
        if self.step is not None:
            check_whole("step", self.step, 0, next_step="Count from 0.")
        if self.step is not None and self.episode_id is None:
            raise InputError(f"step = {self.step} of no episode", "a step belongs to an episode", "Name episode_id.")

    @property
    def target(self) -> tuple[str, int]:
        """Episode id and step of the answers' feedback; for a stored question."""
        return (str(self.id), 0) if self.episode_id is None else (self.episode_id, int(self.step or 0))

    @property
    def priors(self) -> dict[str, float]:
        """The candidates' logprobs in nats; uniform if the model's are unknown."""
        equal = -math.log(len(self.candidates))
        return {one.text: equal if one.logprob is None else one.logprob for one in self.candidates}


@dataclass(frozen=True, slots=True)
class QuestionQueue:
    """Open questions, each with its number of answers; and the numbers of open and of all questions."""

    questions: tuple[tuple[Question, int], ...]
    n_open: int
    n_total: int


@dataclass(frozen=True, slots=True)
class QuestionPage:
    """Open questions in the order of time, each with its number of answers.

    `places`: time and id of each, behind which the next page begins; `more`: whether there is one.
    """

    questions: tuple[tuple[Question, int], ...]
    places: tuple[tuple[float, str], ...]
    more: bool


@dataclass(frozen=True, slots=True)
class AnswerEffect:
    """A stored answer, and the policy over the candidates before and after it."""

    record: FeedbackRecord
    before: Decision
    after: Decision


class Questions:
    """Questions of a memory's namespace.

    Each is an aborted episode (stored, never retrieved) with a note of the kind `question`. So it is on disk when `add`
    returns, it is stored once, several people can answer it, and an erasure of its subject removes it. An answer is
    typed feedback at the question's moment: of one author, the last answer counts.

    Example:
        >>> with Memory.open(":memory:") as memory:
        ...     questions = Questions(memory)
        ...     candidates = [AnswerCandidate("Dear Ann"), AnswerCandidate("Hi")]
        ...     id_ = questions.add(Question(candidates, task="greet", state="mail: Ann"))
        ...     effect = questions.answer(id_, QuestionAnswer("choice", "bob", chosen=0))
        ...     questions.queue(author="bob").n_open, questions.queue(author="eve").n_open
        (0, 1)
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def add(self, question: Question) -> str:
        """Store a question and return its id. The same question again changes nothing.

        Raises:
            InputError: task, state or subject differ from those of the step.
            NotFoundError: there is no such episode or step.
            EpisodeConflictError: its id is stored with other content.
        """
        placed = self._placed(question)
        content = {**asdict(placed), "id": None}
        digest = hashlib.sha256(canonical_json(content).encode()).hexdigest()
        placed = replace(placed, id=placed.id or f"question-{digest[:32]}")
        id_ = str(placed.id)
        known = self._memory.notes(kind=QUESTION, episode_id=id_, quarantined=True)
        if known:
            if known[0].body.get("digest") != digest:
                raise EpisodeConflictError(
                    f"question {excerpt(id_)}", "this id is stored with other content", "Leave the id out."
                )
            return id_
        recorder = self._memory.episode(str(placed.task), id=id_, arm=ARM, subject=placed.subject)
        recorder.ending = "aborted"
        recorder.record(str(placed.state), _NOT_EXECUTED)
        candidates = [asdict(one) for one in placed.candidates]
        body = QuestionBody(digest, candidates, placed.prompt, placed.episode_id, placed.step).record()
        recorder.note(QUESTION, body)
        recorder.commit()  # no context manager: a refused question must not be stored as an aborted episode
        if not self._memory.notes(
            kind=QUESTION, episode_id=id_, quarantined=True
        ):  # the question was stored before, and revoked
            self._memory.note(id_, QUESTION, body)
        return id_

    def get(self, question_id: str) -> Question:
        """Return a stored question.

        Raises:
            NotFoundError: no such question.
        """
        for note in self._memory.notes(kind=QUESTION, episode_id=check_text("question id", question_id)):
            with contextlib.suppress(InputError):  # malformed, from an earlier version
                return self._read(note)
        raise NotFoundError(f"question {excerpt(question_id)}", "no question has this id", "See: the open questions.")

    def queue(self, *, author: str | None = None, limit: int = 20) -> QuestionQueue:
        """Return questions without an answer of `author`, those with the fewest answers first, then the oldest.

        None: questions without any answer. Questions about an erased episode, and malformed ones, are left out;
        `verify` names these.
        """
        authors: defaultdict[tuple[str, int | None], set[str | None]] = defaultdict(set)
        notes = self._question_notes()
        for record in self._unrevoked(map(_target, notes)):
            authors[record.episode_id, record.step].add(record.author)
        unanswered = [note for note in notes if not _is_answered(authors[_target(note)], author)]
        unanswered.sort(key=lambda note: len(authors[_target(note)]))
        listed: list[tuple[Question, int]] = []
        n_gone = 0
        for note in unanswered:
            if len(listed) == limit:
                break
            try:
                question = self._read(note)
                if question.episode_id is not None:
                    self._memory.get(question.episode_id)
            except (InputError, NotFoundError):  # malformed, from an earlier version; or about an erased episode
                n_gone += 1
                continue
            listed.append((question, len(authors[question.target])))
        return QuestionQueue(tuple(listed), len(unanswered) - n_gone, len(notes))

    def page(
        self, *, author: str | None = None, after: tuple[float, str] | None = None, limit: int = 20
    ) -> QuestionPage:
        """Return questions without an answer of `author`, the oldest first; of all pages together each is read once.

        Args:
            author: None: questions without any answer.
            after: the last of `places` of the page before.
            limit: at most so many questions.
        """
        found: list[tuple[Question, int]] = []
        places: list[tuple[float, str]] = []
        answers: dict[str, list[FeedbackRecord]] = {}  # questions may be about one episode
        while True:
            notes = self._memory.notes(kind=QUESTION, after=after, limit=limit + 1)
            for note in notes:
                after = note.created_at, note.id
                listed = self._listed(note, author, answers)
                if listed is not None and len(found) == limit:
                    return QuestionPage(tuple(found), tuple(places), more=True)
                if listed is not None:
                    found.append(listed)
                    places.append(after)
            if len(notes) <= limit:
                return QuestionPage(tuple(found), tuple(places), more=False)

    def _listed(
        self, note: Note, author: str | None, answers: dict[str, list[FeedbackRecord]]
    ) -> tuple[Question, int] | None:
        """Return the question of a note and its number of answers, unless the author has answered it or it is gone."""
        try:
            question = self._read(note)
            if question.episode_id is not None:
                self._memory.get(question.episode_id)
        except (InputError, NotFoundError):  # malformed, from an earlier version; or about an erased episode
            return None
        episode_id, step = question.target
        if episode_id not in answers:
            answers[episode_id] = self._memory.feedback_records(episode_id, kinds=_ANSWERS)
        authors = {one.author for one in answers[episode_id] if one.revoked_at is None and one.step == step}
        return None if _is_answered(authors, author) else (question, len(authors))

    def answers(self, question: Question) -> list[FeedbackRecord]:
        """Return the unrevoked answers in order; of each author, the last."""
        return self._unrevoked([question.target], question.target[0])

    def decide(self, question: Question) -> Decision:
        """Return the policy with memory, over the candidates and the answers that people wrote."""
        written = [
            record.feedback.text for record in self.answers(question) if isinstance(record.feedback, Edit | OwnAnswer)
        ]
        spelling: dict[str, str] = {}  # written answers may repeat candidates and each other
        for text in (*question.priors, *written):
            spelling.setdefault(normalize_action(text), text)
        admissible = list(spelling.values())
        return JitRL(self._memory).decide(str(question.state), question.priors, admissible=admissible, seed=0)

    def answer(self, question_id: str, answer: QuestionAnswer, *, source: str = "human") -> AnswerEffect:
        """Store an answer, and return its effect on the policy. `Memory.revoke` revokes the answer.

        Raises:
            InputError: the answer does not fit the question.
            NotFoundError: no such question, or its episode was erased.
        """
        question = self.get(question_id)
        episode_id, step = question.target
        if question.episode_id is not None:
            self._memory.get(episode_id)  # raises for an erased episode
        feedback = answer.feedback([one.text for one in question.candidates])
        before = self.decide(question)
        id_ = self._memory.feedback(episode_id, feedback, step, source, author=answer.author)
        return AnswerEffect(read_record(self._memory, id_), before, self.decide(question))

    def positions(self) -> dict[str, list[int]]:
        """Count unrevoked choices and edits by the displayed position of the chosen or edited candidate.

        By the number of candidates. Unequal counts within a list show position bias.
        """
        counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for record in self._unrevoked(map(_target, self._question_notes())):
            match record.feedback:
                case Choice(candidates=shown, chosen=place) | Edit(candidates=tuple(shown), chosen=int(place)):
                    counts[len(shown)][place] += 1
        return {str(n): [counts[n][place] for place in range(n)] for n in sorted(counts)}

    def _question_notes(self) -> list[Note]:
        """Return the notes of questions, each question once; malformed ones are left out."""
        notes = (note for note in self._memory.notes(kind=QUESTION) if _is_readable(note))
        return list({note.episode_id: note for note in notes}.values())

    def _unrevoked(self, targets: Iterable[tuple[str, int]], episode_id: str | None = None) -> list[FeedbackRecord]:
        """Return the unrevoked answers at these targets; of each author, the last.

        Answers of one kind supersede each other. An earlier answer of another kind is revoked here, on the next read,
        since the writer of the last answer may have been killed before it could do so.
        """
        wanted = set(targets)
        latest: dict[tuple[object, ...], FeedbackRecord] = {}
        for record in self._memory.feedback_records(episode_id, kinds=_ANSWERS):  # the oldest first
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
        """Return the question with the task, state and subject of its step."""
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
            given = getattr(question, name)
            if given is not None and name != "subject":
                given = self._memory.redacted(given)
            if given not in (None, value):
                raise InputError(
                    f"{name} = {excerpt(getattr(question, name))}",
                    f"with episode_id, it is the stored one: {excerpt(value)}",
                    "Leave it out.",
                )
        return replace(question, step=at, task=episode.task, state=state, subject=episode.subject)

    def _read(self, note: Note) -> Question:
        """Return the question of a note. Raises: InputError: it is malformed; NotFoundError: its episode is gone."""
        body = QuestionBody.from_record(note.body)
        episode: Episode = self._memory.get(note.episode_id)
        if not episode.steps:
            raise InputError(f"question {excerpt(note.id)} on no step", "a question has a state", "Revoke the note.")
        return Question(
            [AnswerCandidate(**one) for one in body.candidates],
            episode.task,
            episode.steps[0].state,
            episode.id,
            body.prompt,
            body.episode_id,
            body.step,
            episode.subject,
        )


def _target(note: Note) -> tuple[str, int]:
    return QuestionBody.from_record(note.body).target(note.episode_id)


def _is_readable(note: Note) -> bool:
    try:
        QuestionBody.from_record(note.body)
    except InputError:
        return False
    return True


def _is_answered(authors: set[str | None], author: str | None) -> bool:
    return bool(authors) if author is None else author in authors
