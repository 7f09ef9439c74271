"""The mode `decisions` of a wrapped client: a policy decides the tool, and the model fills in the call."""

from __future__ import annotations

import copy
import math
import random
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from seasoned.actions import ToolAction
from seasoned.checks import check_instance, check_one_of, check_whole
from seasoned.integrations.clients.tool_evidence import (
    TEXT_ANSWER,
    ToolEvidence,
    expected_calls,
    prior_of_action,
    tool_of,
)
from seasoned.integrations.clients.wires.wire_format import RequestMoment, ToolOptions, WireFormat
from seasoned.llms.priors.votes import smoothed_logprobs
from seasoned.policies.calibration.prior_watch import PriorWatch
from seasoned.policies.jitrl import JitRL
from seasoned.protocols import EvidenceSource
from seasoned.types import Decision, Evidence, EvidenceQuery, Prior
from seasoned.types.lift_records import Shadow

__all__ = ["CallDecisions", "ToolChoice", "actions_of", "is_known", "options_to_decide", "own_share"]

_DEFAULT_VOTES = 4
_LEAST_NATS = 0.05
_MOST_MODELS = 1000
Method = Literal["auto", "label", "votes"]


def is_known(policy: JitRL, moment: RequestMoment, task: str | None) -> bool:
    """Return whether a policy's memory has enough steps at states like this one to shift a choice.

    It has not if it may spend less than 0.05 nats: then no probability would change by more than 0.16 (Pinsker).
    """
    evidence = policy.evidence(moment.state, task=task or moment.task)
    limit = policy.kl_limit(evidence)
    enough = evidence.n_steps - evidence.n_shown >= max(1, policy.settings.min_neighbors)
    return enough and (limit is None or limit >= _LEAST_NATS)


