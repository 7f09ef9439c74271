"""The sections of a report's page about the arms themselves: what each one is, and how it did at every task."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from seasoned.lab.analysis.arm_caveats import ArmCaveats
from seasoned.lab.analysis.findings import ArmRow, Findings, TaskFindings, arm_role
from seasoned.lab.analysis.phrases import MARKS
from seasoned.lab.report.html_parts import html_table, mean_cell, row_head, section_heading
from seasoned.lab.results.unusable_answers import ASKS

__all__ = ["arms_section", "task_section"]

_QUALITY = {"average": "average score", "final": "final score", "area": "area, share of maximum"}
_COST = {
    "tokens": "tokens a run",
    "usd": "dollars a run",
    "decision_ms": "memory, ms a step",
    "steps": "steps an episode",
    "flipped": "steps flipped",
}
_BY_LENGTH = {"tokens", "usd"}  # sums over a run: fewer episodes, less of it
_FEWER = "†"
_UNKNOWN, _NONE = '<td class="unknown">unknown</td>', '<td class="unknown">–</td>'
_PICKS = {"samples": "samples", "greedy": "greedy: the likeliest action", "majority": "greedy: the majority's action"}


def arms_section(found: Findings) -> str:
    """Return what each arm is: how it picks its actions, how much it plays, and what qualifies its gain."""
    rows = []
    for each in found.notes:
        picks = "unknown" if each.selects is None else _PICKS[each.selects]
        remarks = "; ".join(each.remarks)
        cells = [f'<td class="left">{escape(each.kind)}</td>', f'<td class="left">{picks}</td>']
        cells += [f"<td>{each.episodes}</td>", f'<td class="left wide">{escape(remarks)}</td>']
        rows.append((arm_role(found.suite.arm(each.arm), found.suite), [_head(found, each.arm), *cells]))
    columns = ["arm", "what it is", "picks", "episodes", "remarks"]
    return (
        section_heading("arms") + '<p class="note">Where an arm takes the likeliest action and the reference samples, '
        "a part of the difference can be decoding and not memory. Where the environment's own score chooses "
        "among attempts, the arm is an upper bound: nothing at work has that judge.</p>"
        + html_table("How each arm picks its actions, and what qualifies its gain", columns, rows, found.again)
    )


def task_section(found: Findings, task: TaskFindings) -> str:
    """Return how every arm did at a task, and what it took."""
    best = "unknown" if task.max_score is None else f"{task.max_score:g}"
    powers = sorted(
        {name for row in task.rows for name in row.measures if name.startswith("pass^")},
        key=lambda name: int(name.removeprefix("pass^")),
    )
    most = max((row.episodes for row in task.rows), default=0)
    asks = any(row.unusable is not None or found.suite.arm(row.arm).kind in ASKS for row in task.rows)
    quality, cost = [], []
    for row in task.rows:
        part = arm_role(found.suite.arm(row.arm), found.suite)
        n = f"{row.n}" if row.n == row.planned else f"{row.n} of {row.planned}"
        head = [_head(found, row.arm), f"<td>{n}</td>", f"<td>{row.episodes}</td>"]
        failed = [f"<td>{row.failed}</td>", *([_unusable(found, row)] if asks else [])]
        if not row.n:
            width = len(_QUALITY) + len(powers) + 1
            quality.append((part, [*head, f'<td class="unknown left" colspan="{width}">no finished run</td>']))
            cost.append((part, [*head, *["<td></td>"] * len(_COST), *failed]))
            continue
        mark = _FEWER if row.episodes < most else ""
        shown = [mean_cell(row.measures[name], row.n, mark=mark) for name in _QUALITY]
        passed = [_power(row, name, mark) for name in powers]
        quality.append((part, [*head, *shown, _gain(row), *passed]))
        took = [mean_cell(row.measures[name], row.n, mark=mark if name in _BY_LENGTH else "") for name in _COST]
        cost.append((part, [*head, *took, *failed]))
    passes = ["pass@1" if name == "pass^1" else name for name in powers]
    reference = found.suite.reference
    return (
        f'<h3>{escape(task.task)}</h3><p class="note">{task.episodes} episodes; best possible score: {best}; '
        f"{escape(', '.join(task.env))}</p>"
        + html_table(
            f"Scores at {task.task}: means over finished runs",
            ["arm", "runs", "episodes", *_QUALITY.values(), f"gain over {reference}", *passes],
            quality,
            found.again,
            note=_footnote(task.rows, most, reference),
        )
        + html_table(
            f"What it took at {task.task}: means over finished runs",
            ["arm", "runs", "episodes", *_COST.values(), "runs failed", *(["unusable answers"] if asks else [])],
            cost,
            found.again,
        )
    )


def _head(found: Findings, arm: str) -> str:
    note: ArmCaveats = found.caveats_of(arm)
    greedy = ["greedy"] if note.selects in {"greedy", "majority"} else []
    bound = ["upper bound: the score chooses"] if note.score_chooses else []
    return row_head(arm, *(["reference"] if arm == found.suite.reference else []), *greedy, *bound)


def _gain(row: ArmRow) -> str:
    if row.claim is None:
        return "<td></td>"
    verdict = row.claim.verdict
    side = {"better": "up", "worse": "down"}.get(verdict, "")
    return mean_cell(row.claim.gain, row.n, signed=True, note=f"{MARKS[verdict]} {verdict}", side=side)


def _power(row: ArmRow, name: str, mark: str) -> str:
    """An arm with fewer episodes has fewer in its last quarter, and no share for more of them."""
    return mean_cell(row.measures[name], row.n, mark=mark) if name in row.measures else _NONE


def _unusable(found: Findings, row: ArmRow) -> str:
    if row.unusable is not None:
        return f"<td>{len(row.unusable)}</td>"
    return _UNKNOWN if found.suite.arm(row.arm).kind in ASKS else _NONE


def _footnote(rows: Sequence[ArmRow], most: int, reference: str) -> str:
    fewer = sorted({row.episodes for row in rows if row.n and row.episodes < most})
    if not fewer:
        return ""
    counts = " or ".join(map(str, fewer))
    return (
        f"{_FEWER} over {counts} episodes where others play {most}: not to be compared with theirs. "
        f"The gain over {reference} can be: it is over the episodes that both played."
    )
