"""Imports point one way, heavy things load when called, files stay small: read from the source, functions included."""

from __future__ import annotations

import ast
import graphlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

import seasoned

ROOT = Path(seasoned.__file__).parent
MAX_LINES = 600
DYNAMIC = {"import_module", "__import__", "load_extra"}
HEAVY = set(
    [
        "browsergym",
        "fastapi",
        "gymnasium",
        "harbor",
        "jericho",
        "litellm",
        "matplotlib",
        "openai",
        "playwright",
        "ray",
        "spacy",
        "starlette",
        "textworld",
        "tiktoken",
        "torch",
        "transformers",
        "uvicorn",
        "xllamacpp",
    ]
)
SCREEN = {"click", "rich"}

FLOOR = set(
    [
        "errors",
        "types",
        "actions",
        "protocols",
        "config",
        "registry",
        "settings",
        "sync",
        "canonical_json",
        "sqlite_connection",
    ]
)
TOP = {"build", "lab", "service", "integrations"}
MAY_IMPORT = {
    "errors": set(),
    "types": {"errors"},
    "actions": {"errors", "types"},
    "protocols": {"errors", "types"},
    "sync": set(),
    "canonical_json": set(),
    "sqlite_connection": {"errors"},
    "config": {"errors", "types", "protocols", "registry", "settings"},
    "registry": {"errors", "types", "protocols", "config", "settings"},
    "settings": {"errors", "types", "protocols", "config", "registry"},
    "core": {"errors"},
    "states": FLOOR | {"core"},
    "memory": FLOOR | {"core", "states"},
    "llms": {"canonical_json", "sqlite_connection", "errors", "types", "protocols", "config", "registry", "core"},
    "envs": {"actions", "sqlite_connection", "errors", "types", "protocols", "config", "registry", "states"},
    "judges": {"errors", "types", "protocols", "config", "registry", "core"},
    "policies": {"errors", "types", "protocols", "config", "registry", "core", "states"},
    "agents": FLOOR | {"core", "states", "judges", "policies"},
    "testing": {"errors", "types", "protocols", "core", "sync"},
}
EVERYTHING_ABOVE = set(MAY_IMPORT)
MAY_IMPORT |= {part: EVERYTHING_ABOVE | TOP | {"seasoned"} for part in TOP}
MAY_IMPORT["cli"] = EVERYTHING_ABOVE | TOP | {"seasoned"}
MAY_IMPORT["__main__"] = {"cli"}
MAY_IMPORT["seasoned"] = EVERYTHING_ABOVE | TOP  # the package's own front door

# ------------------------------------------------------------------------------- reading imports


@dataclass(frozen=True)
class Import:
    """The module asked for, the line, and whether it runs on import, when called, or for the type checker only."""

    target: str
    line: int
    when: Literal["import", "call", "typing"]


def imports_of(source, module, is_package, modules):
    """Every import in `source`; `from package import name` means the submodule of that name, where there is one."""
    package = module if is_package else module.rpartition(".")[0]
    found = []

    def visit(node, when):
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, when) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.append(Import(inner if inner in modules else base, node.lineno, when))
        elif isinstance(node, ast.Call) and called(node) in DYNAMIC and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.append(Import(first.value, node.lineno, when))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                visit(child, "typing")
            for child in node.orelse:
                visit(child, when)
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            # Defaults, decorators and annotations run on import; only the body waits for the call.
            body = node.body if isinstance(node.body, list) else [node.body]
            for child in ast.iter_child_nodes(node):
                visit(child, "call" if when == "import" and child in body else when)
            return
        for child in ast.iter_child_nodes(node):
            visit(child, when)

    visit(ast.parse(source), "import")
    return found


def called(node):
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)


def name_of(path):
    parts = ["seasoned", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module):
    """The row of the house: `memory` for `seasoned.memory.stores.sqlite`, `seasoned` for the package itself."""
    return module.split(".")[1] if "." in module else module


FILES = sorted(ROOT.rglob("*.py"))
MODULES = {name_of(path) for path in FILES}
IMPORTS = {
    name_of(path): imports_of(path.read_text(encoding="utf-8"), name_of(path), path.name == "__init__.py", MODULES)
    for path in FILES
}


def root_of(target):
    return target.partition(".")[0]


# ------------------------------------------------------------------------------- the reader reads

