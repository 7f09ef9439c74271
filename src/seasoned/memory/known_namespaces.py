"""The namespaces of a store that may not exist yet."""

from __future__ import annotations

from pathlib import Path

from seasoned.checks import check_file_name
from seasoned.errors import NotFoundError
from seasoned.memory.memory import Memory
from seasoned.memory.stores.registry import is_file

__all__ = ["known_namespaces"]


def known_namespaces(path: str, *, read_only: bool = True) -> dict[str, str]:
    """Return the namespaces of a store, each with its encoder's identity; an empty dict if there is no store yet."""
    if is_file(path):
        check_file_name(path)
    if is_file(path) and not Path(path).exists():
        return {}
    try:
        return Memory.namespaces(path, read_only=read_only)
    except NotFoundError:
        if not is_file(path):
            return {}
        raise
