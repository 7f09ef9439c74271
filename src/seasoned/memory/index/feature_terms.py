"""The terms of each feature: what parts two features may share, and the features that hold a term."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Ints, ranges, stable_order
from seasoned.memory.index.kernel import FeatureLists
from seasoned.memory.index.term_keys import TermKeys, subword_keys, sums_by_set

__all__ = ["FeatureTerms"]

_AT_ONCE = 1 << 16  # features
_FEWEST_TO_LIST = 4096
_TAIL_SHARE = 8
_FEWEST_TO_MERGE = 4096
_ALONE = np.uint64(0xA5A5A5A5A5A5A5A5)  # turns the key of a common term into that of the feature with its text


class FeatureTerms:
    """The terms of numbered features, as numbers.

    A feature is expanded once, when the next search needs it; the others stay when features are removed. Features of
    pending episodes are numbered above the stored ones, and may be replaced.

    The text of a feature may be a common term, a word of many others. Then that term is not its own first term any
    more, but a term that it shares with none: see `set_common`.

    Args:
        keys_of: makes the keys of the terms of features.

    Attributes:
        number_of: the number of each stored feature.
        n_features: more than every number of a feature.
        n_terms: more than every number of a term.
        starts: where the terms of each feature start in `terms`; one more at the end.
        terms: the numbers of the terms of all features, each once, one feature after the other; its own text first.
        common: the numbers of the common terms, ascending.
        alone: for each the number of the term that it is as the text of a feature.

    Example:
        >>> terms = FeatureTerms()
        >>> terms.add({"refund": 1, "refunds?": 2})
        >>> _ = terms.update()
        >>> len(terms.terms_at(1)), len(terms.terms_at(2)), len(set(terms.terms_at(1)) & set(terms.terms_at(2)))
        (6, 8, 4)
    """

    def __init__(self, keys_of: TermKeys = subword_keys) -> None:
        self._keys_of = keys_of
        self.number_of: dict[str, int] = {}
        self._pending: list[Mapping[str, int]] = []
        self._forget()

    def _forget(self) -> None:
        """Forget all terms."""
        self._numbers = _TermNumbers()
        self.common: Ints = np.empty(0, dtype=np.int64)
        self.alone: Ints = np.empty(0, dtype=np.int64)
        self._common_keys: Ints = np.empty(0, dtype=np.uint64)
        self._new: list[Mapping[str, int]] = []
        self._pending_changed = bool(self._pending)
        self._n_stored = 0  # features up to here are stored ones, those above pending ones
        self._starts = np.zeros(1024, dtype=np.int64)
        self._terms = np.zeros(4096, dtype=np.uint32)
        self.n_features = 0
        self._unlist()

    def add(self, features: Mapping[str, int]) -> None:
        """Add stored features, numbered above all stored ones before."""
        if features:
            self.number_of.update(features)
            self._new.append(features)

    def replace(self, features: dict[str, int]) -> None:
        """Take these for all stored features. The terms of those that keep their numbers are kept."""
        known, self.number_of = self.number_of, features
        new = {text: id_ for text, id_ in features.items() if known.get(text) != id_} if known else features
        if new and min(new.values()) <= max(known.values(), default=-1):  # a number has another text now
            self._forget()
            new = features
        if new:
            self._new.append(new)

    def replace_pending(self, features: Iterable[Mapping[str, int]]) -> None:
        """Take these for the features of pending episodes, numbered above the stored ones."""
        self._pending = [dict(of_layer) for of_layer in features]
        self._pending_changed = True

    @property
    def n_terms(self) -> int:
        """More than every number of a term."""
        return self._numbers.n

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
            while self._new:
                self._append(self._new[0])
                del self._new[0]
                self._n_stored = self.n_features
            unlisted = int(self._starts[self.n_features] - self._starts[self._n_listed])
            if unlisted > max(_FEWEST_TO_LIST, int(self._starts[self._n_listed]) // _TAIL_SHARE):
                self._list()
            self._append({text: id_ for of_layer in self._pending for text, id_ in of_layer.items()})
            self._pending_changed = False
        return replaced

    def _append(self, features: Mapping[str, int]) -> None:
        """Add features, by number; numbers that are left out have no terms."""
        pairs = sorted((id_, text) for text, id_ in features.items() if id_ >= self.n_features)
        for at in range(0, len(pairs), _AT_ONCE):
            ids, texts = zip(*pairs[at : at + _AT_ONCE], strict=True)
            lengths, keys = self._keys_of(texts)
            self._separate(lengths, keys)
            numbers, lengths = self._numbers.add(keys, lengths)
            first = self.n_features
            sizes = np.zeros(ids[-1] + 1 - first, dtype=np.int64)
            sizes[np.array(ids) - first] = lengths
            begin = int(self._starts[first])
            ends = begin + np.cumsum(sizes)
            self._starts = _with_room(self._starts, ids[-1] + 2)
            self._terms = _with_room(self._terms, int(ends[-1]))
            self._starts[first + 1 : ids[-1] + 2] = ends
            self._terms[begin : int(ends[-1])] = numbers
            self.n_features = ids[-1] + 1

    def _separate(self, lengths: Ints, keys: Ints) -> None:
        """Change the keys of features that are common terms, in place."""
        if len(self._common_keys):
            own = (np.cumsum(lengths) - lengths)[lengths > 0]
            own = own[np.isin(keys[own], self._common_keys)]
            keys[own] ^= _ALONE

    def set_common(self, common: Ints) -> None:
        """Take these terms for the common ones. Features with these texts, and only those, have other first terms.

        Args:
            common: numbers of terms, ascending.
        """
        if np.array_equal(common, self.common):
            return
        keys = self._numbers.keys_of(common)
        alone, _ = self._numbers.add(keys ^ _ALONE, np.ones(len(keys), dtype=np.int64))
        new_number = np.arange(self.n_terms)
        new_number[self.alone] = self.common
        changed = np.arange(self.n_terms)
        changed[common] = alone
        own = self._starts[: self.n_features][np.diff(self.starts) > 0]
        self._terms[own] = changed[new_number[self._terms[own]]]
        self.common, self.alone, self._common_keys = common, alone, keys
        self._unlist()
        self._list()

    def _unlist(self) -> None:
        self._n_listed = 0
        self._holders = np.empty(0, dtype=np.uint32)
        self._list_starts = np.zeros(1, dtype=np.int64)

    def _list(self) -> None:
        """List for each term the stored features that hold it."""
        n = self._n_stored
        terms = self._terms[: int(self._starts[n])]
        features = np.repeat(np.arange(n, dtype=np.uint32), np.diff(self._starts[: n + 1]))
        self._holders = features[stable_order(terms)]
        counts = np.bincount(terms, minlength=self.n_terms)
        self._list_starts = np.concatenate([[0], np.cumsum(counts)])
        self._n_listed = n

    # ------------------------------------------------------------------------------------------ reading

    def count(self, features: Iterable[str]) -> tuple[Ints, Floats, Floats]:
        """Return the known terms of some features, how many of these hold each, and such counts of unknown terms."""
        known = [(self.number_of.get(feature), feature) for feature in features]
        at = np.array([number for number, _ in known if number is not None], dtype=np.int64)
        of_stored = self._terms[ranges(self._starts[at], self._starts[at + 1] - self._starts[at])].astype(np.int64)
        new = [feature for number, feature in known if number is None]
        if not new:
            terms, counts = np.unique(of_stored, return_counts=True)
            return terms, counts.astype(np.float64), np.empty(0)
        lengths, keys = self._keys_of(new)
        self._separate(lengths, keys)
        of_each = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((keys, of_each))
        repeated = (keys[order][1:] == keys[order][:-1]) & (of_each[order][1:] == of_each[order][:-1])
        found, n_each = np.unique(np.delete(keys[order], 1 + np.flatnonzero(repeated)), return_counts=True)
        numbers, is_known = self._numbers.find(found)
        together = np.concatenate([of_stored, np.repeat(numbers[is_known], n_each[is_known])])
        terms, counts = np.unique(together, return_counts=True)
        return terms, counts.astype(np.float64), n_each[~is_known].astype(np.float64)

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
            of_term = np.zeros(self.n_terms)
            of_term[terms] = values
            tail = slice(int(self._starts[self._n_listed]), int(self._starts[self.n_features]))
            lengths = np.diff(self._starts[self._n_listed : self.n_features + 1])
            totals[self._n_listed :] = sums_by_set(of_term[self._terms[tail]], lengths)
        found = np.flatnonzero(totals)
        return found, totals[found]

    def lists(self) -> FeatureLists:
        """Return the features of each term, as far as they are listed, and the terms of each feature."""
        return FeatureLists(self._list_starts, self._holders, self.starts, self.terms, self._n_listed, self.n_terms)

    def sums(self, features: Ints, of_term: Floats) -> Floats:
        """Return for each of some features the sum over its terms of what each term has.

        Args:
            features: by number.
            of_term: for each term a number.
        """
        starts = self._starts[features]
        lengths = self._starts[features.astype(np.int64) + 1] - starts
        return sums_by_set(of_term[self._terms[ranges(starts, lengths)]], lengths)


class _TermNumbers:
    """The number of each term by its key: sorted arrays, and a dictionary of the latest ones."""

    def __init__(self) -> None:
        self.n = 0
        self._keys = np.empty(0, dtype=np.uint64)
        self._numbers = np.empty(0, dtype=np.uint32)
        self._latest: dict[int, int] = {}

    def find(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of these terms, 0 for unknown ones, and which are known."""
        at = np.searchsorted(self._keys, keys)
        at[at == len(self._keys)] = 0
        known = self._keys[at] == keys if len(self._keys) else np.zeros(len(keys), dtype=bool)
        numbers = np.where(known, self._numbers[at], 0).astype(np.int64) if len(self._keys) else at
        if self._latest:
            for i in np.flatnonzero(~known).tolist():
                if (number := self._latest.get(int(keys[i]))) is not None:
                    numbers[i], known[i] = number, True
        return numbers, known

    def add(self, keys: Ints, lengths: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of the terms of features, each once a feature, and how many each has; add unknown ones."""
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        is_head = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(keys)]
        found = ordered[is_head]
        if len(found) > _FEWEST_TO_MERGE:
            self._merge()  # each of the latest is found more slowly
        numbers, known = self.find(found)
        # In the order of appearance, so that sums over terms do not depend on how many features were added at once.
        new = self.n + np.argsort(np.argsort(order[is_head][~known]))
        numbers[~known] = new
        self.n += len(new)
        if len(new) > _FEWEST_TO_MERGE:
            self._insert(found[~known], new)
        else:
            self._latest.update(zip(found[~known].tolist(), new.tolist(), strict=True))
            if len(self._latest) > _FEWEST_TO_MERGE:
                self._merge()
        of_each = np.empty(len(keys), dtype=np.int64)
        of_each[order] = numbers[np.cumsum(is_head) - 1]
        feature = np.repeat(np.arange(len(lengths)), lengths)
        repeated = ~is_head
        repeated[1:] &= feature[order[1:]] == feature[order[:-1]]
        kept = np.ones(len(keys), dtype=bool)
        kept[order[repeated]] = False
        return of_each[kept], np.bincount(feature[kept], minlength=len(lengths))

    def keys_of(self, numbers: Ints) -> Ints:
        """Return the keys of these terms."""
        self._merge()
        order = np.argsort(self._numbers)
        keys: Ints = self._keys[order[numbers]]
        return keys

    def _merge(self) -> None:
        if self._latest:
            keys = np.fromiter(self._latest, dtype=np.uint64, count=len(self._latest))
            numbers = np.fromiter(self._latest.values(), dtype=np.uint32, count=len(self._latest))
            order = np.argsort(keys)
            self._insert(keys[order], numbers[order])
            self._latest = {}

    def _insert(self, keys: Ints, numbers: Ints) -> None:
        """Insert terms, by ascending keys."""
        at = np.searchsorted(self._keys, keys)
        self._keys, self._numbers = np.insert(self._keys, at, keys), np.insert(self._numbers, at, numbers)


def _with_room(array: Ints, n: int) -> Ints:
    """Return an array with these first values and room for n."""
    if n <= len(array):
        return array
    wider = np.zeros(max(n, len(array) + len(array) // 2), dtype=array.dtype)
    wider[: len(array)] = array
    return wider
