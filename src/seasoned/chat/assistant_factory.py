"""Assistants from names: the memory of a repository, its sessions, and the folder where both are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from seasoned.chat.assistant import Assistant, ChatSettings
from seasoned.chat.change_ledger import ChangeLedger
from seasoned.chat.chat_log import ChatLog
from seasoned.chat.chat_screen import ChatScreen
from seasoned.chat.permission_kinds import Permissions
from seasoned.chat.repository import (
    Repository,
    default_memory_path,
    repository_namespace,
    repository_root,
    sessions_folder,
)
from seasoned.chat.toolbox import Toolbox
from seasoned.errors import InputError
from seasoned.memory import Memory
from seasoned.memory.known_namespaces import known_namespaces
from seasoned.memory.stores.registry import is_file
from seasoned.protocols import LLM
from seasoned.states.encoder_names import ENCODERS

__all__ = ["chat_memory", "open_assistant"]

GAMMA = 0.5
"""Of a repository's memory: a command that failed earns half of what the next one does, and not nearly all of it."""


def chat_memory(path: str | os.PathLike[str], root: Path, *, redact: Callable[[str], str] | None = None) -> Memory:
    """Open the memory of a repository: a namespace of its own, so that no other repository is recalled.

    A new file is readable by this user alone.

    Args:
        path: of the memory of all repositories.
        root: of the repository.
        redact: rewrites every text before it is stored; None: what the repository's namespace records.

    Raises:
        InputError: the folder or the file cannot be made.
        RedactionMismatchError: the repository's texts went through another redactor.
        StoreError: the store cannot be opened.

    Example:
        >>> with chat_memory(":memory:", Path("/home/ada/shop")) as memory:
        ...     memory.namespace, memory.gamma
        ('shop-ff0a01d53d83', 0.5)
    """
    text = os.fspath(path)
    if is_file(text) and text != ":memory:":
        _make_private(Path(text))
    namespace = repository_namespace(root)
    is_new = text == ":memory:" or namespace not in known_namespaces(text, read_only=False)
    encoder = ENCODERS["masked"] if is_new else None
    return Memory.open(text, namespace=namespace, gamma=GAMMA, encoder=encoder, redact=redact)


def _make_private(path: Path) -> None:
    """Make the file of a new memory, and its folder, for this user alone: it holds requests, commands and files."""
    try:
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "the memory's file can be made", "Name another.") from error


@contextlib.contextmanager
def open_assistant(
    llm: LLM,
    screen: ChatScreen,
    *,
    folder: str | os.PathLike[str] = ".",
    memory_path: str | os.PathLike[str] | None = None,
    session: str | None = None,
    granted: Iterable[str] = (),
    redact: Callable[[str], str] | None = None,
    **settings: Any,
) -> Iterator[Assistant]:
    """Open an assistant in the repository of a folder; turns that a killed process left in its session are stored.

    Args:
        llm: any model; closed by the caller.
        screen: shows and asks.
        folder: in the repository.
        memory_path: of the memory; None: `default_memory_path`.
        session: to go on with; `latest` for the last one; None: a new one.
        granted: kinds of actions that are permitted, see `Permissions`.
        redact: rewrites every text before it is written to disk, in the memory and in the session; None: what the
            repository's namespace records.
        settings: of the assistant, see `ChatSettings`.

    Raises:
        NotFoundError: there is no such folder or session.
        InputError: another chat has the session open.
        RedactionMismatchError: the repository's texts went through another redactor.
        StoreError: the memory cannot be opened.
    """
    root = repository_root(folder)
    path = default_memory_path() if memory_path is None else memory_path
    sessions = sessions_folder(path, root)
    if session == "latest":
        session = next((name for name, _ in reversed(ChatLog.sessions(sessions))), None)
    with contextlib.ExitStack() as opened:
        memory = opened.enter_context(chat_memory(path, root, redact=redact))
        rewrite = memory.session.redaction.query
        log = opened.enter_context(ChatLog(sessions, session, rewrite))
        ledger = opened.enter_context(contextlib.closing(ChangeLedger(sessions, rewrite)))
        toolbox = Toolbox(Repository(root), Permissions(granted), screen)
        assistant = Assistant(llm, memory, toolbox, log, ledger, ChatSettings(**settings))
        assistant.store_unended()
        yield assistant
