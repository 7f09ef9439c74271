"""How alike two states are."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

__all__ = ["jaccard"]


def jaccard(a: AbstractSet[str], b: AbstractSet[str]) -> float:
    """Return the share of features that two sets have in common.

    `J(a, b) = |a & b| / |a | b|`, and `J({}, {}) = 1`. `1 - J` is a metric. Source: JitRL, arXiv 2601.18510, state
    similarity. Exact: two equal fractions give the same float, so that thresholds and ties mean what they say.

    Returns:
        In [0, 1].

    Example:
        >>> jaccard({"a", "b"}, {"b", "c"})
        0.3333333333333333
    """
    common = len(a & b)
    union = len(a) + len(b) - common
    return common / union if union else 1.0
