"""Compaction: return free space to the file system."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from seasoned.errors import IntegrityError, UnknownNameError
from seasoned.memory.memory import Memory
from seasoned.memory.namespace import NamespaceEntry, list_entries
from seasoned.memory.retention.compaction_mark import rewrite
from seasoned.memory.stores.atomic_file import check_path
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.registry import is_file, open_store
from seasoned.memory.transfer.manifest import read_manifest
from seasoned.memory.transfer.merge import encoder_of
from seasoned.protocols import StateEncoder

__all__ = ["Compaction", "compact"]


@dataclass(frozen=True, slots=True)
class Compaction:
    """Result of a compaction; sizes are those of a file with its log; on a server, of the role's own tables.

    `hashes`: of each namespace afterwards; unchanged, except for namespaces with other writers meanwhile. `rewritten`:
    whether no byte of deleted rows is left in the tables; `remains`: where some may be, and the next step.
    """

    path: str
    bytes_before: int | None
    bytes_after: int | None
    hashes: dict[str, str]
    rewritten: bool
    remains: str | None


def compact(path: str | os.PathLike[str], *, encoder: StateEncoder | None = None) -> Compaction:
    """Return free space: empty the log and rewrite the file without free pages; on PostgreSQL, VACUUM (ANALYZE).

    Others may read and write meanwhile; writers wait during the rewrite. It needs as much free disk space as the store
    has content. The hashes are compared before and after, and each namespace with a known encoder is verified.

    Args:
        path: a file or `postgresql://...`.
        encoder: for namespaces whose encoder is not built in.

    Raises:
        NotFoundError, ForeignStoreError, NewerStoreError, StoreError: as for `Memory.open`.
        StoreBusyError: another process holds the lock, or an old snapshot, for too long; the content is unchanged.
        IntegrityError: the store is damaged.
    """
    check_path(path)
    with contextlib.closing(open_store(path, create=False, read_only=False)) as store:
        entries, before = _state(store)
        bytes_before = _size(path, store)
        done = rewrite(store)
        bytes_after = _size(path, store)
        _, after = _state(store)
        shown = store.path
    for name, (hash_, revision) in after.items():
        if name in before and before[name][1] == revision and before[name][0] != hash_:
            raise IntegrityError(
                f"{shown}: namespace {name!r} had hash {before[name][0]}, and has {hash_}",
                "a compaction must not change the content",
                "Restore a backup, and report this.",
            )
    for name in after.keys() & entries.keys():
        with contextlib.suppress(UnknownNameError):
            known = encoder_of(entries[name].encoder, encoder)
            with Memory.open(path, namespace=name, encoder=known, create=False, read_only=True) as memory:
                memory.verify()
    hashes = {name: hash_ for name, (hash_, _) in after.items()}
    return Compaction(shown, bytes_before, bytes_after, hashes, done.rewritten, done.remains)


def _state(store: Store) -> tuple[dict[str, NamespaceEntry], dict[str, tuple[str, int]]]:
    """Return the namespaces, and the hash and the revision number of each."""

    def attempt() -> tuple[dict[str, NamespaceEntry], dict[str, tuple[str, int]]]:
        with store.snapshot():
            entries = list_entries(store)
            revisions = dict(store.execute("SELECT id, revision FROM namespace").fetchall())
            return entries, {
                name: (read_manifest(store, entry.id).hash(), int(revisions[entry.id]))
                for name, entry in entries.items()
            }

    return store.retrying(attempt)


def _size(path: str | os.PathLike[str], store: Store) -> int | None:
    if not is_file(path):
        with store.snapshot():
            return store.size_bytes()
    files = [Path(path), Path(f"{os.fspath(path)}-wal")]
    return sum(file.stat().st_size for file in files if file.exists())
