"""The public lists are sorted and complete; importing the package costs little."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import seasoned

HEAVY = {"click", "matplotlib", "openai", "prompt_toolkit", "rich", "textworld", "torch", "transformers", "xllamacpp"}
CONTRACT = {"Episode", "JitRL", "Memory", "SeasonedError", "Step"}
# What `from __future__ import annotations` and guarded imports leave behind.
BYSTANDERS = {"TYPE_CHECKING", "annotations", "lazy_names"}

MODULES = [
    "seasoned",
    *sorted(
        info.name
        for info in pkgutil.walk_packages(seasoned.__path__, "seasoned.")
        if not info.name.endswith(".__main__")  # importing it runs it
    ),
]


def linter_order(names):
    """CONSTANTS, then Classes, then the rest, each by the alphabet: the order that the linter (RUF022) keeps."""

    def rank(name):
        return 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2

    return sorted(names, key=lambda name: (rank(name), name))


def is_empty(module):
    """Whether the module has only a docstring."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in ast.parse(source).body)


def test_every_module_lists_its_public_names():
    modules = [importlib.import_module(name) for name in MODULES]
    assert [m.__name__ for m in modules if not hasattr(m, "__all__") and not is_empty(m)] == []
    for module in modules:
        names = list(getattr(module, "__all__", ()))
        assert names == linter_order(names), module.__name__
        assert len(set(names)) == len(names), module.__name__
        assert [n for n in names if not hasattr(module, n)] == [], module.__name__


def test_importable_names_are_the_listed_ones():
    for name in seasoned.__all__:
        getattr(seasoned, name)
    importable = {
        name
        for name, value in vars(seasoned).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name not in BYSTANDERS
    }
    listed = set(seasoned.__all__)
    assert importable <= listed, "importable from seasoned, but not in its __all__"
    assert listed <= set(dir(seasoned)), "in __all__, but completion does not show it"
    assert listed >= CONTRACT


def test_star_import_gives_the_listed_names():
    names = {}
    exec("from seasoned import *", names)
    assert set(names) - {"__builtins__"} == set(seasoned.__all__)


def test_public_names_are_the_objects_of_their_modules():
    values = {name: getattr(seasoned, name) for name in seasoned.__all__}
    for name, value in values.items():
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__module__.startswith("seasoned."), name
            assert getattr(importlib.import_module(value.__module__), value.__qualname__) is value, name
            assert inspect.getdoc(value), name


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError):
        seasoned.no_such_name  # noqa: B018


def loaded_after(code):
    """The top-level modules in a fresh interpreter after `code`."""
    script = f"import json, sys\n{code}\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_no_heavy_library():
    loaded = loaded_after("import seasoned\n[getattr(seasoned, name) for name in seasoned.__all__]")
    assert "seasoned" in loaded
    assert not loaded & HEAVY


def test_importing_the_package_loads_no_model_agent_or_environment():
    parts = {"agents", "build", "envs", "integrations", "judges", "lab", "llms", "service"}
    script = (
        "import seasoned, sys; print(*{name.split('.')[1] for name in sys.modules if name.startswith('seasoned.')})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & parts


def test_importing_every_module_loads_no_heavy_library():
    offline = [name for name in MODULES if name.split(".")[1:2] != ["cli"]]
    loaded = loaded_after("\n".join(f"import {name}" for name in offline))
    assert not loaded & HEAVY


def test_importing_the_command_line_loads_no_extras():
    command_line = [name for name in MODULES if name.split(".")[1:2] == ["cli"]]
    loaded = loaded_after("\n".join(f"import {name}" for name in command_line))
    assert not loaded & (HEAVY - {"click", "rich"})
