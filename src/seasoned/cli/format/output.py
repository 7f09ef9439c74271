"""What goes to the screen or into a pipe: one document of JSON, a table, a line of text."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import click

__all__ = ["echo_fields", "echo_json", "echo_table", "echo_text", "number", "one_line", "printable"]

PIPE_WIDTH = 80
FIELD_WIDTH = 1000

_GAP = 3
_LEAST_TEXT, _NARROW_TEXT, _NARROW_ID = 11, 8, 12
_LEAST_BODY = 30  # of what somebody said: the first words are seldom all of it
_EXPENDABLE = ("policy", "model", "feedback", "author", "weight", "said")
_OVERFLOWS: dict[str, Literal["fold", "crop", "ellipsis"]] = {
    "episode": "crop",
    "event": "fold",
    "hash": "fold",
    "id": "crop",
    "note": "crop",
}


def printable(text: str) -> str:
    r"""Return the text with control characters made visible (line breaks stay): a stored state cannot move the cursor.

    Example:
        >>> printable("a\x1b[31mb")
        'a\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str, limit_chars: int = PIPE_WIDTH) -> str:
    r"""Return the text on one line of at most `limit_chars` characters.

    Example:
        >>> one_line("page:cart\n  total:12", 15)
        'page:cart to...'
    """
    line = printable(" ".join(text[: 4 * limit_chars].split()))
    return line if len(line) <= limit_chars else line[: limit_chars - 3] + "..."


def number(value: float | None) -> str:
    """Return a reward or a return as a person reads it; `-` where there is none.

    Example:
        >>> number(0.30000000000000004), number(None)
        ('0.3', '-')
    """
    return "-" if value is None else format(value, ".6g")


def echo_json(document: Any) -> None:
    """Print one JSON document; ASCII, so that it survives every locale."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def echo_text(text: str) -> None:
    """Print a text that a person reads."""
    click.echo(printable(text))


def echo_fields(fields: Mapping[str, Any]) -> None:
    """Print names and values, one a line."""
    width = max(map(len, fields))
    for name, value in fields.items():
        click.echo(f"{name.replace('_', ' '):<{width}}  {'-' if value is None else one_line(str(value), FIELD_WIDTH)}")


def echo_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print rows under column names: drawn to the width of a terminal; aligned plain text, uncut, in a pipe.

    Args:
        columns: names; texts share what room is left.
        rows: cells, one line each.
        right: the columns that are aligned to the right.
    """
    rows = [[one_line(cell, FIELD_WIDTH) for cell in row] for row in rows]
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


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    screen_width = shutil.get_terminal_size().columns
    widths, left_out = _fitted(columns, rows, right, screen_width)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
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
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str], screen_width: int
) -> tuple[dict[str, int], list[str]]:
    """Return the widths of the columns that fit, and which are left out: texts shrink first, then columns go."""
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
    for crops, floor in ((False, _NARROW_TEXT), (True, _NARROW_ID)):  # then what tells least where it is cut
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
    """How many characters, 8 or more, tell these ids apart."""
    different = set(ids)
    longest = max(map(len, ids), default=0)
    return next((n for n in range(8, longest) if len({i[:n] for i in different}) == len(different)), max(8, longest))
