"""The `with` block that states which calls are one episode."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, Protocol

from seasoned.checks import check_flag, check_text
from seasoned.errors import InputError, excerpt
from seasoned.types import Ending

__all__ = ["CurrentEpisode", "ScopeListener", "current_episode", "episode"]


class ScopeListener(Protocol):
    """Something that records the calls of a scope."""

    def end_scope(self, scope: CurrentEpisode, ending: Ending) -> None:
        """Store the episode of a scope that has ended."""


class CurrentEpisode:
    """The episode of a running `with seasoned.episode(...)` block.

    Attributes:
        id: of the episode, once it is stored.
        task, subject, awaits_feedback: as they were passed.
        takes_free_id: whether it is stored as `ID~2` if another episode has its id; else it is refused then.
        is_over, is_stored: whether the block has ended, and whether a recorder has stored the episode.
    """

    def __init__(
        self,
        task: str | None,
        id_: str,
        subject: str | None,
        awaits_feedback: bool | None,
        *,
        takes_free_id: bool = False,
    ) -> None:
        self.task = task
        self.id = id_
        self.subject = subject
        self.awaits_feedback = awaits_feedback
        self.takes_free_id = takes_free_id
        self.feedback_given: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.listeners: list[ScopeListener] = []
        self.is_over = False
        self.is_stored = False

    def feedback(self, *args: Any, **kwargs: Any) -> None:
        """Give feedback on this episode, stored when the block ends: the arguments of `Memory.feedback` after the id.

        Raises:
            InputError: there is no feedback; or the block is over.
        """
        if self.is_over:
            raise InputError(
                "feedback() after the block", "the episode has ended", f"Call memory.feedback({excerpt(self.id)}, ...)."
            )
        if not args and kwargs.get("reward") is None and kwargs.get("feedback") is None:
            raise InputError("no feedback", "feedback is a reward, or typed feedback", "Pass reward=1.0, for example.")
        self.feedback_given.append((args, kwargs))


_CURRENT: ContextVar[CurrentEpisode | None] = ContextVar("seasoned_episode", default=None)


def current_episode() -> CurrentEpisode | None:
    """Return the episode whose block runs in this context; None outside of blocks."""
    return _CURRENT.get()


@contextlib.contextmanager
def episode(
    task: str | None = None,
    *,
    id: str | None = None,  # noqa: A002
    subject: str | None = None,
    awaits_feedback: bool | None = None,
) -> Iterator[CurrentEpisode]:
    """Record all calls of wrapped clients inside the block as one episode.

    The episode is stored when the block ends, by a thread in the background; an exception makes it `aborted`. A block
    without a call stores nothing. An inner block is an episode of its own. Blocks belong to a context (`contextvars`):
    concurrent asyncio tasks and threads do not share them, tasks that start inside one do. A new thread starts outside
    of it, unless it runs in a copy of the context.

    Args:
        task: of the episode; None: the first user's message, or the task of the wrapped client.
        id: of the episode; None: a new one.
        subject: whom the episode is about, so that it can be erased.
        awaits_feedback: whether the episode is no evidence before someone has judged it; None: as the wrapped client.

    Raises:
        InputError: a value breaks a rule.

    Example:
        >>> import seasoned
        >>> with seasoned.episode(task="refunds") as running:
        ...     pass  # client.chat.completions.create(...)
        >>> running.task
        'refunds'
    """
    for name, value in (("task", task), ("episode id", id), ("subject", subject)):
        if value is not None:
            check_text(name, value)
    if awaits_feedback is not None:
        check_flag("awaits_feedback", awaits_feedback)
    scope = CurrentEpisode(task, uuid.uuid4().hex if id is None else id, subject, awaits_feedback)
    token = _CURRENT.set(scope)
    ending: Ending = "terminated"
    try:
        yield scope
    except BaseException:
        ending = "aborted"
        raise
    finally:
        _CURRENT.reset(token)
        scope.is_over = True
        for listener in scope.listeners:
            listener.end_scope(scope, ending)
