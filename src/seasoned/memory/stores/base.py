"""What the memory engine asks of a database. SQLite and PostgreSQL answer alike."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from seasoned.errors import InputError

__all__ = ["Cursor", "LookedUp", "Store", "Version", "is_url", "open_store", "shown"]

_T = TypeVar("_T")

LookedUp = dict[int, dict[str, dict[Any, Any]]]
"""By namespace and table, the numbers of what is stored."""


class Cursor(Protocol):
    """Rows, as the database's driver gives them."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return the next rows, at most so many."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Version(NamedTuple):
    """How far a namespace is: a mark that changes with every commit to it, but not with what arrives in it.

    `waiting` is the lowest number of what has arrived there, if anything has. What becomes visible later has a number
    that is at least `reached`, or one of `late`; where it is not known which those are (None), one from `settled` on.

    `generation` counts the connections. The server behind a new one may lack commits that an old one has shown, and
    have others of the same numbers: what was read before is then read anew. It is part of the mark, too.
    """

    mark: Hashable
    waiting: int | None = None
    generation: int = 0
    settled: int = 0
    reached: int = 0
    late: tuple[int, ...] | None = ()


class Store(Protocol):
    """One connection to one store. Its SQL is what SQLite 3.35 and PostgreSQL 14 both understand, with `?` marks.

    Attributes:
        path: what messages call it; a URL without its password.
        read_only: every write is refused.
        derives_later: an added episode is committed as it came, and derived by whoever looks next; see `arrivals`.
        own: an SQL condition on the table `namespace`: the caller's own ones.
        lock: held while the connection is in use.
    """

    path: str
    read_only: bool
    derives_later: bool
    own: str
    lock: threading.RLock

    @property
    def looked_up(self) -> LookedUp:
        """What was read or written and cannot have changed since. To be used inside a transaction of the namespace.

        The store forgets a namespace's when its epoch moved, and everything when a transaction failed: what that one
        numbered is numbered anew.
        """
        ...

    def check_open(self) -> None:
        """Raise StoreError if the store was closed."""
        ...

    def check_key(self, name: str, value: str) -> None:
        """Refuse a text that this database cannot keep as a key. Raises: InputError."""
        ...

    def execute(self, sql: str, parameters: tuple[Any, ...] = ()) -> Cursor:
        """Run one statement, inside a transaction or a snapshot."""
        ...

    def execute_in(self, sql: str, parameters: tuple[Any, ...], values: Sequence[Any]) -> list[Any]:
        """Run a statement that has `IN {values}` after its marks, for any number of values; return all rows."""
        ...

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write new rows, in the column order of `schema.COLUMNS`."""
        ...

    def upsert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write rows; a row of the same primary key is replaced."""
        ...

    def update(
        self, table: str, columns: tuple[str, ...], keys: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Change columns of rows: each row holds their new values, then those of its keys."""
        ...

    def transaction(
        self, namespace_id: int | None, *, wait_s: float | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """All of it or nothing. The writers of one namespace take turns, so that its numbers are in commit order.

        `wait_s`: for how long to wait for another writer; None for as long as the store does.
        """
        ...

    def commit(self, sql: str, parameters: tuple[Any, ...]) -> int:
        """Run one statement in a transaction of its own, and return how many rows it changed."""
        ...

    def waiting(self, namespace_id: int) -> list[int]:
        """Return the numbers of what has arrived, upwards; inside a transaction or a snapshot."""
        ...

    def look_anew(self, namespace_id: int) -> None:
        """Have the next look for arrivals rely on nothing that former looks have found."""
        ...

    def hold_arrivals(self, namespace_id: int) -> None:
        """Wait for what is just arriving, and let nothing more arrive until this transaction of the namespace ends."""
        ...

    def lacks_rights(self, error: Exception) -> bool:
        """Whether an error says that this user may not do what was asked."""
        ...

    def snapshot(self) -> contextlib.AbstractContextManager[None]:
        """Several reads of one and the same committed state."""
        ...

    def in_transaction(self) -> bool:
        """Whether this process has a transaction or a snapshot open."""
        ...

    def version(self, namespace_id: int) -> Version:
        """Its mark changes whenever a commit changes what is derived, by whomever. Its cost does not grow."""
        ...

    def retrying(self, attempt: Callable[[], _T]) -> _T:
        """Run what may be run again, and do so where the connection was lost and a retry can help."""
        ...

    def problems(self) -> list[str]:
        """Return what the database itself finds wrong with the store."""
        ...

    def size_bytes(self) -> int | None:
        """Return how large the store is, where it can be known."""
        ...

    def compact(self) -> None:
        """Give free space back, and leave no trace of what was deleted where the database can do so."""
        ...

    def close(self) -> None:
        """Close for good."""
        ...


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether this names a PostgreSQL database rather than a file."""
    return str(path).startswith(("postgresql://", "postgres://"))


def shown(path: str | os.PathLike[str]) -> str:
    """Return how a store is called in messages: a URL without its password.

    Example:
        >>> shown("postgresql://ann:secret@db/agents")
        'postgresql://ann:***@db/agents'
    """
    if not is_url(path):
        return str(path)
    masked = re.sub(r"^(postgres(?:ql)?://[^/@:]*:).*@", r"\1***@", str(path))
    return re.sub(r"([?&](?:ssl)?password=)[^&]*", r"\1***", masked)


def open_store(path: str | os.PathLike[str], *, create: bool, read_only: bool) -> Store:
    """Open a file or a PostgreSQL database.

    Raises:
        InputError, NotFoundError, ForeignStoreError, NewerStoreError, StoreError: see `Memory.open`.
    """
    if is_url(path):
        from seasoned.memory.stores.postgres.store import PostgresStore

        return PostgresStore(str(path), create=create, read_only=read_only)
    if re.match(r"[a-z][a-z0-9+.-]*://", str(path)):
        raise InputError(
            f"a URL that begins with {str(path).partition('//')[0]}//",
            "a store must be a file or postgresql://...",
            "Name one of these.",
        )
    from seasoned.memory.stores.sqlite import SqliteStore

    return SqliteStore(path, create=create, read_only=read_only)
