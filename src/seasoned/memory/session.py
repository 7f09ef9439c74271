"""A session with one namespace of an open store: reads, writes, redaction."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from seasoned.errors import StoreError
from seasoned.memory.namespace import Namespace
from seasoned.memory.outage.outbox import Outbox
from seasoned.memory.pending.inbox import CachingEncoder, Inbox
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.values.redacted import Redaction
from seasoned.memory.values.spool_entry import SpoolEntry
from seasoned.memory.writing.episode_writer import Writer
from seasoned.memory.writing.silence import SETTLED_AT_ONCE, settle_overdue

__all__ = ["BackgroundRecorder", "Session"]

Answer = TypeVar("Answer")


class _RollBack(Exception):  # noqa: N818 - no error: it ends the transaction of a dry run
    pass


class BackgroundRecorder(Protocol):
    """Something that stores episodes in the background: wrapped clients do."""

    def settle(self, id_: str | None = None) -> None:
        """Wait until what has ended is stored; the open episode with this id, or of this response, ends."""

    def session_episode(self, id_: str, owner: str | None) -> str | None:
        """Return the id of the latest running episode of an owner's session; None: none runs."""

    def is_anothers(self, id_: str, owner: str) -> bool:
        """Return whether feedback on this id would end a running episode of another owner."""

    def close(self) -> None:
        """Store what is left."""


class Session:
    """One namespace of an open store, on which the parts of `Memory` are built.

    Each text that a caller passes goes through `redaction` before it is stored or looked up. The writers take only the
    types that `redaction` returns.

    Args:
        store: an open store.
        namespace: the namespace, as `enter_namespace` returned it.
        max_text_bytes: the largest text that is accepted, as UTF-8.
        outbox: takes writes while the store is down; None: their errors are raised.

    Attributes:
        probe: a read by which the recovery of a bounded store learns that it answers.
    """

    def __init__(
        self, store: Store, namespace: Namespace, *, max_text_bytes: int, outbox: Outbox | None = None
    ) -> None:
        self.store = store
        self.outbox = outbox
        self.namespace_id = namespace.id
        self.namespace = namespace.name
        self.gamma = namespace.gamma
        self.encoder = encoder = namespace.encoder
        self.max_text_bytes = max_text_bytes
        self.redaction = Redaction(namespace.redact, max_text_bytes)
        self.store_encoder = encoder if store.pending is None else CachingEncoder(encoder)
        self.reader = Reader(store, namespace.id)
        self.writer = Writer(store, namespace.id, self.store_encoder)
        self.inbox = Inbox(store, namespace.id, self.store_encoder, self.writer)
        self.recorders: list[BackgroundRecorder] = []
        self.probe: Callable[[], object] = self._read_version

    def _read_version(self) -> None:
        with self.store.snapshot():
            self.store.version(self.namespace_id)

    # ------------------------------------------------------------------------------------------ reading and writing

    def read(self, query: Callable[[], Answer]) -> Answer:
        """Return the result of `query`, run inside one snapshot.

        Pending episodes are derived first, if the lock and the rights allow it.
        """

        def attempt() -> Answer:
            self.inbox.try_derive()
            with self.store.snapshot():
                return query()

        return self.store.retrying(attempt)

    def write(self, change: Callable[[], Answer], *, dry_run: bool = False, settle: bool = True) -> Answer:
        """Return the result of `change`, run inside one transaction. Pending episodes are derived first.

        With `settle`, some of the episodes whose feedback is overdue then get that of silence.

        It may run twice: a lost connection can hide that the first attempt was committed. So `change` uses ids and
        times that were fixed before. A dry run is rolled back.
        """

        def attempt() -> Answer:
            with contextlib.suppress(_RollBack), self.store.transaction(self.namespace_id):
                self.inbox.derive_all()
                if settle:
                    settle_overdue(self.store, self.namespace_id, time.time(), SETTLED_AT_ONCE)
                answer = change()
                if dry_run:
                    raise _RollBack
            return answer

        return self.store.retrying(attempt)

    def write_or_spool(self, entry: Callable[[], SpoolEntry], store: Callable[[], Answer], answer: Answer) -> Answer:
        """Return the result of `store`; or `answer`, if the store is down and `entry` was spooled. See `Outbox`."""
        return store() if self.outbox is None else self.outbox.write(entry, store, answer)

    def close(self) -> None:
        """Store what recorders hold, derive the pending episodes if that can be done at once, and close the store."""
        try:
            while self.recorders:
                self.recorders.pop().close()
            if self.outbox is not None:
                self.outbox.close()
            with contextlib.suppress(StoreError):  # a store that is down is closed without
                self.store.retrying(self.inbox.close)
        finally:
            self.store.close()
