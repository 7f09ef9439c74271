"""Compaction after erasures: a mark in the namespace remembers it, so that a killed erasure can be finished.

`namespace.compaction_due` counts the erasures since the store was last rewritten. The transaction of an erasure
increments it; no row about the subject is left in the store by then, but deleted rows may be.
"""

from __future__ import annotations

from seasoned.memory.stores.base import Rewriting, Store
from seasoned.memory.values.corruption import decode_ints

__all__ = ["is_compaction_due", "mark_compaction_due", "rewrite"]


def is_compaction_due(store: Store, namespace_id: int) -> bool:
    """Return whether an erasure was committed and the store was not compacted since; inside the caller's snapshot."""
    rows = store.execute("SELECT compaction_due FROM namespace WHERE id = ?", (namespace_id,)).fetchall()
    return any(decode_ints(store.path, "compaction_due", rows))


def mark_compaction_due(store: Store, namespace_id: int) -> None:
    """Remember that erased bytes may still be in the store; in the transaction of the erasure."""
    store.execute("UPDATE namespace SET compaction_due = compaction_due + 1 WHERE id = ?", (namespace_id,))


def rewrite(store: Store) -> Rewriting:
    """Compact a store; if it was rewritten, take back the marks of the erasures that were committed before.

    On PostgreSQL a tenant's marks stay until the owner's compaction takes them back.

    Raises:
        StoreBusyError: another process holds an old snapshot; the marks stay.
    """
    with store.snapshot():
        due = store.execute("SELECT id, compaction_due FROM namespace WHERE compaction_due > 0").fetchall()
    done = store.compact()
    for namespace_id, n_erasures in due if done.rewritten else ():

        def attempt(id_: int = namespace_id, n: int = n_erasures) -> None:
            with store.transaction(None):  # an erasure that was committed meanwhile has a mark of its own
                store.execute("UPDATE namespace SET compaction_due = 0 WHERE id = ? AND compaction_due = ?", (id_, n))

        store.retrying(attempt)
    return done
