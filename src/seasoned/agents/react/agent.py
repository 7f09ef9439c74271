"""An agent that plans, reasons and acts, and learns from what came of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, cast

from seasoned.agents.cascade.decided_by import decision_notes
from seasoned.agents.loop.arm import Arm
from seasoned.agents.loop.episode import episode_seed
from seasoned.agents.loop.step_log import AnnotatedLog, StepLog
from seasoned.agents.loop.step_runner import EpisodeResult, StepRunner
from seasoned.agents.react.agent_arm import arm_of
from seasoned.agents.react.agent_result import (
    AgentResult,
    Mode,
    OnStep,
    Purpose,
    Verification,
    Verify,
    check_verification,
)
from seasoned.agents.react.agent_settings import AgentSettings, ExampleRetriever
from seasoned.agents.react.batch import Environments, environments_of, play_many
from seasoned.agents.react.demonstrations import store_once
from seasoned.agents.react.episode_trace import EpisodeTrace
from seasoned.agents.react.player import play
from seasoned.agents.react.prompt_evidence import AgentMemory
from seasoned.agents.react.prompt_templates import TOOL_TEMPLATES, Templates
from seasoned.agents.react.reply_parser import canonical_action
from seasoned.agents.runs.run import LATE
from seasoned.checks import check_text
from seasoned.errors import InputError, excerpt
from seasoned.judges.judge_feedback import add_judgement
from seasoned.policies import JitRL
from seasoned.policies.examples import Examples
from seasoned.protocols import LLM, Environment, EvidenceSource, Judgement, Policy, PriorReader, Proposer, Tool, Usage
from seasoned.types import Episode

__all__ = ["Agent"]


_UNPLAYED = EpisodeResult(0.0, None, 0, "aborted", 0, 0.0, 0, 0.0, 0.0, Usage())


class Agent:
    r"""Plans once an episode, then reasons and acts at each step; learns when it trains, and not when it runs.

    At each step the model is asked for its reasoning and for an action, in one call or in two. Without a `reader` the
    action is parsed from the reply; with one, in every mode, it is drawn from the model's own policy over the actions.
    What memory does is one switch, `mode`:

    - `none`: nothing; the model alone: its reply, or with a reader its own policy as it is.
    - `prompt`: past steps that fit the plan, the reasoning and the action are shown (ICRL, arXiv 2505.00234).
    - `logits`: the model's policy is shifted, `z'(a) = z(a) + beta * A(a)` (JitRL, arXiv 2601.18510).
    - `both`: examples are shown, and the policy is shifted by `beta * A(a) * (n - s) / n`, where s of the n steps that
      took `a` were shown by the plan's, the reasoning's or the action's prompt, so that nothing counts twice.

    `train` stores each episode with its plan, its reasoning and what it was shown, and has it checked by `verify`.
    `run` records nothing and checks nothing. All methods that play are async; `seasoned.sync.Sync(agent)` has the same
    ones for synchronous code.

    Args:
        llm: any model; closed by `aclose`.
        memory: a `seasoned.Memory`; None where nothing is learned.
        mode: see above; None: `prompt` with a memory, else `none`.
        plan: whether to plan, once an episode: one call more.
        reason: whether to reason at each step.
        calls: 1 reasons and acts in one call, 2 in two; None: 2 with a reader, else 1. Only two let the reasoning be
            part of what the action's examples are looked for by.
        reader: reads the model's policy over actions, such as `LabelReader(llm)`; needed for `logits` and `both`. Where
            the environment names no actions it must propose them (`VotesReader`). What it is given as the state is a
            whole prompt; `current_state` finds the state. Who of a `CascadeReader` decided is noted beside each step.
        policy: makes a policy over a memory; for `logits` and `both`.
        examples: finds past steps for the prompts; None: `seasoned.policies.examples.Examples(memory)`. With `trusted`
            or `vouched_by` not in mode `both`: they guard what is shown, and a shift asks for all that memory holds.
        demonstrations: episodes to begin with: stored when the agent is made, each once, however often that is, under
            its own id or one that follows from its content.
        tools: functions that the model may call: then an action is a tool call, in canonical text
            (`seasoned.actions.ToolAction`).
        templates: the prompts; None: short ones that go with what an action is.
        canonical: an action to its canonical form; a reply is the admissible action that has the same one.
        history_tokens: how much of the episode so far a prompt shows, newest steps first.
        max_tokens: of one reply.
        max_steps: an episode is cut off after so many; None: by the environment alone.
        temperature: of every call but a reader's. Above 0 the requests are seeded.
        seed: of the agent: its episode i, counted over all it plays, has `episode_seed(seed, i)`. None: episodes are
            given theirs.
        verify: checks every finished episode of `train`; its verdict is stored as feedback on the last step. What it
            raises is reported, and nothing is stored of it.
        on_step: told of every step.
        arm: stored with each episode.
        exclude_same_task: the leave-one-task-out guard for examples; for the shift it is a setting of the policy.

    Raises:
        InputError: a value breaks its rule, or two cannot work together; the message says what would.
        EpisodeConflictError, StoreError: the demonstrations cannot be stored, as for `Memory.add_many`.

    Example:
        >>> from seasoned import Memory
        >>> from seasoned.envs import Grid
        >>> from seasoned.llms import ScriptedLLM
        >>> from seasoned.sync import Sync
        >>> llm = ScriptedLLM(["Go east.", "Thought: the goal is there.\nAction: east"])
        >>> with Memory.open(":memory:") as memory, Sync(Agent(llm, memory)) as agent:
        ...     result = agent.train(Grid(["SG"]), seed=0)
        ...     result.score, result.plan, len(memory)
        (1.0, 'Go east.', 1)
    """

    def __init__(
        self,
        llm: LLM,
        memory: AgentMemory | None = None,
        *,
        mode: Mode | None = None,
        plan: bool = True,
        reason: bool = True,
        calls: Literal[1, 2] | None = None,
        reader: PriorReader | Proposer | None = None,
        policy: Callable[[EvidenceSource], Policy] = JitRL,
        examples: ExampleRetriever | None = None,
        demonstrations: Sequence[Episode] = (),
        tools: Sequence[Tool] = (),
        templates: Templates | None = None,
        canonical: Callable[[str], str] = canonical_action,
        history_tokens: int = 1000,
        max_tokens: int = 256,
        max_steps: int | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        verify: Verify | None = None,
        on_step: OnStep | None = None,
        arm: str | None = None,
        exclude_same_task: bool = False,
    ) -> None:
        if mode is None:
            mode = "none" if memory is None and examples is None else "prompt"
        if examples is None and memory is not None and mode in ("prompt", "both"):
            if not hasattr(memory, "recall"):
                raise InputError(
                    f"memory = {excerpt(memory)}, mode = {mode!r}",
                    "examples are recalled from a seasoned.Memory",
                    "Pass one, or examples= of your own, with a retrieve().",
                )
            examples = Examples(cast(Any, memory))
        for name, hook in (("verify", verify), ("on_step", on_step)):
            if hook is not None and not callable(hook):
                raise InputError(f"{name} = {excerpt(hook)}", f"{name} is a function", "Pass one, or leave it out.")
        if arm is not None:
            check_text("arm", arm)
        if calls is None:
            calls = 2 if reader is not None and reason else 1
        self.settings = AgentSettings(
            llm,
            memory,
            mode,
            plan,
            reason,
            calls,
            reader,
            policy,
            examples,
            tuple(tools),
            templates or (TOOL_TEMPLATES if tools else Templates()),
            canonical,
            history_tokens,
            max_tokens,
            max_steps,
            temperature,
            exclude_same_task,
        )
        self._seed = _check_seed(seed)
        self._verify = verify
        self._on_step = on_step
        self._arm = arm
        self._played = 0
        store_once(memory, demonstrations)

    # ------------------------------------------------------------------------------------------ playing

    async def train(
        self, environment: Environment, seed: int | None = None, *, subject: str | None = None
    ) -> AgentResult:
        """Play one episode, store it and have it checked; return how it went.

        An episode that breaks off is stored as `aborted`, which nothing retrieves, and its error is raised.

        Args:
            environment: what is played; it stays open.
            seed: of the episode, where the agent has none.
            subject: the person whom the episode is about, so that it can be erased by subject.

        Raises:
            InputError: there is no memory, or the seed is stated twice.
            ModelError: the model failed, or two of its replies running could not be used.
            SeasonedError: what the environment, the policy or the memory raises.
        """
        return _or_raise(await self._one(environment, seed, learns=True, subject=subject))

    async def run(self, environment: Environment, seed: int | None = None) -> AgentResult:
        """Play one episode with what was learned, frozen: nothing is learned or recorded, and `verify` is not asked.

        A policy of another gamma has the memory keep sums that follow from what it holds, once; a memory opened
        read-only refuses to.

        Raises:
            InputError, ModelError, SeasonedError: as for `train`.
        """
        return _or_raise(await self._one(environment, seed, learns=False, subject=None))

    async def train_many(
        self,
        environments: Environments,
        seeds: Sequence[int] | None = None,
        *,
        episodes: int | None = None,
        concurrency: int = 4,
        subject: str | None = None,
    ) -> list[AgentResult]:
        """Train on several episodes, some at the same time; return their results in order.

        Each episode is shown what was stored when it looked, and credit goes to the episode that looked. An episode
        that breaks off is stored as `aborted`; its result has its `error`, and the others go on.

        Args:
            environments: a list, which stays open; or a function from a number (from 0) to an environment, which is
                closed after its episode; what closing raises is in `close_error`.
            seeds: of the episodes, where the agent has none.
            episodes: how many, where neither a list nor seeds say it.
            concurrency: at most so many at a time.
            subject: as for `train`.

        Raises:
            InputError: there is no memory, seeds are stated twice, or something does not say how many episodes.
        """
        return await self._many(environments, seeds, episodes, concurrency, learns=True, subject=subject)

    async def run_many(
        self,
        environments: Environments,
        seeds: Sequence[int] | None = None,
        *,
        episodes: int | None = None,
        concurrency: int = 4,
    ) -> list[AgentResult]:
        """Run several episodes, frozen; see `train_many`."""
        return await self._many(environments, seeds, episodes, concurrency, learns=False, subject=None)

    def as_arm(self) -> Arm:
        """Return the agent as an arm of a comparison, to be played by `seasoned.agents.play_run`.

        The run seeds, stores and judges: the agent's own seed and `verify` are not used.

        Raises:
            InputError: the agent has a seed or a `verify`.
        """
        if self._seed is not None or self._verify is not None:
            raise InputError(
                f"as_arm() of an agent with seed = {self._seed}, verify = {excerpt(self._verify)}",
                "a run has a seed and judges of its own",
                "Make the agent without them, and give them to play_run.",
            )
        return arm_of(self.settings, self._on_step)

    async def aclose(self) -> None:
        """Close the model."""
        await self.settings.llm.aclose()

    # ------------------------------------------------------------------------------------------ one episode

    async def _one(
        self, environment: Environment, seed: int | None, *, learns: bool, subject: str | None
    ) -> AgentResult:
        self._check_learns(learns, subject)
        if not isinstance(environment, Environment):
            raise InputError(
                f"environment = {excerpt(environment)}", "it has reset() and step()", "Open one: open_env(...)."
            )
        [own] = self._seeds(None if seed is None else [seed], 1)
        return await self._attempt(environment, own, learns, subject)

    async def _many(
        self,
        environments: Environments,
        seeds: Sequence[int] | None,
        episodes: int | None,
        concurrency: int,
        *,
        learns: bool,
        subject: str | None,
    ) -> list[AgentResult]:
        self._check_learns(learns, subject)
        if seeds is not None and (isinstance(seeds, str | bytes) or not isinstance(seeds, Sequence)):
            raise InputError(f"seeds = {excerpt(seeds)}", "they are a list, one an episode", "Pass [0, 1, 2], say.")
        openers = environments_of(environments, seeds, episodes, concurrency)
        own = self._seeds(seeds, len(openers))

        async def play_one(number: int, environment: Environment) -> AgentResult:
            return await self._attempt(environment, own[number], learns, subject)

        def failed(number: int, error: Exception) -> AgentResult:
            return _result(_UNPLAYED, None, seed=own[number], error=error)

        return await play_many(
            openers,
            play_one,
            failed,
            lambda result, error: replace(result, close_error=error),
            concurrency=concurrency,
            closes=callable(environments),
        )

    async def _attempt(
        self, environment: Environment, seed: int | None, learns: bool, subject: str | None
    ) -> AgentResult:
        """Play and store. What broke the episode off is in the result; Ctrl-C and cancellation go on their way."""
        log = StepLog()
        trace = EpisodeTrace(StepRunner(environment, AnnotatedLog(log, decision_notes)))
        fault: BaseException | None = None
        try:
            outcome = await play(self.settings, trace, seed=seed, learns=learns, on_step=self._on_step)
        except BaseException as error:
            fault = error
            outcome = trace.runner.abort()
        episode_id: str | None = None
        if learns:
            try:
                episode_id = self._store(environment.task, log, subject)
                if outcome.late_rewards:
                    rewards = dict(outcome.late_rewards)
                    judgement = Judgement(LATE, rewards, dict.fromkeys(rewards, 1.0))
                    add_judgement(self._memory, episode_id, judgement)
            except Exception as error:
                if fault is None:
                    fault = error
                else:
                    fault.add_note(f"It could not be stored either: {error}")
        if fault is not None and not isinstance(fault, Exception):
            raise fault
        episode = Episode(
            environment.task,
            log.steps,
            episode_id,
            log.final_state,
            log.ending,
            self.settings.llm.name,
            self.settings.name,
            self._arm,
            subject,
        )
        verdict, verify_error = None, None
        if learns and fault is None and self._verify is not None:
            verdict, verify_error = await self._verified(episode)
        return _result(
            outcome,
            trace,
            episode=episode,
            episode_id=episode_id,
            seed=seed,
            verdict=verdict,
            verify_error=verify_error,
            error=fault,
        )

    def _store(self, task: str, log: StepLog, subject: str | None) -> str:
        """Commit the episode with its notes, whole; one that broke off is marked so."""
        settings = self.settings
        policy = None if settings.reader is not None else settings.name
        model = None if settings.reader is not None and log.steps else settings.llm.name
        recorder: Any = self._memory.episode(task, model=model, policy=policy, arm=self._arm, subject=subject)
        with recorder:
            log.copy_to(recorder)
        return cast(str, recorder.id)

    async def _verified(self, episode: Episode) -> tuple[Verification | None, Exception | None]:
        """What the check says of an episode, stored as feedback; or what it raised, of which nothing is stored."""
        try:
            said = cast(Any, self._verify)(episode)
            verdict = await said if inspect.isawaitable(said) else said
            if verdict is None:
                return None, None
            check_verification(verdict)
            last = len(episode.steps) - 1
            self._memory.feedback(cast(str, episode.id), cast(float, verdict.reward), last, verdict.source, weight=1.0)
        except Exception as error:
            return None, error
        return verdict, None

    # ------------------------------------------------------------------------------------------ what it was given

    @property
    def _memory(self) -> AgentMemory:
        return cast(AgentMemory, self.settings.memory)

    def _check_learns(self, learns: bool, subject: str | None) -> None:
        if learns and self.settings.memory is None:
            raise InputError("train without a memory", "what is learned is stored", "Pass a memory, or run.")
        if subject is not None:
            check_text("subject", subject)

    def _seeds(self, given: Sequence[int] | None, count: int) -> list[int | None]:
        """The seeds of the next episodes; they count from here on."""
        if given is not None and self._seed is not None:
            raise InputError(
                f"seed = {self._seed} of the agent, and {excerpt(list(given))} beside it",
                "a seed is stated once",
                "Leave one of them out: the agent gives its episodes theirs.",
            )
        checked = [None if given is None else _check_seed(given[number]) for number in range(count)]
        first, self._played = self._played, self._played + count
        if self._seed is None:
            return checked
        return [episode_seed(self._seed, number) for number in range(first, first + count)]


def _check_seed(seed: object) -> int | None:
    if seed is None:
        return None
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or seed.__index__() < 0:
        raise InputError(f"seed = {excerpt(seed)}", "a seed is a whole number, at least 0", "Pass 0, say.")
    return int(seed.__index__())


def _result(outcome: EpisodeResult, trace: EpisodeTrace | None, **more: Any) -> AgentResult:
    known = {field.name: getattr(outcome, field.name) for field in fields(EpisodeResult)}
    if trace is not None:
        known |= {"plan": trace.plan, "example_steps": trace.example_steps}
    usage_by = {} if trace is None else cast(dict[Purpose, Usage], dict(trace.runner.usage_by))
    return AgentResult(**known, usage_by=usage_by, **more)


def _or_raise(result: AgentResult) -> AgentResult:
    if result.error is not None:
        raise result.error
    return result
