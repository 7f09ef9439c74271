"""A store of the first schema with data, for tests of the migration."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from seasoned.memory.stores.sqlite_schema import APPLICATION_ID, MIGRATIONS
from seasoned.types import normalize_action

__all__ = ["make_first_schema"]


def make_first_schema(path: Path, source: Path) -> None:
    """Copy a store into a new file of the first schema, without the columns and tables of later schemas."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute("PRAGMA journal_mode = WAL")
        old.executescript(MIGRATIONS[0])
        old.execute("ATTACH ? AS new", (str(source),))
        old.create_function("normalized", 1, normalize_action)
        old.execute("BEGIN")
        tables = [name for (name,) in old.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in old.execute(f"PRAGMA main.table_info({table})")]
            values = ["normalized(text)" if (table, name) == ("action", "key") else name for name in columns]
            old.execute(f"INSERT INTO main.{table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM new.{table}")
        old.execute("COMMIT")
        old.execute("DETACH new")
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        old.execute("PRAGMA user_version = 1")
