"""A small model acts, and a large one is asked for the steps at which the small one is not sure.

After V. Sarukkai, A. Gupta, J. Hong, M. Gharbi and K. Fatahalian, "In-Context Distillation with Self-Consistency
Cascades", arXiv 2512.02543: a teacher's episodes fill the memory, the student acts with them in its prompt, N samples
of its next action are drawn, and where they are not all the same, the teacher is asked for that step. Departures:

- Where a reading shows the student's distribution p, nothing is drawn: the chance that N samples all agree is known,
  `P = sum_a p(a)^N`, and the teacher is asked where `P < agreement`. The same state is then always decided alike, and
  the samples cost nothing. With a `seed` the samples are drawn, as in the paper.
- The paper deferred on disagreement alone. A student can agree with itself and be wrong: where the memory knows too
  little of states like this one (`min_evidence`), the teacher is asked as well, and the student is not.
- Whoever decides gives a whole policy over the candidates, which memory may still shift, not one action.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from seasoned.checks import check_number
from seasoned.errors import InputError, ModelAnswerError, ModelError, excerpt
from seasoned.policies.self_agreement import check_whole, reading_agreement
from seasoned.protocols import EvidenceSource, PriorReader, PriorReading, Proposer, Usage
from seasoned.types import Prior

__all__ = ["CascadePrior", "CascadeReader", "CascadeReading", "CascadeTally", "Decider"]

Decider = Literal["student", "teacher"]
_UNKNOWN = Usage(calls=1, cost_usd=None)


@dataclass(frozen=True, eq=False, kw_only=True)
class CascadePrior(Prior):
    """A policy over the candidates, and who gave it; a decision keeps it in `decision.prior`.

    `model` is that model, and `method` says it all in words.

    Args:
        decided_by: `student` or `teacher`.
        reason: why, in words.
        agreement: of the student's samples, in [0, 1]; None: it was not asked, or gave no answer.
        evidence: effective stored steps at states like this one; None: memory was not asked.
    """

    decided_by: Decider
    reason: str
    agreement: float | None = None
    evidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeReading(PriorReading):
    """Whose policy decides this step; `usage` is of both models.

    Args:
        prior: the policy, and who gave it.
        student: what the student said, where it was asked and answered.
    """

    prior: CascadePrior
    student: PriorReading | None = None


@dataclass
class CascadeTally:
    """What a cascade did so far.

    Args:
        student_steps, teacher_steps: readings by who decided.
        student_usage, teacher_usage: what each was asked for; samples that were thrown away are the student's.
        failures: errors that were answered by asking the other model.
    """

    student_steps: int = 0
    teacher_steps: int = 0
    student_usage: Usage = field(default_factory=Usage)
    teacher_usage: Usage = field(default_factory=Usage)
    failures: int = 0

    @property
    def teacher_share(self) -> float | None:
        """The share of steps that the teacher decided; None before the first."""
        steps = self.student_steps + self.teacher_steps
        return self.teacher_steps / steps if steps else None


Ask = Callable[[PriorReader | Proposer], Awaitable[PriorReading]]


class CascadeReader:
    """Reads the student's policy, or the teacher's where the student's samples disagree or memory knows too little.

    A `PriorReader`; also a `Proposer` where both models are. The student sees demonstrations if its reader puts them
    into the prompt, such as `seasoned.agents.InformedReader`. One candidate is the student's: there is nothing to ask.

    Agreement is measured on what the student's reading is. Votes: the share of the most frequent candidate among all of
    its samples (`samples` is then the reader's own `n`). A distribution: the chance that all `samples` agree, exactly;
    with `seed`, that many are drawn, and the share of the most frequent counts. The same question gets the same draws.

    No model stands in for another unasked. If the teacher fails, its error goes on its way.

    Args:
        student, teacher: read a model's policy.
        samples: N, at least 2, for a distribution.
        agreement: below this the teacher is asked, in (0, 1]; None: all samples must agree where there are samples,
            and must be likelier to agree than not (0.5) where the chance is known.
        min_evidence: the teacher is asked, and the student is not, with fewer effective stored steps than this at
            states like this one; each counts by its similarity. 0: memory is not asked.
        memory: where evidence is looked for.
        observation: the state in what is read, where that is a whole prompt, for evidence; None: it is the state.
        k, threshold: how many distinct states count as like this one, and from which similarity on.
        exclude_same_task: evidence from the task being played does not count.
        seed: draw samples instead, as the paper does; None: the exact chance.
        on_teacher_error: `raise`, or `student`: the student decides the step, which is recorded.
        on_student_error: `raise`, or `teacher`: an answer of the student that cannot be used is a disagreement, which
            is recorded. An endpoint that is down is an error in any case.

    Raises:
        InputError: a value breaks its rule, or evidence is asked for without a memory.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import LabelReader, ScriptedLLM
        >>> student = LabelReader(ScriptedLLM(lambda request: {"A": -0.7, "B": -0.7}, "small"))
        >>> teacher = LabelReader(ScriptedLLM(lambda request: {"A": -0.1, "B": -2.4}, "large"))
        >>> reading = asyncio.run(CascadeReader(student, teacher).read("a kitchen", "eat", ["open fridge", "wait"]))
        >>> reading.prior.model, reading.prior.reason
        ('large', '3 samples of small agree with probability 0.25 < 0.5')
    """

    def __init__(
        self,
        student: PriorReader,
        teacher: PriorReader,
        *,
        samples: int = 3,
        agreement: float | None = None,
        min_evidence: float = 0.0,
        memory: EvidenceSource | None = None,
        observation: Callable[[str], str] | None = None,
        k: int = 10,
        threshold: float = 0.8,
        exclude_same_task: bool = False,
        seed: int | None = None,
        on_teacher_error: Literal["raise", "student"] = "raise",
        on_student_error: Literal["raise", "teacher"] = "raise",
    ) -> None:
        for label, reader in (("student", student), ("teacher", teacher)):
            if not isinstance(reader, PriorReader):
                raise InputError(
                    f"{label} = {excerpt(reader)}", "it reads a policy: it has name and read", "Pass a PriorReader."
                )
        for label, value, choices in (
            ("on_teacher_error", on_teacher_error, ("raise", "student")),
            ("on_student_error", on_student_error, ("raise", "teacher")),
        ):
            if value not in choices:
                raise InputError(f"{label} = {excerpt(value)}", f"it is one of {', '.join(choices)}", "Keep 'raise'.")
        if agreement is not None and not 0.0 < check_number("agreement", agreement) <= 1.0:
            raise InputError(f"agreement = {agreement}", "it is in (0, 1]", "Leave it out for the default.")
        if check_number("min_evidence", min_evidence) < 0.0:
            raise InputError(f"min_evidence = {min_evidence}", "it is at least 0", "Pass 0 for none.")
        if min_evidence > 0.0 and memory is None:
            raise InputError(
                f"min_evidence = {min_evidence} without a memory", "evidence is in a memory", "Pass memory=."
            )
        if not 0.0 <= check_number("threshold", threshold) <= 1.0:
            raise InputError(f"threshold = {threshold}", "a similarity threshold is in [0, 1]", "0.8 is usual.")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise InputError(f"seed = {excerpt(seed)}", "a seed is a whole number, at least 0", "Pass None for none.")
        self.student, self.teacher = student, teacher
        self.samples = check_whole("samples", samples, 2)
        self.agreement = agreement
        self.min_evidence, self.memory, self.observation = float(min_evidence), memory, observation
        self.k, self.threshold, self.exclude_same_task = check_whole("k", k), float(threshold), exclude_same_task
        self.seed = seed
        self.on_teacher_error, self.on_student_error = on_teacher_error, on_student_error
        self.tally = CascadeTally()
        if isinstance(student, Proposer) and isinstance(teacher, Proposer):
            self.propose = self._propose

    @property
    def name(self) -> str:
        """`cascade:STUDENT|TEACHER`, stored with episodes; `prior.model` says who decided a step."""
        return f"cascade:{self.student.name}|{self.teacher.name}"

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> CascadeReading:
        """Return the policy of whoever decides this step over `candidates`.

        Raises:
            SeasonedError: what the student's reader raises, or the teacher's.
        """

        def ask(reader: PriorReader | Proposer) -> Awaitable[PriorReading]:
            return reader.read(state, task, candidates)  # type: ignore[union-attr]

        return await self._decide(ask, state, task, choose=len(candidates) != 1)

    async def _propose(self, state: str, task: str) -> CascadeReading:
        """Return the policy of whoever decides this step over the actions that it named itself."""

        def ask(reader: PriorReader | Proposer) -> Awaitable[PriorReading]:
            return reader.propose(state, task)  # type: ignore[union-attr]

        return await self._decide(ask, state, task, choose=True)

    async def _decide(self, ask: Ask, state: str, task: str, *, choose: bool) -> CascadeReading:
        step = _Step(self, ask)
        if choose and self.min_evidence:
            step.evidence = self._evidence(state, task)
            if step.evidence < self.min_evidence:
                few = f"{step.evidence:.3g} stored steps at states like this one < {self.min_evidence:g}"
                return await self._ask_teacher(step, few)
        try:
            student = await step.ask_student()
        except ModelAnswerError as error:
            if self.on_student_error == "raise":
                raise
            self.tally.failures += 1
            return await self._ask_teacher(step, f"{self.student.name} gave no answer: {excerpt(error.seen, 120)}")
        if not choose:
            return step.by_student(student, "one candidate")
        found = reading_agreement(student, self.samples, seed=self.seed, question=(state, task))
        least = found.least if self.agreement is None else self.agreement
        step.agreement = found.value
        if found.value >= least:
            return step.by_student(student, f"{found} >= {least:g}")
        return await self._ask_teacher(step, f"{found} < {least:g}")

    async def _ask_teacher(self, step: _Step, why: str) -> CascadeReading:
        try:
            return await step.by_teacher(why)
        except ModelError as error:
            if self.on_teacher_error == "raise":
                raise
            self.tally.failures += 1
            failed = f"{type(error).__name__} {excerpt(error.seen, 120)}"
        student = step.student or await step.ask_student()
        return step.by_student(student, f"{why}, but {self.teacher.name} failed: {failed}")

    def _evidence(self, state: str, task: str) -> float:
        if self.memory is None:
            raise InputError("memory = None", "evidence is in a memory", "Pass memory=.")
        found = self.memory.evidence(
            state if self.observation is None else self.observation(state),
            k=self.k,
            unit="states",
            threshold=self.threshold,
            gamma=None,
            similarity_power=1.0,
            exclude_task=task if self.exclude_same_task else None,
        )
        return float(found.weights.sum())


@dataclass
class _Step:
    """One step: whom it asked, what they said, and what that cost."""

    cascade: CascadeReader
    ask: Ask
    agreement: float | None = None
    evidence: float | None = None
    student: PriorReading | None = None
    usage: Usage = field(default_factory=Usage)

    async def ask_student(self) -> PriorReading:
        self.student = await self._asked("student", self.cascade.student)
        return self.student

    def by_student(self, reading: PriorReading, why: str) -> CascadeReading:
        self.cascade.tally.student_steps += 1
        return self._reading(reading, "student", self.cascade.student.name, why)

    async def by_teacher(self, why: str) -> CascadeReading:
        reading = await self._asked("teacher", self.cascade.teacher)
        self.cascade.tally.teacher_steps += 1
        return self._reading(reading, "teacher", self.cascade.teacher.name, why)

    async def _asked(self, who: Decider, reader: PriorReader) -> PriorReading:
        """A reading; its cost is counted, and what a failed one took is not known."""
        try:
            reading = await self.ask(reader)
        except ModelError:
            self._count(who, _UNKNOWN)
            raise
        self._count(who, reading.usage)
        return reading

    def _count(self, who: Decider, spent: Usage) -> None:
        tally = self.cascade.tally
        self.usage += spent
        if who == "student":
            tally.student_usage += spent
        else:
            tally.teacher_usage += spent

    def _reading(self, of: PriorReading, decided_by: Decider, model: str, why: str) -> CascadeReading:
        prior = CascadePrior(
            of.prior.logprobs,
            f"cascade, {decided_by}: {why}; {of.prior.method}",
            of.prior.model or model,
            of.prior.bounded,
            of.prior.capabilities,
            decided_by=decided_by,
            reason=why,
            agreement=self.agreement,
            evidence=self.evidence,
        )
        return CascadeReading(prior=prior, usage=self.usage, student=self.student)
