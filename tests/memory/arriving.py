"""Episodes that are on their way into PostgreSQL: what `add` does, in a transaction that stays open."""

from __future__ import annotations

import contextlib

__all__ = ["arriving"]


@contextlib.contextmanager
def arriving(memory, episode):
    """Add an episode, and commit that only at the end of the block. The memory is for nothing else meanwhile."""
    store = memory._store

    class Inside:
        def __getattr__(self, name):
            return getattr(store, name)

        def retrying(self, attempt):
            return attempt()

        def commit(self, sql, parameters):
            store.execute(sql, parameters)
            sql = "SELECT count(*) FROM episode WHERE namespace_id = ? AND id = ?"
            return store.execute(sql, (memory._id, episode.id)).fetchone()[0]

    with store._block("transaction", "BEGIN ISOLATION LEVEL READ COMMITTED"):
        type(memory._arrivals)(Inside(), memory._id, memory.encoder, memory._writer).add(episode)
        yield
