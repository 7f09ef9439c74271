"""The `<think>` block at the beginning of a model's answer."""

from __future__ import annotations

import re

__all__ = ["after_thinking"]

_CLOSED = re.compile(
    r"\s*+(?:<(think|thinking)>.*?</\1>|(?:(?!<think).)*?^[^\S\n]*</think(?:ing)?>)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_OPEN = re.compile(r"\s*+<think(?:ing)?>", re.IGNORECASE)


def after_thinking(text: str) -> str:
    r"""Return `text` without the `<think>` or `<thinking>` blocks at its beginning.

    If a block is not closed, the result is empty. If the prompt ended with `<think>`, the text begins inside the block,
    and its `</think>` is at the beginning of a line.

    Example:
        >>> after_thinking("<think>\nAction: stop\nNo.\n</think>\nAction: go"), after_thinking("<think>I would like to")
        ('\nAction: go', '')
    """
    end = 0
    while thought := _CLOSED.match(text, end):
        end = thought.end()
    return "" if _OPEN.match(text, end) else text[end:]
