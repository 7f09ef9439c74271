"""Learning curves as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from seasoned.core import mean_interval
from seasoned.registry import load_extra

__all__ = ["draw_curves"]

_COLOURS = {"memory": "#1b7837", "placebo": "#762a83", "alone": "#7f7f7f"}
_LABELS = {"memory": "with memory", "placebo": "with shuffled returns", "alone": "model alone"}


def draw_curves(
    scores: Mapping[str, Sequence[Sequence[float]]], kind: str, max_score: float | None, path: Path
) -> None:
    """Draw the mean score by episode of every arm, smoothed over three episodes, with a 95 % band over seeds."""
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
