"""`seasoned memory backup`, `restore`, `diff`, `merge` and `compact`: what is done to whole stores."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

import click

from seasoned.cli.format.output import echo_fields, echo_json, echo_table, echo_text, one_line
from seasoned.cli.memory.common_options import example, json_option, memory_argument, overwrite_option
from seasoned.memory.stores.sqlite_schema import SCHEMA_VERSION
from seasoned.memory.values.encoder_mismatch import told_apart

__all__ = ["backup", "compact", "diff", "merge", "restore"]

DIFFERENT = 1
_LISTED = 10


def _echo_copied(copied: Any, as_json: bool) -> None:
    if as_json:
        echo_json(dataclasses.asdict(copied))
        return
    echo_fields({"target": copied.target, "bytes": copied.bytes, "schema": copied.schema})
    unknown = "(the encoder is not known here: SQLite alone checked it)"
    rows = [[one_line(name, 40), unknown if hash_ is None else hash_] for name, hash_ in copied.hashes.items()]
    echo_table(["namespace", "hash"], rows)
    if copied.schema < SCHEMA_VERSION:
        click.echo(
            f"it was copied as it is, with the older schema {copied.schema}; to bring it to schema {SCHEMA_VERSION}: "
            f"seasoned memory migrate {shlex.quote(copied.target)}",
            err=True,
        )


@click.command(epilog=example("seasoned memory backup agent.db agent-2026-01-31.db"))
@click.argument("source", metavar="MEMORY")
@click.argument("target", metavar="FILE")
@overwrite_option
@json_option
def backup(source: str, target: str, overwrite: bool, as_json: bool) -> None:
    """Copy a memory into one file, while others write.

    It is as of one instant, and checked before it gets its name. MEMORY may be postgresql://..., FILE is a file.
    """
    from seasoned.memory.maintenance.backup import backup

    copied = backup(source, target, overwrite=overwrite)
    _echo_copied(copied, as_json)
    if not copied.noted:
        click.echo("warning: the memory could not be written, so an erasure will not name this backup", err=True)


@click.command(epilog=example("seasoned memory restore agent-2026-01-31.db agent.db --overwrite"))
@click.argument("source", metavar="BACKUP")
@click.argument("target", metavar="MEMORY")
@overwrite_option
@json_option
def restore(source: str, target: str, overwrite: bool, as_json: bool) -> None:
    """Make a memory from a backup, checked first.

    All of it or nothing: on a failure MEMORY is as it was. A memory that somebody has open is not overwritten. MEMORY
    may be an empty database, postgresql://...
    """
    from seasoned.memory.maintenance.backup import restore

    _echo_copied(restore(source, target, overwrite=overwrite), as_json)


@click.command(epilog=example("seasoned memory diff agent.db agent-2026-01-31.db"))
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--namespace", "-n", metavar="NAME", help="Compare this one only. Default: all.")
@click.option("--other", metavar="NAME", help="What that one is called in B. Default: the same.")
@json_option
@click.pass_context
def diff(ctx: click.Context, a: str, b: str, namespace: str | None, other: str | None, as_json: bool) -> None:
    """Say how memory B differs from memory A.

    Ends with 0 if their content is equal (as the hashes of `verify` would say), with 1 if it is not. Encoder and gamma
    are settings: they are shown where they differ.
    """
    from seasoned.memory.maintenance.diff import diff_stores

    if other is not None and namespace is None:
        raise click.UsageError("--other is another name of --namespace; give both")
    found = diff_stores(a, b, namespace=namespace, other=other)
    if as_json:
        echo_json({"equal": found.equal, **dataclasses.asdict(found)})
    else:
        for name in found.only_in_a:
            echo_text(f"namespace {name!r} is only in A")
        for name in found.only_in_b:
            echo_text(f"namespace {name!r} is only in B")
        for name, one in found.namespaces.items():
            _echo_difference(name, one)
        echo_text("equal" if found.equal else "different")
    if not found.equal:
        ctx.exit(DIFFERENT)


def _echo_difference(name: str, found: Any) -> None:
    for setting, (in_a, in_b) in (("encoder", found.encoders), ("gamma", found.gammas)):
        if in_a != in_b:
            said_a, said_b = told_apart(in_a, in_b) if setting == "encoder" else (in_a, in_b)
            echo_text(f"{name}: {setting} {said_a} in A, {said_b} in B")
    for kind in ("episodes", "feedback", "quarantines", "notes"):
        one = getattr(found, kind)
        for ids, where in ((one.only_in_a, "only in A"), (one.only_in_b, "only in B")):
            if ids:
                echo_text(f"{name}: {len(ids)} {kind} {where}: {_listed(ids)}")
        if one.changed:
            echo_text(f"{name}: {len(one.changed)} {kind} with other content")
            rows = [[one_line(c.id, 40), c.field, c.a, c.b] for c in one.changed[:_LISTED]]
            echo_table(["id", "field", "a", "b"], rows)
        if one.reordered:
            echo_text(f"{name}: the {kind} that both have are in another order")


def _listed(ids: tuple[str, ...]) -> str:
    more = ", ..." if len(ids) > _LISTED else ""
    return ", ".join(one_line(id_, 40) for id_ in ids[:_LISTED]) + more


@click.command(
    epilog=example("seasoned memory merge team.db ada.db bob.db", "seasoned memory merge team.db ada.db -n shop")
)
@click.argument("target", metavar="TARGET")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--namespace", "-n", metavar="NAME", help="Merge this one only. Default: all.")
@json_option
def merge(target: str, sources: tuple[str, ...], namespace: str | None, as_json: bool) -> None:
    """Store in TARGET what it lacks of the sources.

    Each is a file or postgresql://...; the sources are left as they are. TARGET is made if it does not exist. If an id
    means two things, nothing is written. Merging again changes nothing.
    """
    from seasoned.memory.transfer.merge import merge

    done = merge(target, *sources, namespace=namespace)
    if as_json:
        echo_json(dataclasses.asdict(done))
        return
    columns = ["namespace", "episodes", "feedback", "quarantines", "notes", "changed"]
    rows = [
        [one_line(one.namespace, 40), *(str(getattr(one, name)) for name in columns[1:])] for one in done.namespaces
    ]
    echo_table(columns, rows, right=columns[1:])


@click.command(epilog=example("seasoned memory compact agent.db"))
@memory_argument
@json_option
def compact(path: str, as_json: bool) -> None:
    """Give free space back, after pruning or erasing.

    Others may go on. It needs as much free disk space as the memory has content.
    """
    from seasoned.memory.maintenance.compaction import compact

    done = compact(path)
    if as_json:
        echo_json(dataclasses.asdict(done))
        return
    echo_fields({"bytes before": done.bytes_before, "bytes after": done.bytes_after})
    echo_table(["namespace", "hash"], [[one_line(name, 40), hash_] for name, hash_ in done.hashes.items()])
