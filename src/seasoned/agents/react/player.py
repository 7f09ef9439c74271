"""One episode: plan, then at each step recall, reason, act and record."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from seasoned.agents.loop.episode import EpisodeResult, StepLog
from seasoned.agents.react.agent_result import Asked, OnStep, Purpose, Shown, StepEvent
from seasoned.agents.react.agent_settings import AgentSettings
from seasoned.agents.react.current_state import observing
from seasoned.agents.react.episode_trace import Trace, number
from seasoned.agents.react.history import history_text
from seasoned.agents.react.model_request import ask, messages_of
from seasoned.agents.react.reply_parser import Reply, read_reasoning, read_reply, shown_action
from seasoned.errors import EnvError, ModelAnswerError
from seasoned.policies.examples import Example, Query, render
from seasoned.protocols import Completion, Environment, Message, Observation, PriorReader, Proposer, Usage
from seasoned.types import Decision

__all__ = ["play"]

T = TypeVar("T")


async def play(
    settings: AgentSettings,
    environment: Environment,
    log: StepLog,
    trace: Trace,
    *,
    seed: int | None,
    learns: bool,
    on_step: OnStep | None = None,
) -> EpisodeResult:
    """Play one episode to its end, recording each executed step in `log`, and the rest in `trace`.

    Nothing is written to the memory: the caller commits, or does not.

    Raises:
        ModelError: the model failed, or two replies running could not be used; no action stands in for them.
        EnvError: the environment failed, or names no action and the reader proposes none.
        SeasonedError: what the memory, the policy or the environment raises.
    """
    return await _Player(settings, environment, log, trace, seed, learns, on_step).play()


@dataclass(frozen=True)
class _Player:
    settings: AgentSettings
    environment: Environment
    log: StepLog
    trace: Trace
    seed: int | None
    learns: bool
    on_step: OnStep | None

    async def play(self) -> EpisodeResult:
        began = time.perf_counter()
        seen = await self.environment.reset(seed=self.seed)
        self.trace.environment_s += time.perf_counter() - began
        if _over(seen):
            raise EnvError(
                f"{self.environment.name}: over when it was reset",
                "an episode has at least one step",
                "Reset it to where there is something to do, or leave this one out.",
            )
        if self.settings.plan:
            self.trace.plan = await self._plan(seen)
        while not _over(seen) and len(self.trace.turns) != self.settings.max_steps:
            await asyncio.sleep(0)  # so that Ctrl-C is heard even where no model or environment makes us wait
            seen = await self._step(seen)
        return self.trace.finish(self.log, self.environment, seen, ended=seen.terminated)

    async def _step(self, seen: Observation) -> Observation:
        settings, trace = self.settings, self.trace
        step = len(trace.turns)
        reasoning: str | None = None
        if settings.reason and settings.calls == 2:
            reasoning = await self._ask("reason", self._prompt("reason", "reason", seen), read_reasoning)
        decision: Decision | str
        if settings.reader is None:
            reply = await self._reply(seen, reasoning)
            decision, reasoning = reply.action, reasoning or reply.reasoning or None
        else:
            decision = await self._decide(settings.reader, seen, reasoning)
        action = decision.action if isinstance(decision, Decision) else decision
        acted = time.perf_counter()
        after = await self.environment.step(action)
        trace.environment_s += time.perf_counter() - acted
        number(self.environment, "reward", after.reward)
        trace.take(self.log, seen, reasoning, decision, after.reward, settings.mode)
        if self.on_step is not None:
            event = StepEvent(
                step,
                self.environment.task,
                self.seed,
                self.learns,
                seen,
                trace.plan,
                reasoning,
                tuple(trace.asked),
                tuple(trace.shown),
                decision if isinstance(decision, Decision) else None,
                action,
                after,
                trace.step_usage,
            )
            told = self.on_step(event)
            if inspect.isawaitable(told):
                await told
        trace.next_step()
        return after

    async def _plan(self, seen: Observation) -> str:
        plan = await self._ask("plan", self._prompt("plan", "plan", seen), read_reasoning)
        self.trace.notes.append(("plan", {"text": plan}, None))
        self.trace.plan_shown = tuple(self.trace.shown)
        return plan

    async def _reply(self, seen: Observation, reasoning: str | None) -> Reply:
        """The model's own action, parsed from its reply."""
        settings = self.settings
        together = settings.reason and settings.calls == 1
        prompt = self._prompt("reason_act" if together else "act", "act", seen, reasoning)
        admissible = self._admissible(seen)
        return await self._ask(
            "act",
            prompt,
            lambda answer: read_reply(
                answer, admissible, settings.canonical, tools=[one.name for one in settings.tools], reasons=together
            ),
        )

    async def _decide(self, reader: PriorReader | Proposer, seen: Observation, reasoning: str | None) -> Decision:
        """The policy's action, from the model's own policy over the actions there are."""
        settings, trace = self.settings, self.trace
        text, task = self._prompt("read", "act", seen, reasoning), self.environment.task
        admissible = self._admissible(seen)
        messages = (Message("user", text),)
        if admissible is None and not isinstance(reader, Proposer):
            raise EnvError(
                f"{self.environment.name}: no admissible actions",
                "a reader reads a policy over named actions, or over what its `propose` names",
                "Name them, pass a VotesReader with a rule for what is an action, or leave the reader out.",
            )
        try:
            with observing(seen.state):
                if admissible is not None:
                    reading = await cast(PriorReader, reader).read(text, task, admissible)
                else:
                    reading = await cast(Proposer, reader).propose(text, task)
        except BaseException as error:
            if isinstance(error, ModelAnswerError):
                trace.asked.append(Asked("act", messages, None, str(error)))
            trace.spend("act", Usage(calls=1, cost_usd=None))  # or more: a reader that fails does not say
            raise
        trace.spend("act", reading.usage)
        trace.asked.append(Asked("act", messages))
        began = time.perf_counter()
        # What the plan and the reasoning were shown is in this prompt by what the model made of it.
        shown = {one for each in (*trace.plan_shown, *trace.shown) for one in each.steps}
        decision = settings.decides_without(frozenset(shown)).decide(
            seen.state,
            reading.prior,
            admissible="any" if admissible is None else admissible,
            task=task,
            step=len(trace.turns),
            seed=self.seed,
        )
        trace.decision_s += time.perf_counter() - began
        return decision

    def _admissible(self, seen: Observation) -> tuple[str, ...] | None:
        if seen.admissible is not None and not seen.admissible:
            raise EnvError(
                f"{self.environment.name}: admissible = ()",
                "an episode that goes on has an action to take",
                "Return None where actions cannot be named, or end the episode.",
            )
        return seen.admissible

    def _recall(self, purpose: Purpose, seen: Observation, reasoning: str | None) -> str:
        """Past steps as text, for one prompt; which they are is noted."""
        settings, trace = self.settings, self.trace
        if settings.examples is None:
            return ""
        began = time.perf_counter()
        task = self.environment.task
        query = Query(task, plan=trace.plan, observation=seen.state, reasoning=reasoning)
        exclude = task if settings.exclude_same_task else None
        found = settings.examples.retrieve(query, purpose=purpose, exclude_task=exclude)
        text = render(found) if found else ""
        trace.decision_s += time.perf_counter() - began
        if found:
            places = tuple((one.episode_id, one.step) for one in found)
            trace.shown.append(Shown(purpose, places, _covered(found)))
        return text

    def _prompt(self, name: str, purpose: Purpose, seen: Observation, reasoning: str | None = None) -> str:
        """A template, filled in. What it does not show is not recalled: nothing is credited with being shown."""
        templates = self.settings.templates
        named: Collection[str] = seen.admissible or ()
        values = {
            "goal": self.environment.task,
            "plan": self.trace.plan or "",
            "history": history_text(self.trace.turns, self.settings.history_tokens),
            "observation": seen.state,
            "actions": "\n".join(f"- {shown_action(action)}" for action in named),
            "reasoning": reasoning or "",
            "examples": self._recall(purpose, seen, reasoning) if templates.uses(name, "examples") else "",
        }
        return templates.render(name, values)

    async def _ask(self, purpose: Purpose, prompt: str, read: Callable[[Completion], T]) -> T:
        templates = self.settings.templates
        system = templates.render("system", {"goal": self.environment.task})
        return await ask(
            self.settings,
            self.trace,
            purpose,
            messages_of(system, prompt),
            read,
            seed=self.seed,
            step=len(self.trace.turns),
        )


def _covered(found: Sequence[Example]) -> tuple[tuple[str, int], ...]:
    """Every stored step whose text the examples show, each once."""
    return tuple(dict.fromkeys(place for one in found for place in one.places))


def _over(seen: Observation) -> bool:
    return seen.terminated or seen.truncated
