"""`seasoned.wrap`: a configured client of OpenAI or Anthropic, recording into a memory."""

from __future__ import annotations

import os
from typing import Literal, TypeVar, get_args

from seasoned.checks import check_flag, check_instance, check_number, check_one_of, check_text
from seasoned.errors import InputError, excerpt
from seasoned.integrations.clients.call_decisions import CallDecisions
from seasoned.integrations.clients.call_holdout import CallArms, CallHoldout
from seasoned.integrations.clients.call_modes import AdviceText, CallMode, CallVotes, ExampleText, warm_up
from seasoned.integrations.clients.call_recorder import CallRecorder, recorder_of
from seasoned.integrations.clients.conversations import CallContext
from seasoned.integrations.clients.episode_scope import current_episode
from seasoned.integrations.clients.http_client import observed_http_client
from seasoned.integrations.clients.planned_call import CallGuard, WrappedCall
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.clients.wires.messages_wire import MessagesWire
from seasoned.integrations.clients.wires.responses_wire import ResponsesWire
from seasoned.integrations.clients.wires.wire_format import WireFormat
from seasoned.integrations.rewards.reward_rules import RewardRules
from seasoned.integrations.rewards.rules_file import load_rules
from seasoned.memory import Memory
from seasoned.policies.advice import Advisor
from seasoned.policies.examples.retrieval import Examples
from seasoned.policies.jitrl import JitRL

__all__ = ["WIRE_FORMATS", "Mode", "wrap"]

Client = TypeVar("Client")
Mode = Literal["observe", "examples", "advice", "votes", "decisions"]
OnError = Literal["log", "raise"]
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
    check_instance("memory", memory, Memory, next_step='Pass Memory.open("agent.db").')
    if task is not None:
        check_text("task", task)
    check_flag("awaits_feedback", awaits_feedback)
    check_number("timeout_s", timeout_s, above=0.0, next_step="Pass seconds, such as 0.2.")
    check_one_of("on_error", on_error, get_args(OnError))
    rules = rewards if rewards is None or isinstance(rewards, RewardRules) else load_rules(rewards)
    http_client = getattr(client, "_client", None)
    copied = getattr(client, "with_options", None)
    if copied is None or not hasattr(http_client, "send") or not hasattr(http_client, "build_request"):
        raise InputError(
            f"client = {excerpt(client)}",
            "a client is one of the packages openai or anthropic",
            "Pass OpenAI() or Anthropic(), for example.",
        )
    recorder, chosen = recorder_of(memory), _mode(mode, memory)
    arms = _arms(holdout, chosen, memory)
    guard = CallGuard(recorder, timeout_s, raises=on_error == "raise")
    guard.run(lambda: warm_up(chosen, memory))
    observer = _Observer(recorder, guard, chosen, arms, task, awaits_feedback, rules)
    wrapped: Client = copied(http_client=observed_http_client(http_client, observer))
    return wrapped


def _arms(holdout: bool | CallHoldout, mode: CallMode | None, memory: Memory) -> CallArms | None:
    """Return what assigns episodes to memory or to the control group; None: all get memory."""
    if holdout is False:
        return None
    given = CallHoldout() if holdout is True else holdout
    settings = check_instance("holdout", given, CallHoldout, next_step="Pass True, or CallHoldout(bounds=(-1.0, 1.0)).")
    if mode is None:
        raise InputError(
            "holdout in the mode observe",
            "a holdout leaves memory out of some episodes, and this mode leaves it out of all",
            'Pass mode="examples", for example.',
        )
    return CallArms(settings, mode, memory)


def _mode(mode: object, memory: Memory) -> CallMode | None:
    """Return what a mode does with a call; None: nothing."""
    if isinstance(mode, CallVotes | CallDecisions):
        return mode
    if isinstance(mode, Examples):
        return ExampleText(mode)
    if isinstance(mode, Advisor):
        return AdviceText(mode)
    known = check_one_of("mode", mode, get_args(Mode))
    if known == "examples":
        return ExampleText(Examples(memory))
    if known == "votes":
        return CallVotes(JitRL(memory))
    if known == "decisions":
        return CallDecisions(JitRL(memory))
    return AdviceText(Advisor(memory)) if known == "advice" else None


class _Observer:
    """Plans the calls of one wrapped client."""

    def __init__(
        self,
        recorder: CallRecorder,
        guard: CallGuard,
        mode: CallMode | None,
        arms: CallArms | None,
        task: str | None,
        awaits_feedback: bool,
        rewards: RewardRules | None,
    ) -> None:
        self._recorder, self._guard = recorder, guard
        self._mode, self._arms = mode, arms
        self._task, self._awaits_feedback, self._rewards = task, awaits_feedback, rewards

    @property
    def reads_memory(self) -> bool:
        """Whether memory is asked before a call."""
        return self._mode is not None

    def plan(self, method: str, path: str, body: bytes) -> WrappedCall | None:
        """Return the call that a request makes; None if it is none of a model."""
        wire = next((one for one in WIRE_FORMATS if path.endswith(one.path)), None)
        if method != "POST" or wire is None:
            return None
        scope = current_episode()
        if scope is not None and self._recorder not in scope.listeners:
            scope.listeners.append(self._recorder)
        name = "observe" if self._mode is None else self._mode.name
        context = CallContext(scope, self._task, self._awaits_feedback, f"wrap:{name}", rewards=self._rewards)
        return WrappedCall(self._guard, self._recorder, self._mode, self._arms, wire, body, context)
