"""The terms of each feature: what parts two features may share, and the features that hold a term."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Ints, ranges
from seasoned.states.subwords import subword_terms

__all__ = ["FeatureTerms", "sums_by_set", "unsplit"]

_FEWEST_TO_LIST = 4096
_TAIL_SHARE = 8


def unsplit(feature: str) -> list[str]:
    """Return the feature as its only term, so that two features share all or nothing."""
    return [feature]


def sums_by_set(values: Floats, sizes: Ints) -> Floats:
    """Return the sum of each set's values, given one set after the other; 0 for an empty set."""
    found = np.zeros(len(sizes))
    filled = sizes > 0
    if filled.any():
        starts = (np.cumsum(sizes, dtype=np.int64) - sizes)[filled]
        found[filled] = np.add.reduceat(values, starts)
    return found


class FeatureTerms:
    """The terms of numbered features; terms are numbered in the order of their first occurrence.

    A feature is expanded once, when the next search needs it. Features of pending episodes are numbered above the
    stored ones, and may be replaced.

    Args:
        terms_of: the terms of a feature, each once.

    Attributes:
        number_of: the number of each term.
        n_features: more than every number of a feature.
        starts: where the terms of each feature start in `terms`; one more at the end.
        terms: the numbers of the terms of all features, one feature after the other.

    Example:
        >>> terms = FeatureTerms()
        >>> terms.add({"refund": 1, "refunds?": 2})
        >>> _ = terms.update()
        >>> len(terms.terms_at(1)), len(terms.terms_at(2)), len(set(terms.terms_at(1)) & set(terms.terms_at(2)))
        (6, 8, 4)
    """

    def __init__(self, terms_of: Callable[[str], Sequence[str]] = subword_terms) -> None:
        self._terms_of = terms_of
        self.clear()

    def clear(self) -> None:
        """Forget all features."""
        self.number_of: defaultdict[str, int] = defaultdict()
        self.number_of.default_factory = self.number_of.__len__
        self._new: list[Mapping[str, int]] = []
        self._pending: list[Mapping[str, int]] = []
        self._n_stored = 0  # features up to here are stored ones, those above pending ones
        self._pending_changed = False
        self._starts = np.zeros(1024, dtype=np.int64)
        self._terms = np.zeros(4096, dtype=np.uint32)
        self.n_features = 0
        self._n_listed = 0
        self._holders = np.empty(0, dtype=np.uint32)
        self._list_starts = np.zeros(1, dtype=np.int64)

    def add(self, features: Mapping[str, int]) -> None:
        """Add stored features, numbered above all stored ones before."""
        if features:
            self._new.append(features)

    def replace_pending(self, features: Iterable[Mapping[str, int]]) -> None:
        """Take these for the features of pending episodes, numbered above the stored ones."""
        self._pending = [dict(of_layer) for of_layer in features]
        self._pending_changed = True

    @property
    def starts(self) -> Ints:
        """Where the terms of each feature start."""
        return self._starts[: self.n_features + 1]

    @property
    def terms(self) -> Ints:
        """The terms of all features."""
        return self._terms[: int(self._starts[self.n_features])]

    def terms_at(self, feature: int) -> list[int]:
        """Return the terms of one feature."""
        found: list[int] = self._terms[self._starts[feature] : self._starts[feature + 1]].tolist()
        return found

    def update(self) -> bool:
        """Expand what was added since the last call; return whether pending features were replaced."""
        replaced = self._pending_changed
        if self._new or replaced:
            self.n_features = self._n_stored
            for features in self._new:
                self._append(features)
            self._new, self._n_stored = [], self.n_features
            unlisted = int(self._starts[self.n_features] - self._starts[self._n_listed])
            if unlisted > max(_FEWEST_TO_LIST, int(self._starts[self._n_listed]) // _TAIL_SHARE):
                self._list()
            self._append({text: id_ for of_layer in self._pending for text, id_ in of_layer.items()})
            self._pending_changed = False
        return replaced

    def _append(self, features: Mapping[str, int]) -> None:
        """Add features, by number; numbers that are left out have no terms."""
        first = self.n_features
        pairs = sorted((id_, text) for text, id_ in features.items() if id_ >= first)
        if not pairs:
            return
        ids, texts = zip(*pairs, strict=True)
        terms = list(map(self._terms_of, texts))
        flat = list(map(self.number_of.__getitem__, chain.from_iterable(terms)))
        lengths = np.zeros(ids[-1] + 1 - first, dtype=np.int64)
        lengths[np.array(ids) - first] = list(map(len, terms))
        begin = int(self._starts[first])
        ends = begin + np.cumsum(lengths)
        self._starts = _with_room(self._starts, ids[-1] + 2)
        self._terms = _with_room(self._terms, int(ends[-1]))
        self._starts[first + 1 : ids[-1] + 2] = ends
        self._terms[begin : int(ends[-1])] = flat
        self.n_features = ids[-1] + 1

    def _list(self) -> None:
        """List for each term the stored features that hold it."""
        features = np.repeat(np.arange(self.n_features, dtype=np.uint32), np.diff(self.starts))
        self._holders = features[np.argsort(self.terms, kind="stable")]
        counts = np.bincount(self.terms, minlength=len(self.number_of))
        self._list_starts = np.concatenate([[0], np.cumsum(counts)])
        self._n_listed = self.n_features

    # ------------------------------------------------------------------------------------------ reading

    def count(self, features: Iterable[str]) -> tuple[Ints, Floats, Floats]:
        """Return the known terms of some features, how many of these hold each, and such counts of unknown terms."""
        counts = Counter(term for feature in features for term in self._terms_of(feature))
        known = {self.number_of[term]: n for term, n in counts.items() if term in self.number_of}
        unknown = [n for term, n in counts.items() if term not in self.number_of]
        numbers = np.fromiter(known, dtype=np.int64, count=len(known))
        return numbers, np.array([*known.values()], dtype=np.float64), np.array(unknown, dtype=np.float64)

    def sum_by_feature(self, terms: Ints, values: Floats) -> tuple[Ints, Floats]:
        """Return the features that hold one of these terms, and for each the sum of the values of those it holds.

        Values are above 0.
        """
        listed = terms < len(self._list_starts) - 1
        starts = self._list_starts[terms[listed]]
        lengths = self._list_starts[terms[listed] + 1] - starts
        holders = self._holders[ranges(starts, lengths)]
        totals = np.bincount(holders, np.repeat(values[listed], lengths), minlength=self.n_features).astype(np.float64)
        if self._n_listed < self.n_features:
            of_term = np.zeros(len(self.number_of))
            of_term[terms] = values
            tail = slice(int(self._starts[self._n_listed]), int(self._starts[self.n_features]))
            lengths = np.diff(self._starts[self._n_listed : self.n_features + 1])
            totals[self._n_listed :] = sums_by_set(of_term[self._terms[tail]], lengths)
        found = np.flatnonzero(totals)
        return found, totals[found]


def _with_room(array: Ints, n: int) -> Ints:
    """Return an array with these first values and room for n."""
    if n <= len(array):
        return array
    wider = np.zeros(max(n, 2 * len(array)), dtype=array.dtype)
    wider[: len(array)] = array
    return wider
