"""Runs on the screen and as a picture: progress, tables, learning curves, usage."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from seasoned.agents.runs.curve_comparison import CurveComparison
from seasoned.cli.format.value_text import span_text
from seasoned.core import Interval, mean_interval
from seasoned.errors import MissingExtraError
from seasoned.protocols import Usage
from seasoned.registry import load_extra

__all__ = [
    "Screen",
    "comparison_table",
    "heading",
    "interval_json",
    "learning_curve",
    "progress",
    "save_plot",
    "usage_text",
]

_CURVE_ROWS = 10
_CURVE_COLUMNS = 68
_PLAIN_EVERY = 20
_PLAIN_EVERY_S = 30.0
_COLOURS = {"memory": "#1b7837", "placebo": "#762a83", "alone": "#7f7f7f"}
_LABELS = {"memory": "with memory", "placebo": "with shuffled returns", "alone": "model alone"}


class Screen(Console):
    """A console that passes on the error of a closed pipe (`| head`), so that the command ends with exit code 0."""

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError again; rich would end the process with exit code 1."""
        raise  # noqa: PLE0704


def heading(text: str) -> Panel:
    """Return a framed text."""
    return Panel(Text(text), expand=False)


@contextlib.contextmanager
def progress(
    console: Console, total: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """Show the progress of episodes: a bar in a terminal, elsewhere a line from time to time.

    Yields a function that takes the description of a played episode. The time left is estimated from the mean duration
    of the second half of the played episodes: the first ones are slower, since later ones find answers in the model's
    cache. It is shown from a twentieth of the episodes on.
    """
    if not console.is_terminal:
        times = [clock()]
        printed = times[0]

        def plain(description: str) -> None:
            nonlocal printed
            times.append(now := clock())
            done = len(times) - 1
            if done % _PLAIN_EVERY and done != total and now - printed < _PLAIN_EVERY_S:
                return
            printed = now
            pace_s = (now - times[done // 2]) / (done - done // 2)
            known = total / 20 <= done < total
            left = f", about {span_text(pace_s * (total - done))} left" if known else ""
            line = f"{done}/{total} episodes in {span_text(now - times[0])}{left}; {description}"
            console.print(line, highlight=False, soft_wrap=True)

        yield plain
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=total)
        yield lambda description: bar.update(task, advance=1, description=description)


def interval_json(interval: Interval) -> dict[str, float]:
    """Return an interval as a JSON object."""
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def _cell(interval: Interval) -> str:
    return f"{interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def comparison_table(comparison: CurveComparison, kind: str, max_score: float | None, episodes: int) -> Table:
    """Return mean scores by block of episodes; last less first quarter; with memory less alone in the last quarter."""
    blocks = len(comparison.with_blocks)
    size = episodes // blocks
    n = comparison.with_minus_without.n
    top = f", of {max_score:g} points" if max_score else ""
    table = Table(title=f"mean score{top}; 95 % intervals over {n} seeds", title_justify="left")
    table.add_column("episodes")
    table.add_column(f"with {kind}", justify="right")
    table.add_column("model alone", justify="right")
    for block in range(blocks):
        table.add_row(
            f"{block * size + 1} to {(block + 1) * size}",
            _cell(comparison.with_blocks[block]),
            _cell(comparison.without_blocks[block]),
        )
    table.add_section()
    table.add_row("last - first quarter", _signed(comparison.last_minus_first), "")
    table.add_row(f"{kind} - alone, last quarter", _signed(comparison.with_minus_without), "")
    return table


def _signed(interval: Interval) -> str:
    verdict = "above zero" if interval.low > 0 else "below zero" if interval.high < 0 else "not different from zero"
    return f"{interval.mean:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]\n{verdict}"


def learning_curve(scores: Mapping[str, Sequence[Sequence[float]]]) -> Text:
    """Return the mean score by episode as a text chart: `#` for the first arm, `.` for the second.

    At most 68 columns wide: a long run shows means of consecutive episodes.
    """
    means = {arm: _resampled(np.asarray(table, dtype=np.float64).mean(axis=0)) for arm, table in scores.items()}
    points = np.concatenate([[0.0], *means.values()])
    low, top = float(points.min()), float(points.max())
    size = (top - low) or 1.0
    n_columns = len(next(iter(means.values())))
    width = 2 if 2 * n_columns <= _CURVE_COLUMNS else 1
    text = Text("mean score by episode   ")
    marks = list(zip(means, "#.", ("green", "yellow"), strict=False))
    for arm, mark, style in marks:
        text.append(f"{mark} {arm}   ", style=style)
    text.append("\n")
    for row in range(_CURVE_ROWS, -1, -1):
        text.append(f"{low + size * row / _CURVE_ROWS:6.2f} |")
        for column in range(n_columns):
            cell, style = " " * width, ""
            for arm, mark, colour in reversed(marks):
                if round((means[arm][column] - low) / size * _CURVE_ROWS) == row:
                    cell, style = mark.ljust(width), colour
            text.append(cell, style=style)
        text.append("\n")
    last = str(len(next(iter(scores.values()))[0]))
    text.append("       +" + "-" * (width * n_columns) + "\n        1" + last.rjust(width * n_columns - 1) + "\n")
    return text


def _resampled(curve: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if len(curve) <= _CURVE_COLUMNS:
        return curve
    return np.array([part.mean() for part in np.array_split(curve, _CURVE_COLUMNS)])


def usage_text(usage: Usage, seconds: float) -> str:
    """Return the model calls, their cost and the time."""
    if usage.cost_usd is None:
        cost = "at an unknown price"
    else:
        cost = f"for {usage.cost_usd:.4f} USD" if usage.cost_usd else "free of charge"
    return (
        f"{usage.calls} model calls {cost} ({usage.prompt_tokens:,} prompt tokens), "
        f"{usage.cached_calls:,} answers from the cache, {seconds:.0f} s"
    )


def save_plot(
    scores: Mapping[str, Sequence[Sequence[float]]], kind: str, max_score: float | None, path: Path
) -> Path | None:
    """Save the mean score by episode of every arm, smoothed over three episodes, with 95 % bands over seeds.

    Returns the path. If the extra `plot` is missing, prints how to install it and returns None.
    """
    try:
        load_extra("matplotlib", "plot").use("Agg")
    except MissingExtraError as error:
        Screen(stderr=True).print(f"no plot: {error.next_step}", highlight=False, markup=False)
        return None
    pyplot = load_extra("matplotlib.pyplot", "plot")
    figure, axes = pyplot.subplots(figsize=(8, 4.5), dpi=120)
    for arm in sorted(scores, key=lambda name: name != kind):
        table = np.asarray(scores[arm], dtype=np.float64)
        smooth = np.stack([table[:, max(0, e - 1) : e + 2].mean(axis=1) for e in range(table.shape[1])], axis=1)
        x = np.arange(1, table.shape[1] + 1)
        colour = _COLOURS.get(arm, "#1b7837")
        axes.plot(x, smooth.mean(axis=0), color=colour, label=_LABELS.get(arm, arm), linewidth=2)
        if len(table) > 1:
            bands = [mean_interval(column, resamples=2000) for column in smooth.T]
            low, high = [band.low for band in bands], [band.high for band in bands]
            axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.set_xlabel("episode (mean of three)")
    axes.set_ylabel("score" + (f" (of {max_score:g})" if max_score else ""))
    seeds = len(scores[kind])
    title = f"The same frozen model on the same game, {seeds} seeds, 95 % bands" if seeds > 1 else "One run"
    axes.set_title(title, fontsize=11)
    if all(np.min(table) >= 0 for table in scores.values()):
        axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    if len(scores) > 1:
        axes.legend(frameon=False, loc="upper left")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return path