SNIPPETS = [
    ("import seasoned.llms.providers.local", "seasoned.llms.providers.local", "import"),
    ("from seasoned import llms", "seasoned.llms", "import"),
    ("from seasoned import Memory", "seasoned", "import"),
    ("from seasoned.llms import Local", "seasoned.llms", "import"),
    ("from seasoned.llms.providers import local", "seasoned.llms.providers.local", "import"),
    ("from .stores import sqlite", "seasoned.memory.stores.sqlite", "import"),
    ("from .stores.sqlite import open_", "seasoned.memory.stores.sqlite", "import"),
    ("from ..llms.providers import local", "seasoned.llms.providers.local", "import"),
    ("from .. import llms", "seasoned.llms", "import"),
    ("def f():\n    import torch.nn", "torch.nn", "call"),
    ("async def f():\n    if x:\n        from torch import nn", "torch", "call"),
    ("class A:\n    import torch", "torch", "import"),
    ("class A:\n    def f(self):\n        import torch", "torch", "call"),
    ("try:\n    import torch\nexcept ImportError:\n    pass", "torch", "import"),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch", "torch", "typing"),
    ("import typing\nif typing.TYPE_CHECKING:\n    pass\nelse:\n    import torch", "torch", "import"),
    ("torch = load_extra('torch', 'heavy')", "torch", "import"),
    ("f = lambda: importlib.import_module('seasoned.llms.providers.local')", "seasoned.llms.providers.local", "call"),
    ("def f(x=load_extra('torch', 'heavy')): ...", "torch", "import"),
]


@pytest.mark.parametrize(("source", "target", "when"), SNIPPETS, ids=[source for source, _, _ in SNIPPETS])
def test_the_reader_finds_every_kind_of_import(source, target, when):
    modules = {
        "seasoned",
        "seasoned.llms",
        "seasoned.llms.providers.local",
        "seasoned.memory",
        "seasoned.memory.stores.sqlite",
    }
    found = imports_of(source, "seasoned.memory.facade", False, modules)
    assert (target, when) in {(i.target, i.when) for i in found}


def test_the_reader_resolves_dots_in_a_package():
    found = imports_of("from .sqlite import x", "seasoned.memory", True, {"seasoned.memory.stores.sqlite"})
    assert [i.target for i in found] == ["seasoned.memory.stores.sqlite"]


def test_the_reader_saw_the_package():
    assert {"seasoned", "seasoned.errors", "seasoned.core.modulation", "seasoned.types.experience"} <= MODULES
    assert ("seasoned.errors", "import") in {(i.target, i.when) for i in IMPORTS["seasoned.core.returns"]}


# ------------------------------------------------------------------------------- the house


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_one_way(module):
    part = part_of(module)
    assert part in MAY_IMPORT, (
        f"{module}: {part!r} has no row in the house. Give it one, in this table and in the docs."
    )
    wrong = [
        f"line {i.line}: {module} imports {i.target}; {part} may import {sorted(MAY_IMPORT[part])}"
        for i in IMPORTS[module]
        if root_of(i.target) == "seasoned" and part_of(i.target) not in MAY_IMPORT[part] | ({part} - {"seasoned"})
    ]
    assert not wrong, "\n".join(wrong)


def test_the_house_itself_points_one_way():
    """The table's rows, top to bottom: no row below the floor is imported by one above it, in a circle."""
    below_top = {part: MAY_IMPORT[part] - FLOOR for part in EVERYTHING_ABOVE - FLOOR}
    graphlib.TopologicalSorter(below_top).prepare()
    graphlib.TopologicalSorter({part: MAY_IMPORT[part] for part in ("errors", "types", "protocols")}).prepare()


def test_no_module_imports_itself_in_a_circle():
    graph = {
        module: {i.target for i in found if i.when == "import" and i.target in MODULES and i.target != module}
        for module, found in IMPORTS.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


# ------------------------------------------------------------------------------- what it costs to import


@pytest.mark.parametrize("module", sorted(MODULES))
def test_heavy_modules_load_when_called(module):
    """On import only the standard library, NumPy and ourselves; the screen's libraries in the command line alone."""
    allowed = set(sys.stdlib_module_names) | {"seasoned", "numpy"}
    if part_of(module) in {"cli", "__main__"}:
        allowed |= SCREEN
    wrong = [
        f"line {i.line}: {module} imports {i.target} when it is imported; load it when called, by registry.load_extra"
        for i in IMPORTS[module]
        if i.when == "import" and root_of(i.target) not in allowed
    ]
    assert not wrong, "\n".join(wrong)
    assert not allowed & HEAVY


@pytest.mark.parametrize("module", sorted(module for module in MODULES if part_of(module) not in {"cli", "__main__"}))
def test_only_the_command_line_knows_the_screen(module):
    wrong = [f"line {i.line}: {module} imports {i.target}" for i in IMPORTS[module] if root_of(i.target) in SCREEN]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("module", sorted(module for module in MODULES if part_of(module) == "core"))
def test_the_maths_needs_numpy_only(module):
    others = {root_of(i.target) for i in IMPORTS[module]} - set(sys.stdlib_module_names) - {"numpy", "seasoned"}
    assert not others


# ------------------------------------------------------------------------------- files


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_small_and_named_for_one_idea(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{path.name} has {lines} lines, at most {MAX_LINES} fit one idea; split it"
    for name in path.relative_to(ROOT).with_suffix("").parts:
        assert not re.search(r"(^|_)(utils?|helpers?|managers?)($|_)", name), f"{name} names no idea; say what it does"
