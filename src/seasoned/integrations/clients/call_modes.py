"""Modes of a wrapped client: the texts that memory adds to a request, and the choice among several answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from seasoned.actions import readable_action
from seasoned.checks import check_instance, check_whole
from seasoned.errors import NotFoundError, excerpt
from seasoned.integrations.clients.call_decisions import CallDecisions, is_known
from seasoned.integrations.clients.wires.wire_format import RequestMoment
from seasoned.llms.priors.votes import smoothed_logprobs
from seasoned.memory import Memory
from seasoned.policies.advice import Advisor
from seasoned.policies.examples.query import ExampleQuery
from seasoned.policies.examples.rendering import render
from seasoned.policies.examples.retrieval import Examples
from seasoned.policies.jitrl import JitRL
from seasoned.types import Prior, StepRef

__all__ = ["AdviceText", "CallMode", "CallVotes", "ChosenAnswer", "ExampleText", "PromptText", "Recalled", "warm_up"]

CanCall: TypeAlias = Callable[[str], bool]
"""Whether an action can be an answer to the request: a title for a ticket calls no tool."""

_DEFAULT_VOTES = 4


@dataclass(frozen=True, slots=True)
class Recalled:
    """A text for the prompt, the stored steps that it shows, and the actions that it advises and warns of."""

    text: str
    shown: tuple[StepRef, ...] = ()
    prefer: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()


@runtime_checkable
class PromptText(Protocol):
    """Writes what memory says about a moment."""

    name: str

    def recall(self, moment: RequestMoment, task: str | None, can_call: CanCall) -> Recalled:
        """Return the text for a moment, with actions that are possible there; an empty one without any."""


class ExampleText:
    """The best past steps."""

    name = "examples"

    def __init__(self, examples: Examples) -> None:
        self.examples = examples

    def recall(self, moment: RequestMoment, task: str | None, can_call: CanCall) -> Recalled:
        """Return the examples for a moment, with actions that are possible there."""
        query = ExampleQuery(task or moment.task, observation=moment.state)
        found = [example for example in self.examples.retrieve(query) if can_call(example.action)]
        return Recalled(render(found), tuple(example.place for example in found))


class AdviceText:
    """Lines about actions that were clearly better or worse than others."""

    name = "advice"

    def __init__(self, advisor: Advisor) -> None:
        self._advisor = advisor

    def recall(self, moment: RequestMoment, task: str | None, can_call: CanCall) -> Recalled:
        """Return the advice for a moment, about actions that are possible there."""

        def show(action: str) -> str:
            if not can_call(action):
                raise NotFoundError(excerpt(action), "the request offers its tool", "Leave it out.")
            return readable_action(action)

        advice = self._advisor.advise(moment.state, task=task or moment.task, show=show)
        prefer, avoid = (tuple(one.action for one in lines) for lines in (advice.prefer, advice.avoid))
        return Recalled(advice.text, (), prefer, avoid)


@dataclass(frozen=True, slots=True)
class ChosenAnswer:
    """The answer that is used, with the model's own policy and the probability of its action."""

    index: int
    prior: Mapping[str, float]
    propensities: Mapping[str, float]


class CallVotes:
    """Asks n times, and chooses one of the answers by the closed form of JitRL.

    The answers are grouped by their first action: a canonical call with its arguments; all answers without a call are
    one group. Their counts are the prior, smoothed as `seasoned.llms.VotesReader` does, and memory shifts it. Where
    memory knows too little about the state, one answer is asked for: it is a draw from the model's own policy already.
    At temperature 0 all answers are the same, and memory has nothing to choose from.

    Args:
        policy: shifts the prior.
        n: how many answers are asked for.

    Raises:
        InputError: an argument breaks its rule.

    Example:
        >>> from seasoned import JitRL, Memory
        >>> with Memory.open(":memory:") as memory:
        ...     CallVotes(JitRL(memory)).n
        4
    """

    name = "votes"

    def __init__(self, policy: JitRL, n: int = _DEFAULT_VOTES) -> None:
        self.policy = check_instance("policy", policy, JitRL, next_step="Pass JitRL(memory).")
        self.n = check_whole("n", n, 2)

    def knows(self, moment: RequestMoment, task: str | None) -> bool:
        """Return whether memory has something to say about a moment, so that several answers are asked for."""
        return is_known(self.policy, moment, task)

    def choose(self, actions: Sequence[str | None], moment: RequestMoment, task: str | None) -> ChosenAnswer | None:
        """Return the choice among answers by their first actions; None if there is no action.

        Args:
            actions: of each answer; None if it has none.
            moment: the moment of the request.
            task: of the episode, if it is known.
        """
        counts = Counter(action for action in actions if action is not None)
        if not counts:
            return None
        logprobs = smoothed_logprobs(list(counts.values()))
        prior = Prior(dict(zip(counts, logprobs, strict=True)), f"votes, n={len(actions)}")
        decision = self.policy.decide(moment.state, prior, task=task or moment.task)
        chosen = {} if decision.propensity is None else {decision.action: decision.propensity}
        return ChosenAnswer(actions.index(decision.action), prior, chosen)


CallMode: TypeAlias = PromptText | CallVotes | CallDecisions
"""What memory does with a call."""


def warm_up(mode: CallMode | None, memory: Memory) -> None:
    """Ask once, so that the indexes are built before the first call of an agent: seconds in a large memory.

    It asks about a stored state, since one without any known term is answered without most of them.
    """
    states = [step.state for episode in memory.episodes(last=1) for step in episode.steps] if mode is not None else []
    moment = RequestMoment(states[0] if states else "the first call", "the first call")
    if isinstance(mode, CallVotes | CallDecisions):
        mode.knows(moment, None)
    elif isinstance(mode, ExampleText):
        mode.examples.build_indexes()
    elif mode is not None:
        mode.recall(moment, None, lambda action: True)
