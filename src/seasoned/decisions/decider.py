"""The decider: decides among named options by a model's prior and memory, and learns from outcomes."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar, cast, get_args, runtime_checkable

import numpy as np

from seasoned.checks import check_flag, check_instance, check_one_of, check_text
from seasoned.decisions.model_prior import Model, OptionPriors
from seasoned.decisions.named_options import NamedOptions, stored_action
from seasoned.errors import EpisodeConflictError, InputError, StoreError, excerpt
from seasoned.llms.wire.embedded_media import without_media
from seasoned.policies import FailOpen, Holdout, JitRL, TemperedPrior
from seasoned.policies.base_policy import ModelAlone
from seasoned.policies.calibration.tempered_prior import RatedMemory
from seasoned.policies.holdout import PausableMemory, paused_decision
from seasoned.protocols import Admissible, EvidenceSource, Policy
from seasoned.protocols.recorded_episode import RecordedEpisode, recording
from seasoned.types import Decision, Episode, Feedback, Label, Prior, Thumbs
from seasoned.types.episode_cost import EpisodeCost
from seasoned.types.notes import COST, RESPONSE

__all__ = ["DecidedStep", "Decider", "DecisionMemory", "OptionSelection"]

OptionSelection = Literal["sample", "argmax"]
"""How the executed option follows from the policy."""

_TIE = 1e-9
_Value = TypeVar("_Value")
_log = logging.getLogger(__name__)


@runtime_checkable
class DecisionMemory(EvidenceSource, Protocol):
    """The methods of a memory that a decider uses: those of a `seasoned.Memory`."""

    def episode(
        self,
        task: str,
        *,
        id: str | None = None,  # noqa: A002
        model: str | None = None,
        policy: str | None = None,
        arm: str | None = None,
        subject: str | None = None,
        awaits_feedback: bool | None = None,
    ) -> AbstractContextManager[Any]:
        """Return a recorder of a new episode."""
        ...

    def get(self, episode_id: str) -> Episode:
        """Return a stored episode."""
        ...

    def feedback(
        self,
        episode_id: str,
        feedback: Feedback | float,
        step: int | None = None,
        source: str = "human",
        *,
        author: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> str:
        """Store feedback, and return its id."""
        ...

    def redacted(self, text: str) -> str:
        """Return a text as the memory stores and compares it."""
        ...


@dataclass(frozen=True, slots=True)
class DecidedStep:
    """A decision that is not recorded yet.

    Args:
        asked: the question.
        decision: by the actions that memory stores.
        cost: of the step; None where its episode is not compared.
    """

    asked: NamedOptions
    decision: Decision
    cost: EpisodeCost | None

    @property
    def shown(self) -> Decision:
        """The decision by the options of the question."""
        return _named(self.decision, self.asked)

    def record_in(self, recorder: Any) -> None:
        """Add the step and its cost to a recorder."""
        recorder.record(self.asked.state, self.decision)
        if self.cost is not None:
            recorder.note(COST, self.cost.record())


class Decider:
    """Decides among named options, and learns from outcomes: `z'(option) = log p(option) + beta * A(option)`.

    `p` are the model's probabilities, `A` the advantages from memory; without evidence the model decides alone. Each
    decision is stored as an episode of one step, with its prior and its propensity, and awaits feedback: a decision
    that nobody rated is no evidence. While its task is paused (`Memory.pause`), the model decides alone. The order
    of the options makes no difference.

    Args:
        memory: a `seasoned.Memory`.
        model: a reader or a model of `open_llm`; the probability of each option, or a function of the state and the
            options that returns it; None: all options are equally probable.
        policy: decides with the prior, such as `Holdout(JitRL(memory), memory)`, which measures the lift, or a
            `FailOpen`, which goes without a memory that fails. None: a `JitRL`.
        choose: `sample` takes the policy's own draw, so that every option is tried; `argmax` the most probable option,
            of equal ones the first by name, with the propensity 1.
        temperature: whether the model's probabilities are tempered first, as outcomes show (`TemperedPrior`).

    Raises:
        InputError: an argument breaks its rule.

    Example:
        >>> from seasoned import Memory
        >>> with Memory.open(":memory:") as memory:
        ...     desk = Decider(memory, {"refunds": 0.2, "sales": 0.8})
        ...     for _ in range(4):
        ...         decision = desk.decide("ticket: broken lamp", ["sales", "refunds"])
        ...         _ = desk.learn(decision, right="refunds")
        ...     desk.decide("ticket: broken lamp", ["refunds", "sales"]).probs["refunds"] > 0.5
        True
    """

    def __init__(
        self,
        memory: DecisionMemory,
        model: Model = None,
        *,
        policy: Policy | None = None,
        choose: OptionSelection = "sample",
        temperature: bool = False,
    ) -> None:
        self.memory = check_instance(
            "memory", memory, DecisionMemory, "memory must record episodes", "Pass a seasoned.Memory."
        )
        own = JitRL(memory) if policy is None else policy
        check_instance("policy", own, Policy, next_step="Pass a JitRL or a Holdout.")
        self.policy: Policy = own
        if check_flag("temperature", temperature):
            self.policy = TemperedPrior(own, cast(RatedMemory, memory))
        self.choose = check_one_of("choose", choose, get_args(OptionSelection))
        self._priors = OptionPriors(model)

    # ------------------------------------------------------------------------------------------ deciding

    def decide(
        self,
        state: object,
        options: Sequence[str] | Mapping[str, str | None],
        *,
        question: str | None = None,
        instructions: str | None = None,
        task: str | None = None,
        episode: str | None = None,
        subject: str | None = None,
        seed: int | None = None,
    ) -> Decision:
        """Return a decision, stored under its `id`; `action` is the chosen option.

        Args:
            state: what the decision is about: a text, or a JSON value. The model reads it as it is; memory has the
                digest of each embedded file (base64 of 512 characters or more) in its place, as the service does.
            options: their names; or a mapping from each name to its description, which the model reads, or None.
            question: its name. Questions of different names share no evidence, whatever their options are.
            instructions: the question in words, for the model.
            task: by which outcomes and lift are grouped; None: the question's name, with a hash of its instructions.
            episode: the caller's id for the decision; None: the memory makes one.
            subject: the person concerned, so that the decision can be erased.
            seed: the same seed gives the same draw; None: each call draws differently.

        Raises:
            InputError: a value breaks a rule; nothing was stored.
            ModelError: the model failed; nothing was stored.
            EpisodeConflictError: the caller's id is stored already.
            StoreError: the memory failed, and the policy is no `FailOpen`.
        """
        redact = self.memory.redacted
        asked = NamedOptions.of(state, options, name=question, instructions=instructions, task=task, redact=redact)
        began = time.perf_counter()
        reading = self._priors.read(asked)
        spent = EpisodeCost(reading.usage.tokens, reading.usage.cost_usd, time.perf_counter() - began)
        asked = replace(asked, state=without_media(asked.state))
        return self.decide_by(asked, reading.prior, episode=episode, subject=subject, seed=seed, spent=spent)

    def decide_by(
        self,
        asked: NamedOptions,
        prior: Prior,
        *,
        episode: str | None = None,
        subject: str | None = None,
        seed: int | None = None,
        choose: OptionSelection | None = None,
        default: str | None = None,
        spent: EpisodeCost | None = None,
        waited_s: float = 0.0,
        response: str | None = None,
    ) -> Decision:
        """Return a decision by a prior that was read already, and store it.

        Args:
            asked: the question.
            prior: logprobs of its options.
            episode, subject, seed: see `decide`.
            choose: another selection than the decider's.
            default: with `argmax`, the option that was chosen by whoever gave the prior: it is executed where memory
                shifts nothing. Its propensity is 1 if no option is more probable, else its probability.
            spent: what the prior cost. With the time of the decision it is noted where the episode is compared
                (`Holdout`), so that `Memory.lift` has the costs of both arms.
            waited_s: seconds for which the decision waited for others by memory: a cost of memory, and none of the
                control group.
            response: id of a note by which feedback finds the decision too (`Memory.next_response_note_id`).

        Raises:
            InputError, EpisodeConflictError, StoreError: as for `decide`.
        """
        recorder: Any = self.memory.episode(
            asked.task, id=episode, model=prior.model, subject=subject, awaits_feedback=True
        )
        recorded = RecordedEpisode(recorder.id, asked.task, self.memory, recorder.note)
        how: dict[str, Any] = {"choose": choose, "default": default, "spent": spent, "waited_s": waited_s}
        step = self.decide_step(recorded, asked, prior, seed=seed, **how)
        step.record_in(recorder)
        if response is not None:
            recorder.note(RESPONSE, {}, 0, id=response)
        try:
            stored_id = recorder.commit()
        except StoreError as error:
            if isinstance(error, EpisodeConflictError) or not self._fails_open:
                raise
            _log.warning("a decision is not stored: %s", error)
            reason = f"{step.decision.reason}; not stored ({type(error).__name__}: {error.seen})"
            return replace(step.shown, reason=reason)
        return replace(step.shown, id=stored_id)

    def decide_step(
        self,
        episode: RecordedEpisode,
        asked: NamedOptions,
        prior: Prior,
        *,
        number: int = 0,
        seed: int | None = None,
        choose: OptionSelection | None = None,
        default: str | None = None,
        spent: EpisodeCost | None = None,
        waited_s: float = 0.0,
    ) -> DecidedStep:
        """Return a decision as a step of an episode that the caller records and commits; nothing is stored.

        Args:
            episode: that the caller records.
            asked, prior, seed, choose, default, spent, waited_s: see `decide_by`.
            number: of the step in the episode.

        Raises:
            InputError, StoreError: as for `decide`.
        """
        action_of = dict(zip(asked.options, asked.actions, strict=True))
        candidates = replace(
            prior,
            logprobs={action_of[option]: prior[option] for option in asked.options},
            bounded=tuple(action_of[option] for option in prior.bounded),
        )
        began = time.perf_counter()
        with recording(episode):
            decided = self._decision(asked.state, candidates, task=asked.task, step=number, seed=seed)
        decision = _without_evidence(decided)
        if (choose or self.choose) == "argmax":
            default_action = None if default is None or decision.mode == "memory" else action_of[default]
            decision = _greedy(decision, default_action)
        cost = _cost(spent, time.perf_counter() - began, waited_s, decision) if episode.is_compared else None
        return DecidedStep(asked, decision, cost)

    def decide_for(
        self,
        unit: str,
        state: str,
        candidates: Prior,
        *,
        task: str,
        step: int = 0,
        seed: int | None = None,
        admissible: Admissible = None,
    ) -> Decision:
        """Return a decision in an episode that the caller records elsewhere, such as a client of the service.

        Nothing is stored but the arm, under the id that the episode will have.

        Args:
            unit: id of the episode.
            state, candidates, task, step, seed, admissible: see `seasoned.protocols.Policy`.

        Raises:
            InputError: a value breaks a rule.
            StoreError: the memory failed, and the policy is no `FailOpen`.
        """
        named = {"unit": unit} if isinstance(self.policy, Holdout) else {}
        options: dict[str, Any] = {"task": task, "step": step, "seed": seed, "admissible": admissible}
        decision = self._decision(state, candidates, **options, **named)
        return _greedy(decision, None) if self.choose == "argmax" else decision

    def _decision(self, state: str, candidates: Prior, **options: Any) -> Decision:
        """Return the policy's decision; the model's own while the task is paused."""
        if isinstance(self.policy, Holdout):  # asks by its own family
            return self.policy.decide(state, candidates, **options)
        if isinstance(self.policy, FailOpen):  # one limit for the pause and the decision
            inner = partial(self._unless_paused, self.policy.policy)
            return self.policy.decide_by(inner, state, candidates, **options)
        return self._unless_paused(self.policy, state, candidates, **options)

    def _unless_paused(self, policy: Policy, state: str, candidates: Prior, **options: Any) -> Decision:
        pause = None
        if isinstance(self.memory, PausableMemory):
            try:
                pause = self.memory.pause_of(options["task"])
            except StoreError:
                if isinstance(self.policy, FailOpen) or not self._fails_open:
                    raise
        if pause is None:
            return policy.decide(state, candidates, **options)
        return paused_decision(ModelAlone().decide(state, candidates, **options), pause)

    @property
    def _fails_open(self) -> bool:
        return isinstance(self.policy, FailOpen) or isinstance(getattr(self.policy, "policy", None), FailOpen)

    # ------------------------------------------------------------------------------------------ learning

    def learn(
        self,
        decision: Decision | str,
        outcome: float | bool | Feedback | None = None,
        *,
        right: str | None = None,
        source: str = "environment",
        author: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> str:
        """Store the outcome of a decision, now or later, and return its id: `memory.revoke(id)` takes it back.

        A later outcome of the same form, source and author replaces an earlier one; others add up.

        Args:
            decision: a decision, or its id.
            outcome: a reward; or a thumb, True for +1 and False for -1; or typed feedback. Rewards of one task should
                have one scale, such as 0 to 1.
            right: the option that was right, in place of an outcome: it has reward 1, and every other option of the
                decision 0, whichever was executed.
            source: `environment`, `human`, `tests`, ...
            author: the person or program of that source.
            id: the caller's key; the same again is a no-op.

        Raises:
            InputError: neither or both of `outcome` and `right` are given, or the option is none of the decision.
            NotFoundError: no such decision; it may have been erased.
            StoreError: the memory failed.
        """
        if (outcome is None) == (right is None):
            raise InputError(
                "no outcome" if right is None else f"outcome = {excerpt(outcome)} and right = {excerpt(right)}",
                "an outcome is a reward, a thumb or the right option, one of them",
                "Pass 1.0, True or right='...'.",
            )
        decision_id = decision.id if isinstance(decision, Decision) else decision
        if decision_id is None:
            raise InputError(
                "a decision without an id", "only a stored decision is learned from", "Decide by a Decider."
            )
        value: Feedback | float
        if right is not None:
            value = _right_label(self.memory, check_text("decision id", decision_id), right)
        elif isinstance(outcome, bool | np.bool_):
            value = Thumbs(bool(outcome))
        else:
            value = cast(Feedback | float, outcome)
        return self.memory.feedback(decision_id, value, source=source, author=author, id=id)

    def close(self) -> None:
        """Leave the event loop of the model's reader; the memory and the model stay open."""
        self._priors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _right_label(memory: DecisionMemory, decision_id: str, right: str) -> Label:
    """Return the feedback that an option of a stored decision was right.

    Raises:
        InputError: it is none of its options.
        NotFoundError: no such decision.
    """
    episode = memory.get(decision_id)
    steps = episode.steps
    actions = {} if not steps or steps[-1].prior is None else steps[-1].prior
    return Label(stored_action(memory.redacted(check_text("right", right)), actions, episode.task))


