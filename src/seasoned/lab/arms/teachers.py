"""Teachers by name: a model's reader, or one of one's own from a module or a file."""

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
            `python:folder/file.py:callable`: what is called, with the options as texts, returns a `PriorReader`.
            Modules and files are looked for in the working folder too. It is made where arms are checked, and for each
            run: it should open what it needs when it is first asked.
        method: how a model's policy is read.
        settings: of the model (prices, `base_url`), or more arguments of the callable.
        cache: keep a model's answers in this file; a reader of one's own keeps its own.

    Raises:
        UnknownNameError: no model, or way to read it, has this name.
        InputError: it is not a specification, the module, the file or the callable is not there, what it makes reads no
            policy, or settings do not fit.

    Example:
        >>> open_teacher("uniform").name
        'uniform'
        >>> open_teacher("python:seasoned.agents:UniformReader").name
        'uniform'
    """
    if not isinstance(spec, str) or not spec.strip():
        raise InputError(
            f"cascade: teacher = {excerpt(spec)}",
            "the teacher is a model, or a reader of one's own",
            'Write teacher = "openai:MODEL", or "python:my_teacher.py:make".',
        )
    given = dict(_table(settings))
    own = spec.startswith(_PYTHON)
    reader = _own(spec, method, given) if own else make_reader(spec, method=method, cache=cache, **given)
    if not isinstance(reader, PriorReader):
        raise InputError(
            f"cascade: teacher {excerpt(spec)} is {excerpt(reader)}",
            "a teacher's policy is read: it has name and read",
            'Take another teacher, or teacher_reader = "auto".',
        )
    return reader


def answers_file(llm: LLM | None) -> Path | None:
    """Return the file in which a student's model keeps its answers, where it does: its teacher's are kept beside them.

    Equal requests to the same model have the same answer, whoever asks.
    """
    return llm.path if isinstance(llm, CachedLLM) else None


async def close_teacher(reader: PriorReader) -> None:
    """Release a teacher: by its own `aclose`, or that of its model."""
    own = getattr(reader, "aclose", None)
    await (close_reader(reader) if own is None else own())


def _table(settings: object) -> Mapping[str, Any]:
    if settings is not None and not isinstance(settings, Mapping):
        raise InputError(
            f"cascade: teacher_settings = {excerpt(settings)}", "they are a table", 'Write { base_url = "..." }.'
        )
    return settings or {}


def _own(spec: str, method: str, given: Mapping[str, Any]) -> object:
    target, _, query = spec.removeprefix(_PYTHON).partition("?")
    place, _, attribute = target.rpartition(":")
    if method != "auto":
        raise InputError(
            f"cascade: teacher_reader = {excerpt(method)} for {excerpt(spec)}", "it reads itself", "Leave it out."
        )
    options = parse_query(query)
    try:
        make = getattr(_file(Path(place)) if place.endswith(".py") else _module(place), attribute)
    except (ImportError, AttributeError, ValueError, OSError, SyntaxError) as error:
        raise InputError(
            f"cascade: teacher {excerpt(spec)} ({type(error).__name__}: {error})",
            "it names a module or a .py file, and something in it to call",
            "Write python:my_teacher.py:make, from the folder that you are in.",
        ) from error
    try:
        return make(**options, **given)
    except TypeError as error:
        raise InputError(
            f"cascade: teacher {excerpt(spec)} ({error})", "it is called with its options", "Compare its arguments."
        ) from error


def _module(name: str) -> ModuleType:
    add_working_folder_to_path()  # as for an environment of one's own
    return importlib.import_module(name)


def _file(path: Path) -> ModuleType:
    """A file's module, loaded once; its name is its own, so that it hides no other."""
    path = path.resolve()
    name = f"seasoned_teacher_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # dataclasses look for their module there
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
