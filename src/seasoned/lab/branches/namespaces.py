"""Branches that are namespaces of one database: two are renamed in one transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from seasoned.errors import NotFoundError, excerpt
from seasoned.lab.branches.carrying import carry
from seasoned.lab.branches.growth import Base, base_of, grown
from seasoned.memory import Memory
from seasoned.memory.contents import list_entries
from seasoned.memory.merge import encoder_of
from seasoned.memory.store import open_store
from seasoned.protocols import StateEncoder

__all__ = ["copy", "switch"]

Intend = Callable[[tuple[str, str], Mapping[str, Base], Mapping[str, Base]], None]


def copy(memory: Memory, url: str, name: str) -> Base:
    """Copy a memory into a new namespace of its database, and return what it held."""
    with Memory.open(url, namespace=name, gamma=memory.gamma, encoder=memory.encoder) as made:
        made.import_lines(memory.export())
        return base_of(made)


def switch(
    live: str,
    namespace: str,
    candidate: str,
    candidate_namespace: str,
    base: Mapping[str, Base],
    id_: str,
    intend: Intend,
    encoder: StateEncoder | None,
) -> tuple[str, int]:
    """Give the candidate the live namespace's name, and that one another; carry what it got since `base`.

    What arrives while this happens lies in the replaced namespace, and is carried after the names have changed.

    Returns:
        The replaced namespace's new name, and how many episodes were carried.
    """
    del candidate
    retired = f"{namespace}~retired-{id_}"
    with _opened(live, namespace, encoder) as old, _opened(live, candidate_namespace, encoder) as new:
        carried = carry(new, grown(old, base[namespace]))
        new.verify()
        before, after = base_of(old), base_of(new)
    intend((live, retired), {namespace: before}, {namespace: after})
    with contextlib.closing(open_store(live, create=False, read_only=False)) as store:
        with store.snapshot():
            ids = {name: entry.id for name, entry in list_entries(store).items()}
        with store.transaction(ids[namespace]):
            store.hold_arrivals(ids[namespace])
            for old_name, new_name in ((namespace, retired), (candidate_namespace, namespace)):
                store.execute("UPDATE namespace SET name = ? WHERE id = ?", (new_name, ids[old_name]))
    with _opened(live, retired, encoder) as old, _opened(live, namespace, encoder) as new:
        carried += carry(new, grown(old, before))
    return retired, carried


def _opened(url: str, name: str, encoder: StateEncoder | None) -> Memory:
    known = Memory.namespaces(url)
    if name not in known:
        raise NotFoundError(f"namespace {excerpt(name)}", f"it is in {url}", "See Memory.namespaces().")
    return Memory.open(url, namespace=name, encoder=encoder_of(known[name], encoder), create=False)
