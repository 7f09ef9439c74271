"""Language models: requests, completions and usage, and the protocols of models and of readers of their policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from seasoned.checks import check_instance
from seasoned.protocols.chat_context import ChatContext
from seasoned.protocols.chat_messages import Message, Tool, ToolCall
from seasoned.types import Prior

__all__ = [
    "LLM",
    "Capabilities",
    "Chooser",
    "Completion",
    "CompletionRequest",
    "ContextReader",
    "ModelChoice",
    "PriorReader",
    "PriorReading",
    "Proposer",
    "StreamingLLM",
    "TokenIds",
    "TokenLogprob",
    "Usage",
    "check_model",
]


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One exact request; two equal requests may share one cached answer.

    Args:
        messages: the conversation.
        max_tokens: at most this many new tokens.
        temperature: 0 is greedy; above 0, other sampling settings (top-p and such) are off where the endpoint allows.
        top_logprobs: how many alternatives to return per token; 0 for none.
        logit_bias: token id to added logit (nats).
        seed: for sampling, where the endpoint honours it.
        stop: strings that end the answer.
        tools: functions that the model may call.
        tool_choice: `none` for no call, `required` for some call, or the name of the one tool to call; None and `auto`
            leave it to the model.

    Example:
        >>> CompletionRequest((Message("user", "Ready?"),), max_tokens=3).temperature
        0.0
    """

    messages: tuple[Message, ...]
    max_tokens: int = 256
    temperature: float = 0.0
    top_logprobs: int = 0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    tool_choice: str | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token's text and its logprob, in nats."""

    token: str
    logprob: float


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of model calls. Usages add up with `+`.

    An answer from the cache costs nothing now. It counts in `cached_calls`, and its original cost in `cached_tokens`
    and `cached_usd`, so that a comparison of total costs does not depend on the cache.

    Args:
        calls, prompt_tokens, completion_tokens, latency_s: of requests sent to the endpoint.
        cost_usd: of requests sent to the endpoint; None when the price is unknown, never 0 for unknown.
        cached_calls, cached_tokens: of answers from the cache; prompt and new tokens together.
        cached_usd: the original cost of answers from the cache; None when the price is unknown.
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
        """Prompt and new tokens of every call, cached answers included."""
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
    """The abilities of an endpoint, found by probing it. None: not probed, or the probe gave no result.

    Args:
        logprobs: it returns token logprobs.
        max_top_logprobs: the largest number of alternatives per token that a probe got.
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
    """A model's policy over named candidates, and the cost of reading it."""

    prior: Prior
    usage: Usage


@runtime_checkable
class PriorReader(Protocol):
    """Reads a model's own policy over named candidates."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        """Return the model's policy over `candidates` in `state`."""
        ...


@runtime_checkable
class ContextReader(PriorReader, Protocol):
    """Reads a model's own policy in the agent's own conversation, where that is given."""

    async def read(
        self, state: str, task: str, candidates: Sequence[str], *, context: ChatContext | None = None
    ) -> PriorReading:
        """Return the model's policy over `candidates` in `state`, or at the end of `context`."""
        ...


@runtime_checkable
class Proposer(Protocol):
    """Asks a model for actions, where no candidates are named."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def propose(self, state: str, task: str) -> PriorReading:
        """Return the model's policy over the actions that it proposed."""
        ...


@dataclass(frozen=True)
class ModelChoice:
    """An action that was sampled inside the server.

    Args:
        action: the candidate whose letter was sampled.
        usage: the cost of the call.
        shifts: nats added to each candidate.
        prior: the model's policy before the shift, where the endpoint returned logprobs; else None.
        probs: the policy that `action` was sampled from, where the prior is known; else None.
    """

    action: str
    usage: Usage
    shifts: Mapping[str, float]
    prior: Prior | None = None
    probs: Mapping[str, float] | None = None


@runtime_checkable
class Chooser(Protocol):
    """Samples one of named candidates inside the server, from the model's policy shifted by a logit bias."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def choose(
        self,
        state: str,
        task: str,
        candidates: Sequence[str],
        shifts: Mapping[str, float],
        seed: int | None = None,
        *,
        context: ChatContext | None = None,
    ) -> ModelChoice:
        """Return a candidate sampled from softmax(log prior + shifts), shifts in nats; asked in `context` if given."""
        ...


@runtime_checkable
class LLM(Protocol):
    """A chat model."""

    @property
    def name(self) -> str:
        """The model and its address; part of the completion cache's key."""
        ...

    async def capabilities(self) -> Capabilities:
        """Return the abilities of the endpoint; probed once."""
        ...

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the answer to one request."""
        ...

    async def aclose(self) -> None:
        """Release connections and memory."""
        ...


@runtime_checkable
class StreamingLLM(LLM, Protocol):
    """A chat model that passes its answer on while it comes."""

    async def stream(self, request: CompletionRequest, show: Callable[[str], object]) -> Completion:
        """Return the answer to one request; `show` gets each new piece of its text as it comes."""
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
    return check_instance("llm", llm, LLM, "llm must be a model (an LLM)", "Open one: seasoned.llms.open_llm('local').")


@runtime_checkable
class TokenIds(Protocol):
    """A model that returns the token ids of a text, which `logit_bias` needs."""

    async def token_ids(self, text: str) -> tuple[int, ...]:
        """Return the token ids of `text`, without the tokens that begin or end a text."""
        ...
