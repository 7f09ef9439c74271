"""A branch, opened with the encoder that made it; none is made by a misspelt name."""

from __future__ import annotations

import os

from seasoned.checks import suggest
from seasoned.errors import NotFoundError, excerpt
from seasoned.memory import Memory
from seasoned.memory.stores.base import shown
from seasoned.memory.transfer.merge import encoder_of
from seasoned.protocols import StateEncoder

__all__ = ["identity_of", "open_branch"]


def identity_of(path: str | os.PathLike[str], namespace: str) -> str:
    """Return the identity of the encoder that made a namespace.

    Raises:
        NotFoundError: there is no such memory or namespace.
    """
    known = Memory.namespaces(path)
    if namespace not in known:
        raise NotFoundError(
            f"namespace {excerpt(namespace)}", f"no namespace of {shown(path)} has this name", suggest(namespace, known)
        )
    return known[namespace]


def open_branch(
    path: str | os.PathLike[str], namespace: str, encoder: StateEncoder | None, *, read_only: bool = True
) -> Memory:
    """Open a namespace that is there.

    Args:
        path, namespace: which.
        encoder: for one of an encoder that is not built in.
        read_only: refuse every write.

    Raises:
        NotFoundError: there is no such memory or namespace.
    """
    made_by = encoder_of(identity_of(path, namespace), encoder)
    return Memory.open(path, namespace=namespace, encoder=made_by, create=False, read_only=read_only)
