"""One question to the model, asked again once where the reply cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from seasoned.agents.react.agent_result import ModelCall, Purpose
from seasoned.agents.react.agent_settings import AgentSettings
from seasoned.agents.react.episode_trace import EpisodeTrace
from seasoned.errors import ModelAnswerError
from seasoned.protocols import Completion, CompletionRequest, Message, Usage
from seasoned.protocols.thinking_block import after_thinking
from seasoned.states.text_budget import one_line

__all__ = ["ask", "chat_messages", "request_seed"]

_REPLY_CHARS = 300
_PURPOSES: tuple[Purpose, ...] = ("plan", "reason", "act")

T = TypeVar("T")


def request_seed(seed: int | None, step: int, purpose: Purpose, attempt: int = 0) -> int | None:
    """Return the seed of one request: different for each, the same every time, below 2^31; None without a seed.

    Example:
        >>> request_seed(7, 0, "act") == request_seed(7, 0, "act") != request_seed(7, 1, "act")
        True
    """
    if seed is None:
        return None
    return int(np.random.SeedSequence([seed, step, _PURPOSES.index(purpose), attempt]).generate_state(1)[0]) >> 1


def chat_messages(system: str, prompt: str) -> tuple[Message, ...]:
    """Return a conversation of one question; a blank system message is none."""
    asked = Message("user", prompt)
    return (Message("system", system), asked) if system.strip() else (asked,)


async def ask(
    settings: AgentSettings,
    trace: EpisodeTrace,
    purpose: Purpose,
    messages: tuple[Message, ...],
    read: Callable[[Completion], T],
    *,
    seed: int | None,
    step: int,
) -> T:
    """Return what `read` makes of the model's reply.

    A reply that it cannot use is shown to the model once, with the reason; the error says whether it was cut off. What
    was asked and what it cost is in `trace`, whatever comes of it. A request has a seed where the temperature is above
    0.

    Raises:
        ModelAnswerError: the second reply cannot be used either.
        ModelError: the endpoint failed.
    """

    async def once(asked: tuple[Message, ...], attempt: int) -> T:
        request = CompletionRequest(
            asked,
            settings.max_tokens,
            settings.temperature,
            seed=request_seed(seed, step, purpose, attempt) if settings.temperature else None,
            tools=settings.tools if purpose == "act" else (),
        )
        reply: Completion | None = None
        try:
            reply = await settings.llm.complete(request)
            result = read(reply)
        except ModelAnswerError as unusable:
            error = _cut_off(unusable, settings.max_tokens) if _is_cut_off(reply) else unusable
            trace.model_calls.append(ModelCall(purpose, asked, reply, str(error)))
            raise error from unusable.__cause__
        finally:
            trace.spend(purpose, reply.usage if reply is not None else Usage(calls=1, cost_usd=None))
        trace.model_calls.append(ModelCall(purpose, asked, reply))
        return result

    try:
        return await once(messages, 0)
    except ModelAnswerError as error:
        again = _again(messages, trace.model_calls[-1].reply, error)
    try:
        return await once(again, 1)
    except ModelAnswerError as error:
        seen = f"{error.seen}, when asked again with the reason"
        raise ModelAnswerError(seen, error.rule, error.next_step) from error


def _is_cut_off(reply: Completion | None) -> bool:
    return reply is not None and reply.finish_reason == "length"


def _cut_off(error: ModelAnswerError, max_tokens: int) -> ModelAnswerError:
    seen = f"{error.seen}, cut off at max_tokens = {max_tokens}"
    return ModelAnswerError(seen, error.rule, "Raise Agent(max_tokens=...).")


def _again(messages: tuple[Message, ...], reply: Completion | None, error: ModelAnswerError) -> tuple[Message, ...]:
    """The same question, with the reply and what is wrong with it; what is wanted comes last, as before."""
    *before, last = messages
    lines = ["Your reply cannot be used."]
    if reply is not None and (said := after_thinking(reply.text)).strip():
        lines.append(f"You replied: {one_line(said, _REPLY_CHARS)}")
    todo = "Your reply was cut off: be brief." if _is_cut_off(reply) else error.next_step
    lines.append(f"But {one_line(error.rule, 3 * _REPLY_CHARS)}. {todo}")
    wanted = last.content.rpartition("\n\n")[2]
    return *before, Message(last.role, "\n\n".join([last.content, "\n".join(lines), wanted]))
