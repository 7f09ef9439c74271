"""Wire formats of model APIs: what is read from requests and answers, whichever client or gateway sent them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from seasoned.actions import tool_name
from seasoned.actions.json_size import MOST_CALL_VALUES, has_more_values
from seasoned.errors import InputError
from seasoned.integrations.conversation import AgentTurn, InputMessage, episode_of
from seasoned.protocols import TokenLogprob, Usage

__all__ = [
    "ModelAnswer",
    "RequestMoment",
    "ToolOptions",
    "WireFormat",
    "WireItem",
    "as_count",
    "as_index",
    "as_name",
    "as_names",
    "as_record",
    "as_records",
    "as_token_logprobs",
    "is_whole_json",
    "one_answer",
    "one_call",
    "without",
]

WireItem = dict[str, Any]
"""A message, or an item of the Responses API."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's answer.

    Args:
        units: the messages or items that a client appends to its list.
        id: of the response, as the provider named it.
        model: that answered.
        has_calls: whether it calls tools, so that the episode goes on.
        is_cut: whether it is incomplete: a limit on tokens, or a stream that broke off.
        is_broken_off: whether its stream ended before the server said so.
        is_refused: whether a filter stopped it.
        tokens: of the prompt and the answer, as the provider counted them; None: it did not say.
    """

    units: tuple[WireItem, ...]
    id: str | None = None
    model: str | None = None
    has_calls: bool = False
    is_cut: bool = False
    is_broken_off: bool = False
    is_refused: bool = False
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class RequestMoment:
    """The moment of a request: the state in which the model acts, and the task as its first user said it."""

    state: str
    task: str


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """What a model may do next.

    Args:
        tools: the names of the tools that it may call.
        may_answer: whether it may answer without a call.
        can_force: whether a request can demand one of these.
    """

    tools: tuple[str, ...]
    may_answer: bool
    can_force: bool = True


class WireFormat(ABC):
    """One model API: how its requests and answers are read, and how a request is changed.

    All methods take parsed JSON as it was sent, which may be malformed: they raise `InputError`, or leave out what
    cannot be read.
    """

    name: ClassVar[str]
    path: ClassVar[str]
    """The end of the address of its calls."""

    @abstractmethod
    def units(self, body: Mapping[str, Any]) -> list[WireItem]:
        """Return the messages or items of a request, without instructions (system prompts)."""

    @abstractmethod
    def answer(self, response: Mapping[str, Any]) -> ModelAnswer:
        """Return the answer of a response. InputError if it has none, or more than one."""

    @abstractmethod
    def streamed(self, events: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        """Return the response that a stream's events make up, and whether the stream was complete."""

    @abstractmethod
    def is_answer(self, unit: WireItem) -> bool:
        """Return whether the agent said this."""

    @abstractmethod
    def is_user_message(self, unit: WireItem) -> bool:
        """Return whether a user said this, and no tool."""

    @abstractmethod
    def call_ids(self, units: Sequence[WireItem]) -> frozenset[str]:
        """Return the ids of the calls in an answer whose results the client sends."""

    @abstractmethod
    def result_ids(self, units: Sequence[WireItem]) -> frozenset[str]:
        """Return the ids of the calls whose results these messages are."""

    @abstractmethod
    def items(
        self, units: Sequence[WireItem], recorded: Sequence[bool]
    ) -> Iterator[tuple[int, InputMessage | AgentTurn]]:
        """Yield what each unit is in a conversation, with the unit's index."""

    @abstractmethod
    def extended(self, body: Mapping[str, Any], text: str) -> dict[str, Any] | None:
        """Return the request with a text at the end of the last message of a user or a tool; None if it has none."""

    @abstractmethod
    def tool_names(self, body: Mapping[str, Any]) -> list[str | None]:
        """Return the names of the tools that are offered, and that the client runs; None for any other tool."""

    def can_call(self, body: Mapping[str, Any], action: str) -> bool:
        """Return whether an action can be an answer to a request: a text, or a call of a tool that it offers."""
        call = tool_name(action) if action.startswith("{") else None
        names = self.tool_names(body)
        return call is None or call in names or None in names or (not names and self.has_tools(body))

    @abstractmethod
    def tool_options(self, body: Mapping[str, Any]) -> ToolOptions | None:
        """Return what the model may do next; None if a request leaves no choice, or one that cannot be named."""

    @abstractmethod
    def with_choice(self, body: Mapping[str, Any], tool: str | None) -> dict[str, Any]:
        """Return the request with the call of one tool demanded; None: with calls forbidden."""

    @abstractmethod
    def question(self, body: Mapping[str, Any], text: str, n_alternatives: int) -> dict[str, Any] | None:
        """Return a request that ends with a question, for one token with its most likely alternatives.

        It has the conversation, the tools and the settings of `body`. None if the API returns no logprobs.
        """

    @abstractmethod
    def first_token(self, response: Mapping[str, Any]) -> tuple[TokenLogprob, ...]:
        """Return the alternatives of the first token of an answer; none if the response has none."""

    @abstractmethod
    def usage(self, response: Mapping[str, Any]) -> Usage:
        """Return what a response cost, as the provider counted it; a response that does not say it is one call."""

    def tokens(self, response: Mapping[str, Any]) -> int | None:
        """Return the tokens of the prompt and the answer, as the provider counted them; None if it does not say."""
        return self.usage(response).tokens or None

    def may_repeat(self, body: Mapping[str, Any]) -> bool:
        """Return whether a request may be sent more than once: the provider stores nothing of its conversation."""
        return True

    def has_tools(self, body: Mapping[str, Any]) -> bool:
        """Return whether tools are offered."""
        return bool(body.get("tools") or body.get("functions"))

    def actions(self, units: Sequence[WireItem]) -> tuple[str, ...]:
        """Return the actions of an answer, as `seasoned memory import` spells them."""
        turns = [item for _, item in self.items(units, [True] * len(units)) if isinstance(item, AgentTurn)]
        return tuple(action for turn in turns for action in turn.actions)

    def moment(self, units: Sequence[WireItem]) -> RequestMoment:
        """Return the moment at which a model answers these messages.

        Raises:
            InputError: there is no message, or one of an unknown kind.
        """
        items = [item for _, item in self.items(units, [False] * len(units))]
        episode, _ = episode_of([*items, AgentTurn(("respond",))])
        return RequestMoment(episode.steps[-1].state, episode.task)