def _without_evidence(decision: Decision) -> Decision:
    """Return a decision as the model's own if no stored step took one of its options, but only those of others."""
    if decision.mode != "memory" or decision.kl_nats > _TIE or any(decision.counts.values()):
        return decision
    reason = f"{decision.reason}: the steps took options of other questions"
    return replace(
        decision,
        mode="base",
        reason=reason,
        probs=dict(decision.base_probs),
        advantages=dict.fromkeys(decision.probs, 0.0),
        kl_nats=0.0,
        propensity=decision.base_probs[decision.action],
    )


def _cost(spent: EpisodeCost | None, seconds: float, waited_s: float, decision: Decision) -> EpisodeCost:
    """Return what an episode of one decision cost, without the shadow decision, which only measures."""
    if decision.arm != "control":
        seconds += waited_s
    if decision.shadow is not None:
        seconds -= decision.shadow.took_s
    tokens, usd, before = (None, None, 0.0) if spent is None else (spent.tokens, spent.usd, spent.seconds or 0.0)
    return EpisodeCost(tokens, usd, max(0.0, before + seconds))


def _greedy(decision: Decision, default: str | None) -> Decision:
    """Return a decision with its most probable action, or the default one; memory's shadow takes its own."""
    best = _most_probable(decision.probs)
    shadow = decision.shadow
    if shadow is not None and shadow.probs:
        shadow_default = None if shadow.mode == "memory" else default
        shadow = replace(shadow, action=shadow_default or _most_probable(dict(shadow.probs)))
    action = best if default is None else default
    is_best = decision.probs[action] >= decision.probs[best] - _TIE
    propensity = 1.0 if is_best else decision.probs[action]
    return replace(decision, action=action, propensity=propensity, shadow=shadow)


