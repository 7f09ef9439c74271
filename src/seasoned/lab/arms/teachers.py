"""Teachers by specification: the reader of a model, or a user's reader from a module or a file."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from seasoned.build import close_reader, make_reader
from seasoned.envs.env_options import parse_query
from seasoned.envs.user_code import add_working_folder_to_path
from seasoned.errors import InputError, excerpt
from seasoned.llms import CachedLLM
from seasoned.protocols import LLM, PriorReader

__all__ = ["answers_file", "close_teacher", "open_teacher"]

_PYTHON = "python:"


def open_teacher(
    spec: object, *, method: str = "auto", settings: Mapping[str, Any] | None = None, cache: Path | None = None
) -> PriorReader:
    """Return the reader of a teacher's policy.

    Args:
        spec: a model as for `seasoned.build.make_reader`, or `python:package.module:callable?option=text`, or
            `python:folder/file.py:callable`. The callable gets the options as texts, and returns a `PriorReader`.
            Modules and files are also searched in the working folder. The reader is made for the check of arms, and
            for each run, so it should open its resources at the first request.
        method: the method by which a model's policy is read.
        settings: of the model (prices, `base_url`), or more arguments of the callable.
        cache: the file for a model's answers; a user's reader has no cache here.

    Raises:
        UnknownNameError: no model, or reading method, has this name.
        InputError: it is not a specification; the module, the file or the callable does not exist; the result is not a
            reader; or the settings do not fit.

    Example:
        >>> open_teacher("uniform").name
        'uniform'
        >>> open_teacher("python:seasoned.agents:UniformReader").name
        'uniform'
    """
    if not isinstance(spec, str) or not spec.strip():
        raise InputError(
            f"cascade: teacher = {excerpt(spec)}",
            "the teacher is a model, or a reader from Python code",
            'Write teacher = "openai:MODEL", or "python:my_teacher.py:make".',
        )
    settings = dict(_checked_settings(settings))
    if spec.startswith(_PYTHON):
        reader = _python_reader(spec, method, settings)
    else:
        reader = make_reader(spec, method=method, cache=cache, **settings)
    if not isinstance(reader, PriorReader):
        raise InputError(
            f"cascade: teacher {excerpt(spec)} is {excerpt(reader)}",
            "a teacher is a reader: it has name and read",
            'Choose another teacher, or teacher_reader = "auto".',
        )
    return reader


def answers_file(llm: LLM | None) -> Path | None:
    """Return the cache file of a student's model, which its teacher shares; None without a cache.

    Equal requests to the same model have the same answer.
    """
    return llm.path if isinstance(llm, CachedLLM) else None


async def close_teacher(reader: PriorReader) -> None:
    """Release a teacher: by its own `aclose`, or that of its model."""
    aclose = getattr(reader, "aclose", None)
    await (close_reader(reader) if aclose is None else aclose())


def _checked_settings(settings: object) -> Mapping[str, Any]:
    if settings is not None and not isinstance(settings, Mapping):
        raise InputError(
            f"cascade: teacher_settings = {excerpt(settings)}",
            "teacher_settings must be a table",
            'Write { base_url = "..." }.',
        )
    return settings or {}


def _python_reader(spec: str, method: str, settings: Mapping[str, Any]) -> object:
    target, _, query = spec.removeprefix(_PYTHON).partition("?")
    place, _, attribute = target.rpartition(":")
    if method != "auto":
        raise InputError(
            f"cascade: teacher_reader = {excerpt(method)} for {excerpt(spec)}",
            "a python: teacher has no reading method",
            "Leave it out.",
        )
    options = parse_query(query)
    try:
        make = getattr(_file_module(Path(place)) if place.endswith(".py") else _module(place), attribute)
    except (ImportError, AttributeError, ValueError, OSError, SyntaxError) as error:
        raise InputError(
            f"cascade: teacher {excerpt(spec)} ({type(error).__name__}: {error})",
            "it names a module or a .py file, and a callable in it",
            "Write python:my_teacher.py:make, with a path from the working folder.",
        ) from error
    try:
        return make(**options, **settings)
    except TypeError as error:
        raise InputError(
            f"cascade: teacher {excerpt(spec)} ({error})",
            "the callable takes the options and settings as arguments",
            "Compare its arguments.",
        ) from error


def _module(name: str) -> ModuleType:
    add_working_folder_to_path()  # as for python: environments
    return importlib.import_module(name)


def _file_module(path: Path) -> ModuleType:
    """Return the module of a file, loaded once under a unique name."""
    path = path.resolve()
    name = f"seasoned_teacher_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
