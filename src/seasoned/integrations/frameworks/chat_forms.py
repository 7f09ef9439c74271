"""Messages of agent frameworks in the form of Chat Completions, which their integrations share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["chat_call", "chat_response", "with_text"]

_LIMITS = ("length", "max_tokens", "max_output_tokens")
_FILTERS = ("content_filter", "refusal", "safety")


def chat_response(
    message: Mapping[str, Any],
    *,
    id_: str | None,
    model: str | None,
    finish: object = None,
    tokens: tuple[int | None, int | None] = (None, None),
) -> dict[str, Any]:
    """Return a whole answer as a response of Chat Completions.

    Args:
        message: with its role, content and calls.
        id_: of the response.
        model: that answered.
        finish: why it ended, as its vendor says it; None: it does not say.
        tokens: of the prompt and the answer, as the vendor counted them.

    Example:
        >>> chat_response({"content": "Hi"}, id_="r", model="m", finish="MAX_TOKENS")["choices"][0]["finish_reason"]
        'length'
    """
    said = str(finish or "").lower()
    reason = "length" if said in _LIMITS else "content_filter" if said in _FILTERS else "stop"
    choice = {"index": 0, "message": dict(message), "finish_reason": reason}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return {"id": id_, "model": model, "choices": [choice], "usage": usage}


def chat_call(name: str, arguments: str, call_id: str | None) -> dict[str, Any]:
    """Return a call of a tool, with its arguments as JSON."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def with_text(content: Any, text: str) -> Any:
    r"""Return the content of a message with a text at its end; None of a content that cannot be extended.

    Example:
        >>> with_text("Which way?", "- prefer left")
        'Which way?\n\n- prefer left'
        >>> with_text([], "- prefer left")
        [{'type': 'text', 'text': '- prefer left'}]
    """
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    if isinstance(content, str):
        return f"{content}\n\n{text}" if content else text
    return None
