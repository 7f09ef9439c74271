"""The arm `cascade`: a teacher fills the memory; a student acts with it, and asks the teacher when it is unsure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from seasoned.agents import Arm, EpisodeResult, play_episode
from seasoned.agents.cascade.attribution import CascadePlay
from seasoned.agents.loop.step_log import AnnotatedLog, EpisodeLog
from seasoned.agents.react.prompt_evidence import example_arm
from seasoned.checks import check_one_of, check_whole
from seasoned.errors import InputError
from seasoned.lab.arms.arm_context import ArmContext
from seasoned.lab.arms.preset_settings import preset_settings
from seasoned.lab.arms.teachers import answers_file, close_teacher, open_teacher
from seasoned.lab.suites.suite import Suite
from seasoned.memory import Memory
from seasoned.policies import JitRL, JitRLSettings, ModelAlone
from seasoned.policies.cascade import CascadePrior, CascadeReader
from seasoned.policies.examples import ExampleMemory, Examples
from seasoned.protocols import (
    Admissible,
    Chooser,
    Environment,
    EvidenceSource,
    Policy,
    PriorReader,
    PriorReading,
    Usage,
)
from seasoned.types import DECIDED, SHOWN, DecidedBody, Decision, Episode, Prior, ShownBody

__all__ = ["CASCADE", "CascadeArmReader", "build_cascade", "cascade_arm", "check_fill"]

CASCADE: dict[str, Any] = {
    "teacher": None,
    "teacher_reader": "auto",
    "teacher_settings": {},
    "samples": 3,
    "agreement": None,
    "min_evidence": 0.0,
    "fill_episodes": 0,
    "mode": "prompt",
}
"""The settings of the kind with defaults; the settings of `prompt` and `jitrl` are added to them."""

_MODES = ("prompt", "logits", "both")
_LEAST_LOGPROB = -700.0
MakePolicy = Callable[[EvidenceSource], Policy]


class CascadeArmReader(CascadeReader):
    """A cascade that owns its teacher, and releases it in `aclose`."""

    async def aclose(self) -> None:
        """Release the teacher's model."""
        await close_teacher(self.teacher)


def build_cascade(context: ArmContext, examples: Mapping[str, Any]) -> Arm:
    """Return the arm for a suite's settings.

    Args:
        context: with the settings of `CASCADE`, and any settings of the examples and of `jitrl`.
        examples: the examples' settings with their defaults.

    Raises:
        InputError: there is no teacher, a setting breaks its rule or belongs to another mode, or the mode needs a
            prompt and the student has none.
        SeasonedError: the teacher cannot be opened.
    """
    own = {name: context.settings[name] for name in CASCADE}
    others = {name: value for name, value in context.settings.items() if name not in CASCADE}
    mode = own["mode"]
    check_one_of("cascade: mode", mode, _MODES)
    example_settings = {name: others[name] for name in examples if name in others and mode != "logits"}
    both = ("gamma",) if mode == "both" else ()
    others = {name: value for name, value in others.items() if name in both or name not in example_settings}
    allowed = () if mode == "prompt" else ("preset", *JitRLSettings.__dataclass_fields__)
    if wrong := sorted(set(others) - set(allowed)):
        raise InputError(f"cascade: {wrong[0]} with mode = {mode!r}", "this mode has no such setting", "Leave it out.")
    if mode != "logits" and context.llm is None:
        raise InputError(
            f"cascade: mode = {mode!r} with the model {context.reader.name}",
            "examples need the prompt of a model",
            'Name a model, or set mode = "logits".',
        )
    knowledge, policy = None, None
    if mode != "logits":
        merged = {**examples, **example_settings}
        knowledge = ExampleMemory(Examples(context.memory, budget_tokens=merged.pop("window_tokens"), **merged))
    if mode != "prompt":
        preset, changed = preset_settings(others)

        def policy(memory: EvidenceSource) -> Policy:
            return JitRL.preset(preset, memory, **changed)

        policy(context.memory)  # refuses bad settings before a teacher is opened
    fill = check_whole("fill_episodes", own["fill_episodes"], 0)
    teacher = open_teacher(
        own["teacher"], method=own["teacher_reader"], settings=own["teacher_settings"], cache=answers_file(context.llm)
    )
    limits = {name: own[name] for name in ("samples", "agreement", "min_evidence")}
    return cascade_arm(
        context.prior_reader, teacher, context.memory, knowledge=knowledge, policy=policy, fill_episodes=fill, **limits
    )


