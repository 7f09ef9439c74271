"""Registry: objects by name, imported on first use, with suggestions for misspelt names and missing extras."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from seasoned.checks import suggest
from seasoned.errors import MissingExtraError, UnknownNameError, excerpt

__all__ = ["Registry", "load_extra"]


def load_extra(module: str, extra: str, install: str | None = None) -> ModuleType:
    """Import an optional module.

    Raises:
        MissingExtraError: it is not installed; the message has the install command.

    Example:
        >>> load_extra("json", "none").__name__
        'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        line = install or f"pip install 'seasoned[{extra}]'"
        raise MissingExtraError(
            f"no module {module!r} ({error})", f"this needs the extra {extra!r}", f"Run: {line}"
        ) from error


class Registry:
    """Named objects of one kind, imported on first use.

    Example:
        >>> kinds = Registry("codec", {"json": "json:dumps"})
        >>> kinds.load("json")([1])
        '[1]'
    """

    def __init__(self, kind: str, paths: dict[str, str]) -> None:
        self.kind = kind
        self._paths = dict(paths)

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted."""
        return tuple(sorted(self._paths))

    def register(self, name: str, path: str) -> None:
        """Add a name; `path` is `package.module:attribute`."""
        self._paths[name] = path

    def load(self, name: str) -> Any:
        """Return the object behind `name`.

        Raises:
            UnknownNameError: there is no such name.
        """
        if not isinstance(name, str) or name not in self._paths:
            raise UnknownNameError(
                f"{self.kind} {excerpt(name)}", f"no {self.kind} has this name", suggest(name, self._paths)
            )
        module, _, attribute = self._paths[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
