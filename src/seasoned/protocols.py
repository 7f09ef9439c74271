"""What the parts are to each other. Environment and model calls are async; everything else is synchronous."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from seasoned.types import Backup, Decision, Episode, Evidence, Prior

__all__ = [
    "LLM",
    "Admissible",
    "Capabilities",
    "Completion",
    "CompletionRequest",
    "Environment",
    "EvidenceSource",
    "Judge",
    "Judgement",
    "Message",
    "ModelJudge",
    "Observation",
    "Policy",
    "PriorReader",
    "PriorReading",
    "StateEncoder",
    "TokenIds",
    "TokenLogprob",
    "Tool",
    "ToolCall",
    "Usage",
]

Admissible = Collection[str] | Callable[[str], bool] | Literal["any"] | None
"""Which actions may be taken now. None: the candidates are all there is. A collection, a predicate or "any" lets memory
add the actions it has seen, where they pass."""


@runtime_checkable
class StateEncoder(Protocol):
    """Turns a state's text into the feature set that similarity compares. Deterministic, local, no model call."""

    @property
    def identity(self) -> str:
        """Names the encoder and every setting that changes a feature; stored with each namespace."""
        ...

    def features(self, state: str) -> frozenset[str]:
        """Return the feature set of `state`."""
        ...


@runtime_checkable
class EvidenceSource(Protocol):
    """What a policy asks of a memory."""

    def evidence(
        self,
        state: str,
        *,
        k: int,
        unit: Literal["steps", "states"],
        threshold: float,
        gamma: float | None,
        similarity_power: float = 0.0,
        decay: float = 1.0,
        exclude_task: str | None = None,
        backup: Backup | None = None,
    ) -> Evidence:
        """Return what is known about the `k` steps (or distinct states) most like `state`.

        With `backup` the totals are of values backed up through the memory's graph.
        """
        ...


@runtime_checkable
class Policy(Protocol):
    """Chooses an action from the model's own logprobs over candidates."""

    @property
    def name(self) -> str:
        """Recorded with each decision and episode."""
        ...

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
        """Return a decision with every number that led to it."""
        ...


@runtime_checkable
class Judge(Protocol):
    """Scores the steps of a finished episode."""

    @property
    def source(self) -> str:
        """Recorded with every reward it gives."""
        ...

    def score(self, episode: Episode) -> Mapping[int, float]:
        """Return rewards by step index, for the steps that it has an opinion on."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said of one finished episode, whole, and what asking it cost.

    Args:
        source: recorded with every reward.
        rewards: by step index, in reward units.
        weights: by step index, in (0, 1]: how much each reward counts; for the same steps.
        votes: by step index, what each vote said, where votes were taken.
        usage: of the model; replies that were refused are in it.
    """

    source: str
    rewards: Mapping[int, float]
    weights: Mapping[int, float]
    votes: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    usage: Usage = field(default_factory=lambda: Usage())


@runtime_checkable
class ModelJudge(Protocol):
    """Scores the steps of a finished episode by asking a model: a judge whose answer is waited for."""

    @property
    def source(self) -> str:
        """Recorded with every reward it gives."""
        ...

    async def judge(self, episode: Episode) -> Judgement:
        """Return the whole judgement; ModelError if there is none, never a part of it."""
        ...


# ---------------------------------------------------------------------------------------------- language models


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call; `parameters` is its JSON schema."""

    name: str
    description: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it: `arguments` is its text, which need not be valid JSON; `id` need not be unique."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One exact request; two equal requests may share one cached answer.

    Args:
        messages: the conversation.
        max_tokens: at most this many new tokens.
        temperature: 0 is greedy; above it nothing else shapes sampling, as far as the endpoint lets it be switched off.
        top_logprobs: how many alternatives to return per token; 0 for none.
        logit_bias: token id to added logit (nats).
        seed: for sampling, where the endpoint honours it.
        stop: strings that end the answer.
        tools: functions that the model may call.
    """

    messages: tuple[Message, ...]
    max_tokens: int = 256
    temperature: float = 0.0
    top_logprobs: int = 0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token's text and its logprob, in nats."""

    token: str
    logprob: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls cost. `cost_usd` is None when the price is unknown, never 0 for unknown. Usages add up with `+`."""

    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float = 0.0
    cost_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            self.calls + other.calls,
            self.cached_calls + other.cached_calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.latency_s + other.latency_s,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer. `top_logprobs[i]` are the alternatives at new token i, most likely first; empty if none were given."""

    text: str
    model: str
    usage: Usage
    finish_reason: str | None = None
    top_logprobs: tuple[tuple[TokenLogprob, ...], ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an endpoint was found to be able to do, by asking it. None: it was not asked, or the answer did not tell.

    Args:
        logprobs: it returns token logprobs.
        max_top_logprobs: how many alternatives a token it returns at most, as far as was probed.
        logit_bias: it honours `logit_bias`.
        biased_logprobs: the logprobs that it returns include the bias.
        samples: it answers at temperature 1.
    """

    logprobs: bool
    max_top_logprobs: int
    logit_bias: bool | None = None
    biased_logprobs: bool | None = None
    samples: bool | None = None

    def __str__(self) -> str:
        known = [f"logprobs, top {self.max_top_logprobs}" if self.logprobs else "no logprobs"]
        if self.logit_bias is not None:
            known.append("logit bias" if self.logit_bias else "no logit bias")
        if self.samples is False:
            known.append("no sampling")
        return ", ".join(known)


@dataclass(frozen=True, slots=True)
class PriorReading:
    """A model's policy over named candidates, and what reading it cost."""

    prior: Prior
    usage: Usage


@runtime_checkable
class PriorReader(Protocol):
    """Asks a model for its own policy over named candidates."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        """Return the model's policy over `candidates` in `state`."""
        ...


@runtime_checkable
class LLM(Protocol):
    """A chat model."""

    @property
    def name(self) -> str:
        """Identifies the model and where it runs; part of the answer cache's key."""
        ...

    async def capabilities(self) -> Capabilities:
        """Return what the endpoint can do; probed once."""
        ...

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the answer to one request."""
        ...

    async def aclose(self) -> None:
        """Release what it holds."""
        ...


@runtime_checkable
class TokenIds(Protocol):
    """A model that can say how it spells a text in tokens; what `logit_bias` needs."""

    async def token_ids(self, text: str) -> tuple[int, ...]:
        """Return the ids of the tokens that spell `text`, without any that begin or end a text."""
        ...


# ---------------------------------------------------------------------------------------------- environments


@dataclass(frozen=True, slots=True)
class Observation:
    """What an environment shows after `reset` or `step`.

    Args:
        state: what the agent sees, as text.
        admissible: the actions that are possible now, or None where the environment cannot say.
        reward: what the last action earned; 0 after reset.
        terminated: the task is over (won, lost, done).
        truncated: a limit cut it off.
        score: the episode's score so far, in the environment's points.
    """

    state: str
    admissible: tuple[str, ...] | None
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    score: float = 0.0


@runtime_checkable
class Environment(Protocol):
    """A task that can be played again and again."""

    @property
    def name(self) -> str:
        """The specification that makes it again, such as `textworld:cooking?seed=3`."""
        ...

    @property
    def task(self) -> str:
        """What is attempted, in words; shown to the model and stored with each episode."""
        ...

    @property
    def max_score(self) -> float | None:
        """The best possible score, where it is known."""
        ...

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode."""
        ...

    async def step(self, action: str) -> Observation:
        """Take an action; EnvError before `reset`, after the end, or for an action that is not admissible."""
        ...

    async def aclose(self) -> None:
        """Release what it holds."""
        ...
