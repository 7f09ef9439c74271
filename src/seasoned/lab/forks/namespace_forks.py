"""Branches that are namespaces of one database: two are renamed in one transaction."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from seasoned.errors import StoreError
from seasoned.lab.forks.carry_over import carry, carry_copies, carry_rest
from seasoned.lab.forks.fork_access import open_branch
from seasoned.lab.forks.handover import Exchange
from seasoned.lab.forks.snapshot_diff import Base, base_of, grown, lines_of
from seasoned.memory import Memory
from seasoned.memory.parts.retention import Copy
from seasoned.memory.stores.base import open_store, shown
from seasoned.memory.transfer.manifest import list_entries
from seasoned.protocols import StateEncoder

__all__ = ["copy", "finish", "switch"]


def copy(memory: Memory, url: str, name: str) -> Base:
    """Copy a memory into a new namespace of its database, and return what it held.

    The memory names the copy before there is one, so that an erasure misses none.
    """
    _note_copy(url, memory.namespace, name)
    with Memory.open(url, namespace=name, gamma=memory.gamma, encoder=memory.encoder) as made:
        made.import_lines(memory.export())
        base = base_of(lines_of(made))
    _carry_copies(memory, url, name, but=name)
    return base


def switch(exchange: Exchange) -> tuple[str, int]:
    """Give the candidate the live namespace's name, and that one another; carry what it got since the fork.

    What arrives while this happens lies in the replaced namespace, and is carried after the names have changed: by
    `finish`, again where this process was killed before.

    Returns:
        The replaced namespace's new name, and how many episodes were carried.
    """
    live, namespace, candidate_namespace = exchange.live, exchange.namespace, exchange.candidate_namespace
    encoder = exchange.encoder
    retired = f"{namespace}~retired-{exchange.id}"
    with _opened(live, namespace, encoder) as old, _opened(live, candidate_namespace, encoder) as new:
        lines = lines_of(old)  # once: what arrives after it is for `finish`
        carried = carry(new, grown(old, exchange.base[namespace], lines))
        new.verify()
        before, after = base_of(lines), base_of(lines_of(new))
        _carry_copies(old, live, candidate_namespace, but=candidate_namespace)
    _note_copy(live, candidate_namespace, retired)
    exchange.intend((live, retired), {namespace: before}, {namespace: after})
    with contextlib.closing(open_store(live, create=False, read_only=False)) as store:
        with store.snapshot():
            ids = {name: entry.id for name, entry in list_entries(store).items()}
        with store.transaction(ids[namespace]):
            store.hold_arrivals(ids[namespace])
            for old_name, new_name in ((namespace, retired), (candidate_namespace, namespace)):
                store.execute("UPDATE namespace SET name = ? WHERE id = ?", (new_name, ids[old_name]))
    return retired, carried + finish(live, namespace, retired, candidate_namespace, before, exchange.ended, encoder)


def finish(
    live: str,
    namespace: str,
    retired: str,
    candidate_namespace: str,
    before: Base,
    ended: Callable[[], None],
    encoder: StateEncoder | None,
) -> int:
    """Carry what the replaced namespace got since `before`; return how many episodes were new. Twice does no harm.

    Args:
        live, namespace: the promoted memory.
        retired: the replaced namespace's name now.
        candidate_namespace: the promoted one's former name.
        before: what the replaced one held when it was last carried.
        ended: called when all that can be carried is.
        encoder: for namespaces of an encoder that is not built in.

    Raises:
        StoreError: something was taken back there meanwhile, or has other content here; this is said once.
    """
    with _opened(live, retired, encoder) as old, _opened(live, namespace, encoder) as new:
        carried, all_of_it = carry_rest(old, new, before)
        _carry_copies(old, live, namespace, but=candidate_namespace)
    ended()
    if not all_of_it:
        raise StoreError(
            f"namespace {retired!r} changed what it held while it was replaced",
            "what is added meanwhile is carried, not what is taken back or said otherwise",
            f"The promotion took place. Compare the two with `seasoned memory diff`, and mend {namespace!r}.",
        )
    return carried


def _note_copy(url: str, namespace: str, name: str) -> None:
    carry_copies([Copy("backup", _place(url, name), time.time())], url, namespace)


def _carry_copies(memory: Memory, url: str, namespace: str, *, but: str) -> None:
    """Have a namespace know of the copies that a memory knows of, but for the one that it is itself."""
    carry_copies([one for one in memory.copies() if one.path != _place(url, but)], url, namespace)


def _place(url: str, name: str) -> str:
    """Return what an erasure calls a namespace that is a copy."""
    return f"{shown(url)}, namespace {name!r}"


def _opened(url: str, name: str, encoder: StateEncoder | None) -> Memory:
    return open_branch(url, name, encoder, read_only=False)
