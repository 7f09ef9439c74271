"""`seasoned memory export`: a namespace as JSON Lines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from seasoned.cli.format.output import printable
from seasoned.cli.memory.common_options import (
    example,
    memory_argument,
    namespace_option,
    overwrite_option,
    reading,
    writing,
)
from seasoned.errors import InputError, StoreError
from seasoned.memory import Memory
from seasoned.memory.stores.atomic_file import whole_file
from seasoned.memory.stores.registry import is_file

__all__ = ["export"]


def _write(partial: Path, lines: Iterable[str]) -> None:
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        seen = f"{partial}: {error.strerror}"
        raise InputError(seen, "the disk must take the whole output", "Free space, or name another file.") from error


@click.command(epilog=example("seasoned memory export agent.db -o agent.jsonl"))
@memory_argument
@click.option("--output", "-o", metavar="FILE", help="Write this file, whole or not at all. Default: stdout.")
@overwrite_option
@namespace_option
def export(path: str, output: str | None, overwrite: bool, namespace: str | None) -> None:
    """Write a namespace as JSON Lines.

    A header, then the episodes, then the feedback. The memory notes FILE, so that `erase` can name it.
    """

    def ask(memory: Memory) -> None:
        if output is None or output == "-":
            for line in memory.export():
                click.echo(line.encode() + b"\n", nl=False)
            return
        target = Path(output)
        if is_file(path) and target.exists() and target.samefile(path):
            raise InputError(f"{output}", "a memory must not be overwritten by its own export", "Name another file.")
        if target.exists() and not target.is_file():
            raise InputError(f"{target} is no file", "the output must be a file", "Leave out -o to write to stdout.")
        empty = target.is_file() and not target.stat().st_size  # such as `mktemp` makes
        with whole_file(target, overwrite=overwrite or empty) as partial:
            _note(path, namespace, str(target.absolute()))  # first: an erasure meanwhile must name it
            _write(partial, memory.export())

    reading(path, namespace, ask)


def _note(path: str, namespace: str | None, target: str) -> None:
    """Note where the export lies, so that an erasure can name it."""
    try:
        with writing(path, namespace) as memory:
            memory.record_copy("export", target)
    except StoreError as error:
        click.echo(printable(f"not noted in the memory, so an erasure will not name {target}: {error}"), err=True)
