"""Functions that numba compiles, the extra `fast`, when the first of them is needed.

Machine code is kept beside the file of the functions, or where that cannot be written, in the user's cache folder.
Where neither can be, each process compiles them again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seasoned.registry import load_extra

__all__ = ["CompiledFunctions"]


class CompiledFunctions:
    """The functions of a module that are to be compiled, each registered before the ones that call it.

    Args:
        names: the names of the module, `globals()`.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._signatures: dict[str, str] = {}

    def __call__(self, signature: str) -> Callable[[Any], Any]:
        """Register a function for compilation with this signature."""

        def register(function: Any) -> Any:
            self._signatures[function.__name__] = signature
            return function

        return register

    def compile(self) -> None:
        """Put compiled functions in the place of those of the module, the first time.

        Raises:
            MissingExtraError: numba is not installed, or does not load.
        """
        numba = load_extra("numba", "fast")
        while self._signatures:
            name = next(iter(self._signatures))
            signature, function = self._signatures[name], self._names[name]
            try:
                compiled = numba.njit(signature, cache=True, nogil=True)(function)
            except (RuntimeError, OSError):  # no folder for machine code can be written
                compiled = numba.njit(signature, nogil=True)(function)
            self._names[name] = compiled
            del self._signatures[name]
