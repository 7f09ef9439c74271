"""What every `seasoned memory` command shares: the file, the namespace, the episode that an id means."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from seasoned.errors import InputError, NotFoundError, ReadOnlyStoreError, UnknownNameError, excerpt
from seasoned.memory import Memory
from seasoned.types import Episode

__all__ = [
    "example",
    "find_episode",
    "json_option",
    "memory_argument",
    "namespace_option",
    "overwrite_option",
    "reading",
    "state_text",
    "writing",
]

Answer = TypeVar("Answer")

memory_argument = click.argument("path", metavar="MEMORY")
namespace_option = click.option(
    "--namespace", "-n", metavar="NAME", help="Which namespace of the file; needed if it has several."
)
overwrite_option = click.option("--overwrite", is_flag=True, help="The target may exist; it is replaced.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for a program.")

_LISTED_MATCHES = 10


def example(*lines: str) -> str:
    """Return the end of a command's help: how it is called, each line kept as it is."""
    return "\n".join(["\b", "Example:", *(f"  {line}" for line in lines)])


class _AbsentEncoder:
    """Stands in for an encoder of somebody else's: what needs no features (list, show, export, feedback) works."""

    def __init__(self, identity: str, error: UnknownNameError) -> None:
        self.identity = identity
        self._error = error

    def features(self, state: str) -> frozenset[str]:
        del state
        raise self._error


def _open(path: str, namespace: str | None, *, read_only: bool, needs_encoder: bool = False, **settings: Any) -> Memory:
    from seasoned.build import open_memory

    try:
        return open_memory(path, namespace=namespace, read_only=read_only, **settings)
    except UnknownNameError as error:
        if needs_encoder:
            raise
        known = Memory.namespaces(path)
        name = next(iter(known)) if namespace is None else namespace
        return Memory.open(
            path,
            namespace=name,
            create=False,
            read_only=read_only,
            encoder=_AbsentEncoder(known[name], error),
            **settings,
        )


def writing(path: str, namespace: str | None, **settings: Any) -> Memory:
    """Open a memory that is there, to change it; nothing is made by a misspelt name."""
    return _open(path, namespace, read_only=False, **settings)


def reading(
    path: str, namespace: str | None, ask: Callable[[Memory], Answer], *, needs_encoder: bool = False
) -> Answer:
    """Return what `ask` says about a memory that is there.

    Opened read-only. Returns at a discount that nobody asked for before are gathered once, which writes: only where
    that is needed, `ask` is put again to the memory opened for writing.

    Args:
        path, namespace: as on the command line.
        ask: may be called twice.
        needs_encoder: refuse a namespace whose encoder is not ours before anything is asked.
    """
    with _open(path, namespace, read_only=True, needs_encoder=needs_encoder) as memory:
        try:
            return ask(memory)
        except ReadOnlyStoreError:  # not the one of an older store: reading brings nothing up to date
            pass
    with _open(path, namespace, read_only=False, needs_encoder=needs_encoder) as memory:
        return ask(memory)


def find_episode(memory: Memory, id_or_prefix: str) -> Episode:
    """Return the episode with this id, or the only one whose id begins like this.

    Raises:
        NotFoundError: none does.
        InputError: several do; the message lists them.
    """
    try:
        return memory.get(id_or_prefix)
    except NotFoundError:
        found = [e for e in memory.episodes() if e.id is not None and e.id.startswith(id_or_prefix)]
    if not found:
        raise NotFoundError(
            f"episode {excerpt(id_or_prefix)}",
            f"no episode of namespace {memory.namespace!r} has an id that begins like this",
            "See: seasoned memory list",
        )
    if len(found) > 1:
        listed = ", ".join(str(episode.id) for episode in found[:_LISTED_MATCHES])
        more = f" and {len(found) - _LISTED_MATCHES} more" if len(found) > _LISTED_MATCHES else ""
        raise InputError(
            f"episode {excerpt(id_or_prefix)}",
            f"a short id means one episode, and {len(found)} begin like this: {listed}{more}",
            "Write more of it.",
        )
    return found[0]


def state_text(argument: str) -> str:
    """Return the state that an argument gives; `-` reads stdin, less the last line break.

    Raises:
        InputError: stdin is not UTF-8.
    """
    if argument != "-":
        return argument
    read = sys.stdin.buffer.read()
    try:
        return read.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InputError(f"stdin: {error}", "a state must be text in UTF-8", "Convert it first.") from None
