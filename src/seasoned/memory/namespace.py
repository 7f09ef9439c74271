"""Namespaces of a store: the caller's key, filtered in every query."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from seasoned.errors import EncoderMismatchError, NotFoundError, excerpt
from seasoned.memory.pending.inbox import derive_pending
from seasoned.memory.stores.atomic_file import StoreFile
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.registry import open_store
from seasoned.memory.values.encoder_mismatch import told_apart
from seasoned.memory.writing.episode_writer import Writer
from seasoned.protocols import StateEncoder
from seasoned.sqlite_connection import store_errors

__all__ = ["DEFAULT_GAMMA", "Namespace", "enter_namespace", "list_namespaces", "names_in_file"]

DEFAULT_GAMMA = 0.95


@dataclass(frozen=True, slots=True)
class Namespace:
    """An entered namespace: its number in the store, its name, and the discount to use."""

    id: int
    name: str
    gamma: float


def list_namespaces(path: str | os.PathLike[str], *, read_only: bool) -> dict[str, str]:
    """Return each namespace of a store with the identity of its encoder; see `Memory.namespaces`."""
    store = open_store(path, create=False, read_only=read_only)
    try:
        return store.retrying(lambda: _list(store))
    finally:
        store.close()


def _list(store: Store) -> dict[str, str]:
    with store.snapshot():
        return dict(
            store.execute(
                f"SELECT name, encoder FROM namespace WHERE {store.tenant_condition} ORDER BY name"
            ).fetchall()
        )


def names_in_file(path: Path) -> list[str]:
    """Return the namespaces of an SQLite file of any schema version, which is not brought up to date.

    Raises:
        ForeignStoreError, NewerStoreError, StoreError: as for `Memory.open`.
    """
    with contextlib.closing(StoreFile(path, "ro")) as file, file.lock, store_errors(str(path), "Restore a backup."):
        file.schema()
        return [name for (name,) in file.connection.execute("SELECT name FROM namespace")]


def enter_namespace(
    store: Store, name: str, gamma: float | None, encoder: StateEncoder, *, create: bool, reindex: bool
) -> Namespace:
    """Find a namespace, or make it; encode it again if that was asked for.

    Raises:
        NotFoundError: it does not exist, and `create` is False.
        EncoderMismatchError: it was encoded by another encoder, and `reindex` is False.

    What the encoder itself raises at a state is passed on; the namespace is then encoded as it was.
    """
    find = f"SELECT id, encoder, gamma FROM namespace WHERE name = ? AND {store.tenant_condition}"
    with store.snapshot():
        row = store.execute(find, (name,)).fetchone()
    if row is None:
        if not create:
            known = ", ".join(map(repr, _list(store)))
            advice = "Choose one." if known else "Record an episode first, or import one."
            raise NotFoundError(f"namespace {excerpt(name)}", f"this memory has {known or 'none'}", advice)
        _make(store, name, DEFAULT_GAMMA if gamma is None else gamma, encoder)
        with store.snapshot():
            row = store.execute(find, (name,)).fetchone()
    if row[1] != encoder.identity:
        if not reindex:
            ours, theirs = told_apart(encoder.identity, row[1])
            raise EncoderMismatchError(
                f"encoder {ours}",
                f"namespace {name!r} was encoded by {theirs}; features of two encoders are never mixed",
                "Open it with that encoder, or pass reindex=True to encode it again.",
            )
        with store.transaction(row[0]):
            writer = Writer(store, row[0], encoder)
            writer.reindex()
            if store.pending is not None:
                store.pending.lock(row[0])  # a concurrent `add` waits, and then sees the new encoder
            derive_pending(store, row[0], writer)  # a state that this encoder refuses would block every reader
    return Namespace(row[0], name, row[2] if gamma is None else gamma)


def _make(store: Store, name: str, gamma: float, encoder: StateEncoder) -> None:
    """Make a namespace with the view that it will be asked for, so that a read-only reader finds it."""
    store.check_key("namespace", name)
    with store.transaction(None):
        made = store.execute(
            "INSERT INTO namespace (name, encoder, gamma, created_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING RETURNING id",
            (name, encoder.identity, gamma, time.time()),
        ).fetchone()
        if made:  # else another process was quicker
            Writer(store, made[0], encoder).ensure_view(gamma, 1.0)
