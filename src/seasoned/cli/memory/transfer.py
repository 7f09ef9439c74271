"""`seasoned memory export`, `import` and `import-harbor`: episodes to and from files."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from seasoned.checks import check_file_name
from seasoned.cli.format.output import echo_hint, present, printable
from seasoned.cli.memory.access import memory_command, open_writable, read_memory
from seasoned.cli.params import overwrite_option, redact_option
from seasoned.errors import InputError, NotFoundError, StoreError, counted, excerpt
from seasoned.integrations import FORMATS, ReadEpisode, Refusal, bounded_lines, read_episodes
from seasoned.memory import Memory
from seasoned.memory.stores.atomic_file import whole_file
from seasoned.memory.stores.registry import is_file
from seasoned.memory.transfer.jsonl import parse_lines
from seasoned.sqlite_connection import IN_RAM
from seasoned.states import encoder_from_identity
from seasoned.states.redactor_identity import named_redactor

__all__ = ["export", "import_", "import_harbor"]

JSONL = "jsonl"
_LISTED_REFUSALS = 20

Lines = Callable[[], Iterator[Any]]
"""Reads the source from its start."""

_create_option = click.option("--create", is_flag=True, help="Create the memory, and the namespace, if need be.")
_dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be imported; write nothing.")


# ---------------------------------------------------------------------------------------------- export


@memory_command("seasoned memory export agent.db -o agent.jsonl", json=False)
@click.option("--output", "-o", metavar="FILE", help="Write this file, whole or not at all.  [default: stdout]")
@overwrite_option
def export(path: str, output: str | None, overwrite: bool, namespace: str | None) -> None:
    """Write a namespace as JSON Lines.

    Writes a header, then the episodes, then the feedback. The memory records FILE, so that `erase` can list it.
    """

    def query(memory: Memory) -> None:
        if output is None or output == "-":
            for line in memory.export():
                click.echo(line.encode() + b"\n", nl=False)
            return
        check_file_name(output)
        target = Path(output)
        if is_file(path) and target.exists() and target.samefile(path):
            raise InputError(f"{output}", "a memory must not be overwritten by its own export", "Name another file.")
        if target.exists() and not target.is_file():
            raise InputError(f"{target} is no file", "the output must be a file", "Leave out -o to write to stdout.")
        empty = target.is_file() and not target.stat().st_size  # such as `mktemp` makes
        with whole_file(target, overwrite=overwrite or empty) as partial:
            _record_export(path, namespace, str(target.absolute()))  # first: an erasure meanwhile must list it
            _write(partial, memory.export())

    read_memory(path, namespace, query)


def _write(partial: Path, lines: Iterable[str]) -> None:
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        seen = f"{partial}: {error.strerror}"
        raise InputError(seen, "the disk must take the whole output", "Free space, or name another file.") from error


def _record_export(path: str, namespace: str | None, target: str) -> None:
    """Record the file in the memory, so that an erasure can list it."""
    try:
        with open_writable(path, namespace) as memory:
            memory.record_copy("export", target)
    except StoreError as error:
        echo_hint(f"not recorded in the memory, so an erasure will not list {target}: {error}")


# ---------------------------------------------------------------------------------------------- import


@memory_command(
    "seasoned memory import agent.db agent.jsonl --create",
    "seasoned memory import agent.db trajectories.json --format atif --dry-run",
    name="import",
)
@click.argument("source", metavar="FILE")
@click.option(
    "--format",
    type=click.Choice([JSONL, *FORMATS.names()]),
    default=JSONL,
    show_default=True,
    help="Format of FILE: our export, ATIF trajectories, OpenTelemetry GenAI spans, chat completions.",
)
@_create_option
@click.option("--skip-refused", is_flag=True, help="Import the other lines of a foreign file if some are refused.")
@_dry_run_option
@redact_option
@click.option("--evaluation", metavar="NAME", help="For otel: the evaluation whose score is the reward.")
def import_(
    path: str,
    source: str,
    format: str,  # noqa: A002 - the name of the option
    create: bool,
    skip_refused: bool,
    dry_run: bool,
    redact: str | None,
    evaluation: str | None,
    namespace: str | None,
) -> None:
    """Store the episodes of a file.

    Episodes that are stored already are skipped, so importing twice is safe. An export is stored whole or not at all.
    Of a foreign file, each line that is no episode is refused with its reason; then nothing is stored, unless
    --skip-refused is given. FILE `-` reads stdin.
    """
    settings = {} if redact is None else {"redact": named_redactor(redact)}
    lines = _source(source)
    if format == JSONL:
        if evaluation is not None or skip_refused:
            raise InputError(
                "--evaluation or --skip-refused", "an export is stored whole or not at all", "Leave it out."
            )
        found = _import_export(path, source, lines, create, dry_run, namespace, settings)
        new = f"{counted(found['episodes'], 'episode')} and {counted(found['feedback'], 'feedback event')}"
    else:
        found = _import_foreign(path, lines, format, evaluation, create, skip_refused, dry_run, namespace, settings)
        new = (
            f"{counted(found['read'], 'episode')} with {counted(found['steps'], 'step')} read, "
            f"{found['without_reward']} without a reward, {counted(found['refused'], 'line')} refused; "
            f"{counted(found['episodes'], 'episode')}"
        )
    would = "would be" if dry_run else "is" if found["episodes"] == 1 else "are"
    present(found, f"{new} {would} new in namespace {excerpt(found['namespace'])}")


def _source(source: str) -> Lines:
    """Return a function that reads the lines of a file, a pipe or stdin; it may be called again.

    A pipe can be read once, so its bytes go to a temporary file: they are on disk, not in memory.
    """
    if source == "-":
        return _copied(sys.stdin.buffer)
    check_file_name(source)
    if Path(source).exists() and not Path(source).is_file() and not Path(source).is_dir():
        with Path(source).open("rb") as pipe:
            return _copied(pipe)

    def read() -> Iterator[Any]:
        try:
            with Path(source).open("rb") as file:
                yield from bounded_lines(file)
        except FileNotFoundError:
            raise NotFoundError(f"{source}", "this file does not exist", "Check the path; `-` reads stdin.") from None
        except OSError as error:
            raise InputError(
                f"{source}: {error.strerror}", "it must be a file that can be read", "Name another one."
            ) from error

    return read


def _copied(pipe: BinaryIO) -> Lines:
    """Return a function that reads the lines of a copy of the pipe; the copy goes with the process."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the function may be called
    shutil.copyfileobj(pipe, copy)

    def read() -> Iterator[Any]:
        copy.seek(0)
        yield from bounded_lines(copy)

    return read


