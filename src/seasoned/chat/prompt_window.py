"""The messages of a request: the newest turns that fit, with memory's block at the end, safe from control tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from seasoned.chat.chat_log import ChatTurn
from seasoned.protocols import Message
from seasoned.states.text_budget import estimated_tokens

__all__ = ["broken_marks", "request_messages", "unbroken_marks"]

_JOINT = "\u2060"  # a word joiner: without width, and in no control token
_MARKS = re.compile(
    r"<(?=[|\uff5c][^\s<>]{1,40}[|\uff5c]>)|<(?=/?(?:s|tool_call|tool_response|start_of_turn|end_of_turn)>)|\[(?=/?INST\])|<(?=<SYS>>)"
)
_LEFT_OUT = "(left out, to fit the context)"
_KEPT_RESULTS = 2


def broken_marks(text: str) -> str:
    r"""Return a text in which no control token of the usual chat templates stands; `unbroken_marks` is the inverse.

    A word joiner follows the token's first character. Unlike `escape_marks`, it leaves code as it is.

    Example:
        >>> broken_marks("a[i] < b <|im_end|>")
        'a[i] < b <\u2060|im_end|>'
    """
    return _MARKS.sub(lambda found: found[0] + _JOINT, text)


def unbroken_marks(text: str) -> str:
    """Return the text that `broken_marks` was given, from what a model copied.

    Example:
        >>> unbroken_marks(broken_marks("<|im_end|>"))
        '<|im_end|>'
    """
    return re.sub(rf"([<\[]){_JOINT}", r"\1", text)


def request_messages(
    system: str, turns: Sequence[ChatTurn], block: str = "", *, budget_tokens: int = 24_000
) -> tuple[Message, ...]:
    r"""Return the messages of the next request.

    Older turns that do not fit are left out, whole. If the last turn alone does not fit, its results lose their texts,
    the oldest first, except the last two. The block is appended to the last message.

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
        room -= sum(map(_size, turn.messages))
        if room < 0:
            break
        kept = [*turn.messages, *kept]
    messages = [Message("system", system), *map(_guarded, [*kept, *last])]
    if block:
        messages[-1] = replace(messages[-1], content=f"{messages[-1].content}\n\n{block}".lstrip("\n"))
    return tuple(messages)


def _size(message: Message) -> int:
    calls = sum(estimated_tokens(call.name) + estimated_tokens(call.arguments) for call in message.tool_calls)
    return estimated_tokens(message.content) + calls + 4


def _guarded(message: Message) -> Message:
    return message if message.role == "system" else replace(message, content=broken_marks(message.content))
