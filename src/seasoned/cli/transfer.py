"""`seasoned memory export` and `import`: a namespace as JSON Lines."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from seasoned.cli.opening import example, json_option, memory_argument, namespace_option, reading, writing
from seasoned.cli.screen import echo_json, echo_text
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.memory import Memory
from seasoned.memory.lines import parse_lines
from seasoned.memory.store import is_url
from seasoned.states import encoder_from_identity

__all__ = ["export", "import_"]


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

    A header, then the episodes, then the feedback.
    """

    def ask(memory: Memory) -> None:
        if output is None or output == "-":
            for line in memory.export():
                click.echo(line.encode() + b"\n", nl=False)
            return
        target = Path(output)
        if not is_url(path) and target.exists() and target.samefile(path):
            raise InputError(f"{output}", "a memory is not overwritten by its own export", "Name another file.")
        _replace(target, memory.export())

    reading(path, namespace, ask)


def _lines(source: str) -> Iterator[str]:
    """The lines of a file or of stdin."""
    if source == "-":
        yield from _decoded(sys.stdin.buffer)
        return
    try:
        with Path(source).open("rb") as file:
            yield from _decoded(file)
    except FileNotFoundError:
        raise NotFoundError(f"{source}", "this file does not exist", "Check the path; `-` reads stdin.") from None
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}", "the export can be read", "Name a file.") from error


def _decoded(raw: Iterable[bytes]) -> Iterator[str]:
    for count, line in enumerate(raw, start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"line {count}: {error}", "an export is text in UTF-8", "Export it again; nothing was imported."
            ) from None


def _as_exported(path: str, namespace: str | None, header: dict[str, Any]) -> Memory:
    """Open a memory, made if need be with the namespace, the encoder and the discount that the export names."""
    from seasoned.build import known_namespaces, open_memory

    name = header.get("namespace") if namespace is None else namespace
    known = known_namespaces(path)
    settings: dict[str, Any] = {}
    if name not in known and not (name is None and known):
        if "encoder" in header:
            settings["encoder"] = encoder_from_identity(header["encoder"])
        settings["gamma"] = header.get("gamma")
    return open_memory(path, namespace=name, create=True, **settings)


@click.command("import", epilog=example("seasoned memory import agent.db agent.jsonl --create"))
@memory_argument
@click.argument("source", metavar="FILE")
@click.option("--create", is_flag=True, help="Make the file, and the namespace named in the export, if need be.")
@namespace_option
@json_option
def import_(path: str, source: str, create: bool, namespace: str | None, as_json: bool) -> None:
    """Store what an export holds, all or nothing.

    What is stored already is left alone. FILE `-` reads stdin.
    """
    lines = list(_lines(source))
    if not any(line.strip() for line in lines):
        raise InputError(f"{source} is empty", "an export has a header at least", "Export again.")
    for _ in parse_lines(lines):  # refused before a file is made
        pass
    first = json.loads(lines[0]) if lines and lines[0].strip() else {}
    header = first if first.get("type") == "header" else {}
    with _as_exported(path, namespace, header) if create else writing(path, namespace) as memory:
        episodes, feedback = memory.import_lines(lines)
        name = memory.namespace
    if as_json:
        echo_json({"namespace": name, "episodes": episodes, "feedback": feedback})
    else:
        echo_text(f"{episodes} episodes and {feedback} feedback events are new in namespace {excerpt(name)}")
