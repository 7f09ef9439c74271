"""The small parts of a report's page: a mean in a table, a table, an interval as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from seasoned.lab.analysis.measures import RunMean
from seasoned.lab.analysis.phrases import interval_text, mean_text, number_text

__all__ = [
    "SECTIONS",
    "bar_scale",
    "html_table",
    "interval_bar",
    "mean_cell",
    "redraw_line",
    "row_head",
    "section_heading",
]

SECTIONS = {
    "answer": "The answer",
    "arms": "The arms",
    "curves": "Learning curves",
    "tasks": "Every arm at every task",
    "wins": "Wins",
    "flips": "What memory changed",
    "splits": "Does it carry over?",
    "troubles": "What failed",
    "provenance": "Provenance",
}
"""The page's sections: what a link to one says is what stands above it."""

_LEAST_APART = 0.22  # of a scale, between what is written at two places of it
_TEXTS = {"task", "why", "what it is", "picks", "remarks", "command"}  # columns of texts, not numbers


def mean_cell(
    found: RunMean | None, n: int | None, *, signed: bool = False, note: str = "", mark: str = "", side: str = ""
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
        >>> mean_cell(None, 3)
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
        f"<small{kind}>{interval_text(found, signed=signed)}{count}</small>{extra}</td>"
    )


def section_heading(section: str) -> str:
    """Return the heading of a section, which a link can lead to.

    Example:
        >>> section_heading("wins")
        '<h2 id="wins">Wins</h2>'
    """
    return f'<h2 id="{section}">{escape(SECTIONS[section])}</h2>'


def row_head(name: str, *notes: str) -> str:
    """Return the cell that names a row, with what qualifies it below."""
    return f'<th scope="row">{escape(name)}{"".join(f"<small>{escape(each)}</small>" for each in notes)}</th>'


def redraw_line(again: str) -> str:
    """Return the line below a table or a picture: the command that draws it again."""
    return f"Draw it again: <code>{escape(again)}</code>"


def html_table(
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
        f'{below}<p class="source">{redraw_line(again)}</p>\n'
    )


def interval_bar(name: str, found: RunMean, low: float, high: float, kind: str) -> str:
    """Return an interval as a bar with a dot, on a scale from `low` to `high` that has a line at zero.

    Args:
        name: of the arm, for those who hear the page.
        found: its gain.
        low, high: ends of the scale.
        kind: of the verdict; see `seasoned.lab.analysis.phrases.badge`.
    """

    def x(value: float) -> str:
        return _place(value, low, high)

    bar = ""
    if found.interval is not None:
        ends = f'x1="{x(found.interval.low)}" x2="{x(found.interval.high)}"'
        bar = f'<line {ends} y1="50%" y2="50%" stroke="currentColor" stroke-width="3"/>'
    filled = "currentColor" if kind in {"better", "worse", "alarm"} else "var(--paper)"
    return (
        f'<svg class="glyph {kind}" role="img" '
        f'aria-label="gain of {escape(name)}: {mean_text(found, signed=True)} {interval_text(found, signed=True)}">'
        f'<line x1="{x(0.0)}" x2="{x(0.0)}" y1="0" y2="100%" stroke="var(--soft)" stroke-dasharray="2 2"/>{bar}'
        f'<circle cx="{x(found.mean)}" cy="50%" r="5" fill="{filled}" stroke="currentColor" stroke-width="2"/></svg>'
    )


def bar_scale(low: float, high: float, unit: str) -> str:
    """Return what the bars are drawn on: its ends, its zero, and what is counted.

    Args:
        low, high: its ends; 0 lies between them or is one.
        unit: of the gains.

    Example:
        >>> drawn = bar_scale(-0.25, 0.5, "of the maximum")
        >>> [text in drawn for text in ("-0.250", ">0<", "+0.500", "of the maximum")]
        [True, True, True, True]
    """
    most = max(-low, high)
    ends = [(low, "start"), (high, "end")]
    marks = [(0.0, "0", "middle")] + [
        (end, number_text(end, most, signed=True), anchor)
        for end, anchor in ends
        if abs(end) > _LEAST_APART * (high - low)
    ]
    texts = "".join(
        f'<text x="{_place(at, low, high)}" y="75%" text-anchor="{anchor}">{text}</text>' for at, text, anchor in marks
    )
    said = f"scale of the gains: {number_text(low, most, signed=True)} to {number_text(high, most, signed=True)}"
    return f'<svg class="glyph scale" role="img" aria-label="{said}">{texts}</svg><small>gain, {escape(unit)}</small>'


def _place(value: float, low: float, high: float) -> str:
    """Where a value is on a scale, as a share of its width."""
    return f"{4 + 92 * (value - low) / ((high - low) or 1.0):.2f}%"
