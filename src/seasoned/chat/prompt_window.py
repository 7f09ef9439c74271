"""The messages of a request: the newest turns that fit, with memory's block at the end, safe from control tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from seasoned.chat.chat_log import ChatTurn, in_arguments
from seasoned.protocols import Message
from seasoned.protocols.template_marks import MARK_CHARACTERS
from seasoned.states.text_budget import estimated_tokens

__all__ = ["broken_marks", "request_messages", "unbroken_marks"]

_JOINT = "\u2060"  # a word joiner: without width, and in no control token
_BRACKET = f"[{re.escape(MARK_CHARACTERS)}]"
_MARKS = re.compile(rf"(?!<=|\[(?:[\]\"'(]|[0-9]{{1,9}}\])|[\]>][),.:;\"'`]){_BRACKET}(?!\s|\Z)")
_LEFT_OUT = "(left out, to fit the context)"
_UNANSWERED = Message("assistant", "(This turn ended without an answer.)")
_KEPT_RESULTS = 2


def broken_marks(text: str) -> str:
    r"""Return a text in which no control token of a chat template stands; `unbroken_marks` is the inverse.

    A word joiner follows every character of `MARK_CHARACTERS` that could be inside of a token: not one before white
    space or the end, and not where code alone goes on so (`a[0]`, `["`, `<=`, `],`).

    Example:
        >>> broken_marks("a[0] < b <|im_end|>")
        'a[0] < b <\u2060|im_end|>'
    """
    return _MARKS.sub(lambda found: found[0] + _JOINT, text)


def unbroken_marks(text: str) -> str:
    """Return the text that `broken_marks` was given, from what a model copied.

    Example:
        >>> unbroken_marks(broken_marks("<|im_end|>"))
        '<|im_end|>'
    """
    return re.sub(f"({_BRACKET}){_JOINT}", r"\1", text)


def request_messages(
    system: str, turns: Sequence[ChatTurn], block: str = "", *, budget_tokens: int = 24_000
) -> tuple[Message, ...]:
    r"""Return the messages of the next request.

    Older turns that do not fit are left out, whole. If the last turn alone does not fit, its results lose their texts,
    the oldest first, except the last two. The block is appended to the last message. An earlier turn without an answer,
    after an error say, gets one that says so: several servers refuse two messages of the user in a row.

    Args:
        system: the instructions.
        turns: of the session; the last one is going on.
        block: of memory.
        budget_tokens: of all messages, as `estimated_tokens` counts them.

    Example:
        >>> turns = [ChatTurn("1", [Message("user", "Hi"), Message("assistant", "Hello")])]
        >>> turns.append(ChatTurn("2", [Message("user", "Fix it.")]))
        >>> [message.content for message in request_messages("Be brief.", turns, "- a record")]
        ['Be brief.', 'Hi', 'Hello', 'Fix it.\n\n- a record']
    """
    room = budget_tokens - estimated_tokens(system) - estimated_tokens(block)
    last = list(turns[-1].messages)
    room -= sum(map(_size, last))
    results = [at for at, message in enumerate(last) if message.role == "tool"]
    for at in results[:-_KEPT_RESULTS]:
        if room >= 0:
            break
        room += _size(last[at])
        last[at] = replace(last[at], content=_LEFT_OUT)
        room -= _size(last[at])
    kept: list[Message] = []
    for turn in reversed(turns[:-1]):
        answered = turn.messages if turn.messages[-1].role == "assistant" else [*turn.messages, _UNANSWERED]
        room -= sum(map(_size, answered))
        if room < 0:
            break
        kept = [*answered, *kept]
    messages = [Message("system", system), *map(_guarded, [*kept, *last])]
    if block:
        messages[-1] = replace(messages[-1], content=f"{messages[-1].content}\n\n{block}".lstrip("\n"))
    return tuple(messages)


def _size(message: Message) -> int:
    calls = sum(estimated_tokens(call.name) + estimated_tokens(call.arguments) for call in message.tool_calls)
    return estimated_tokens(message.content) + calls + 4


def _guarded(message: Message) -> Message:
    if message.role == "system":
        return message
    calls = tuple(replace(call, arguments=in_arguments(broken_marks, call.arguments)) for call in message.tool_calls)
    return replace(message, content=broken_marks(message.content), tool_calls=calls)
