"""`seasoned memory migrate`: a store brought up to date, and the tenants of a shared one."""

from __future__ import annotations

from pathlib import Path

import click

from seasoned.cli.format.output import echo_json, echo_text
from seasoned.cli.memory.common_options import example, json_option, memory_argument
from seasoned.errors import InputError, excerpt
from seasoned.memory import Memory
from seasoned.memory.stores.registry import display_path, is_file
from seasoned.memory.stores.sqlite_schema import SCHEMA_VERSION

__all__ = ["migrate"]


@click.command(
    epilog=example(
        "seasoned memory migrate agent.db",
        "seasoned memory migrate postgresql://owner@db/agents --tenant shop --tenant desk --passwords tenants.txt",
    )
)
@memory_argument
@click.option("--tenant", "tenants", multiple=True, metavar="NAME", help="Make this role, if need be. Repeatable.")
@click.option("--passwords", metavar="FILE", help="Their passwords: a line NAME=PASSWORD for each.")
@json_option
def migrate(path: str, tenants: tuple[str, ...], passwords: str | None, as_json: bool) -> None:
    """Bring a store up to date, and make its tenants.

    Doing it again changes nothing, and nothing that is stored changes. A PostgreSQL database is migrated as the role
    that owns the tables, or shall own them; each tenant is a role that sees its own namespaces only.
    """
    if is_file(path):
        if tenants or passwords:
            raise InputError(f"tenants of the file {path}", "a file has none", "Name a postgresql:// database.")
        Memory.namespaces(path, read_only=False)
        made: tuple[str, ...] = ()
        schema = SCHEMA_VERSION
        secrets: dict[str, str] = {}
    else:
        from seasoned.memory.stores.postgres.tenants import migrate as migrate_database

        secrets = _read_passwords(passwords)
        report = migrate_database(path, tenants, secrets)
        made, schema = report.made, report.version
    if as_json:
        echo_json({"path": display_path(path), "schema": schema, "tenants": list(tenants), "made": list(made)})
        return
    echo_text(f"{display_path(path)} has schema {schema}")
    for tenant in tenants:
        password = ", with the password given" if tenant in secrets else ", no password given"
        echo_text(f"tenant {tenant}: {'made' if tenant in made else 'there already'}{password}")


def _read_passwords(file: str | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file}: {error}", "the passwords must be in a file that can be read", "Name a text file in UTF-8."
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
