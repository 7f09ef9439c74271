"""The small parts of a report's page: a mean in a table, a table, an interval as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from seasoned.lab.experiments.measures import Estimate
from seasoned.lab.experiments.wording import bounds, mean_text

__all__ = ["cell", "glyph", "table"]


def cell(found: Estimate | None, n: int | None, *, signed: bool = False, note: str = "") -> str:
    """Return a table cell with a mean, its interval, and its n where that is not the row's `n`.

    Example:
        >>> cell(None, 3)
        '<td class="unknown">unknown</td>'
    """
    if found is None:
        return '<td class="unknown">unknown</td>'
    count = "" if found.n in {n, 1} else f", n = {found.n}"
    kind = ' class="interval"' if found.interval is not None else ""
    side = ""
    if signed and found.interval is not None:
        side = ' class="up"' if found.interval.low > 0.0 else ' class="down"' if found.interval.high < 0.0 else ""
    extra = f"<small>{escape(note)}</small>" if note else ""
    return (
        f"<td{side}>{mean_text(found, signed=signed)}<small{kind}>{bounds(found, signed=signed)}{count}</small>"
        f"{extra}</td>"
    )


def table(columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return a table that scrolls by itself where it is too wide.

    Args:
        columns: headings, as text.
        rows: a class, and cells that are HTML already.
    """
    sides = {"task": ' class="left"', "why": ' class="left"'}  # texts, not numbers
    head = "".join(f"<th{sides.get(column, '')}>{escape(column)}</th>" for column in columns)
    body = "".join(f'<tr class="{kind}">{"".join(cells)}</tr>' for kind, cells in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n'


def glyph(found: Estimate, low: float, high: float, kind: str) -> str:
    """Return an interval as a bar with a dot, on a scale from `low` to `high` that has a line at zero."""
    room = (high - low) or 1.0

    def x(value: float) -> str:
        return f"{4 + 92 * (value - low) / room:.2f}%"

    bar = ""
    if found.interval is not None:
        ends = f'x1="{x(found.interval.low)}" x2="{x(found.interval.high)}"'
        bar = f'<line {ends} y1="50%" y2="50%" stroke="currentColor" stroke-width="3"/>'
    filled = "currentColor" if kind in {"better", "worse", "alarm"} else "var(--paper)"
    return (
        f'<svg class="glyph {kind}" role="img" '
        f'aria-label="{mean_text(found, signed=True)} {bounds(found, signed=True)}">'
        f'<line x1="{x(0.0)}" x2="{x(0.0)}" y1="0" y2="100%" stroke="var(--soft)" stroke-dasharray="2 2"/>{bar}'
        f'<circle cx="{x(found.mean)}" cy="50%" r="5" fill="{filled}" stroke="currentColor" stroke-width="2"/></svg>'
    )
