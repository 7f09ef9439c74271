"""`seasoned memory export`: a namespace as JSON Lines."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import click

from seasoned.cli.opening import example, memory_argument, namespace_option, reading, writing
from seasoned.cli.screen import printable
from seasoned.errors import InputError, StoreError
from seasoned.memory import Memory
from seasoned.memory.store import is_url

__all__ = ["export"]


def _replace(target: Path, lines: Iterable[str]) -> None:
    """Write the whole file or leave what was there."""
    if target.exists() and not target.is_file():
        raise InputError(f"{target}", "the output is a file", "Leave out -o to write to stdout.")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as error:
        raise InputError(f"{target}: {error.strerror}", "the output can be written", "Name another file.") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


@click.command(epilog=example("seasoned memory export agent.db -o agent.jsonl"))
@memory_argument
@click.option("--output", "-o", metavar="FILE", help="Write this file, whole or not at all. Default: stdout.")
@namespace_option
def export(path: str, output: str | None, namespace: str | None) -> None:
    """Write a namespace as JSON Lines.

    A header, then the episodes, then the feedback. The memory notes FILE, so that `erase` can name it.
    """

    def ask(memory: Memory) -> None:
        if output is None or output == "-":
            for line in memory.export():
                click.echo(line.encode() + b"\n", nl=False)
            return
        target = Path(output)
        if not is_url(path) and target.exists() and target.samefile(path):
            raise InputError(f"{output}", "a memory is not overwritten by its own export", "Name another file.")
        if not target.parent.is_dir():
            raise InputError(f"{target.parent}", "the folder of the output exists", "Make it first.")
        _note(path, namespace, str(target.absolute()))  # first: an erasure meanwhile must name it
        _replace(target, memory.export())

    reading(path, namespace, ask)


def _note(path: str, namespace: str | None, target: str) -> None:
    """Note where the export lies, so that an erasure can name it."""
    try:
        with writing(path, namespace) as memory:
            memory.note_copy("export", target)
    except StoreError as error:
        click.echo(printable(f"not noted in the memory, so an erasure will not name {target}: {error}"), err=True)