def own_share(base: Mapping[str, float], shifted: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Return how often the model's own answer can be used, and from what is drawn otherwise.

    A shifted policy q is a mixture of the model's own p and a rest r: `q = s p + (1 - s) r`, with the largest share
    `s = min q / p`. So with probability s the model answers as it would, and only else an action is demanded of it.

    Args:
        base, shifted: probabilities of the same actions.

    Example:
        >>> own_share({"restart": 0.8, "rollback": 0.2}, {"restart": 0.4, "rollback": 0.6})
        (0.5, {'restart': 0.0, 'rollback': 1.0})
    """
    share = min([1.0, *(shifted[action] / p for action, p in base.items() if p > 0.0)])
    left = {action: max(0.0, shifted[action] - share * p) for action, p in base.items()}
    total = math.fsum(left.values())
    return share, {action: mass / total if total > 0.0 else base[action] for action, mass in left.items()}


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """What memory makes of a model's policy over tools.

    Args:
        tool: demanded of the model; None: it answers as it would.
        prior: the model's own logprobs, by the call of each tool that was expected.
        propensities: the probability of each, however the answer comes about.
    """

    tool: str | None
    prior: Mapping[str, float]
    propensities: Mapping[str, float]


class CallDecisions:
    """Decides which tool is called next by the closed form of JitRL, and demands that call of the model.

    The tool is chosen; the arguments belong to the case at hand, and the model writes them. Until then a tool is
    compared as the call that is likely here (`expected_calls`). An answer without a call is one option more, where a
    request allows one. The prior is the model's own policy over these, read by one
    request of one token that asks for a letter at the end of the agent's own conversation (`label`). Where the endpoint
    returns no logprobs, it is the counts of n answers to the agent's own request (`votes`): one of them is used as it
    is, if it calls the decided tool. Otherwise the request is sent with this `tool_choice`.

    Memory shifts this policy, and only the difference is demanded (`own_share`): where it has little to say, the model
    answers as it would. Nothing is asked where memory knows too little about the state; the request leaves as it is. So
    does one that leaves no choice among two actions or more, that has tools which run
    at the provider, or that adds to a conversation which the provider stores.

    Args:
        policy: shifts the prior.
        method: `label`, `votes`, or `auto`: votes for a model once its labels could not be read. The policy that is
            read by label can differ from what the agent does: compare them (`seasoned memory prior`).
        n: the answers of the method `votes`.
        seed: of the draws; None: they differ each time.

    Raises:
        InputError: an argument breaks its rule.

    Example:
        >>> from seasoned import JitRL, Memory
        >>> with Memory.open(":memory:") as memory:
        ...     CallDecisions(JitRL(memory)).method
        'auto'
    """

    name = "decisions"

    def __init__(
        self, policy: JitRL, *, method: Method = "auto", n: int = _DEFAULT_VOTES, seed: int | None = None
    ) -> None:
        self.policy = copy.copy(check_instance("policy", policy, JitRL, next_step="Pass JitRL(memory)."))
        self._prior_watch = PriorWatch(policy.memory, key=tool_of)
        self.policy.memory = ToolEvidence(policy.memory)
        self.method: Method = check_one_of("method", method, ("auto", "label", "votes"))
        self.n = check_whole("n", n, 2)
        self._unreadable: OrderedDict[str, None] = OrderedDict()
        self._random = random.Random(seed)  # noqa: S311 - draws from a policy, no secret

    def knows(self, moment: RequestMoment, task: str | None) -> bool:
        """Return whether memory has something to say about a moment."""
        return is_known(self.policy, moment, task)

    def reads_labels(self, model: str) -> bool:
        """Return whether to ask this model for a letter."""
        return self.method != "votes" and model not in self._unreadable

    @property
    def reads_votes(self) -> bool:
        """Whether to ask a model n times that is not asked for a letter."""
        return self.method != "label"

    def without_labels(self, model: str) -> None:
        """Ask this model for no letters from now on: its endpoint returns no logprobs, or of no letter."""
        self._unreadable[model] = None
        while len(self._unreadable) > _MOST_MODELS:  # a client names them
            self._unreadable.popitem(last=False)

    def voted(self, tools: Sequence[str], options: ToolOptions) -> Prior | None:
        """Return the prior by the tools that n answers called; None if none of them was offered.

        Args:
            tools: of each answer; `TEXT_ANSWER` for one without a call.
            options: of the request.
        """
        counts = Counter(tools)
        names = actions_of(options) if options.can_force else [name for name in actions_of(options) if counts[name]]
        if not any(counts[name] for name in names):
            return None
        logprobs = smoothed_logprobs([counts[name] for name in names])
        return Prior(dict(zip(names, logprobs, strict=True)), f"votes, n={len(tools)}")

    def choose(self, prior: Prior, moment: RequestMoment, task: str | None) -> ToolChoice:
        """Return the choice among the tools of a prior, each as the call that is likely here (`expected_calls`).

        A prior that departs widely from the tools that the agent called is logged first (`PriorWatch`).
        """
        as_calls = {tool if tool == TEXT_ANSWER else ToolAction(tool, {}).text: prior[tool] for tool in prior}
        self._prior_watch.check(Prior(as_calls, prior.method), moment.state, task or moment.task)
        calls = self._calls(prior, moment, task)
        candidates = {calls[tool]: logprob for tool, logprob in prior.items()}
        decision = self._decision(candidates, moment, task, seed=self._random.getrandbits(32))
        tool_by_call = {call: tool for tool, call in calls.items()}
        if decision.mode == "base":
            return ToolChoice(None, candidates, decision.base_probs)
        if self.policy.settings.selection == "argmax":
            return ToolChoice(tool_by_call[decision.action], candidates, {decision.action: 1.0})
        share, rest = own_share(decision.base_probs, decision.probs)
        if self._random.random() < share:
            return ToolChoice(None, candidates, decision.probs)
        [call] = self._random.choices(list(rest), list(rest.values()))
        return ToolChoice(tool_by_call[call], candidates, decision.probs)

    def clear_choice(self, options: ToolOptions, moment: RequestMoment, task: str | None) -> ToolChoice | None:
        """Return the tool that memory shows to be clearly better than the others here, without asking the model.

        The prior is then what was called in states like this one: the counts of the stored steps, by tool. It is not
        the policy of the model, so that nothing is drawn from it: a tool is demanded for certain, or none. It is the
        most likely one after memory, if the 95 % interval of its advantage lies above 0, as that of a tool that was
        never tried does not. None otherwise, and where a request may not demand a tool.

        Args:
            options: of the request.
            moment: of the request.
            task: of the episode, if it is known.
        """
        policy = copy.copy(self.policy)
        policy.memory = _ReadOnce(policy.memory)
        if not options.can_force or not is_known(policy, moment, task):
            return None
        evidence = policy.evidence(moment.state, task=task or moment.task)
        taken = zip(evidence.actions, evidence.step_counts.astype(int).tolist(), strict=True)
        prior = self.voted([tool for action, n_steps in taken for tool in [tool_of(action)] * n_steps], options)
        if prior is None:
            return None
        calls = expected_calls(prior, evidence, moment.state)
        candidates = {calls[tool]: logprob for tool, logprob in prior.items()}
        decision = policy.decide(moment.state, candidates, task=task or moment.task, seed=0)
        tool = max(calls, key=lambda one: decision.probs[calls[one]])
        interval = decision.intervals.get(calls[tool])
        if decision.mode != "memory" or interval is None or interval[0] <= 0.0:
            return None
        return ToolChoice(tool, decision.logprobs, {calls[tool]: 1.0})

    def shadow(
        self, action: str, *, is_call: bool, options: ToolOptions, moment: RequestMoment, task: str | None
    ) -> Shadow | None:
        """Return what would have been decided where the model answered alone; None: the request would leave unchanged.

        The model was not asked for its policy there, so that its one answer is its only vote.

        Args:
            action: of the answer.
            is_call: whether the answer calls a tool.
            options: of the request.
            moment: of the request.
            task: of the episode, if it is known.
        """
        tool = tool_of(action) if is_call else TEXT_ANSWER
        prior = self.voted([tool], options) if self.knows(moment, task) else None
        if prior is None:
            return None
        calls = self._calls(prior, moment, task)
        decision = self._decision({calls[one]: logprob for one, logprob in prior.items()}, moment, task, seed=None)
        made = action if is_call else TEXT_ANSWER
        chosen = made if decision.action == calls[tool] else decision.action
        probs = prior_of_action(made, decision.probs) or decision.probs
        return Shadow.of(chosen, probs, "memory" if decision.mode == "memory" else "base")

    def _calls(self, prior: Mapping[str, float], moment: RequestMoment, task: str | None) -> dict[str, str]:
        evidence = self.policy.evidence(moment.state, task=task or moment.task)
        return expected_calls(prior, evidence, moment.state)

    def _decision(
        self, candidates: Mapping[str, float], moment: RequestMoment, task: str | None, seed: int | None
    ) -> Decision:
        return self.policy.decide(moment.state, candidates, task=task or moment.task, seed=seed)


class _ReadOnce:
    """A source of evidence for one choice: a query that it repeats is answered as before, without another search."""

    def __init__(self, memory: EvidenceSource) -> None:
        self._memory = memory
        self._read: dict[EvidenceQuery, Evidence] = {}

    def evidence(self, query: EvidenceQuery) -> Evidence:
        """Return the evidence from the neighbours of a state; see `EvidenceSource`."""
        if query not in self._read:
            self._read[query] = self._memory.evidence(query)
        return self._read[query]


def options_to_decide(wire: WireFormat, body: Mapping[str, Any]) -> ToolOptions | None:
    """Return what there is to decide in a request; None where it leaves no choice, or may not be sent again."""
    options = wire.tool_options(body)
    return None if options is None or len(actions_of(options)) == 1 or not wire.may_repeat(body) else options


def actions_of(options: ToolOptions) -> list[str]:
    """Return what may be done: the names of the tools, and `TEXT_ANSWER` where an answer may be without a call."""
    return [*options.tools, TEXT_ANSWER] if options.may_answer else list(options.tools)
