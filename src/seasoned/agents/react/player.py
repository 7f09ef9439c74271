"""Episode loop of an agent: plan, then at each step recall, reason, act and record."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.agents.react.agent_result import ModelCall, OnStep, PromptImpression, Purpose, StepEvent
from seasoned.agents.react.agent_settings import AgentSettings
from seasoned.agents.react.current_state import state_context
from seasoned.agents.react.episode_trace import EpisodeTrace, history_text
from seasoned.agents.react.model_request import ask, chat_messages
from seasoned.agents.react.reply_parser import ParsedReply, read_reasoning, read_reply, shown_action
from seasoned.errors import EnvError, ModelAnswerError
from seasoned.policies.examples import Example, ExampleQuery, render
from seasoned.protocols import Completion, Message, Observation, PriorReader, Proposer, Usage
from seasoned.types import Decision

__all__ = ["play"]

T = TypeVar("T")


async def play(
    settings: AgentSettings, trace: EpisodeTrace, *, seed: int | None, learns: bool, on_step: OnStep | None = None
) -> EpisodeResult:
    """Play one episode to its end; its steps and notes go to the log of the trace's runner.

    The memory is not written: the caller commits the log, or discards it.

    Raises:
        ModelError: the model failed, or two replies in a row could not be used; no other action is taken instead.
        EnvError: the environment failed, or names no action and the reader proposes none.
        SeasonedError: raised by the memory, the policy or the environment.
    """
    return await _Player(settings, trace, seed, learns, on_step).play()


@dataclass(frozen=True)
class _Player:
    settings: AgentSettings
    trace: EpisodeTrace
    seed: int | None
    learns: bool
    on_step: OnStep | None

    async def play(self) -> EpisodeResult:
        runner, settings = self.trace.runner, self.settings
        observation = await runner.reset(self.seed)
        if _is_over(observation):
            raise EnvError(
                f"{runner.environment.name}: over when it was reset",
                "an episode has at least one step",
                "Reset it to a state that has an action, or leave this environment out.",
            )
        if settings.plan:
            self.trace.plan = await self._plan(observation)
        while not _is_over(observation) and runner.n_steps != settings.max_steps:
            observation = await self._step(observation)
        return runner.finish(observation)

    @property
    def _task(self) -> str:
        return self.trace.runner.environment.task

    async def _step(self, before: Observation) -> Observation:
        settings, trace = self.settings, self.trace
        step = trace.runner.n_steps
        reasoning: str | None = None
        if settings.reason and settings.calls == 2:
            reasoning = await self._ask("reason", self._prompt("reason", "reason", before), read_reasoning)
        decision: Decision | str
        if settings.reader is None:
            reply = await self._reply(before, reasoning)
            decision, reasoning = reply.action, reasoning or reply.reasoning or None
        else:
            decision = await self._decide(settings.reader, before, reasoning)
        after = await trace.runner.step(before.state, decision)
        trace.add_turn(before, reasoning, decision, after.reward, settings.mode)
        if self.on_step is not None:
            event = StepEvent(
                step,
                self._task,
                self.seed,
                self.learns,
                before,
                trace.plan,
                reasoning,
                tuple(trace.model_calls),
                tuple(trace.impressions),
                decision if isinstance(decision, Decision) else None,
                decision.action if isinstance(decision, Decision) else decision,
                after,
                trace.step_usage,
            )
            returned = self.on_step(event)
            if inspect.isawaitable(returned):
                await returned
        trace.next_step()
        return after

    async def _plan(self, seen: Observation) -> str:
        plan = await self._ask("plan", self._prompt("plan", "plan", seen), read_reasoning)
        self.trace.runner.log.note("plan", {"text": plan})
        self.trace.plan_impressions = tuple(self.trace.impressions)
        return plan

    async def _reply(self, seen: Observation, reasoning: str | None) -> ParsedReply:
        """The model's own action, parsed from its reply."""
        settings = self.settings
        together = settings.reason and settings.calls == 1
        prompt = self._prompt("reason_act" if together else "act", "act", seen, reasoning)
        actions = self.trace.runner.actions(seen, proposes=True)
        return await self._ask(
            "act",
            prompt,
            lambda answer: read_reply(
                answer, actions, settings.canonical, tools=[one.name for one in settings.tools], reasons=together
            ),
        )

    async def _decide(self, reader: PriorReader | Proposer, seen: Observation, reasoning: str | None) -> Decision:
        """The policy's action, from the model's own policy over the actions there are."""
        settings, trace = self.settings, self.trace
        runner, text = trace.runner, self._prompt("read", "act", seen, reasoning)
        actions = runner.actions(seen, proposes=isinstance(reader, Proposer))
        messages = (Message("user", text),)
        try:
            with state_context(seen.state):
                reading = await runner.read(reader, text, actions)
        except BaseException as error:
            if isinstance(error, ModelAnswerError):
                trace.model_calls.append(ModelCall("act", messages, None, str(error)))
            trace.spend("act", Usage(calls=1, cost_usd=None))  # or more: a reader that fails reports no usage
            raise
        trace.spend("act", reading.usage)
        trace.model_calls.append(ModelCall("act", messages))
        # The examples of the plan's and the reasoning's prompts affect this prompt through the model's words.
        shown = {one for each in (*trace.plan_impressions, *trace.impressions) for one in each.steps}
        policy = settings.decides_without(frozenset(shown))
        return runner.decide(policy, seen.state, reading.prior, actions, self.seed)

    def _recall(self, purpose: Purpose, seen: Observation, reasoning: str | None) -> str:
        """Past steps as text, for one prompt; which they are is noted."""
        settings, trace = self.settings, self.trace
        if settings.examples is None:
            return ""
        began = time.perf_counter()
        task = self._task
        query = ExampleQuery(task, plan=trace.plan, observation=seen.state, reasoning=reasoning)
        exclude = task if settings.exclude_same_task else None
        found = settings.examples.retrieve(query, purpose=purpose, exclude_task=exclude)
        text = render(found) if found else ""
        trace.runner.decision_s += time.perf_counter() - began
        if found:
            places = tuple((one.episode_id, one.step) for one in found)
            trace.impressions.append(PromptImpression(purpose, places, _covered(found)))
        return text

    def _prompt(self, name: str, purpose: Purpose, seen: Observation, reasoning: str | None = None) -> str:
        """A template, filled in. What it does not show is not recalled: nothing is credited with being shown."""
        templates = self.settings.templates
        named: Collection[str] = seen.admissible or ()
        values = {
            "goal": self._task,
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
        system = templates.render("system", {"goal": self._task})
        return await ask(
            self.settings,
            self.trace,
            purpose,
            chat_messages(system, prompt),
            read,
            seed=self.seed,
            step=self.trace.runner.n_steps,
        )


def _covered(found: Sequence[Example]) -> tuple[tuple[str, int], ...]:
    """Every stored step whose text the examples show, each once."""
    return tuple(dict.fromkeys(place for one in found for place in one.places))


def _is_over(observation: Observation) -> bool:
    return observation.terminated or observation.truncated
