"""The reader of suites: TOML or JSON data to a checked `Suite`."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from seasoned.checks import check_number, check_text, check_whole, suggest
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.lab.suites.suite import SAME_TASK, ArmSpec, ExperimentBudget, Suite, Task, TransferSplit
from seasoned.llms.wire.candidate_menu import check_menu
from seasoned.states.encoder_names import named_encoder

__all__ = ["MAX_SEEDS", "load_suite", "read_suite", "suite_names"]

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")
MAX_SEEDS = 1000
"""Seeds that a suite may have."""


def read_suite(data: object, where: str = "suite") -> Suite:
    """Return the suite of parsed TOML or JSON data.

    Raises:
        InputError: an entry is missing, unknown or out of range; the message names the entry and its table.
    """
    table = _table(where, data)
    tasks = tuple(_task(f"{where}, tasks[{i}]", item) for i, item in enumerate(_list(where, table, "tasks")))
    arms = tuple(_arm(f"{where}, arms[{i}]", item) for i, item in enumerate(_list(where, table, "arms")))
    fields = _fields(where, Suite, table, required=("name", "seeds"))
    fields |= {"tasks": tasks, "arms": arms, "seeds": _seeds(where, table["seeds"])}
    for name in ("model", "reader", "reference", "encoder"):
        if name in fields:
            _text(where, fields, name)
    fields["about"] = _text(where, table, "about", default=str(table["name"]))
    fields["budget"] = _budget(f"{where}, budget", table.get("budget") or {})
    fields["model_settings"] = dict(_table(f"{where}, model_settings", table.get("model_settings", {})))
    if not isinstance(fields.get("calibrate", True), bool):
        raise InputError(f"{where}: calibrate = {excerpt(fields['calibrate'])}", "it is true or false", "Write true.")
    check_menu(fields.get("menu", "list"))
    named_encoder(fields.get("encoder", "words"))
    fields["fill_episodes"] = check_whole("fill_episodes", fields.get("fill_episodes", 0), 0)
    suite = Suite(**fields)
    for name in (suite.name, *(task.name for task in tasks), *(arm.name for arm in arms)):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(
                f"{where}: name {excerpt(name)}",
                "a name has lower-case letters, digits, dots and dashes, because it is used for folders",
                "Try cooking-1.",
            )
    _check_names(where, suite)
    return suite


def _check_names(where: str, suite: Suite) -> None:
    """Check that names are distinct, and that references name existing tasks and arms."""
    task_names, arm_names = [task.name for task in suite.tasks], [arm.name for arm in suite.arms]
    for kind, names in (("task", task_names), ("arm", arm_names)):
        if not names or len(set(names)) < len(names):
            raise InputError(
                f"{where}: {kind}s {names}", f"{kind}s have distinct names", "Give each one a name of its own."
            )
    if suite.reference not in arm_names:
        raise InputError(
            f"{where}: reference {suite.reference!r}",
            "the reference is an arm of the suite",
            suggest(suite.reference, arm_names),
        )
    for arm in suite.arms:
        other = None if arm.budget_of is None else next((a for a in suite.arms if a.name == arm.budget_of), None)
        if arm.budget_of is not None and (other is None or other.budget_of is not None or other.name == arm.name):
            raise InputError(
                f"{where}: arm {arm.name}, budget_of = {arm.budget_of!r}",
                "it names another arm, which has no budget_of itself",
                suggest(arm.budget_of, arm_names),
            )
        if unknown := sorted(set(arm.tasks) - set(task_names)):
            raise InputError(
                f"{where}: arm {arm.name}, task {unknown[0]!r}", "no such task", suggest(unknown[0], task_names)
            )


def suite_names() -> list[str]:
    """Return the names of the suites in the package."""
    return sorted(file.name.removesuffix(".toml") for file in _suite_folder().iterdir() if file.name.endswith(".toml"))


def _suite_folder() -> Any:
    return resources.files("seasoned.lab.suites")


def load_suite(name_or_path: str) -> Suite:
    """Return a suite of the package by name, or the suite in a TOML file.

    Raises:
        NotFoundError: no such suite or file.
        InputError: it is not a suite; the message names the place.

    Example:
        >>> load_suite("quick").reference
        'alone'
    """
    check_text("suite", name_or_path)
    path = Path(name_or_path)
    if name_or_path in suite_names():
        text = (_suite_folder() / f"{name_or_path}.toml").read_text(encoding="utf-8")
    elif path.suffix == ".toml" and path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: {error}", "a suite is a TOML file in UTF-8", "Save it in UTF-8.") from error
    else:
        raise NotFoundError(
            f"suite {excerpt(name_or_path)}",
            "it is the name of a suite, or a .toml file",
            suggest(name_or_path, suite_names()),
        )
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            f"{name_or_path} is not TOML: {error}",
            "texts are in quotes, a table begins with [name], each of several with [[name]]",
            "Correct that line.",
        ) from error
    return read_suite(data, name_or_path)


def _table(where: str, data: object) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise InputError(
            f"{where} = {excerpt(data)}", "it is a table: lines of name = value below [name]", "Write a table."
        )
    return data


def _items(where: str, table: Mapping[str, Any], name: str) -> list[Any]:
    """Return the items of an optional list."""
    items = table.get(name, ())
    if not isinstance(items, list | tuple):
        raise InputError(f"{where}: {name} = {excerpt(items)}", f"{name} is a list", f"Write {name} = [...].")
    return list(items)


def _list(where: str, table: Mapping[str, Any], name: str) -> list[Any]:
    items = table.get(name)
    if not isinstance(items, list | tuple) or not items:
        seen = f"{where}: {name} = {excerpt(items)}" if name in table else f"{where}: no {name}"
        if name == "env":
            raise InputError(
                seen, "a task has an environment, or a list of them", 'Write env = "grid:S.G", for example.'
            )
        raise InputError(seen, f"a suite has {name}, one table each", f"Write [[{name}]], and name = ... below it.")
    return list(items)


def _fields(where: str, kind: type, table: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    known = [entry.name for entry in dataclasses.fields(kind)]
    for name in table:
        if name not in known:
            raise InputError(f"{where}: {excerpt(name)}", "no such entry", suggest(name, known))
    for name in required:
        if name not in table:
            raise InputError(f"{where}: no {name}", f"{name} is required", f"Write {name} = ...")
    return dict(table)


def _text(where: str, table: Mapping[str, Any], name: str, *, default: str | None = None) -> str:
    value = table.get(name, default)
    return check_text(f"{where}: {name}", value)


def _whole(where: str, name: str, value: object) -> int:
    return check_whole(f"{where}: {name}", value, 1)


def _number(where: str, name: str, value: object) -> float | None:
    return None if value is None else check_number(f"{where}: {name}", value)


def _seeds(where: str, value: object) -> tuple[int, ...]:
    """Return the seeds: those of a list, or as many as a number, counted from 0."""
    if isinstance(value, list | tuple):
        seeds = tuple(value)
    else:
        seeds = tuple(range(min(_whole(where, "seeds", value), MAX_SEEDS + 1)))
    whole = all(isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**31 for seed in seeds)
    if not seeds or len(seeds) > MAX_SEEDS or not whole or len(set(seeds)) < len(seeds):
        raise InputError(
            f"{where}: seeds = {excerpt(value)}",
            f"seeds are a number from 1 to {MAX_SEEDS}, or a list of different whole numbers",
            "Write seeds = 10.",
        )
    return seeds


def _task(where: str, item: object) -> Task:
    fields = _fields(where, Task, _table(where, item), required=("name", "env", "episodes"))
    envs = fields["env"]
    envs = (envs,) if isinstance(envs, str) else tuple(_list(where, fields, "env"))
    fields["env"] = tuple(check_text(f"{where}: env", env) for env in envs)
    fields["episodes"] = _whole(where, "episodes", fields["episodes"])
    for name in ("max_score", "success"):
        fields[name] = _number(where, name, fields.get(name))
    if fields["max_score"] is not None and fields["max_score"] <= 0:
        raise InputError(
            f"{where}: max_score = {fields['max_score']}",
            "max_score must be above 0, because scores are divided by it",
            "Leave it out.",
        )
    fields["transfer"] = tuple(
        _transfer(f"{where}, transfer[{i}]", each) for i, each in enumerate(_items(where, fields, "transfer"))
    )
    return Task(**fields)


def _transfer(where: str, item: object) -> TransferSplit:
    fields = _fields(where, TransferSplit, _table(where, item), required=("split", "env"))
    split, env = _text(where, fields, "split"), _text(where, fields, "env")
    if split == SAME_TASK:
        raise InputError(
            f"{where}: split {split!r}", "this name is that of the learning episodes", "Write new slots, for example."
        )
    return TransferSplit(split, env, _whole(where, "episodes", fields.get("episodes", 1)))


def _arm(where: str, item: object) -> ArmSpec:
    fields = _fields(where, ArmSpec, _table(where, item), required=("name",))
    fields["kind"] = _text(where, fields, "kind", default=str(fields["name"]))
    fields["settings"] = dict(_table(f"{where}, settings", fields.get("settings", {})))
    fields["tasks"] = tuple(check_text(f"{where}: tasks", task) for task in _items(where, fields, "tasks"))
    if fields.get("episodes") is not None:
        fields["episodes"] = _whole(where, "episodes", fields["episodes"])
    return ArmSpec(**fields)


def _budget(where: str, item: object) -> ExperimentBudget:
    fields = _fields(where, ExperimentBudget, _table(where, item), required=())
    for name, value in fields.items():
        if value is not None and (_number(where, name, value) or 0) <= 0:
            raise InputError(
                f"{where}: {name} = {excerpt(value)}", "a limit must be above 0", "Leave it out for no limit."
            )
        if value is not None and name in ("calls", "tokens"):
            fields[name] = _whole(where, name, value)
    return ExperimentBudget(**fields)