def check_fill(suite: Suite) -> None:
    """Refuse a suite in which a teacher would play all episodes of a run, and the student none.

    Raises:
        InputError: `fill_episodes` is the number of episodes of a run, or more; or the suite fills memories as well.
    """
    for run in suite.runs():
        arm = suite.arm(run.arm)
        fill, episodes = arm.settings.get("fill_episodes", 0), suite.episodes(run)
        if arm.kind == "cascade" and fill and suite.fill_episodes:
            raise InputError(
                f"arm {arm.name}: fill_episodes = {fill}, and the suite's fill_episodes = {suite.fill_episodes}",
                "a memory is filled either by the teacher, or for every arm with random actions",
                "Leave one of them out.",
            )
        if arm.kind == "cascade" and isinstance(fill, int) and fill >= episodes:
            raise InputError(
                f"arm {arm.name}: fill_episodes = {fill}, with {episodes} episodes of {run.task}",
                "fill_episodes must be less than the episodes of a run, so that the student plays at least one",
                "Fill fewer, or play more episodes.",
            )


def cascade_arm(
    reader: PriorReader,
    teacher: PriorReader,
    memory: Memory,
    *,
    knowledge: ExampleMemory | None = None,
    policy: MakePolicy | None = None,
    fill_episodes: int = 0,
    **limits: Any,
) -> Arm:
    """Return an arm whose student asks a teacher, and whose first episodes the teacher plays.

    The confidence of the student is that of its policy *with* memory: after the examples, and after the shift. The
    teacher's answer is not shifted. Each step gets a note with the model that decided it (`decided`) and, if that is
    the student, a note with the examples in its prompt (`shown`): the outcome of a teacher's step is no
    evidence about examples that the teacher did not see.

    The teacher plays until the arm has learned from `fill_episodes` episodes, so a resumed run ends like an
    uninterrupted one. These episodes count in the cost. The arm's reader has `aclose`, which releases the teacher.

    Args:
        reader: reads the student's policy.
        teacher: reads the teacher's policy.
        memory: the memory of the arm.
        knowledge: puts examples into the student's prompt; None: none.
        policy: makes the policy that shifts the student's; steps in the prompt are discounted in its evidence. None: no
            shift.
        fill_episodes: number of first episodes that the teacher plays.
        **limits: of `seasoned.policies.cascade.CascadeReader`: `samples`, `agreement`, `min_evidence`.

    Raises:
        InputError: a value breaks its rule.

    Example:
        >>> from seasoned.agents import UniformReader
        >>> with Memory.open(":memory:") as memory:
        ...     arm = cascade_arm(UniformReader(), UniformReader(), memory, policy=JitRL, fill_episodes=5)
        >>> arm.policy.name, arm.reader.name
        ('default', 'cascade:uniform|uniform')
    """
    fill = check_whole("fill_episodes", fill_episodes, 0)
    if knowledge is not None:
        student = example_arm(reader, knowledge, None if policy is None else memory, policy)
    else:
        student = Arm(ModelAlone() if policy is None else policy(memory), reader)
    student_reader: PriorReader = cast(PriorReader, student.reader)
    policy_of_arm = student.policy
    if policy is not None:
        student_reader = shifted = _ShiftedReader(student_reader, student.policy)
        policy_of_arm = _ReadDecision(shifted)
    play = _FillThenCascade(teacher, fill, "prompt" if policy is None else "both", knowledge)
    return Arm(policy_of_arm, CascadeArmReader(student_reader, teacher, memory=memory, **limits), play, play.learn)


