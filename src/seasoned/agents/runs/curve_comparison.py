"""Comparison of learning curves with and without memory: mean scores by block of episodes, paired by seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seasoned.core import Interval, mean_interval
from seasoned.errors import InputError

__all__ = ["BLOCKS", "CurveComparison", "block_means", "compare_curves"]

BLOCKS = 4


def block_means(scores: npt.ArrayLike, blocks: int = BLOCKS) -> npt.NDArray[np.float64]:
    """Return each seed's mean score in equal, consecutive blocks of episodes.

    Args:
        scores: shape (seeds, episodes), in points.
        blocks: number of blocks; it must divide the number of episodes.

    Returns:
        Shape (seeds, blocks).

    Raises:
        InputError: the shape does not fit.

    Example:
        >>> block_means([[0, 0, 1, 1]], blocks=2).tolist()
        [[0.0, 1.0]]
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or not table.shape[1] or table.shape[1] % blocks:
        raise InputError(
            f"scores of shape {table.shape}",
            f"scores must be seeds x episodes, in {blocks} equal blocks",
            f"Play a multiple of {blocks} episodes.",
        )
    means: npt.NDArray[np.float64] = table.reshape(len(table), blocks, -1).mean(axis=2)
    return means


@dataclass(frozen=True, slots=True)
class CurveComparison:
    """Comparison of learning curves with and without memory, paired and resampled by seed; in points.

    Args:
        with_blocks, without_blocks: an interval of the mean score per block.
        with_minus_without: in the last block.
        last_minus_first: last block minus first block, with memory.
    """

    with_blocks: tuple[Interval, ...]
    without_blocks: tuple[Interval, ...]
    with_minus_without: Interval
    last_minus_first: Interval


def compare_curves(with_memory: npt.ArrayLike, without: npt.ArrayLike) -> CurveComparison:
    """Compare two arms that played the same seeds; each of shape (seeds, episodes).

    Raises:
        InputError: the shapes differ, or there are fewer than two seeds.

    Example:
        >>> print(compare_curves([[0, 0, 1, 1], [0, 0, 1, 3]], [[0, 0, 0, 0], [0, 0, 0, 0]]).with_minus_without.mean)
        2.0
    """
    ours, alone = block_means(with_memory), block_means(without)
    if ours.shape != alone.shape:
        raise InputError(
            f"{ours.shape} and {alone.shape}", "paired arms must play the same seeds", "Play the missing ones."
        )
    return CurveComparison(
        tuple(mean_interval(ours[:, block]) for block in range(BLOCKS)),
        tuple(mean_interval(alone[:, block]) for block in range(BLOCKS)),
        mean_interval(ours[:, -1] - alone[:, -1]),
        mean_interval(ours[:, -1] - ours[:, 0]),
    )
