"""What a namespace holds, by ids and hashes: enough to compare and to merge two without reading a text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from seasoned.errors import NotFoundError, excerpt
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.values.events import Event
from seasoned.memory.values.selection import Quarantine

__all__ = ["Contents", "Entry", "Noted", "Stored", "find_entry", "list_entries", "read_contents"]


class Stored(NamedTuple):
    """A stored episode without its texts. The ordinal is negative where it has arrived, and is not folded."""

    ordinal: int
    created_at: float
    digest: bytes


class Noted(NamedTuple):
    """A note without its text."""

    digest: bytes
    revoked_at: float | None


class Entry(NamedTuple):
    """A namespace of a store: its number there and its settings."""

    id: int
    encoder: str
    gamma: float


@dataclass(frozen=True, slots=True)
class Contents:
    """The raw content of one namespace, each kind by id in the order in which it is stored."""

    episodes: dict[str, Stored]
    events: dict[str, tuple[bytes, Event]]
    quarantines: dict[str, tuple[bytes, Quarantine]]
    notes: dict[str, Noted]

    def marks(self) -> tuple[dict[str, bytes], dict[str, bytes], dict[str, bytes], dict[str, bytes]]:
        """Return for each episode, event, quarantine and note what a hash is taken of: equal content, equal mark."""
        return (
            {id_: one.digest + repr(one.created_at).encode() for id_, one in self.episodes.items()},
            {
                id_: content + repr((one.revoked_at, one.superseded_by)).encode()
                for id_, (content, one) in self.events.items()
            },
            {id_: content + repr(one.lifted_at).encode() for id_, (content, one) in self.quarantines.items()},
            {id_: one.digest + repr(one.revoked_at).encode() for id_, one in self.notes.items()},
        )

    def hash(self) -> str:
        """Return the hash that `Memory.verify` computes, here from the stored hashes, which are taken as they are."""
        running = hashlib.sha256(b"seasoned:namespace:v1\n")
        for marks in self.marks():
            for mark in marks.values():
                running.update(mark)
        return running.hexdigest()


def list_entries(store: Store) -> dict[str, Entry]:
    """Return the caller's namespaces of a store by name, inside the caller's snapshot or transaction."""
    rows = store.execute(f"SELECT name, id, encoder, gamma FROM namespace WHERE {store.tenant_condition} ORDER BY name")
    return {name: Entry(*rest) for name, *rest in rows.fetchall()}


def find_entry(store: Store, name: str) -> Entry:
    """Return one namespace, inside the caller's snapshot.

    Raises:
        NotFoundError: the store does not have it.
    """
    known = list_entries(store)
    if name not in known:
        listed = ", ".join(map(repr, list(known)[:10]))
        raise NotFoundError(f"namespace {excerpt(name)}", f"{store.path} has {listed or 'none'}", "Choose one.")
    return known[name]


def read_contents(store: Store, namespace_id: int) -> Contents:
    """Return what a namespace holds, inside the caller's snapshot or transaction: what has arrived comes last."""
    reader = Reader(store, namespace_id)
    rows = store.execute(
        "SELECT id, ordinal, created_at, digest FROM episode WHERE namespace_id = ? ORDER BY ordinal", (namespace_id,)
    ).fetchall()
    rows.sort(key=lambda row: row[1] < 0)
    notes = store.execute(
        "SELECT id, digest, revoked_at FROM note WHERE namespace_id = ? ORDER BY created_at, id", (namespace_id,)
    ).fetchall()
    return Contents(
        {id_: Stored(ordinal, created_at, bytes(digest)) for id_, ordinal, created_at, digest in rows},
        {event.id: (bytes(digest), event) for digest, event in reader.events()},
        {quarantine.id: (bytes(digest), quarantine) for digest, quarantine in reader.quarantines()},
        {id_: Noted(bytes(digest), revoked_at) for id_, digest, revoked_at in notes},
    )
