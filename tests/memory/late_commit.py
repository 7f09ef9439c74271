"""A pending episode of PostgreSQL whose transaction stays open: it gets its number first, and becomes visible late."""

from __future__ import annotations

import contextlib
import time

from seasoned.canonical_json import canonical_json
from seasoned.memory.stores.postgres.pending_table import INSERT, insert_values
from seasoned.memory.values.content_hash import episode_record, line_digest

__all__ = ["late_commit"]


@contextlib.contextmanager
def late_commit(memory, episode):
    """Insert an episode as `add` does, and commit at the end of the block. Use the memory for nothing else inside."""
    store, line = memory.session.store, canonical_json(episode_record(episode))
    digest = line_digest("episode", line)
    values = insert_values(memory.session.namespace_id, memory.encoder.identity, episode, time.time(), digest, line)
    with store.transaction(None):
        assert store.execute(f"{INSERT} RETURNING ordinal", values).fetchall()
        yield
