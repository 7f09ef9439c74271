"""Names of a package that are imported when they are first used, so that one of them does not load all the others."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence

__all__ = ["lazy_names"]


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package (PEP 562) whose names are imported at their first use.

    Args:
        package: the `__name__` of the package.
        modules: the names by the module that has them.

    Example:
        >>> getter, lister = lazy_names("seasoned.sync", {"seasoned.types": ["Step"]})
        >>> getter("Step").__name__, "Step" in lister()
        ('Step', True)
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(importlib.import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return get, list_names
