"""`seasoned memory import`: our own lines, and what people already have."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from seasoned.cli.format.output import echo_json, echo_text, printable
from seasoned.cli.memory.common_options import example, json_option, memory_argument, namespace_option, writing
from seasoned.errors import InputError, NotFoundError, counted, excerpt
from seasoned.integrations import FORMATS, ReadEpisode, Refusal, bounded_lines, read_episodes
from seasoned.memory import Memory
from seasoned.memory.transfer.jsonl import counted_as, parse_lines
from seasoned.sqlite_connection import IN_RAM
from seasoned.states import REDACTION_RULES, Redactor, encoder_from_identity

__all__ = ["import_"]

JSONL = "jsonl"
_LISTED_REFUSALS = 20

Lines = Callable[[], Iterator[Any]]
"""Reads the source from its start."""


@click.command(
    "import",
    epilog=example(
        "seasoned memory import agent.db agent.jsonl --create",
        "seasoned memory import agent.db trajectories.json --format atif --dry-run",
    ),
)
@memory_argument
@click.argument("source", metavar="FILE")
@click.option(
    "--format",
    "format_",
    type=click.Choice([JSONL, *FORMATS.names()]),
    default=JSONL,
    show_default=True,
    help="What FILE holds: our export, ATIF trajectories, OpenTelemetry GenAI spans, chat completions.",
)
@click.option("--create", is_flag=True, help="Make the memory, and the namespace named in an export, if need be.")
@click.option("--skip-refused", is_flag=True, help="Import the rest of a foreign file whose lines are partly refused.")
@click.option("--dry-run", is_flag=True, help="Say what would be imported; write nothing.")
@click.option(
    "--redact", metavar="RULES", help=f"Replace secrets before anything is stored: {','.join(REDACTION_RULES)}, or all."
)
@click.option("--evaluation", metavar="NAME", help="Of otel: the evaluation whose score is the reward.")
@namespace_option
@json_option
def import_(
    path: str,
    source: str,
    format_: str,
    create: bool,
    skip_refused: bool,
    dry_run: bool,
    redact: str | None,
    evaluation: str | None,
    namespace: str | None,
    as_json: bool,
) -> None:
    """Store what a file holds.

    What is stored already is left alone, so importing twice is safe. Our own lines are stored all or none. Of a foreign
    file each line that cannot be an episode is refused, with its reason; then nothing is stored, unless --skip-refused
    is given. FILE `-` reads stdin.
    """
    settings = {} if redact is None else {"redact": _redactor(redact)}
    lines = _source(source)
    if format_ == JSONL:
        if evaluation is not None or skip_refused:
            raise InputError("--evaluation or --skip-refused", "our own lines are stored all or none", "Leave it out.")
        found = _import_ours(path, source, lines, create, dry_run, namespace, settings)
    else:
        found = _import_foreign(path, lines, format_, evaluation, create, skip_refused, dry_run, namespace, settings)
    if as_json:
        echo_json(found)
        return
    would = "would be" if dry_run else "is" if found["episodes"] == 1 else "are"
    name = excerpt(found["namespace"])
    if format_ == JSONL:
        echo_text(
            f"{counted(found['episodes'], 'episode')} and {counted(found['feedback'], 'feedback event')} {would} new "
            f"in namespace {name}"
        )
    else:
        echo_text(
            f"{counted(found['read'], 'episode')} with {counted(found['steps'], 'step')} read, "
            f"{found['without_reward']} without a reward, {counted(found['refused'], 'line')} refused; "
            f"{counted(found['episodes'], 'episode')} {would} new in namespace {name}"
        )


def _redactor(rules: str) -> Redactor:
    return Redactor() if rules == "all" else Redactor([rule.strip() for rule in rules.split(",")])


def _source(source: str) -> Lines:
    """Return what reads the lines of a file, or of stdin, as often as it is called; a line too long is refused."""
    if source == "-":
        held = list(bounded_lines(sys.stdin.buffer))
        return lambda: iter(held)

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


def _import_ours(
    path: str, source: str, lines: Lines, create: bool, dry_run: bool, namespace: str | None, settings: dict[str, Any]
) -> dict[str, Any]:
    kinds = {"episodes": 0, "feedback": 0, "quarantines": 0, "notes": 0}
    for _, item in parse_lines(_decoded(lines())):  # refused before a file is made
        kinds[counted_as(item)] += 1
    first = next((line for line in _decoded(lines()) if line.strip()), None)
    if first is None:
        raise InputError(f"{source} is empty", "an export must have a header at least", "Export again.")
    record = json.loads(first)
    header = record if record.get("type") == "header" else {}
    with _opened(path, namespace, header, create, dry_run, settings) as memory:
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
            "a file is imported whole" if refusals else "a file holds an episode at least",
            "Mend it, or pass --skip-refused; nothing was imported."
            if accepted
            else f"Is it {format_}? Nothing was imported.",
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
    with _opened(path, namespace, {}, create, dry_run, settings) as memory:
        new = memory.import_episodes(((one.episode, one.created_at) for one in accepted), dry_run=dry_run)
        return {"namespace": memory.namespace, "episodes": new, **found}


def _opened(
    path: str, namespace: str | None, header: dict[str, Any], create: bool, dry_run: bool, settings: dict[str, Any]
) -> Memory:
    """Open a memory; where `create` says so, made with the namespace, the encoder and the discount of the header.

    A dry run makes nothing: what is not there yet is stood in for by a memory in RAM.
    """
    from seasoned.build import known_namespaces, open_memory

    if not create:
        return writing(path, namespace, **settings)
    name = header.get("namespace") if namespace is None else namespace
    known = known_namespaces(path)
    if name not in known and not (name is None and known):
        if "encoder" in header:
            settings = {**settings, "encoder": encoder_from_identity(header["encoder"])}
        settings = {**settings, "gamma": header.get("gamma")}
        if dry_run:
            return open_memory(IN_RAM, namespace=name, create=True, **settings)
    return open_memory(path, namespace=name, create=True, **settings)
