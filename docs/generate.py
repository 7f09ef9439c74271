"""Writes docs/reference from the code: docstrings, presets, the error tree and the command line.

`python docs/generate.py` writes the pages, `--check` fails if one of them is out of date.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

__all__ = ["PAGES", "REFERENCE", "main"]

REFERENCE = Path(__file__).parent / "reference"
HEADER = "<!-- Written by docs/generate.py; do not edit. -->\n\n"
MODULES = (
    "seasoned",
    "seasoned.types",
    "seasoned.memory",
    "seasoned.policies",
    "seasoned.states",
    "seasoned.llms",
    "seasoned.envs",
    "seasoned.judges",
    "seasoned.agents",
    "seasoned.protocols",
    "seasoned.testing",
    "seasoned.core",
    "seasoned.policies.examples",
    "seasoned.service",
    "seasoned.sync",
    "seasoned.registry",
    "seasoned.build",
    "seasoned.lab",
    "seasoned.lab.forks.fork",
    "seasoned.lab.code_survival.survival",
    "seasoned.integrations.harbor",
    "seasoned.integrations.mcp",
    "seasoned.integrations.frameworks",
    "seasoned.chat",
)
SECTIONS = {"Args", "Example", "Raises", "Returns", "Yields"}

# ------------------------------------------------------------------------------------------------ docstrings


def prose(docstring: str) -> Iterator[str]:
    """Yield a Google-style docstring as Markdown: sections become lists, examples become code."""
    section, code = "", False
    for line in docstring.splitlines():
        name = line.removesuffix(":")
        if line.endswith(":") and name in SECTIONS:
            section, code = name, name == "Example"
            yield f"**{name}**\n"
            if code:
                yield "```pycon"
        elif code and line and not line.startswith(" "):
            yield "```\n"
            section, code = "", False
            yield line
        elif section:
            item = line.removeprefix("    ")
            listed = section in {"Args", "Raises"} and item and not item.startswith(" ")
            yield re.sub(r"^([\w*., |]+?): ", r"- `\1`: ", item) if listed else item
        else:
            yield line
    if code:
        yield "```"


class Raw(str):
    """Text that is shown as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def signature(value: object) -> str:
    """The parameters of a class or function, without memory addresses; '' where there are none to speak of."""
    if getattr(value, "_is_protocol", False) or (isinstance(value, type) and issubclass(value, BaseException)):
        return ""
    found = inspect.signature(value)  # type: ignore[arg-type]
    shown: list[inspect.Parameter] = []
    for parameter in found.parameters.values():
        if parameter.name in {"self", "cls"} and not shown:
            continue
        annotation, default = parameter.annotation, parameter.default
        if " at 0x" in repr(default):
            default = Raw("...")
        shown.append(
            parameter.replace(
                annotation=Raw(annotation) if isinstance(annotation, str) else annotation, default=default
            )
        )
    returned = found.return_annotation
    if isinstance(value, type):
        returned = inspect.Signature.empty
    elif isinstance(returned, str):
        returned = Raw(returned)
    return str(inspect.Signature(shown, return_annotation=returned))


