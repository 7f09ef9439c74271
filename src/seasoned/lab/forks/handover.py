"""One promotion, as both kinds of branches are asked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from seasoned.lab.forks.snapshot_diff import Base
from seasoned.protocols import StateEncoder

__all__ = ["Exchange"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A candidate that takes the place of a live memory.

    Args:
        live, namespace, candidate, candidate_namespace, base: as of `seasoned.lab.forks.fork.Fork`.
        id: in the name under which the replaced memory is kept.
        intend: called before it takes place, with where the replaced memory will be (path and namespace), what the live
            one holds, and what it will hold.
        ended: called when nothing of it is left to be done.
        encoder: for namespaces of an encoder that is not built in.
    """

    live: str
    namespace: str
    candidate: str
    candidate_namespace: str
    base: Mapping[str, Base]
    id: str
    intend: Callable[[tuple[str, str], Mapping[str, Base], Mapping[str, Base]], None]
    ended: Callable[[], None]
    encoder: StateEncoder | None
