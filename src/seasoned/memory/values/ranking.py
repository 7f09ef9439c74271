"""The order of search results: the most similar first; ties by the later visit, then by the larger id.

The order is total, so that equal stores give equal results; `docs/decisions/0002-ties-by-recency.md` says why. Visits
grow with time. The compiled kernel repeats the order in `_less` of `index/kernel_numba.py`: numba caches the machine
code of a file, and does not see a change in another one. SQL names a part of the order as `LATEST_FIRST`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LATEST_FIRST", "best_first", "rank_key"]

LATEST_FIRST = "ORDER BY step.visit DESC"
"""The SQL clause for steps that are equally similar."""


def rank_key(similarity: float, visit: int, id_: int = 0) -> tuple[float, int, int]:
    """Return the key that sorts results, best first.

    Example:
        >>> sorted([(0.5, 1), (1.0, 2), (1.0, 3)], key=lambda found: rank_key(*found))
        [(1.0, 3), (1.0, 2), (0.5, 1)]
    """
    return -similarity, -visit, -id_


def best_first(similarities: npt.NDArray[Any], visits: npt.NDArray[Any], ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the indices that sort results, best first.

    Args:
        similarities: float64 [n].
        visits: int64 [n].
        ids: int64 [n].
    """
    return np.lexsort((-ids, -visits, -similarities))
