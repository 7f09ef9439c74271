"""What goes to the screen or into a pipe: one document of JSON, a table, a line of text."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

__all__ = ["echo_json", "echo_table", "echo_text", "number", "one_line", "printable"]

PIPE_WIDTH = 80


def printable(text: str) -> str:
    r"""Return the text with control characters, other than line breaks, made visible: a stored state cannot move the cursor.

    Example:
        >>> printable("a\x1b[31mb")
        'a\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str, limit_chars: int = PIPE_WIDTH) -> str:
    """Return the text on one line of at most `limit_chars` characters.

    Example:
        >>> one_line("page:cart\\n  total:12", 15)
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


def echo_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print rows under column names: drawn to the width of a terminal; aligned plain text, uncut, in a pipe.

    Args:
        columns: names; the last column takes what room is left.
        rows: cells, one line each.
        right: the columns that are aligned to the right.
    """
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

    width = shutil.get_terminal_size().columns
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        # An id that is cut is still a prefix, and the commands take prefixes: no ellipsis there.
        is_id = name in ("id", "episode")
        table.add_column(
            name, justify="right" if name in right else "left", no_wrap=True,
            overflow="crop" if is_id else "ellipsis", min_width=min(8, width // 8) if is_id else None,
            max_width=12 if is_id and width < 140 else None,
        )  # fmt: skip
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(width=width).print(table)
