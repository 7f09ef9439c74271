"""Language models, and what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_instance
from seasoned.types import Prior

__all__ = [
    "LLM",
    "Capabilities",
    "Chooser",
    "Completion",
    "CompletionRequest",
    "Embedder",
    "Message",
    "ModelChoice",
    "PriorReader",
    "PriorReading",
    "Proposer",
    "TokenIds",
    "TokenLogprob",
    "Tool",
    "ToolCall",
    "Usage",
    "check_model",
]


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
    """What calls cost. Usages add up with `+`.

    An answer from the cache costs nothing now: it counts in `cached_calls`, and what it cost when it was asked in
    `cached_tokens` and `cached_usd`. So a comparison by what the calls *take* is the same with a cache and without.

    Args:
        calls, prompt_tokens, completion_tokens, latency_s: asked now.
        cost_usd: asked now; None when the price is unknown, never 0 for unknown.
        cached_calls, cached_tokens: answered from the cache; prompt and new tokens together.
        cached_usd: what those cost when they were asked; None when the price is unknown.
    """

    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float = 0.0
    cost_usd: float | None = 0.0
    cached_tokens: int = 0
    cached_usd: float | None = 0.0

    @property
    def tokens(self) -> int:
        """Prompt and new tokens of every call, those from the cache included."""
        return self.prompt_tokens + self.completion_tokens + self.cached_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.cached_calls + other.cached_calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.latency_s + other.latency_s,
            _sum_known(self.cost_usd, other.cost_usd),
            self.cached_tokens + other.cached_tokens,
            _sum_known(self.cached_usd, other.cached_usd),
        )


def _sum_known(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


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
class Proposer(Protocol):
    """Asks a model for actions of its own, where none are named."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def propose(self, state: str, task: str) -> PriorReading:
        """Return the model's policy over the actions that it named itself."""
        ...


@dataclass(frozen=True)
class ModelChoice:
    """An action that was chosen inside the server.

    Args:
        action: the candidate whose letter was drawn.
        usage: what it cost.
        shifts: nats added to each candidate.
        prior: the model's policy before the shift, where the endpoint returned logprobs; else None.
        probs: the policy that `action` was drawn from, where the prior is known; else None.
    """

    action: str
    usage: Usage
    shifts: Mapping[str, float]
    prior: Prior | None = None
    probs: Mapping[str, float] | None = None


@runtime_checkable
class Chooser(Protocol):
    """Has the model choose among named candidates, its policy shifted inside the server."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def choose(
        self, state: str, task: str, candidates: Sequence[str], shifts: Mapping[str, float], seed: int | None = None
    ) -> ModelChoice:
        """Return a candidate drawn from softmax(log prior + shifts), shifts in nats."""
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


def check_model(llm: object) -> LLM:
    """Return `llm` if it is a model.

    Raises:
        InputError: it is something else.

    Example:
        >>> from seasoned.llms import ScriptedLLM
        >>> check_model(ScriptedLLM([])).name
        'scripted'
    """
    return check_instance("llm", llm, LLM, "llm must be a model (an LLM)", "Open one: seasoned.llms.open_llm('local').")  # type: ignore[type-abstract]


@runtime_checkable
class TokenIds(Protocol):
    """A model that can say how it spells a text in tokens; what `logit_bias` needs."""

    async def token_ids(self, text: str) -> tuple[int, ...]:
        """Return the ids of the tokens that spell `text`, without any that begin or end a text."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors whose cosine is the likeness of what they mean.

    Synchronous, unlike other calls to a model: retrieval is, and a text that was embedded once is read from a file.
    Where a loop must not wait, call it in a thread: `asyncio.to_thread(embedder.embed, texts)`.
    """

    @property
    def identity(self) -> str:
        """Names the model and everything that changes a vector, not where it runs; stored with the vectors."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of a vector; finding it out may take a call."""
        ...

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a text, in their order: shape (n, dimensions), finite; safe from any thread."""
        ...
