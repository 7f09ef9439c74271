"""What runs look like in a terminal and in a picture."""

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

from seasoned.agents.runs.learning_curves import CurveComparison
from seasoned.cli.format.time_text import shown_span
from seasoned.core import Interval
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
    "usage_line",
]

_CURVE_ROWS = 10
_CURVE_COLUMNS = 68
_PLAIN_EVERY = 20
_PLAIN_EVERY_S = 30.0


class Screen(Console):
    """A console that lets a closed pipe (`| head`) be seen: the command line ends quietly then, with exit code 0."""

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError again, where rich would end the process with exit code 1."""
        raise  # noqa: PLE0704


def heading(text: str) -> Panel:
    """Return a framed text."""
    return Panel(Text(text), expand=False)


@contextlib.contextmanager
def progress(
    console: Console, total: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """A bar with the time left, in a terminal; a line now and then elsewhere. Gives a function that advances it.

    The time left is that of the episodes left, each as long as the latter half of those that were played took in the
    mean: the first ones ask a model what later ones find in its cache. Of less than a twentieth nothing is concluded.
    """
    if not console.is_terminal:
        ended = [clock()]
        told = ended[0]

        def plain(what: str) -> None:
            nonlocal told
            ended.append(now := clock())
            done = len(ended) - 1
            if done % _PLAIN_EVERY and done != total and now - told < _PLAIN_EVERY_S:
                return
            told = now
            pace_s = (now - ended[done // 2]) / (done - done // 2)
            known = total / 20 <= done < total
            left = f", about {shown_span(pace_s * (total - done))} left" if known else ""
            line = f"{done}/{total} episodes in {shown_span(now - ended[0])}{left}; {what}"
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
        yield lambda what: bar.update(task, advance=1, description=what)


def interval_json(interval: Interval) -> dict[str, float]:
    """Return an interval as a program reads it."""
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def _cell(interval: Interval) -> str:
    return f"{interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def comparison_table(comparison: CurveComparison, kind: str, max_score: float | None, episodes: int) -> Table:
    """Return mean scores by block of episodes, and the two differences that matter."""
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
    verdict = "above zero" if interval.low > 0 else "below zero" if interval.high < 0 else "not told apart from zero"
    return f"{interval.mean:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]\n{verdict}"


def learning_curve(scores: Mapping[str, Sequence[Sequence[float]]]) -> Text:
    """Return the mean score by episode, as a chart of characters: `#` for the first arm, `.` for the second.

    At most 68 columns wide: a long run shows means of consecutive episodes.
    """
    means = {arm: _squeezed(np.asarray(table, dtype=np.float64).mean(axis=0)) for arm, table in scores.items()}
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


def _squeezed(curve: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if len(curve) <= _CURVE_COLUMNS:
        return curve
    return np.array([part.mean() for part in np.array_split(curve, _CURVE_COLUMNS)])


def usage_line(usage: Usage, seconds: float) -> str:
    """Return what the model cost."""
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
    """Save learning curves with 95 % bands over seeds; None, saying so, where the extra `plot` is missing."""
    try:
        load_extra("matplotlib", "plot").use("Agg")
    except MissingExtraError as error:
        Screen(stderr=True).print(f"no plot: {error.next_step}", highlight=False, markup=False)
        return None
    from seasoned.cli.format.curve_plot import draw_curves

    draw_curves(scores, kind, max_score, path)
    return path
