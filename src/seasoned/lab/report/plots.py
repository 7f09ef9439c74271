"""The report's pictures: the gain of each arm, and the learning curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seasoned.lab.analysis.findings import ArmRow, Findings, TaskFindings, arm_role
from seasoned.lab.analysis.measures import RunMean
from seasoned.lab.analysis.result_text import interval_phrase, mean_text
from seasoned.registry import load_extra

__all__ = ["draw_pictures"]

_INK, _SOFT = "#222222", "#6b6b6b"
_REFERENCE, _OURS = "#8c8c8c", "#0b4f8a"
# Consecutive colours differ for readers with red-green blindness; lines with the same dashes differ clearly in colour.
_OTHERS = (
    "#d55e00",
    "#009e73",
    "#aa4499",
    "#b8860b",
    "#882255",
    "#cc6677",
    "#117733",
    "#56b4e9",
    "#44aa99",
    "#661100",
    "#999933",
    "#7b61c9",
)
_DASHES: tuple[Any, ...] = ((0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
_MOST_LINES = 6
_FRAMES_FROM = 3
_STYLE = {
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _SOFT,
    "axes.edgecolor": "#bbbbbb",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
    "text.usetex": False,
    "text.parse_math": False,
    "figure.facecolor": "white",
}


def draw_pictures(findings: Findings, out: Path) -> dict[str, Path]:
    """Write the pictures as PNGs, and return their paths by name: `gains`, then `curves TASK` and `arms TASK`.

    `curves` shows up to six arms in one frame: the reference and ours, each with its band, the placebo, then the arms
    with the best final scores. From three arms on, `arms` has a frame per arm, with its band and the reference.

    Raises:
        MissingExtraError: the extra `plot` is not installed.
    """
    load_extra("matplotlib", "plot").use("Agg")
    pyplot = load_extra("matplotlib.pyplot", "plot")
    paths: dict[str, Path] = {}

    def save(figure: Any, name: str) -> None:
        paths[name] = out / f"{name.replace(' ', '-')}.png"
        figure.savefig(paths[name], dpi=160, bbox_inches="tight", pad_inches=0.12)
        pyplot.close(figure)

    with pyplot.rc_context(_STYLE):
        if any(claim.gain is not None for claim in findings.claims):
            save(_gains(pyplot, findings), "gains")
        for task in findings.tasks:
            rows = [row for row in task.rows if row.curve is not None]
            if rows:
                save(_curves(pyplot, findings, task, rows), f"curves {task.task}")
            if len(rows) >= _FRAMES_FROM:
                save(_frames(pyplot, findings, task, rows), f"arms {task.task}")
    return paths


def _gains(pyplot: Any, findings: Findings) -> Any:
    """Draw a row per arm: the gain over the reference, with its interval, and a line at zero."""
    shown = [(claim, claim.gain) for claim in findings.claims if claim.gain is not None]
    figure, axes = pyplot.subplots(figsize=(7.5, 0.9 + 0.42 * len(shown)))
    axes.axvline(0.0, color=_REFERENCE, linewidth=1.2)
    styles = _line_styles(findings)
    for y, (claim, gain) in enumerate(shown):
        colour = styles[claim.arm][0]
        clear = claim.verdict in {"better", "worse"}
        if gain.interval is not None:
            axes.plot(
                [gain.interval.low, gain.interval.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt"
            )
        axes.plot([gain.mean], [y], "o", color=colour, markerfacecolor=colour if clear else "white", markersize=7)
        text = f"{mean_text(gain, signed=True)}  {interval_phrase(gain, signed=True)}  n = {gain.n}"
        text = text if gain.interval is not None else f"{mean_text(gain, signed=True)}  {interval_phrase(gain)}"
        axes.annotate(text, (1.02, y), xycoords=("axes fraction", "data"), va="center", fontsize=9, color=_SOFT)
    axes.set_yticks(range(len(shown)), [claim.arm for claim, _ in shown])
    axes.tick_params(axis="y", length=0, labelcolor=_INK)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.spines["left"].set_visible(False)
    units = sorted({claim.unit for claim, _ in shown})
    axes.set_xlabel(f"gain over {findings.suite.reference}, {' or '.join(units)} (filled: holds after adjustment)")
    return figure


def _curves(pyplot: Any, findings: Findings, task: TaskFindings, rows: Sequence[ArmRow]) -> Any:
    figure, axes = pyplot.subplots(figsize=(7.5, 4.0))
    styles = _line_styles(findings)
    ends: list[tuple[float, str, str]] = []
    for row in _readable(findings, rows):
        colour, dash = styles[row.arm]
        heavy = _role(findings, row) in {"ours", "reference"}
        end = _line(axes, row, colour, dash, 2.6 if heavy else 1.4, band=0.2 if heavy else None)
        ends.append((end, row.arm, colour))
    _axes(axes, task, rows)
    _label_ends(axes, ends)
    return figure


def _frames(pyplot: Any, findings: Findings, task: TaskFindings, rows: Sequence[ArmRow]) -> Any:
    """Draw small multiples: the same axes for every arm, with the reference in the background."""
    reference = next((row for row in rows if row.arm == findings.suite.reference), None)
    others, styles = [row for row in rows if row is not reference], _line_styles(findings)
    columns = min(4, max(2, len(others)))
    lines = math.ceil(len(others) / columns)
    figure, frames = pyplot.subplots(
        lines, columns, figsize=(7.5, 1.0 + 1.8 * lines), sharex=True, sharey=True, squeeze=False
    )
    for axes in frames.flat[len(others) :]:
        axes.set_visible(False)
    for axes, row in zip(frames.flat, others, strict=False):
        if reference is not None:
            _line(axes, reference, _REFERENCE, (0, (4, 2)), 1.2, band=0.12)
        _line(axes, row, styles[row.arm][0], "-", 1.8, band=0.22)
        axes.set_title(f"{row.arm}  (n = {row.n})", fontsize=9, loc="left")
        axes.tick_params(labelsize=8)
    _limits(frames[0][0], rows, task.max_score)
    frames[0][0].xaxis.get_major_locator().set_params(integer=True)
    frames[-1][0].set_xlabel("episode")
    frames[0][0].set_ylabel("score")
    behind = "" if reference is None else f"; dashed: {reference.arm}"
    title = f"{task.task}: each arm by itself, mean over runs, bands: 95 %{behind}"
    figure.suptitle(title, x=0.015, ha="left", fontsize=9.5, color=_SOFT)
    figure.tight_layout()
    return figure


def _line_styles(findings: Findings) -> dict[str, tuple[str, Any]]:
    """Return the colour and dashes of each arm, which are the same in every picture."""
    ours = {"reference": (_REFERENCE, "-"), "ours": (_OURS, "-")}
    styles: dict[str, tuple[str, Any]] = {}
    others = 0
    for arm in findings.suite.arms:
        known = ours.get(arm_role(arm, findings.suite))
        styles[arm.name] = known or (_OTHERS[others % len(_OTHERS)], _DASHES[others % len(_DASHES)])
        others += known is None
    return styles


def _role(findings: Findings, row: ArmRow) -> str:
    return arm_role(findings.suite.arm(row.arm), findings.suite)


def _readable(findings: Findings, rows: Sequence[ArmRow]) -> list[ArmRow]:
    """Return at most six rows in drawing order: the special arms, then those with the best final scores."""

    def rank(row: ArmRow) -> tuple[int, float]:
        final = row.measures["final"]
        place = {"ours": 0, "reference": 1, "placebo": 2}.get(_role(findings, row), 3)
        return place, -(final.mean if final is not None else 0.0)

    on_top = {"reference": 0, "other": 1, "placebo": 2, "ours": 3}
    return sorted(sorted(rows, key=rank)[:_MOST_LINES], key=lambda row: on_top[_role(findings, row)])


def _line(axes: Any, row: ArmRow, colour: str, dash: Any, width: float, *, band: float | None) -> float:
    """Draw the curve of an arm, and return its last mean. `band`: the opacity of its interval; None: no band."""
    points: Sequence[RunMean] = row.curve.points if row.curve is not None else ()
    ends = row.curve.ends if row.curve is not None else ()
    axes.plot(ends, [p.mean for p in points], color=colour, linestyle=dash, linewidth=width)
    known = [p.interval for p in points if p.interval is not None]
    if known and band is not None:
        axes.fill_between(ends, [i.low for i in known], [i.high for i in known], color=colour, alpha=band, linewidth=0)
    return points[-1].mean


def _axes(axes: Any, task: TaskFindings, rows: Sequence[ArmRow]) -> None:
    _limits(axes, rows, task.max_score)
    blocks = sorted({row.curve.block for row in rows if row.curve is not None})
    block = f"{blocks[0]}" if len(blocks) == 1 else f"{blocks[0]} to {blocks[-1]}"
    counts = sorted({row.n for row in rows})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    band = "; bands: 95 %, of the heavy lines" if counts[-1] > 1 else "; no band for one run"
    axes.set_xlabel("episode" if block == "1" else f"episode (each point the mean of {block})")
    axes.set_ylabel("score" if task.max_score is None else f"score (best possible: {task.max_score:g})")
    axes.set_title(f"{task.task}: mean over runs, {n}{band}", fontsize=9.5, loc="left", color=_SOFT)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)


def _limits(axes: Any, rows: Sequence[ArmRow], best: float | None) -> None:
    """Fit the frame to the means; wide bands of few runs are cut off so that the curves do not become flat."""
    means = [p.mean for row in rows if row.curve is not None for p in row.curve.points]
    ends = [p.interval for row in rows if row.curve is not None for p in row.curve.points if p.interval is not None]
    low, high = min(0.0, *means), max(0.0, *means)
    if low == high:  # all scores are 0: show the distance to the best possible one
        high = best or 1.0
    room = high - low
    low = max(low - 0.5 * room, min([low, *(i.low for i in ends)]))
    high = min(high + 0.5 * room, max([high, *(i.high for i in ends)]))
    axes.set_ylim(low - 0.03 * room, high + 0.03 * room)
    ends_of = [end for row in rows if row.curve is not None for end in row.curve.ends]
    axes.set_xlim(min(ends_of) - 0.3, max(ends_of) + 0.3)


def _label_ends(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Label each line at its right end, with labels pushed apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = 0.06 * (high - low)
    placed: list[tuple[float, str, str]] = []
    for y, name, colour in sorted(ends):
        placed.append((max(y, placed[-1][0] + gap) if placed else y, name, colour))
    excess = max(0.0, placed[-1][0] - high) if placed else 0.0
    for y, name, colour in placed:
        axes.annotate(
            name, (1.012, y - excess), xycoords=("axes fraction", "data"), color=colour, va="center", fontsize=10
        )
