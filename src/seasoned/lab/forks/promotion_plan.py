"""Plan of a promotion, and access to the live memory and the candidate."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from seasoned.checks import suggest
from seasoned.errors import NotFoundError, excerpt
from seasoned.lab.forks.snapshots import Snapshot
from seasoned.memory import Memory, as_stored
from seasoned.memory.stores.registry import display_path
from seasoned.memory.transfer.merge import encoder_of
from seasoned.protocols import StateEncoder

__all__ = ["PromotionPlan", "encoder_identity", "open_fork"]


@dataclass(frozen=True, slots=True)
class PromotionPlan:
    """One promotion: a candidate takes the place of a live memory.

    Args:
        live, namespace, candidate, candidate_namespace, base: as in `seasoned.lab.forks.fork.Fork`.
        id: part of the name of the replaced memory.
        record_intention: called before the replacement, with the replaced memory's future path and namespace, the live
            memory's snapshots and its future snapshots, by namespace.
        record_end: called when the promotion is complete.
        encoder: for namespaces whose encoder is not built in.
    """

    live: str
    namespace: str
    candidate: str
    candidate_namespace: str
    base: Mapping[str, Snapshot]
    id: str
    record_intention: Callable[[tuple[str, str], Mapping[str, Snapshot], Mapping[str, Snapshot]], None]
    record_end: Callable[[], None]
    encoder: StateEncoder | None


def encoder_identity(path: str | os.PathLike[str], namespace: str) -> str:
    """Return the identity of a namespace's encoder.

    Raises:
        NotFoundError: there is no such memory or namespace.
    """
    known = Memory.namespaces(path)
    if namespace not in known:
        raise NotFoundError(
            f"namespace {excerpt(namespace)}",
            f"no namespace of {display_path(path)} has this name",
            suggest(namespace, known),
        )
    return known[namespace]


def open_fork(
    path: str | os.PathLike[str], namespace: str, encoder: StateEncoder | None, *, read_only: bool = True
) -> Memory:
    """Open an existing namespace with its own encoder, to copy stored texts: they are not redacted again.

    Args:
        path, namespace: the memory.
        encoder: for a namespace whose encoder is not built in.
        read_only: refuse every write.

    Raises:
        NotFoundError: there is no such memory or namespace.
    """
    own_encoder = encoder_of(encoder_identity(path, namespace), encoder)
    return Memory.open(
        path, namespace=namespace, encoder=own_encoder, create=False, read_only=read_only, redact=as_stored
    )
