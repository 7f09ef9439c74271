"""`seasoned memory backup`, `restore`, `diff`, `merge`, `compact` and `migrate`: maintenance of stores."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from seasoned.cli.format.output import Table, echo_hint, json_option, present, printable_line
from seasoned.cli.format.value_text import listed
from seasoned.cli.memory.access import memory_command
from seasoned.cli.params import example, overwrite_option
from seasoned.errors import InputError, excerpt
from seasoned.memory.stores.registry import display_path, store_kind
from seasoned.memory.values.encoder_mismatch import excerpts_at_difference

__all__ = ["backup", "compact", "diff", "merge", "migrate", "restore"]

DIFFERENT = 1
"""Exit code of `diff` if the memories differ."""

_LISTED = 10

# ---------------------------------------------------------------------------------------------- backups


@click.command(epilog=example("seasoned memory backup agent.db agent-2026-01-31.db"))
@click.argument("source", metavar="MEMORY")
@click.argument("target", metavar="FILE")
@overwrite_option
@json_option
def backup(source: str, target: str, overwrite: bool) -> None:
    """Copy a memory into one file, while others write.

    The copy is a snapshot of one instant, and is checked before it gets its name. MEMORY may be postgresql://...; FILE
    is a file.
    """
    from seasoned.memory.maintenance.backup import backup

    copy = backup(source, target, overwrite=overwrite)
    _present_copy(copy)
    if not copy.noted:
        click.echo("warning: the memory could not be written, so an erasure will not list this backup", err=True)


@click.command(epilog=example("seasoned memory restore agent-2026-01-31.db agent.db --overwrite"))
@click.argument("source", metavar="BACKUP")
@click.argument("target", metavar="MEMORY")
@overwrite_option
@json_option
def restore(source: str, target: str, overwrite: bool) -> None:
    """Restore a memory from a backup, checked first.

    Restores all of it or nothing: on a failure MEMORY is unchanged. A memory that a process has open is not
    overwritten. MEMORY may be an empty database, postgresql://...
    """
    from seasoned.memory.maintenance.backup import restore

    _present_copy(restore(source, target, overwrite=overwrite))


def _present_copy(copy: Any) -> None:
    present(copy, {"target": copy.target, "bytes": copy.bytes, "schema": copy.schema}, _hashes(copy.hashes))
    newest = store_kind(copy.target).schema_version
    if copy.schema < newest:
        echo_hint(
            f"it was copied unchanged, with the older schema {copy.schema}; to bring it to schema {newest}: "
            f"seasoned memory migrate {shlex.quote(copy.target)}"
        )


def _hashes(hashes: Mapping[str, str | None]) -> Table:
    unknown = "(the encoder is unknown here: only SQLite checked it)"
    return Table(
        ["namespace", "hash"], [[printable_line(name, 40), hash_ or unknown] for name, hash_ in hashes.items()]
    )


# ---------------------------------------------------------------------------------------------- diff


@click.command(epilog=example("seasoned memory diff agent.db agent-2026-01-31.db"))
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--namespace", "-n", metavar="NAME", help="Compare only this namespace.  [default: all]")
@click.option("--other", metavar="NAME", help="Name of that namespace in B.  [default: the same]")
@json_option
@click.pass_context
def diff(ctx: click.Context, a: str, b: str, namespace: str | None, other: str | None) -> None:
    """Show how memory B differs from memory A.

    Ends with exit code 0 if their content is equal (as the hashes of `verify` tell), and with 1 if it differs. Encoder
    and gamma are settings: they are shown if they differ.
    """
    from seasoned.memory.maintenance.diff import diff_stores

    if other is not None and namespace is None:
        raise click.UsageError("--other is another name of --namespace; give both")
    found = diff_stores(a, b, namespace=namespace, other=other)
    present(
        {"equal": found.equal, **dataclasses.asdict(found)},
        *(f"namespace {name!r} is only in A" for name in found.only_in_a),
        *(f"namespace {name!r} is only in B" for name in found.only_in_b),
        *(part for name, one in found.namespaces.items() for part in _differences(name, one)),
        "equal" if found.equal else "different",
    )
    if not found.equal:
        ctx.exit(DIFFERENT)


def _differences(name: str, found: Any) -> list[str | Table]:
    parts: list[str | Table] = []
    for setting, (in_a, in_b) in (("encoder", found.encoders), ("gamma", found.gammas)):
        if in_a != in_b:
            text_a, text_b = excerpts_at_difference(in_a, in_b) if setting == "encoder" else (in_a, in_b)
            parts.append(f"{name}: {setting} {text_a} in A, {text_b} in B")
    for kind in ("episodes", "feedback", "quarantines", "notes"):
        one = getattr(found, kind)
        for ids, where in ((one.only_in_a, "only in A"), (one.only_in_b, "only in B")):
            if ids:
                parts.append(f"{name}: {len(ids)} {kind} {where}: {listed(ids, _LISTED)}")
        if one.changed:
            rows = [[printable_line(c.id, 40), c.field, c.a, c.b] for c in one.changed[:_LISTED]]
            parts += [f"{name}: {len(one.changed)} {kind} with other content", Table(["id", "field", "a", "b"], rows)]
        if one.reordered:
            parts.append(f"{name}: the {kind} in both are in another order")
    return parts


# ---------------------------------------------------------------------------------------------- merge


@click.command(
    epilog=example("seasoned memory merge team.db ada.db bob.db", "seasoned memory merge team.db ada.db -n shop")
)
@click.argument("target", metavar="TARGET")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--namespace", "-n", metavar="NAME", help="Merge only this namespace.  [default: all]")
@json_option
def merge(target: str, sources: tuple[str, ...], namespace: str | None) -> None:
    """Add the episodes of other memories to TARGET.

    Each memory is a file or postgresql://...; the sources are not changed. TARGET is created if it does not exist. If
    an id has different content in two memories, nothing is written. Merging again changes nothing.
    """
    from seasoned.memory.transfer.merge import merge

    merged = merge(target, *sources, namespace=namespace)
    columns = ["namespace", "episodes", "feedback", "quarantines", "notes", "changed"]
    rows = [
        [printable_line(one.namespace, 40), *(str(getattr(one, name)) for name in columns[1:])]
        for one in merged.namespaces
    ]
    present(merged, Table(columns, rows, right=columns[1:]))


# ---------------------------------------------------------------------------------------------- compact, migrate


@memory_command("seasoned memory compact agent.db", namespace=False)
def compact(path: str) -> None:
    """Shrink the file after pruning or erasing.

    Other processes may keep using it. Needs as much free disk space as the memory has content.
    """
    from seasoned.memory.maintenance.compaction import compact

    compacted = compact(path)
    fields = {
        "bytes before": compacted.bytes_before,
        "bytes after": compacted.bytes_after,
        "rewritten": "yes: no byte of deleted rows is left in it" if compacted.rewritten else "no",
    }
    present(compacted, fields, _hashes(compacted.hashes))
    if compacted.remains is not None:
        echo_hint(compacted.remains)


@memory_command(
    "seasoned memory migrate agent.db",
    "seasoned memory migrate postgresql://owner@db/agents --tenant shop --tenant desk --passwords tenants.txt",
    namespace=False,
)
@click.option("--tenant", multiple=True, metavar="NAME", help="Create this role if need be; repeatable.")
@click.option("--passwords", metavar="FILE", help="Passwords of the tenants, one NAME=PASSWORD a line.")
def migrate(path: str, tenant: tuple[str, ...], passwords: str | None) -> None:
    """Bring a store to this version's schema.

    The content does not change; migrating again does nothing. A PostgreSQL database is migrated as the role that owns
    the tables, or will own them. Each tenant is a role that sees only its own namespaces.
    """
    secrets = None if passwords is None else _read_passwords(passwords)
    report = store_kind(path).migrate(path, tenant, secrets)
    made, schema = report.made, report.version
    lines = [f"{display_path(path)} has schema {schema}"]
    for name in tenant:
        password = ", with the password given" if name in (secrets or {}) else ", no password given"
        lines.append(f"tenant {name}: {'created' if name in made else 'exists'}{password}")
    remarks = list(report.remarks)
    present(
        {"path": display_path(path), "schema": schema, "tenants": list(tenant), "made": list(made), "remarks": remarks},
        *lines,
        *remarks,
    )


def _read_passwords(file: str) -> dict[str, str]:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file}: {error}", "the passwords must be in a readable file", "Name a text file in UTF-8."
        ) from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        name, sign, password = line.partition("=")
        if not line.strip():
            continue
        if not sign or not name.strip() or not password:
            raise InputError(f"{file}, line {number}", "each line is NAME=PASSWORD", "Correct it.")
        if name.strip() in found:
            raise InputError(f"{file}, line {number}: {excerpt(name)} again", "a tenant has one password", "Remove it.")
        found[name.strip()] = password
    return found
