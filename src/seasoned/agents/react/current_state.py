"""What an agent observes at the step that is being decided, for what reads a whole prompt and needs the state in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

__all__ = ["current_state", "state_context"]

_state: ContextVar[str | None] = ContextVar("state", default=None)


def current_state(text: str) -> str:
    r"""Return the state that the agent is deciding in; `text` itself where no agent is asking.

    An agent shows its reader a whole prompt. What looks up the state, such as
    `CascadeReader(..., min_evidence=1, memory=memory, observation=current_state)`, finds it here. Episodes that
    are played at the same time each have their own.

    Args:
        text: what the reader was given as the state.

    Example:
        >>> current_state("a hall")
        'a hall'
        >>> with state_context("a hall"):
        ...     current_state("Task: leave.\nNow: a hall")
        'a hall'
    """
    state = _state.get()
    return text if state is None else state


@contextlib.contextmanager
def state_context(state: str) -> Iterator[None]:
    """Let `current_state` return `state` until the block ends."""
    token = _state.set(state)
    try:
        yield
    finally:
        _state.reset(token)
