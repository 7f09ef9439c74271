"""Similarity: Jaccard of sets and of multisets of features, and exact cosine search.

The search is one float32 product over a matrix, then the nearest vectors again in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_whole
from seasoned.core.arrays import Floats, Ints
from seasoned.errors import InputError, excerpt

__all__ = ["CosineIndex", "jaccard", "multiset_jaccard", "unit_rows"]

_FIRST_ROWS = 64


def jaccard(a: AbstractSet[str], b: AbstractSet[str]) -> float:
    """Return the number of common features over the number of features in either set.

    `J(a, b) = |a & b| / |a | b|`, and `J({}, {}) = 1`. `1 - J` is a metric. Source: JitRL, arXiv 2601.18510, state
    similarity. Exact: two equal fractions give the same float, so that thresholds and ties are exact.

    Returns:
        In [0, 1].

    Example:
        >>> jaccard({"a", "b"}, {"b", "c"})
        0.3333333333333333
    """
    common = len(a & b)
    union = len(a) + len(b) - common
    return common / union if union else 1.0


def multiset_jaccard(a: Mapping[str, int], b: Mapping[str, int]) -> float:
    """Return the similarity of two multisets; each maps a feature to its number of occurrences (at least 0).

    `J(a, b) = sum_f min(a[f], b[f]) / sum_f max(a[f], b[f])`, and `J({}, {}) = 1` (Ruzicka's similarity of counts).
    Equal to `jaccard` of the sets of pairs (feature, i) with i from 1 to the feature's count: for each feature, the
    lower count is the number of common pairs, and the higher count the number of all pairs. So `1 - J` is a metric.

    Returns:
        In [0, 1].

    Example:
        >>> multiset_jaccard({"no": 2, "yes": 1}, {"no": 1, "yes": 1})
        0.6666666666666666
    """
    common = sum(min(count, b.get(feature, 0)) for feature, count in a.items())
    union = sum(a.values()) + sum(b.values()) - common
    return common / union if union else 1.0


def unit_rows(name: str, values: npt.ArrayLike, dimensions: int | None = None) -> npt.NDArray[np.float32]:
    """Return vectors scaled to length 1, as float32: `v / |v|`, computed in float64.

    Args:
        name: of the vectors, for messages.
        values: shape (n, d).
        dimensions: d; None: any d of at least 1.

    Raises:
        InputError: another shape, a number that is not finite, or a vector without a direction (all zeros).

    Example:
        >>> unit_rows("vectors", [[3.0, 4.0]]).tolist() == [[np.float32(0.6), np.float32(0.8)]]
        True
    """
    try:
        rows = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        rule = f"{name} must be rows of numbers, all of one length"
        raise InputError(f"{name} = {excerpt(values)}", rule, "Pass a list of vectors.") from error
    if rows.ndim != 2 or not rows.shape[1] or rows.shape[1] != (dimensions or rows.shape[1]):
        wanted = "d" if dimensions is None else str(dimensions)
        raise InputError(
            f"{name} of shape {rows.shape}",
            f"{name} must have shape (n, {wanted}), d at least 1",
            "Vectors of two models cannot be compared: check which model made them.",
        )
    whole = np.isfinite(rows).all(axis=1)
    if not whole.all():
        at = int(np.argmin(whole))
        raise InputError(f"{name}[{at}] has NaN or an infinity", "a vector must be finite", "Embed it again.")
    largest = np.abs(rows).max(axis=1, initial=0.0)
    if not (largest > 0.0).all():
        at = int(np.argmin(largest))
        raise InputError(f"{name}[{at}] is all zeros", "a vector must have a direction", "Embed it again.")
    rows = rows / largest[:, None]  # so that no square overflows or underflows
    unit: npt.NDArray[np.float32] = (rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))).astype(np.float32)
    return unit


class CosineIndex:
    """Keyed unit vectors, with exact search for the k nearest, independent of the other stored vectors.

    The similarity of a stored u and a query v is `sum_i u_i v_i` over the unit vectors' float32 numbers, summed in
    float64. A float32 product over the whole matrix only selects the candidates for that sum: all vectors within
    `2 d 2^-23` of the k-th, which is more than its rounding error. Among equals the last key added comes first.

    Args:
        dimensions: d, the length of every vector.

    Raises:
        InputError: `dimensions` is not a whole number of at least 1.

    Example:
        >>> index = CosineIndex(2)
        >>> index.add(["east", "north"], [[2.0, 0.0], [0.0, 3.0]])
        >>> [(key, round(cosine, 3)) for key, cosine in index.search([0.6, 0.8], k=2)]
        [('north', 0.8), ('east', 0.6)]
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = check_whole("dimensions", dimensions, 1)
        self._rows = np.empty((_FIRST_ROWS, self.dimensions), dtype=np.float32)
        self._added = np.empty(_FIRST_ROWS, dtype=np.int64)
        self._keys: list[str] = []
        self._at: dict[str, int] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._at

    def add(self, keys: Sequence[str], vectors: npt.ArrayLike) -> None:
        """Add vectors; the vector of a stored key is replaced, and its key counts as added last.

        Args:
            keys: n different texts.
            vectors: shape (n, d).

        Raises:
            InputError: a vector cannot be compared (see `unit_rows`), or the keys do not fit; nothing was added.
        """
        if isinstance(keys, str) or len(set(keys)) < len(keys) or not all(isinstance(key, str) for key in keys):
            raise InputError(f"keys = {excerpt(list(keys))}", "keys must be different texts", "Pass each once.")
        if not keys:
            return
        unit = unit_rows("vectors", vectors, self.dimensions)
        if len(unit) != len(keys):
            raise InputError(f"{len(keys)} keys and {len(unit)} vectors", "each key must have a vector", "Align them.")
        self._reserve(len(self) + len(keys))
        for key, row in zip(keys, unit, strict=True):
            at = self._at.setdefault(key, len(self._keys))
            if at == len(self._keys):
                self._keys.append(key)
            self._rows[at], self._added[at] = row, self._next
            self._next += 1

    def remove(self, key: str) -> None:
        """Remove a vector.

        Raises:
            InputError: no vector has this key.
        """
        at = self._at.pop(key, None)
        if at is None:
            raise InputError(f"key = {excerpt(key)}", "key must be in the index", "Add it first.")
        last = self._keys.pop()
        if last != key:  # the last row moves into the gap
            self._keys[at], self._at[last] = last, at
            self._rows[at], self._added[at] = self._rows[len(self._keys)], self._added[len(self._keys)]

    def search(self, vector: npt.ArrayLike, k: int) -> list[tuple[str, float]]:
        """Return the keys of the k nearest vectors, best first, with their cosines in [-1, 1].

        Args:
            vector: shape (d,).
            k: the largest number of results, at least 1.

        Raises:
            InputError: the vector cannot be compared, or k is below 1.
        """
        k = check_whole("k", k, 1)
        query = np.asarray(vector)
        [unit] = unit_rows("queries", query[None] if query.ndim == 1 else query, self.dimensions)[:1]
        if query.ndim != 1:
            raise InputError(f"a query of shape {query.shape}", "a query must be one vector", "Pass shape (d,).")
        n = len(self)
        if not n:
            return []
        rough = self._rows[:n] @ unit
        margin = 2.0 * self.dimensions * float(np.finfo(np.float32).eps)
        least = float(np.partition(rough, n - k)[n - k]) - margin if k < n else -np.inf
        near = np.flatnonzero(rough >= least)
        exact = self._exact(near, unit)
        best = np.lexsort((-self._added[near], -exact))[:k]
        return [(self._keys[near[i]], float(exact[i])) for i in best]

    def cosines(self, vector: npt.ArrayLike, keys: Sequence[str]) -> list[float]:
        """Return the cosines between this vector and those of some keys, in order: the same numbers as in `search`.

        Raises:
            InputError: the vector cannot be compared, or no vector has one of the keys.
        """
        if unknown := [key for key in keys if key not in self._at]:
            raise InputError(f"key = {excerpt(unknown[0])}", "key must be in the index", "Add it first.")
        [unit] = unit_rows("queries", np.asarray(vector)[None], self.dimensions)
        cosines = self._exact(np.array([self._at[key] for key in keys], dtype=np.int64), unit)
        return [float(cosine) for cosine in cosines]

    def _exact(self, rows: Ints, unit: npt.NDArray[np.float32]) -> Floats:
        products = self._rows[rows].astype(np.float64) * unit.astype(np.float64)
        cosines: Floats = np.clip(products.sum(axis=1), -1.0, 1.0)
        return cosines

    def _reserve(self, rows: int) -> None:
        if rows > len(self._rows):
            size = max(rows, 2 * len(self._rows))
            for name in ("_rows", "_added"):
                old = getattr(self, name)
                new = np.empty((size, *old.shape[1:]), dtype=old.dtype)
                new[: len(self)] = old[: len(self)]
                setattr(self, name, new)
