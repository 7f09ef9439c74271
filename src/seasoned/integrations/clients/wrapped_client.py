"""`seasoned.wrap`: a configured client of OpenAI or Anthropic, recording into a memory."""

from __future__ import annotations

import os
from typing import TypeVar

from seasoned.errors import InputError, excerpt
from seasoned.integrations.clients.call_decisions import CallDecisions
from seasoned.integrations.clients.call_holdout import CallHoldout
from seasoned.integrations.clients.call_modes import CallVotes
from seasoned.integrations.clients.call_settings import CallSettings, Mode, OnError, call_settings
from seasoned.integrations.clients.http_client import observed_http_client
from seasoned.integrations.clients.planned_call import WrappedCall
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.clients.wires.messages_wire import MessagesWire
from seasoned.integrations.clients.wires.responses_wire import ResponsesWire
from seasoned.integrations.clients.wires.wire_format import WireFormat
from seasoned.integrations.rewards.reward_rules import RewardRules
from seasoned.memory import Memory
from seasoned.policies.advice import Advisor
from seasoned.policies.examples.retrieval import Examples

__all__ = ["WIRE_FORMATS", "Mode", "wrap"]

Client = TypeVar("Client")
WIRE_FORMATS: tuple[WireFormat, ...] = (ChatWire(), ResponsesWire(), MessagesWire())


def wrap(
    client: Client,
    memory: Memory,
    *,
    mode: Mode | Examples | Advisor | CallVotes | CallDecisions = "observe",
    holdout: bool | CallHoldout = False,
    task: str | None = None,
    awaits_feedback: bool = True,
    timeout_s: float = 0.2,
    on_error: OnError = "log",
    rewards: str | os.PathLike[str] | RewardRules | None = None,
) -> Client:
    """Return a client that does what `client` does, and records its model calls in a memory.

    `client` is an `openai` client (`OpenAI`, `AzureOpenAI`, `AsyncOpenAI`, ...) or an `anthropic` one. The result has
    the same type, configuration and connections; `client` itself is not changed. A client that is wrapped already gets
    the new memory and mode in place of the old ones. Chat Completions, Responses and
    Messages are recorded, by every method that calls them (`create`, `parse`, `stream`, `with_raw_response`,
    `with_options`, `beta`). Other calls pass through.

    An episode goes from a user's message to the answer without calls, or over a `with seasoned.episode(...)` block. It
    also ends at the user's next message, at feedback, when the memory is closed, and at the end of the process (what is
    open then is stored as truncated). Its states and actions are those that `seasoned memory import` stores for the
    same messages. `memory.feedback(response.id, reward=1.0)` judges it. Episodes are stored in the background.

    A mode other than `observe` builds its indexes here, which takes seconds in a large memory, so that no call does.

    Args:
        client: a configured client.
        memory: an open memory.
        mode: what memory does with a request. `observe`: nothing, the request leaves unchanged. `examples`: the best
            past steps are appended to its last message of a user or a tool; `advice`: lines about what was clearly
            better or worse. `votes`: where memory knows the state, the model is asked four times, and memory chooses
            the answer (`CallVotes`). `decisions`: there the model is asked for its policy over the tools, memory
            decides which one is called, and the model fills in the call (`CallDecisions`). An `Examples`, an `Advisor`,
            a `CallVotes` or a `CallDecisions` sets their options. A request that memory changed and the endpoint
            refuses is sent as the agent made it.
        holdout: whether a share of the episodes gets no memory, so that `memory.lift()` says what it brings
            (`seasoned.Holdout`). An episode is assigned, and its arm stored, before its first call. `CallHoldout` sets
            the bounds of an episode's outcome, which are 0 and 1 otherwise.
        task: of the episodes; None: what the user said at the beginning of the episode.
        awaits_feedback: whether an episode is no evidence before someone has judged it.
        timeout_s: the longest that a call waits for memory at a time, in seconds, however the memory was opened: in
            `votes` and `decisions` both before and after the model answers, and for the arm of a holdout. Then it goes
            on without, and so do the calls after it until memory answers again (`seasoned.policies.MemoryFallback`,
            which logs the change once). Feedback is not bounded by it, but by the `timeout_s` of the memory. Episodes
            wait in this process while the store fails.
        on_error: an error of this package is logged (`log`, by the logger `seasoned.clients`), and the call is made
            without memory; or it is raised (`raise`), at the next call if it arose in the background.
        rewards: rules that reward what tool results show, stored as feedback with the episode: a TOML file, `default`
            for the shipped ones, or what `seasoned.integrations.rewards.load_rules` returned. None: there are none.

    Raises:
        InputError: an argument breaks a rule.

    Example:
        >>> import openai, seasoned
        >>> with seasoned.Memory.open(":memory:") as memory:
        ...     client = seasoned.wrap(openai.OpenAI(api_key="..."), memory)
        ...     type(client).__name__
        'OpenAI'
    """
    settings = call_settings(
        memory,
        "wrap",
        mode=mode,
        holdout=holdout,
        task=task,
        awaits_feedback=awaits_feedback,
        timeout_s=timeout_s,
        on_error=on_error,
        rewards=rewards,
    )
    http_client = getattr(client, "_client", None)
    copied = getattr(client, "with_options", None)
    if copied is None or not hasattr(http_client, "send") or not hasattr(http_client, "build_request"):
        raise InputError(
            f"client = {excerpt(client)}",
            "a client is one of the packages openai or anthropic",
            "Pass OpenAI() or Anthropic(), for example.",
        )
    settings.warm_up()
    wrapped: Client = copied(http_client=observed_http_client(http_client, _Observer(settings)))
    return wrapped


class _Observer:
    """Plans the calls of one wrapped client."""

    def __init__(self, settings: CallSettings) -> None:
        self._settings = settings

    @property
    def reads_memory(self) -> bool:
        """Whether memory is asked before a call."""
        return self._settings.mode is not None

    def plan(self, method: str, path: str, body: bytes) -> WrappedCall | None:
        """Return the call that a request makes; None if it is none of a model."""
        wire = next((one for one in WIRE_FORMATS if path.endswith(one.path)), None)
        if method != "POST" or wire is None:
            return None
        own = self._settings
        return WrappedCall(own.guard, own.recorder, own.mode, own.arms, wire, body, own.context(own.current_episode()))
