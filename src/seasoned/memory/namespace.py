"""Namespaces of a store: list, find, make, enter. Every query filters by namespace."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from seasoned.errors import EncoderMismatchError, NotFoundError, UnknownNameError, excerpt
from seasoned.memory.pending.inbox import derive_pending
from seasoned.memory.stores.atomic_file import StoreFile
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.registry import open_store
from seasoned.memory.values.corruption import decode, decode_first, decode_texts
from seasoned.memory.values.encoder_mismatch import excerpts_at_difference
from seasoned.memory.values.redacted import Redact
from seasoned.memory.values.redactor_record import (
    NO_REDACTOR,
    NOT_RECORDED,
    as_stored,
    identity_of,
    mismatch,
    redactor_of,
)
from seasoned.memory.writing.episode_writer import Writer
from seasoned.memory.writing.namespace_row import update_namespace_checksum, write_redaction
from seasoned.protocols import StateEncoder
from seasoned.sqlite_connection import store_errors

__all__ = [
    "DEFAULT_GAMMA",
    "Namespace",
    "NamespaceEntry",
    "enter_namespace",
    "find_entry",
    "list_entries",
    "list_namespaces",
    "make_namespace",
    "names_in_file",
    "recorded_namespace",
]

DEFAULT_GAMMA = 0.95
_LISTED = 10


@dataclass(frozen=True, slots=True)
class Namespace:
    """An entered namespace: its number in the store, its name, and the discount, encoder and redactor to use."""

    id: int
    name: str
    gamma: float
    encoder: StateEncoder
    redact: Redact | None


class NamespaceEntry(NamedTuple):
    """A row of the table `namespace`: its number, its encoder's identity, its discount, its redactor's identity."""

    id: int
    encoder: str
    gamma: float
    redaction: str


def list_namespaces(path: str | os.PathLike[str], *, read_only: bool) -> dict[str, str]:
    """Return each namespace of a store with the identity of its encoder; see `Memory.namespaces`."""
    with contextlib.closing(open_store(path, create=False, read_only=read_only)) as store:

        def attempt() -> dict[str, str]:
            with store.snapshot():
                return {name: entry.encoder for name, entry in list_entries(store).items()}

        return store.retrying(attempt)


def list_entries(store: Store) -> dict[str, NamespaceEntry]:
    """Return the caller's namespaces of a store by name, inside the caller's snapshot or transaction."""
    sql = f"SELECT name, id, encoder, gamma, redaction FROM namespace WHERE {store.tenant_condition} ORDER BY name"
    rows = store.execute(sql).fetchall()
    names = decode_texts(store.path, "namespace", rows)
    return dict(zip(names, decode(store.path, [row[1:] for row in rows], NamespaceEntry), strict=True))


def find_entry(store: Store, name: str) -> NamespaceEntry:
    """Return one namespace, inside the caller's snapshot.

    Raises:
        NotFoundError: the store does not have it.
    """
    entry = _find(store, name)
    if entry is None:
        known = ", ".join(map(repr, list(list_entries(store))[:_LISTED]))
        raise NotFoundError(f"namespace {excerpt(name)}", f"{store.path} has {known or 'none'}", "Choose one.")
    return entry


def _find(store: Store, name: str) -> NamespaceEntry | None:
    sql = f"SELECT id, encoder, gamma, redaction FROM namespace WHERE name = ? AND {store.tenant_condition}"
    return decode_first(store.path, store.execute(sql, (name,)).fetchall(), NamespaceEntry)


def make_namespace(store: Store, name: str, gamma: float, encoder: StateEncoder, redaction: str) -> int | None:
    """Make a namespace and its default view, inside a transaction; None if another process made it just now.

    A read-only reader cannot make the view later.
    """
    store.check_key("namespace", name)
    row = store.execute(
        "INSERT INTO namespace (name, encoder, gamma, redaction, created_at, checksum) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING RETURNING id",
        (name, encoder.identity, gamma, redaction, time.time(), b""),
    ).fetchone()
    if row is None:
        return None
    update_namespace_checksum(store, row[0])
    Writer(store, row[0], encoder).ensure_view(gamma, 1.0)
    return int(row[0])


def names_in_file(path: Path) -> list[str]:
    """Return the namespaces of an SQLite file of any schema version, which is not brought up to date.

    Raises:
        ForeignStoreError, NewerStoreError, StoreError: as for `Memory.open`.
    """
    with contextlib.closing(StoreFile(path, "ro")) as file, file.lock, store_errors(str(path), "Restore a backup."):
        file.schema()
        return [name for (name,) in file.connection.execute("SELECT name FROM namespace")]


def enter_namespace(
    store: Store,
    name: str,
    gamma: float | None,
    encoder: StateEncoder | None,
    redact: Redact | None,
    *,
    create: bool,
    reindex: bool,
) -> Namespace:
    """Find or make a namespace, and encode it again if `reindex` asks for it.

    Raises:
        NotFoundError: it does not exist, and `create` is False.
        EncoderMismatchError: it was encoded by another encoder, and `reindex` is False; or by one that is not built in,
            and none is passed.
        RedactionMismatchError: its texts went through another redactor than `redact`.

    An encoder's own error at a state is passed on; the namespace then keeps its encoding.
    """
    with store.snapshot():
        entry = _find(store, name)
    if entry is None:
        if not create:
            with store.snapshot():
                known = ", ".join(map(repr, list_entries(store)))
            advice = "Choose one." if known else "Record an episode first, or import one."
            raise NotFoundError(f"namespace {excerpt(name)}", f"this memory has {known or 'none'}", advice)
        first = _default_encoder() if encoder is None else encoder
        with store.transaction(None):
            make_namespace(store, name, DEFAULT_GAMMA if gamma is None else gamma, first, identity_of(redact))
        with store.snapshot():
            entry = find_entry(store, name)
    redact = _redactor(store, name, entry, redact)
    if encoder is None:
        encoder = _default_encoder() if reindex else _stored_encoder(name, entry.encoder)
    if entry.encoder != encoder.identity:
        if not reindex:
            _check_encoder(name, encoder, entry)
        with store.transaction(entry.id):
            writer = Writer(store, entry.id, encoder)
            writer.reindex()
            if store.pending is not None:
                store.pending.lock(entry.id)  # a concurrent `add` waits, and then sees the new encoder
            derive_pending(store, entry.id, writer)  # a state that this encoder refuses would block every reader
    return Namespace(entry.id, name, entry.gamma if gamma is None else gamma, encoder, redact)


def recorded_namespace(
    name: str, entry: NamespaceEntry, gamma: float | None, encoder: StateEncoder | None, redact: Redact | None
) -> Namespace:
    """Return a namespace as a spool recorded it, while its store is down.

    Raises:
        EncoderMismatchError, RedactionMismatchError: as for `enter_namespace`.
    """
    if redact is None:
        redact = redactor_of(name, entry.redaction)
    elif redact is not as_stored and identity_of(redact) != entry.redaction:
        raise mismatch(name, entry.redaction, identity_of(redact))
    if encoder is None:
        encoder = _stored_encoder(name, entry.encoder)
    _check_encoder(name, encoder, entry)
    return Namespace(entry.id, name, entry.gamma if gamma is None else gamma, encoder, redact)


def _check_encoder(name: str, encoder: StateEncoder, entry: NamespaceEntry) -> None:
    if entry.encoder != encoder.identity:
        ours, theirs = excerpts_at_difference(encoder.identity, entry.encoder)
        raise EncoderMismatchError(
            f"encoder {ours}",
            f"namespace {name!r} was encoded by {theirs}; features of two encoders are never mixed",
            "Open it with that encoder (left out, a built-in one is the stored one), "
            "or pass reindex=True to encode it again.",
        )


def _default_encoder() -> StateEncoder:
    from seasoned.states.tokens import TokenEncoder  # a quarter of the package's import time

    return TokenEncoder()


def _stored_encoder(name: str, identity: str) -> StateEncoder:
    """Return the encoder that encoded a namespace.

    Raises:
        EncoderMismatchError: it is not built in.
    """
    default = _default_encoder()
    if identity == default.identity:
        return default
    from seasoned.states.encoder_identity import encoder_from_identity  # slow to import

    try:
        return encoder_from_identity(identity)
    except UnknownNameError:
        raise EncoderMismatchError(
            "encoder = None",
            f"namespace {name!r} was encoded by {excerpt(identity)}, which is not built in",
            "Pass the encoder object that made it, or pass another one with reindex=True to encode it again.",
        ) from None


def _redactor(store: Store, name: str, entry: NamespaceEntry, redact: Redact | None) -> Redact | None:
    """Return the redactor to use: the namespace's own, if none is passed. The first one is recorded.

    Raises:
        RedactionMismatchError: another one than the namespace's own is passed.
    """
    given = identity_of(redact)
    if redact is as_stored or given == entry.redaction:
        return redact
    if redact is None:
        return redactor_of(name, entry.redaction)
    if entry.redaction not in (NOT_RECORDED, NO_REDACTOR):
        raise mismatch(name, entry.redaction, given)
    if entry.redaction == NO_REDACTOR:
        with store.snapshot():
            if store.execute("SELECT 1 FROM episode WHERE namespace_id = ? LIMIT 1", (entry.id,)).fetchone():
                raise mismatch(name, entry.redaction, given)
    if not store.read_only:
        with store.transaction(entry.id):
            write_redaction(store, entry.id, given)
    return redact
