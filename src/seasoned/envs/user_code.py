"""A user's own environments, `python:package.module:callable`: how they are opened, and a hash of their files."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from seasoned.checks import suggest
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Environment

__all__ = ["add_working_folder_to_path", "code_hashes", "open_python"]


def add_working_folder_to_path() -> None:
    """Append the working folder to the module path: `python -m` does, an installed command does not."""
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.append(folder)


def open_python(target: str, options: Mapping[str, str]) -> Environment:
    """Return the environment of `python:package.module:callable?option=text`; the working folder is searched as well.

    Raises:
        InputError: the module or the callable cannot be found, it has no such option, or it returns no environment.
    """
    module, _colon, attribute = target.partition(":")
    add_working_folder_to_path()
    try:
        make = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"environment python:{excerpt(target)} ({error})",
            "it names a module that can be imported and a callable in it",
            "Write python:package.module:MyEnvironment, in the module's folder, or with that on PYTHONPATH.",
        ) from error
    _check_options(target, make, options)
    environment = make(**options)
    if not isinstance(environment, Environment):
        raise InputError(
            f"python:{target} returned {excerpt(environment)}",
            "an environment has name, task, max_score, reset, step and aclose",
            "Try seasoned.testing.check_environment on it.",
        )
    return environment


def _check_options(target: str, make: object, options: Mapping[str, str]) -> None:
    """Refuse options that the callable does not take, before it is called: a later TypeError is its own."""
    if not callable(make):
        raise InputError(
            f"environment python:{excerpt(target)} is {excerpt(make)}",
            "it must be something to call",
            "Name the environment's class, or a function that makes one.",
        )
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):  # the callable has no signature
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        known = [each.name for each in signature.parameters.values() if each.kind in by_name]
        unknown = [name for name in options if name not in known]
        raise InputError(
            f"environment python:{excerpt(target)} with the options {excerpt(options)}: {error}",
            f"its options must be {', '.join(known)}" if known else "it has no options",
            suggest(unknown[0], known) if unknown else "Give each as name=value after the question mark.",
        ) from error


def code_hashes(specs: Iterable[str]) -> dict[str, str]:
    """Return, by module, the SHA-256 of the source files that `python:package.module:callable` specifications name.

    The file alone is hashed, not its imports. Other kinds of environments are left out: they come with a package, and
    a run record has its version. A module without a source file, or that does not exist, is left out. Packages above a
    module are imported.

    Example:
        >>> list(code_hashes(["grid:S.G", "python:seasoned.envs.grid:Grid?rows=S.G"]))
        ['seasoned.envs.grid']
    """
    add_working_folder_to_path()  # as `open_python` does
    importlib.invalidate_caches()  # a file may have been written a moment ago
    modules = sorted({spec.partition("?")[0].split(":")[1] for spec in specs if spec.startswith("python:")})
    hashes = {}
    for module in modules:
        try:
            found = importlib.util.find_spec(module)
            if found is not None and found.has_location and found.origin is not None:
                hashes[module] = hashlib.sha256(Path(found.origin).read_bytes()).hexdigest()
        except (ImportError, ValueError, OSError):
            continue  # opening the environment raises the error
    return hashes
