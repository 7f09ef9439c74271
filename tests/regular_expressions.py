"""Find the regular expressions of the package, from its source."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import dataclass
from pathlib import Path

from seasoned.states.masks import ALL_MASKS
from seasoned.states.secret_patterns import RULES

_SOURCE = Path(__file__).parent.parent / "src"
_FUNCTIONS = ("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_FLAGS_AT = {"compile": 1, "match": 2, "fullmatch": 2, "search": 2, "findall": 2, "finditer": 2}


@dataclass(frozen=True)
class Expression:
    """A regular expression: where it is written, the pattern (None if it is made at run time), and how it is used."""

    module: str
    source: str
    pattern: str | None
    flags: int = 0
    methods: frozenset[str] = frozenset({"search"})

    @property
    def ways(self) -> list[dict[str, bool]]:
        """How it is used, as arguments of `superlinear`: at the start, up to the end, or everywhere."""
        ways = [{"anchored": True, "full": True}] if "fullmatch" in self.methods else []
        ways += [{"anchored": True}] if "match" in self.methods else []
        return ways + ([{}] if self.methods - {"match", "fullmatch"} else [])

    def __str__(self) -> str:
        return f"{self.module}: {self.source}"


def expressions() -> list[Expression]:
    """Return the regular expression of each call of `re` in the package, and those of the built-in masks and rules."""
    found = [one for file in sorted(_SOURCE.rglob("*.py")) for one in _in_file(file)]
    masks = [Expression("seasoned.states.masks", mask.name, mask.pattern, re.IGNORECASE) for mask in ALL_MASKS]
    return found + masks + _of_rules()


def _in_file(file: Path) -> list[Expression]:
    text = file.read_text(encoding="utf-8")
    if "import re\n" not in text:
        return []
    module = ".".join(file.relative_to(_SOURCE).with_suffix("").parts).removesuffix(".__init__")
    tree = ast.parse(text)
    names = vars(importlib.import_module(module))
    uses = _methods_by_name(tree)
    found = []
    for node in ast.walk(tree):
        function = _function(node)
        if function is None or not isinstance(node, ast.Call):
            continue
        at = _FLAGS_AT.get(function, 9)
        flags = [*node.args[at : at + 1], *(each.value for each in node.keywords if each.arg == "flags")]
        try:
            pattern = eval(compile(ast.Expression(node.args[0]), module, "eval"), {**names})
            flag = eval(compile(ast.Expression(flags[0]), module, "eval"), {**names}) if flags else 0
        except NameError:
            pattern, flag = None, 0
        source = ast.unparse(node.args[0])
        methods = uses.get(_assigned(tree, node), {"search"}) if function == "compile" else {function}
        if isinstance(pattern, re.Pattern):
            continue
        pattern = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
        found.append(Expression(module, source, pattern, int(flag), frozenset(methods)))
    return found


def _function(node: ast.AST) -> str | None:
    """Return the function of `re` that a node calls."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FUNCTIONS:
        return node.func.attr if isinstance(node.func.value, ast.Name) and node.func.value.id == "re" else None
    return None


def _assigned(tree: ast.Module, call: ast.Call) -> str:
    """Return the name of the module that a compiled expression is assigned to, or an empty text."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.value is call and isinstance(node.targets[0], ast.Name):
            return node.targets[0].id
    return ""


def _methods_by_name(tree: ast.Module) -> dict[str, set[str]]:
    """Return for each name the methods of an expression that are called, or passed on, by it."""
    methods: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _FUNCTIONS:
            methods.setdefault(node.value.id, set()).add(node.attr)
    return methods


def _of_rules() -> list[Expression]:
    """Return the regular expressions of the rules of redaction, which their functions hold."""
    found = []
    for name, rules in RULES.items():
        for number, rule in enumerate(rules):
            for cell in rule.spans.__closure__ or ():
                if isinstance(cell.cell_contents, re.Pattern):
                    regex = cell.cell_contents
                    found.append(
                        Expression("seasoned.states.secret_patterns", f"{name} {number}", regex.pattern, regex.flags)
                    )
    return found