def as_names(values: Iterable[object]) -> frozenset[str]:
    """Return the ids or names among some values."""
    return frozenset(name for name in map(as_name, values) if name is not None)


def as_record(value: object) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_records(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects of a list; none for anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def as_name(value: object) -> str | None:
    """Return an id or a name; None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def as_index(value: object, default: int) -> int:
    """Return an index; the default for anything else."""
    return value if isinstance(value, int) else default


def as_count(value: object) -> int:
    """Return a number of tokens; 0 for anything else."""
    return value if isinstance(value, int) and value > 0 else 0


def one_call(prompt_tokens: object, completion_tokens: object) -> Usage:
    """Return the usage of one call, whose price is not known."""
    return Usage(1, 0, as_count(prompt_tokens), as_count(completion_tokens), 0.0, None)


def as_token_logprobs(value: object) -> tuple[TokenLogprob, ...]:
    """Return the alternatives of a token, as OpenAI's APIs spell them; none for anything else."""
    found = ((one.get("token"), one.get("logprob")) for one in as_records(value))
    return tuple(
        TokenLogprob(token, float(logprob))
        for token, logprob in found
        if isinstance(token, str) and isinstance(logprob, int | float)
    )


def without(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return a request without some of its fields."""
    return {name: value for name, value in body.items() if name not in names}


def is_whole_json(text: object) -> bool:
    """Return whether a text is complete JSON: of a call in a stream that was cut, whether all of it arrived.

    One of more than 200,000 values is none: nobody reads it.
    """
    if not isinstance(text, str) or has_more_values(text, MOST_CALL_VALUES):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def one_answer(n: int) -> None:
    """Refuse a response with several answers: which of them is used is not known.

    Raises:
        InputError: there is not exactly one.
    """
    if n != 1:
        raise InputError(f"a response with {n} answers", "one answer must be the agent's", "Ask for one (n=1).")