def members(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the public methods and properties that a class offers, inherited ones after its own, with docstrings."""
    known = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    ours = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "seasoned"]
    for name, member in itertools.chain.from_iterable(vars(base).items() for base in ours):
        if name.startswith("_") or name in known:
            continue
        known.add(name)
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(function, property):
            yield f"`.{name}`", inspect.getdoc(function) or ""
        elif inspect.isfunction(function):
            kind = "async " if inspect.iscoroutinefunction(function) else ""
            yield f"`{kind}.{name}{signature(function)}`", inspect.getdoc(function) or ""


def api() -> str:
    """Every public name, where it is first offered."""
    lines = ["# Python reference", "", "Every public name, by the package that offers it."]
    seen: dict[int, str] = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        lines += ["", f"## {module_name}", "", (module.__doc__ or "").strip().split("\n\n")[0]]
        for name in module.__all__:
            value = getattr(module, name)
            if name.startswith("__"):
                continue
            if not (inspect.isclass(value) or inspect.isroutine(value)):
                lines += ["", f"### {name}", "", f"`{module_name}.{name}`, {constant(module_name, name, value)}"]
                continue
            if id(value) in seen:
                lines += ["", f"`{name}`: see {seen[id(value)]}."]
                continue
            seen[id(value)] = f"`{module_name}.{name}`"
            lines += ["", f"### {name}", "", f"`{name}{signature(value)}`", "", *prose(inspect.getdoc(value) or "")]
            if inspect.isclass(value):
                for title, docstring in members(value):
                    lines += ["", f"#### {title}", "", *prose(docstring)]
    return "\n".join(lines)


def constant(module_name: str, name: str, value: object) -> str:
    """What a public value says of itself: the string literal below its assignment, or its type."""
    for candidate in sorted(n for n in sys.modules if n == module_name or n.startswith(f"{module_name}.")):
        source = inspect.getsource(sys.modules[candidate])
        if match := re.search(rf'^{name}\b[^\n]*=(?:.|\n)*?^"""((?:.|\n)*?)"""', source, re.MULTILINE):
            between = match[0].removesuffix(match[1] + '"""')
            if len(re.findall(r"^[\w@]", between, re.MULTILINE)) == 1:  # nothing else was defined in between
                return " ".join(match[1].split())
    return f"a {type(value).__name__}."


# ------------------------------------------------------------------------------------------------ tables


def presets() -> str:
    """Every preset's settings side by side."""
    from seasoned.policies import PRESETS, JitRLSettings

    fields = [field.name for field in dataclasses.fields(JitRLSettings)]
    rows = [f"| `{name}` | " + " | ".join(f"`{getattr(p, name)}`" for p in PRESETS.values()) + " |" for name in fields]
    return "\n".join(
        [
            "# Presets",
            "",
            "Configurations of one estimator. `JitRL(memory)` is `default`; `JitRL.preset(name, memory)`",
            "is any of them. Why they differ: [the method](../explanation/method.md).",
            "",
            "| setting | " + " | ".join(f"`{name}`" for name in PRESETS) + " |",
            "|---" * (len(PRESETS) + 1) + "|",
            *rows,
            "",
            "## What the settings mean",
            "",
            *prose(inspect.getdoc(JitRLSettings) or ""),
        ]
    )


def errors() -> str:
    """The error tree, and when each is raised."""
    module = importlib.import_module("seasoned.errors")
    tree = (module.__doc__ or "").split("\n\n", 2)[2].rstrip()
    rows = []
    for name in module.__all__:
        error = getattr(module, name)
        if isinstance(error, type):
            builtins = [base.__name__ for base in error.__bases__ if not issubclass(base, module.SeasonedError)]
            also = ", ".join(f"`{base}`" for base in builtins if base != "Exception") or ""
            rows.append(f"| `{name}` | {also} | {(error.__doc__ or '').splitlines()[0]} |")
    return "\n".join(
        [
            "# Errors",
            "",
            "Whatever seasoned raises on purpose is a `SeasonedError`. Its message says the value seen, the rule,",
            "and the next step; they are also its attributes `seen`, `rule` and `next_step`.",
            "",
            "```text",
            inspect.cleandoc(tree),
            "```",
            "",
            "| error | also a | when |",
            "|---|---|---|",
            *rows,
        ]
    )


# ------------------------------------------------------------------------------------------------ command line


def cli() -> str:
    """Every command with its arguments and options; written here, since click's own layout changes with its version."""
    command: click.Command = importlib.import_module("seasoned.cli.main").cli
    return "\n".join(["# Command line", "", *command_lines("seasoned", command)])


def command_lines(path: str, command: click.Command) -> Iterator[str]:
    """Yield one command's page, then those of its subcommands."""
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    usage = [path, *(["[OPTIONS]"] if options else []), *(spelled(argument) for argument in arguments)]
    group = isinstance(command, click.Group)
    yield from [f"## `{path}`", "", "```text", " ".join([*usage, *(["COMMAND ..."] if group else [])]), "```", ""]
    yield from [paragraphs(command.help or command.short_help or ""), ""]
    if options:
        yield from ["| option | | |", "|---|---|---|"]
        yield from (option_row(option) for option in options)
        yield ""
    if command.epilog:
        yield from [paragraphs(command.epilog), ""]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from command_lines(f"{path} {name}", found)


def paragraphs(text: str) -> str:
    r"""A command's help as Markdown; what it marks as preformatted (with \b) is shown as it is."""
    parts = inspect.cleandoc(text.partition("\f")[0]).split("\n\n")
    shown = [f"```text\n{part[2:]}\n```" if part.startswith("\b\n") else part for part in parts]
    return "\n\n".join(shown)


def spelled(argument: click.Argument) -> str:
    """An argument as the usage line shows it."""
    name = (argument.metavar or (argument.name or "").upper()) + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def option_row(option: click.Option) -> str:
    """One row of the table: spelling, value and default, meaning."""
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    if option.is_flag:
        value = "flag"
    else:
        choices = getattr(option.type, "choices", None)
        value = " or ".join(f"`{choice}`" for choice in choices) if choices else option.type.name
        if isinstance(option.default, str | int | float):
            value += f", default `{option.default}`"
    notes = ["required"] * option.required + ["may be repeated"] * option.multiple
    cells = [names, ", ".join([value, *notes]), " ".join((option.help or "").split())]
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


PAGES: dict[str, Callable[[], str]] = {"api.md": api, "cli.md": cli, "errors.md": errors, "presets.md": presets}
"""What is generated, by file name."""


def page(name: str) -> str:
    """The text of one page."""
    text = HEADER + PAGES[name]().rstrip() + "\n"
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", text))


def main(arguments: list[str]) -> int:
    """Write the pages, or check that they are up to date."""
    if arguments not in ([], ["--check"]):
        print("usage: python docs/generate.py [--check]", file=sys.stderr)
        return 2
    stale = []
    for name in PAGES:
        path, text = REFERENCE / name, page(name)
        if not arguments:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        print(f"docs/reference is out of date: {', '.join(stale)}. Run: make docs", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
