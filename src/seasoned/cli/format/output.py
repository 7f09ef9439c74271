"""Output of commands: a JSON document for programs; tables, fields and text for people."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import click

__all__ = [
    "Table",
    "echo_fields",
    "echo_hint",
    "echo_table",
    "echo_text",
    "json_option",
    "paragraph",
    "present",
    "printable",
    "printable_line",
    "wants_json",
]

PIPE_WIDTH = 80
FIELD_WIDTH = 1000

_GAP = 3
_LEAST_TEXT, _NARROW_TEXT, _NARROW_ID = 11, 8, 12
_LEAST_BODY = 30  # a comment is seldom clear from fewer characters
_EXPENDABLE = ("policy", "model", "feedback", "author", "weight", "time")
_OVERFLOWS: dict[str, Literal["fold", "crop", "ellipsis"]] = {
    "episode": "crop",
    "event": "fold",
    "hash": "fold",
    "id": "crop",
    "note": "crop",
}
_JSON = "seasoned.json"


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under column names.

    Args:
        columns: their names.
        rows: the cells of each row.
        right: the columns that are aligned to the right.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[str] = ()


def _remember_json(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
    del parameter
    ctx.meta[_JSON] = value
    return value


json_option = click.option(
    "--json", is_flag=True, expose_value=False, callback=_remember_json, help="Print one JSON document, for a program."
)
"""The option that `wants_json`, `present` and `echo_hint` read."""


def wants_json() -> bool:
    """Return whether the command was called with `--json`."""
    return bool(click.get_current_context().meta.get(_JSON))


def present(document: Any, *parts: str | Mapping[str, Any] | Table) -> None:
    """Print the result of a command: with `--json` the document, else the parts, each a text, fields or a table.

    Args:
        document: a dataclass, or a value that JSON can hold. Its keys are stable. It is printed as ASCII, so that it
            survives every locale.
        parts: for people.
    """
    if wants_json():
        if dataclasses.is_dataclass(document) and not isinstance(document, type):
            document = dataclasses.asdict(document)
        click.echo(json.dumps(document, indent=2, allow_nan=False))
        return
    for part in parts:
        if isinstance(part, str):
            echo_text(part)
        elif isinstance(part, Table):
            echo_table(part)
        else:
            echo_fields(part)


def echo_hint(text: str) -> None:
    """Print a hint for people on stderr; nothing with `--json`."""
    if not wants_json():
        click.echo(printable(text), err=True)


def paragraph(text: str, indent: str = "") -> str:
    """Return a text, broken into lines that fit a narrow terminal."""
    return textwrap.fill(text, PIPE_WIDTH - 1, initial_indent=indent, subsequent_indent=indent)


def printable(text: str) -> str:
    r"""Return the text with control characters made visible (line breaks stay): a stored state cannot move the cursor.

    Example:
        >>> printable("a\x1b[31mb")
        'a\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def printable_line(text: str, limit_chars: int = PIPE_WIDTH) -> str:
    r"""Return the text on one line of at most `limit_chars` characters.

    Example:
        >>> printable_line("page:cart\n  total:12", 15)
        'page:cart to...'
    """
    line = printable(" ".join(text[: 4 * limit_chars].split()))
    return line if len(line) <= limit_chars else line[: limit_chars - 3] + "..."


def echo_text(text: str) -> None:
    """Print a text, with control characters made visible."""
    click.echo(printable(text))


def echo_fields(fields: Mapping[str, Any]) -> None:
    """Print names and values, one pair a line."""
    width = max(map(len, fields))
    for name, value in fields.items():
        click.echo(
            f"{name.replace('_', ' '):<{width}}  {'-' if value is None else printable_line(str(value), FIELD_WIDTH)}"
        )


def echo_table(table: Table) -> None:
    """Print a table: drawn to the width of a terminal; in a pipe as aligned plain text, uncut."""
    columns, right = table.columns, table.right
    rows = [[printable_line(cell, FIELD_WIDTH) for cell in row] for row in table.rows]
    if sys.stdout.isatty():
        _draw(columns, rows, right)
        return
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(columns, row, widths, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    screen_width = shutil.get_terminal_size().columns
    widths, left_out = _fitted(columns, rows, right, screen_width)
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, width in widths.items():
        # An id that is cut is still a prefix, and the commands take prefixes: no ellipsis there.
        overflow: Literal["fold", "crop", "ellipsis"] = _OVERFLOWS.get(name, "ellipsis")
        table.add_column(
            name,
            justify="right" if name in right else "left",
            width=width,
            overflow=overflow,
            no_wrap=overflow != "fold",
        )
    for row in rows:
        table.add_row(*(Text(cell) for name, cell in zip(columns, row, strict=True) if name in widths))
    Console(width=screen_width).print(table)
    if left_out:
        click.echo(f"no room for: {', '.join(left_out)} (a wider terminal, a pipe and --json have them)")


def _fitted(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str], screen_width: int
) -> tuple[dict[str, int], list[str]]:
    """Return the widths of the columns that fit, and the columns left out. Texts shrink first, then columns go."""
    natural = {name: max(map(len, (name, *cells))) for name, *cells in zip(columns, *rows, strict=True)}
    least: dict[str, int] = {}
    for name, *cells in zip(columns, *rows, strict=True):
        is_id = _OVERFLOWS.get(name) == "crop"
        text = _LEAST_BODY if name == "body" else _LEAST_TEXT
        keeps = is_id or name in right or _OVERFLOWS.get(name) == "fold"
        least[name] = _distinct_width(cells) if is_id else natural[name] if keeps else min(natural[name], text)
    shown = list(columns)
    left_out: list[str] = []

    def over() -> int:
        return sum(least[name] for name in shown) + _GAP * (len(shown) - 1) - screen_width

    for name in _EXPENDABLE:
        if name in shown and over() > 0:
            shown.remove(name)
            left_out.append(name)
    for crops, floor in ((False, _NARROW_TEXT), (True, _NARROW_ID)):  # then texts, then ids
        for name in sorted(shown, key=lambda name: -least[name]):
            if name not in right and (_OVERFLOWS.get(name) == "crop") == crops and over() > 0:
                least[name] = max(min(floor, least[name]), least[name] - over())
    room = max(-over(), 0)
    widths = {name: least[name] for name in shown}
    for name in sorted(shown, key=lambda name: natural[name] - least[name]):
        if name not in right and _OVERFLOWS.get(name) != "crop":
            more = min(natural[name] - widths[name], room)
            widths[name] += more
            room -= more
    return widths, left_out


def _distinct_width(ids: Sequence[str]) -> int:
    """Return the shortest prefix length, at least 8, at which these ids differ."""
    different = set(ids)
    longest = max(map(len, ids), default=0)
    return next((n for n in range(8, longest) if len({i[:n] for i in different}) == len(different)), max(8, longest))
