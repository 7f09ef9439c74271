"""Guard of one session: the memory of tool calls, the guard on it, and the hooks that reach it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from seasoned.chat.assistant_factory import chat_memory
from seasoned.chat.repository import sessions_folder
from seasoned.chat.wrapped.command_guard import CommandGuard, GuardAnswer, GuardTally, guard_namespace
from seasoned.chat.wrapped.hook_server import hook_server
from seasoned.errors import StoreError
from seasoned.memory import Memory

__all__ = ["session_guard"]


@contextlib.contextmanager
def session_guard(
    path: str | os.PathLike[str],
    root: Path,
    session: str,
    answer: GuardAnswer | None,
    *,
    redact: Callable[[str], str] | None = None,
    timeout_s: float = 1.5,
) -> Iterator[tuple[Path, GuardTally]]:
    """Guard the tool calls of an assistant while the block runs; the socket for its hooks and the tally are yielded.

    What the store does not take waits in a folder beside the sessions, and the next session stores it.

    Args:
        path: of the memory of all repositories.
        root: of the repository.
        session: the subject of the episodes.
        answer: to a doomed call; None: calls are only recorded.
        redact: rewrites every text before it is stored; None: what the namespace of the conversations records.
        timeout_s: the longest that a hook waits for the store; its client waits for 2 s.

    Raises:
        RedactionMismatchError: the repository's calls went through another redactor.
        StoreError: the memory cannot be opened.
    """
    with chat_memory(path, root, redact=redact) as conversations:
        redact = conversations.session.redaction.redactor
    spool = sessions_folder(path, root) / "calls"
    with Memory.open(
        os.fspath(path), namespace=guard_namespace(root), gamma=0.0, redact=redact, timeout_s=timeout_s, spool=spool
    ) as memory:
        with contextlib.suppress(StoreError):  # it waits on
            memory.deliver_spool()
        guard = CommandGuard(memory, root, answer, subject=session)
        with hook_server(guard.handle) as socket_path:
            yield socket_path, guard.tally
        guard.close()
