"""Manifest of a namespace: ids and hashes, sufficient to compare and merge two namespaces without their texts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.values.events import Event
from seasoned.memory.values.selection import Quarantine

__all__ = ["EpisodeDigest", "Manifest", "NoteDigest", "read_manifest"]


class EpisodeDigest(NamedTuple):
    """A stored episode without its texts; a pending episode has a negative ordinal."""

    ordinal: int
    created_at: float
    digest: bytes


class NoteDigest(NamedTuple):
    """A note without its text."""

    digest: bytes
    revoked_at: float | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The raw content of one namespace: each kind of record by id, in the stored order."""

    episodes: dict[str, EpisodeDigest]
    events: dict[str, tuple[bytes, Event]]
    quarantines: dict[str, tuple[bytes, Quarantine]]
    notes: dict[str, NoteDigest]

    def fingerprints(self) -> tuple[dict[str, bytes], dict[str, bytes], dict[str, bytes], dict[str, bytes]]:
        """Return a fingerprint of each episode, event, quarantine and note; equal content has equal fingerprints."""
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
        """Return the hash of `Memory.verify`, from the stored hashes, which are not checked here."""
        running = hashlib.sha256(b"seasoned:namespace:v1\n")
        for by_id in self.fingerprints():
            for fingerprint in by_id.values():
                running.update(fingerprint)
        return running.hexdigest()


def read_manifest(store: Store, namespace_id: int) -> Manifest:
    """Return a namespace's manifest, inside the caller's snapshot or transaction; pending episodes come last."""
    reader = Reader(store, namespace_id)
    rows = store.execute(
        "SELECT id, ordinal, created_at, digest FROM episode WHERE namespace_id = ? ORDER BY ordinal", (namespace_id,)
    ).fetchall()
    rows.sort(key=lambda row: row[1] < 0)
    notes = store.execute(
        "SELECT id, digest, revoked_at FROM note WHERE namespace_id = ? ORDER BY created_at, id", (namespace_id,)
    ).fetchall()
    return Manifest(
        {id_: EpisodeDigest(ordinal, created_at, bytes(digest)) for id_, ordinal, created_at, digest in rows},
        {event.id: (bytes(digest), event) for digest, event in reader.events()},
        {quarantine.id: (bytes(digest), quarantine) for digest, quarantine in reader.quarantines()},
        {id_: NoteDigest(bytes(digest), revoked_at) for id_, digest, revoked_at in notes},
    )
