"""The small parts of a report's page: a mean in a table, a table, an interval as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from seasoned.lab.experiments.measures import Estimate
from seasoned.lab.experiments.wording import bounds, mean_text

__all__ = ["cell", "glyph", "row_head", "source", "table"]

_TEXTS = {"task", "why", "what it is", "picks", "remarks", "command"}  # columns of texts, not numbers


def cell(
    found: Estimate | None, n: int | None, *, signed: bool = False, note: str = "", mark: str = "", side: str = ""
) -> str:
    """Return a table cell with a mean, its interval, and its n where that is not the row's `n`.

    Args:
        found: the mean; None: unknown.
        n: of the row.
        signed: write a plus.
        note: a line below.
        mark: behind the mean, for a footnote.
        side: `up` or `down` for a bar at the left, which is for differences that an adjusted test shows.

    Example:
        >>> cell(None, 3)
        '<td class="unknown">unknown</td>'
    """
    if found is None:
        return '<td class="unknown">unknown</td>'
    count = "" if found.n in {n, 1} else f", n = {found.n}"
    kind = ' class="interval"' if found.interval is not None else ""
    shown = f' class="{side}"' if side else ""
    extra = f"<small>{escape(note)}</small>" if note else ""
    return (
        f"<td{shown}>{mean_text(found, signed=signed)}{escape(mark)}"
        f"<small{kind}>{bounds(found, signed=signed)}{count}</small>{extra}</td>"
    )


def row_head(name: str, *notes: str) -> str:
    """Return the cell that names a row, with what qualifies it below."""
    return f'<th scope="row">{escape(name)}{"".join(f"<small>{escape(each)}</small>" for each in notes)}</th>'


def source(again: str) -> str:
    """Return the line below a table or a picture: the command that draws it again."""
    return f"Draw it again: <code>{escape(again)}</code>"


def table(
    caption: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]], again: str, *, note: str = ""
) -> str:
    """Return a table that scrolls by itself where it is too wide.

    Args:
        caption: what it shows.
        columns: headings, as text.
        rows: a class, and cells that are HTML already; the first is a `row_head`, say.
        again: the command that draws it again.
        note: a footnote, as text; none if it is empty.
    """
    below = f'<p class="note">{escape(note)}</p>\n' if note else ""
    sides = dict.fromkeys(_TEXTS, ' class="left"')
    head = "".join(f'<th scope="col"{sides.get(column, "")}>{escape(column)}</th>' for column in columns)
    body = "".join(f'<tr class="{kind}">{"".join(cells)}</tr>' for kind, cells in rows)
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n"
        f'{below}<p class="source">{source(again)}</p>\n'
    )


def glyph(name: str, found: Estimate, low: float, high: float, kind: str) -> str:
    """Return an interval as a bar with a dot, on a scale from `low` to `high` that has a line at zero.

    Args:
        name: of the arm, for those who hear the page.
        found: its gain.
        low, high: ends of the scale.
        kind: of the verdict; see `seasoned.lab.experiments.wording.badge`.
    """
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
        f'aria-label="gain of {escape(name)}: {mean_text(found, signed=True)} {bounds(found, signed=True)}">'
        f'<line x1="{x(0.0)}" x2="{x(0.0)}" y1="0" y2="100%" stroke="var(--soft)" stroke-dasharray="2 2"/>{bar}'
        f'<circle cx="{x(found.mean)}" cy="50%" r="5" fill="{filled}" stroke="currentColor" stroke-width="2"/></svg>'
    )
