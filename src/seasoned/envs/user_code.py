"""Code of one's own that a specification names: where it is looked for, and a hash of its file."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["code_hashes", "search_working_folder"]


def search_working_folder() -> None:
    """Look for modules in the working folder too, after all others: `python -m` does, an installed command does not."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)


def code_hashes(specs: Iterable[str]) -> dict[str, str]:
    """Return, by module, the SHA-256 of the source files that `python:package.module:callable` specifications name.

    The file alone counts, not what it imports. Other kinds of environment come with a package, whose version a record
    has. A module without a source file, or that is not there, is left out. Packages above a module are imported.

    Example:
        >>> list(code_hashes(["grid:S.G", "python:seasoned.envs.grid:Grid?rows=S.G"]))
        ['seasoned.envs.grid']
    """
    search_working_folder()  # as for opening it
    importlib.invalidate_caches()  # a file may have been written a moment ago
    modules = sorted({spec.partition("?")[0].split(":")[1] for spec in specs if spec.startswith("python:")})
    found = {}
    for module in modules:
        try:
            known = importlib.util.find_spec(module)
            if known is not None and known.has_location and known.origin is not None:
                found[module] = hashlib.sha256(Path(known.origin).read_bytes()).hexdigest()
        except (ImportError, ValueError, OSError):
            continue  # opening it says why
    return found