def _most_probable(probs: Mapping[str, float]) -> str:
    return min(probs, key=lambda action: (-probs[action], action))


def _named(decision: Decision, asked: NamedOptions) -> Decision:
    """Return a decision with its options in place of their actions."""
    option_of = dict(zip(asked.actions, asked.options, strict=True))

    def named(values: Mapping[str, _Value]) -> dict[str, _Value]:
        return {option_of.get(action, action): value for action, value in values.items()}

    prior, shadow = decision.prior, decision.shadow
    if prior is not None:
        bounded = tuple(option_of.get(action, action) for action in prior.bounded)
        prior = replace(prior, logprobs=named(prior.logprobs), bounded=bounded)
    if shadow is not None:
        probs = tuple((option_of.get(action, action), p) for action, p in shadow.probs)
        shadow = replace(shadow, action=option_of.get(shadow.action, shadow.action), probs=probs)
    return replace(
        decision,
        action=option_of.get(decision.action, decision.action),
        probs=named(decision.probs),
        base_probs=named(decision.base_probs),
        logprobs=named(decision.logprobs),
        advantages=named(decision.advantages),
        values=named(decision.values),
        counts=named(decision.counts),
        explored=named(decision.explored),
        estimated_advantages=named(decision.estimated_advantages),
        intervals=named(decision.intervals),
        prior=prior,
        shadow=shadow,
    )
