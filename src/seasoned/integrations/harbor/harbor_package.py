"""Harbor itself, which needs a newer Python than we do."""

from __future__ import annotations

import sys
from types import ModuleType

from seasoned.registry import load_extra

__all__ = ["load_harbor"]

_LEAST = (3, 12)


def load_harbor(module: str) -> ModuleType:
    """Return a module of Harbor's.

    Raises:
        MissingExtraError: it is not installed; under an older Python, where pip leaves it out, the message says so.
    """
    this = f"; this is {sys.version_info.major}.{sys.version_info.minor}" if sys.version_info < _LEAST else ""
    install = f"pip install 'seasoned[harbor]'  (with Python {_LEAST[0]}.{_LEAST[1]} or newer{this})"
    return load_extra(module, "harbor", install)