class _ShiftedReader:
    """A reader of the student's policy after the shift by its memory."""

    def __init__(self, reader: PriorReader, policy: Policy) -> None:
        self._reader, self.policy = reader, policy
        # Context variables, because concurrent episodes share this reader.
        self.place: ContextVar[tuple[int, EpisodeLog] | None] = ContextVar("place", default=None)
        self.last: ContextVar[Decision | None] = ContextVar("last", default=None)

    @property
    def name(self) -> str:
        return self._reader.name

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        reading = await self._reader.read(state, task, candidates)
        place = self.place.get()
        seed, step = (None, 0) if place is None else (place[0], len(place[1].steps))
        decision = self.policy.decide(
            state, reading.prior, admissible=tuple(candidates), task=task, step=step, seed=seed
        )
        self.last.set(decision)
        logprobs = {
            action: max(math.log(p), _LEAST_LOGPROB) if p else _LEAST_LOGPROB for action, p in decision.probs.items()
        }
        shifted = dataclasses.replace(reading.prior, logprobs=logprobs, method=f"{reading.prior.method}, shifted")
        return PriorReading(shifted, reading.usage)


@dataclass(frozen=True)
class _ReadDecision:
    """A policy that returns the decision made while reading, so that a step is decided once; else the teacher's."""

    shifted: _ShiftedReader

    @property
    def name(self) -> str:
        return self.shifted.policy.name

    def decide(
        self,
        state: str,
        candidates: Mapping[str, float],
        *,
        admissible: Admissible = None,
        task: str | None = None,
        step: int = 0,
        seed: int | None = None,
    ) -> Decision:
        last = self.shifted.last.get()
        if last is not None and isinstance(candidates, CascadePrior) and candidates.decided_by == "student":
            own = cast(Prior, last.prior)
            return dataclasses.replace(last, prior=dataclasses.replace(candidates, logprobs=own.logprobs))
        return ModelAlone().decide(state, candidates, admissible=admissible, task=task, step=step, seed=seed)


@dataclass
class _FillThenCascade:
    """Plays the first episodes with the teacher, the others with the cascade, and notes the deciding model."""

    teacher: PriorReader
    fill: int
    mode: str
    knowledge: ExampleMemory | None
    learned: int = field(default=0, init=False)

    async def __call__(
        self, environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> EpisodeResult:
        if self.learned < self.fill:
            filling = AnnotatedLog(log, self._fill_notes)
            return await play_episode(environment, ModelAlone(), self.teacher, filling, seed=seed)
        if isinstance(policy, _ReadDecision):
            policy.shifted.place.set((seed, log))
        if self.knowledge is not None:
            self.knowledge.begin()
        return await CascadePlay()(environment, policy, reader, AnnotatedLog(log, self._example_notes), seed=seed)

    async def learn(self, episode: Episode) -> Usage:
        """Count the episode; its steps are already in the memory."""
        del episode
        self.learned += 1
        return Usage()

    def _fill_notes(self, decision: Decision | str) -> Iterable[tuple[str, Mapping[str, Any]]]:
        prior = decision.prior if isinstance(decision, Decision) else None
        model = self.teacher.name if prior is None else prior.model
        body = DecidedBody("teacher", model, f"episode {self.learned + 1} of {self.fill} to fill")
        return [(DECIDED, body.record())]

    def _example_notes(self, decision: Decision | str) -> Iterable[tuple[str, Mapping[str, Any]]]:
        prior = decision.prior if isinstance(decision, Decision) else None
        if self.knowledge is None or not isinstance(prior, CascadePrior) or prior.decided_by != "student":
            return []
        examples = tuple(self.knowledge.last_shown)
        return [(SHOWN, ShownBody(examples, self.mode).record())] if examples else []
