"""What a model thought aloud in its answer, and what it answered."""

from __future__ import annotations

import re

__all__ = ["after_thinking"]

_CLOSED = re.compile(
    r"\s*+(?:<(think|thinking)>.*?</\1>|(?:(?!<think).)*?^[^\S\n]*</think(?:ing)?>)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_OPEN = re.compile(r"\s*+<think(?:ing)?>", re.IGNORECASE)


def after_thinking(text: str) -> str:
    r"""Return what follows the `<think>` or `<thinking>` blocks that a text begins with; the text, if it has none.

    Behind a block that is not closed nothing follows. Where a prompt ends with `<think>`, a text begins inside the
    block: its `</think>` then stands at the beginning of a line.

    Example:
        >>> after_thinking("<think>\nAction: stop\nNo.\n</think>\nAction: go"), after_thinking("<think>I would like to")
        ('\nAction: go', '')
    """
    end = 0
    while thought := _CLOSED.match(text, end):
        end = thought.end()
    return "" if _OPEN.match(text, end) else text[end:]