def _decoded(lines: Iterable[Any]) -> Iterator[str]:
    for line in lines:
        if isinstance(line, Refusal):
            raise InputError(
                str(line), "a line of an export must not be that long", "Export again; nothing was imported."
            )
        try:
            yield line.data.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"line {line.number}: {error}",
                "an export must be text in UTF-8",
                "Export it again; nothing was imported.",
            ) from None


def _import_export(
    path: str, source: str, lines: Lines, create: bool, dry_run: bool, namespace: str | None, settings: dict[str, Any]
) -> dict[str, Any]:
    for _ in parse_lines(_decoded(lines())):
        pass  # a wrong line is refused before a file is made
    first = next((line for line in _decoded(lines()) if line.strip()), None)
    if first is None:
        raise InputError(f"{source} is empty", "an export must have a header", "Export again.")
    record = json.loads(first)
    header = record if record.get("type") == "header" else {}
    with _open_target(path, namespace, header, create, dry_run, settings) as memory:
        episodes, feedback = memory.import_lines(_decoded(lines()), dry_run=dry_run)
        return {"namespace": memory.namespace, "episodes": episodes, "feedback": feedback}


def _import_foreign(
    path: str,
    lines: Lines,
    format_: str,
    evaluation: str | None,
    create: bool,
    skip_refused: bool,
    dry_run: bool,
    namespace: str | None,
    settings: dict[str, Any],
) -> dict[str, Any]:
    accepted: list[ReadEpisode] = []
    refusals: list[Refusal] = []
    for read in read_episodes(format_, lines(), evaluation=evaluation):
        if isinstance(read, Refusal):
            refusals.append(read)
        else:
            accepted.append(read)
    for refusal in refusals[:_LISTED_REFUSALS]:
        click.echo(printable(f"refused: {refusal}"), err=True)
    if len(refusals) > _LISTED_REFUSALS:
        click.echo(f"refused: {len(refusals) - _LISTED_REFUSALS} more", err=True)
    if not accepted or (refusals and not skip_refused):
        raise InputError(
            f"{counted(len(accepted), 'episode')} read, {counted(len(refusals), 'line')} refused",
            "a file with refused lines is not imported" if refusals else "a file must hold an episode",
            "Correct it, or pass --skip-refused; nothing was imported."
            if accepted
            else f"Check that it is {format_}; nothing was imported.",
        )
    if evaluation is not None and not any(one.rewarded for one in accepted):
        raise InputError(
            f"--evaluation {excerpt(evaluation)}",
            f"an evaluation must be in the file, and none of {counted(len(accepted), 'episode')} has a score of it",
            "Check its name, or leave it out; nothing was imported.",
        )
    found: dict[str, Any] = {
        "read": len(accepted),
        "steps": sum(len(one.episode.steps) for one in accepted),
        "without_reward": sum(not one.rewarded for one in accepted),
        "refused": len(refusals),
        "refusals": [{"line": one.line, "reason": one.reason} for one in refusals],
    }
    with _open_target(path, namespace, {}, create, dry_run, settings) as memory:
        new = memory.import_episodes(((one.episode, one.created_at) for one in accepted), dry_run=dry_run)
        return {"namespace": memory.namespace, "episodes": new, **found}


