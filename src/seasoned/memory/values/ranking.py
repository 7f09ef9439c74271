"""The order of search results: the most similar first; ties by the later visit, then by the larger id.

The order is total, so that equal stores give equal results; `docs/decisions/0002-ties-by-recency.md` says why. Visits
grow with time. A change of the order begins here. These places repeat it, or rest on it, and change with it:

- `index/kernel_numba.py`: `_less`, since numba caches the machine code of a file and does not see a change in another
  one; and `NumbaKernel.search`, which sorts the heap (similarity, visit, id) in descending order.
- `index/jaccard.py`: `JaccardIndex.add_arrays`, which sets the visit of a known id to the last one given.
- `reading/reader.py`: `sets_after` reads the feature sets whose latest visit is above the watermark; `recent_visits`,
  `latest_visits` and `latest_steps` use `LATEST_FIRST`.
- `writing/quarantine.py`, `update_last_visits`, and `writing/episode_writer.py`, `Writer.reindex`: the visit of a
  feature set is its highest live one, `max(visit)`.
- `pending/merged_reader.py`: `nearest`, `MergedReader.recent_visits` and `MergedReader.latest_visits` put the rows of
  the overlay first, since their visits are later than all stored ones.
- `retrieval/retriever.py`: `Retriever._visits_at` reads the `limit` latest visits of each state, and
  `Retriever.steps` sorts by visit in descending order.
- `recall/engine.py`, where the steps of a state are taken latest first and the step of an episode is the maximum of
  (similarity, visit); `recall/task_index.py`, `TaskIndex.nearest`, and `index/text_index.py`: of equal texts the higher
  number first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LATEST_FIRST", "best_first", "cut_ties", "may_precede", "rank_key"]

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
