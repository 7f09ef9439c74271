"""The order of search results: the most similar first; ties by the later visit, then by the larger id.

The order is total, so that equal stores give equal results; `docs/decisions/0002-ties-by-recency.md` says why. Visits
grow with time. Every ranking of the package imports its order from here, except for two places that repeat it:

- `index/kernel_numba.py`, `_less` and the sort of the heap: numba caches the machine code of a file and does not see a
  change in another one. `tests/memory/index` compares both kernels with the definition.
- `writing/interning.py`, `Interner.save`: the steps of a new episode are later than all steps before.

The visit of a distinct state is its latest live one, so that the k nearest steps are at the k nearest states. It is
stored (`LAST_VISIT`): an order by other visits needs a migration of `feature_set.last_visit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LAST_VISIT", "LATEST_FIRST", "best_first", "cut_ties", "latest", "latest_first", "may_precede", "rank_key"]

LATEST_FIRST = "ORDER BY step.visit DESC"
"""The SQL clause for steps that are equally similar."""

LAST_VISIT = (
    "(SELECT max(visit) FROM step INDEXED BY step_by_set WHERE live "
    "AND step.namespace_id = feature_set.namespace_id AND step.set_id = feature_set.id)"
)
"""The SQL expression for the visit of a row of `feature_set`."""


def rank_key(similarity: float, visit: int, id_: int = 0) -> tuple[float, int, int]:
    """Return the key that sorts results, best first.

    Example:
        >>> sorted([(0.5, 1), (1.0, 2), (1.0, 3)], key=lambda found: rank_key(*found))
        [(1.0, 3), (1.0, 2), (0.5, 1)]
    """
    return -similarity, -visit, -id_


def latest_first(visits: Iterable[int]) -> list[int]:
    """Return visits that are equally similar, in the order of results.

    Example:
        >>> latest_first([1, 3, 2])
        [3, 2, 1]
    """
    return sorted(visits, reverse=True)


def latest(ascending: Sequence[int], n: int) -> Sequence[int]:
    """Return the first n of `latest_first`, from visits or ordinals that ascend.

    Example:
        >>> latest([1, 2, 3], 2)
        [3, 2]
    """
    return ascending[: -n - 1 : -1]


def best_first(similarities: npt.NDArray[Any], visits: npt.NDArray[Any], ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the indices that sort results, best first.

    Args:
        similarities: float64 [n].
        visits: int64 [n].
        ids: int64 [n].
    """
    return np.lexsort((-ids, -visits, -similarities))


def cut_ties(similarities: npt.NDArray[Any], visits: npt.NDArray[Any], k: int) -> npt.NDArray[np.bool_]:
    """Return which results can be among the k best: also those that equal the last of them in similarity and visit.

    Args:
        similarities: float64 [n], n > k; fewer than k are above the least of them.
        visits: int64 [n].
        k: how many, >= 1.

    Example:
        >>> cut_ties(np.array([0.5, 1.0, 0.5, 0.5]), np.array([7, 1, 9, 9]), 2).tolist()
        [False, True, True, True]
    """
    tied = similarities == similarities.min()
    wanted = k - int((~tied).sum())
    last = visits[tied]
    latest = np.partition(last, len(last) - wanted)[len(last) - wanted]
    chosen: npt.NDArray[np.bool_] = ~tied | (visits >= latest)
    return chosen


def may_precede(
    similarities: npt.NDArray[Any], visits: npt.NDArray[Any], similarity: float, visit: int
) -> npt.NDArray[np.bool_]:
    """Return which results can come before one of this similarity and visit, depending on their ids.

    Args:
        similarities: float64 [n], or upper bounds of them.
        visits: int64 [n].
        similarity: of the result.
        visit: of the result.

    Example:
        >>> may_precede(np.array([0.5, 1.0, 0.5]), np.array([7, 1, 9]), 0.5, 8).tolist()
        [False, True, True]
    """
    chosen: npt.NDArray[np.bool_] = (similarities > similarity) | ((similarities == similarity) & (visits >= visit))
    return chosen