def _open_target(
    path: str, namespace: str | None, header: dict[str, Any], create: bool, dry_run: bool, settings: dict[str, Any]
) -> Memory:
    """Open the memory to import into; with `create`, a new one has the namespace, encoder and discount of the header.

    A dry run creates nothing: it uses a memory in RAM instead of a new one.
    """
    from seasoned.build import known_namespaces, open_memory

    if not create:
        return open_writable(path, namespace, **settings)
    name = header.get("namespace") if namespace is None else namespace
    known = known_namespaces(path)
    if name not in known and not (name is None and known):
        if "encoder" in header:
            settings = {**settings, "encoder": encoder_from_identity(header["encoder"])}
        settings = {**settings, "gamma": header.get("gamma")}
        if dry_run:
            return open_memory(IN_RAM, namespace=name, create=True, **settings)
    return open_memory(path, namespace=name, create=True, **settings)


# ---------------------------------------------------------------------------------------------- import-harbor


@memory_command("seasoned memory import-harbor agent.db jobs/2026-01-31 --create", name="import-harbor")
@click.argument("job", metavar="FOLDER")
@click.option("--reward", metavar="NAME", help="Name of the reward to use, if trials have several.")
@_create_option
@_dry_run_option
def import_harbor(path: str, job: str, reward: str | None, create: bool, dry_run: bool, namespace: str | None) -> None:
    """Store the trials of a Harbor job.

    Each trial becomes an episode with its verifier's reward. Trials that ran in test mode, have no verdict or broke off
    are refused, each with its reason. Importing twice changes nothing.
    """
    from seasoned.integrations.harbor import import_job, read_job

    check_file_name(job)
    trials = list(read_job(job, reward_key=reward))  # refused before a file is made
    with _open_target(path, namespace, {}, create, dry_run, {}) as memory:
        found = import_job(memory, job, reward_key=reward, dry_run=dry_run)
        name = memory.namespace
    for trial, reason in found.refused.items():
        echo_hint(f"refused: {trial}: {reason}")
    would = "would be" if dry_run else "are"
    present(
        {"namespace": name, "read": found.read, "new": found.new, "refused": dict(found.refused)},
        f"{counted(len(trials), 'trial')}, {len(found.refused)} refused; {found.new} {would} new in namespace {name!r}",
    )
