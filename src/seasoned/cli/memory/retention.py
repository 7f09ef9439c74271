"""`seasoned memory prune`, `quarantine`, `quarantines`, `release` and `erase`: quarantine and deletion."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import click

from seasoned.cli.format.output import echo_fields, echo_json, echo_table, echo_text, one_line, printable
from seasoned.cli.format.size import size_bytes
from seasoned.cli.format.suggestions import caught
from seasoned.cli.format.time_text import age_s, shown_time, time_s
from seasoned.cli.memory.common_options import (
    example,
    find_episode,
    json_option,
    memory_argument,
    namespace_option,
    reading,
    writing,
)
from seasoned.errors import InputError, StoreError, counted, excerpt
from seasoned.memory import Budget, Copy, Erasure, Memory, Pruning, Quarantine, Selection

__all__ = ["erase", "prune", "quarantine", "quarantines", "release"]

_LISTED = 20

_dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would go; change nothing.")
_yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def _refuse_unasked(command: str, *, yes: bool, dry_run: bool) -> None:
    """Refuse to take anything away where nobody can be asked and nobody has said yes.

    Raises:
        InputError: as said.
    """
    if not yes and not dry_run and not sys.stdin.isatty():
        raise InputError(
            f"{command} without a terminal",
            "what is taken away is gone for good, so that you are asked first",
            "Add --yes, or look with --dry-run.",
        )


def _ask(question: str) -> None:
    click.confirm(question, abort=True, err=True)


def _listed(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
    return ", ".join(one_line(id_, 40) for id_ in ids[:_LISTED]) + more


# ---------------------------------------------------------------------------------------------- pruning


@click.command(
    epilog=example(
        "seasoned memory prune agent.db --steps 1000000 --dry-run", "seasoned memory prune agent.db --age 90d --yes"
    )
)
@memory_argument
@click.option("--steps", type=int, metavar="N", help="Keep at most this many steps.")
@click.option("--bytes", "size", metavar="SIZE", help="Keep at most this much content: bytes, or 500k, 20M, 2G.")
@click.option("--age", metavar="AGE", help="Keep nothing stored longer ago: days, or 12h, 30d, 2w.")
@_dry_run_option
@_yes_option
@namespace_option
@json_option
def prune(
    path: str,
    steps: int | None,
    size: str | None,
    age: str | None,
    dry_run: bool,
    yes: bool,
    namespace: str | None,
    as_json: bool,
) -> None:
    """Take the least valuable episodes away, for good.

    Until the namespace fits the budget: first what is too old; then aborted episodes, quarantined ones, and those that
    tell least: old ones, at states met once, with actions that many other steps know. Exports and backups keep it.
    """
    n_bytes = None if size is None else size_bytes("--bytes", size)
    budget = Budget(steps=steps, bytes=n_bytes, age_s=None if age is None else age_s(age))
    _refuse_unasked("pruning", yes=yes, dry_run=dry_run)
    if dry_run:
        _echo_pruning(reading(path, namespace, lambda memory: memory.prune(budget, dry_run=True)), as_json)
        return
    with writing(path, namespace) as memory:
        if not yes:
            planned = memory.prune(budget, dry_run=True)
            if planned.episodes:
                steps_gone = counted(planned.steps, "step")
                _ask(f"Take {counted(len(planned.episodes), 'episode')} with {steps_gone} away for good?")
        _echo_pruning(memory.prune(budget), as_json)


def _echo_pruning(found: Pruning, as_json: bool) -> None:
    if as_json:
        document = dataclasses.asdict(found)
        del document["ordinals"]
        echo_json(document)
        return
    verb = "went" if found.done else "would go"
    if not found.episodes:
        echo_text(f"nothing {verb}: the budget holds")
        return
    reasons = ", ".join(f"{count} by {reason}" for reason, count in found.reasons.items())
    echo_fields(
        {
            verb: f"{counted(len(found.episodes), 'episode')} ({reasons}): {_listed(found.episodes)}",
            "steps": f"{found.steps_before} to {found.steps_before - found.steps}",
            "bytes of content": f"{found.bytes_before} to {found.bytes_before - found.bytes}",
        }
    )
    if found.done:
        echo_text("the file shrinks with: seasoned memory compact")


# ---------------------------------------------------------------------------------------------- quarantine


@click.command(
    epilog=example(
        'seasoned memory quarantine agent.db --model tiny-2 --since 2026-01-31 --reason "it was misconfigured"',
        'seasoned memory quarantine agent.db --source judge --reason "a bad prompt" --dry-run',
    )
)
@memory_argument
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is stored.")
@click.option("--episode", metavar="ID", help="This episode.")
@click.option("--source", metavar="NAME", help="Feedback of this source.")
@click.option("--task", metavar="TASK", help="Episodes of this task.")
@click.option("--model", metavar="NAME", help="Episodes of this model.")
@click.option("--policy", metavar="NAME", help="Episodes of this policy.")
@click.option("--arm", metavar="NAME", help="Episodes of this arm.")
@click.option("--subject", metavar="NAME", help="Episodes about this subject.")
@click.option("--since", metavar="TIME", help="What was stored then or later: ISO 8601, or seconds since 1970.")
@click.option("--until", metavar="TIME", help="What was stored before then.")
@click.option("--dry-run", is_flag=True, help="Count what is stored and selected; change nothing.")
@namespace_option
@json_option
def quarantine(
    path: str,
    reason: str,
    since: str | None,
    until: str | None,
    dry_run: bool,
    namespace: str | None,
    as_json: bool,
    **values: str | None,
) -> None:
    """Set episodes or feedback aside, reversibly.

    Prints the quarantine's id. Selected is what fits all the options; a time alone selects both. It stays stored, but
    is not found and is no evidence, nor is what comes in later and fits. See also: quarantines, release.
    """
    selection = Selection(
        **values,
        since=None if since is None else time_s("--since", since),
        until=None if until is None else time_s("--until", until),
    )

    def whole(memory: Memory) -> Selection:
        if selection.episode is None:
            return selection
        return dataclasses.replace(selection, episode=find_episode(memory, selection.episode).id)

    if dry_run:
        n_episodes, n_events, nothing = reading(path, namespace, lambda memory: caught(memory, whole(memory)))
        id_ = None
    else:
        with writing(path, namespace) as memory:
            selection = whole(memory)
            id_ = memory.quarantine(selection, reason)
            n_episodes, n_events, nothing = caught(memory, selection)
    if as_json:
        echo_json({"id": id_, "episodes": n_episodes, "feedback": n_events})
    elif id_ is None:
        echo_text(f"{counted(n_episodes, 'episode')} and {counted(n_events, 'feedback event')} are selected")
        for line in nothing:
            click.echo(printable(line), err=True)
    else:
        echo_text(id_)
        held = f"{counted(n_episodes, 'episode')} and {counted(n_events, 'feedback event')} set aside"
        if n_episodes or n_events:
            click.echo(f"{held}; so is what comes in later and fits", err=True)
            return
        for line in (*nothing, f"{held} now; it stays for what comes in later and fits"):
            click.echo(printable(line), err=True)
        click.echo(printable(f"to take it back: seasoned memory release {path} {id_}"), err=True)


@click.command(epilog=example("seasoned memory quarantines agent.db"))
@memory_argument
@namespace_option
@json_option
def quarantines(path: str, namespace: str | None, as_json: bool) -> None:
    """List the quarantines, released ones included.

    Each with how many episodes and feedback events fit it now.
    """

    def ask(memory: Memory) -> list[tuple[Quarantine, tuple[int, int]]]:
        return [(one, memory.selected(one.selection)) for one in memory.quarantines()]

    found = reading(path, namespace, ask)
    if as_json:
        documents = [
            {**one.record(), "lifted_at": one.lifted_at, "episodes": n_episodes, "feedback": n_events}
            for one, (n_episodes, n_events) in found
        ]
        echo_json({"quarantines": documents})
        return
    rows = [
        [
            one.id,
            shown_time(one.created_at),
            "-" if one.lifted_at is None else shown_time(one.lifted_at),
            str(n_episodes),
            str(n_events),
            ", ".join(f"{name} {one_line(_shown(value), 40)}" for name, value in one.selection.record().items()),
            one_line(one.reason),
        ]
        for one, (n_episodes, n_events) in found
    ]
    columns = ["id", "since", "released", "episodes", "feedback", "selected", "reason"]
    echo_table(columns, rows, right=("episodes", "feedback"))


def _shown(value: Any) -> str:
    return shown_time(value) if isinstance(value, float) else str(value)


@click.command(epilog=example("seasoned memory release agent.db 0c9d5f6e2b7a4c0f8f1d3a5b7c9e1f20"))
@memory_argument
@click.argument("quarantine_id")
@namespace_option
@json_option
def release(path: str, quarantine_id: str, namespace: str | None, as_json: bool) -> None:
    """End a quarantine: what it held counts again.

    Unless another one holds it. Releasing twice changes nothing.
    """
    with writing(path, namespace) as memory:
        meant = [one.id for one in memory.quarantines() if one.id.startswith(quarantine_id)]
        if len(meant) > 1:
            raise InputError(
                f"quarantine {excerpt(quarantine_id)}",
                f"a short id means one, and {len(meant)} begin like this",
                "Write more of it.",
            )
        full_id = meant[0] if meant else quarantine_id
        memory.release(full_id)
    if as_json:
        echo_json({"id": full_id})
    else:
        echo_text(f"released {full_id}")


# ---------------------------------------------------------------------------------------------- erasure


@click.command(
    epilog=example(
        "seasoned memory erase agent.db --subject customer-17 --dry-run",
        "seasoned memory erase agent.db --subject customer-17 --yes",
    )
)
@memory_argument
@click.option("--subject", required=True, metavar="NAME", help="Whom to forget.")
@_dry_run_option
@_yes_option
@namespace_option
@json_option
def erase(path: str, subject: str, dry_run: bool, yes: bool, namespace: str | None, as_json: bool) -> None:
    """Erase a subject from a namespace, for good.

    What goes: the episodes about it, the feedback it gave as an author, and every text that only they had, from the
    file's free space and its log too. What it cannot reach is listed: exports, backups, other namespaces.
    """
    _refuse_unasked("erasing", yes=yes, dry_run=dry_run)
    others = sorted(Memory.namespaces(path))
    if dry_run:
        found, name = reading(path, namespace, lambda memory: (memory.erase(subject, dry_run=True), memory.namespace))
        others.remove(name)
        _echo_erasure(found, others, as_json)
        return
    with writing(path, namespace) as memory:
        others.remove(memory.namespace)
        planned = memory.erase(subject, dry_run=True)
        if not yes:
            steps, events = counted(planned.steps, "step"), counted(planned.feedback, "feedback event")
            said = f"{events} and {counted(planned.notes, 'note')}" if planned.notes else events
            _ask(f"Erase {counted(len(planned.episodes), 'episode')} with {steps}, and {said}, for good?")
        try:
            erased = memory.erase(subject)
        except StoreError:
            # It may be gone from the store, and not yet from its log: then nobody could ask for this list again.
            _echo_beyond(planned.copies, others)
            raise
    _echo_erasure(erased, others, as_json)


def _echo_erasure(found: Erasure, others: list[str], as_json: bool) -> None:
    if as_json:
        document = dataclasses.asdict(found)
        del document["ordinals"]
        echo_json({**document, "other_namespaces": others})
        return
    verb = "erased" if found.done else "would be erased"
    episodes = counted(len(found.episodes), "episode") + (f": {_listed(found.episodes)}" if found.episodes else "")
    echo_fields(
        {
            verb: episodes,
            "steps": found.steps,
            "feedback": found.feedback,
            "notes": found.notes,
            "quarantines": len(found.quarantines),
        }
    )
    _echo_beyond(found.copies, others)


def _echo_beyond(copies: tuple[Copy, ...], others: list[str]) -> None:
    """Say what may still hold what was erased."""
    echo_text("")
    if copies:
        echo_text("these copies were made meanwhile and may still hold it:")
        rows = [[one.kind, shown_time(one.created_at), one_line(one.path, 1000)] for one in copies]
        echo_table(["copy", "made", "path"], rows)
    else:
        echo_text("no export or backup was noted that may still hold it")
    if others:
        echo_text(f"other namespaces were left alone: {', '.join(one_line(name, 40) for name in others)}")
    echo_text(
        "not reached either: exports to stdout, copies made by other programs, the model's answers that a run keeps "
        "(answers.db, or its --cache), logs, snapshots of the disk"
    )
