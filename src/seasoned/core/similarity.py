"""Similarity of states: Jaccard of sets and of multisets."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

__all__ = ["jaccard", "multiset_jaccard"]


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
