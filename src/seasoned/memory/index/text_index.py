"""An exact index in RAM over texts other than states: tasks, plans, reasonings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import count

import numpy as np

from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.rarity import RarityIndex
from seasoned.memory.index.term_keys import TermKeys

__all__ = ["TextIndex"]


class TextIndex:
    """Texts by number; finds those with the feature sets most similar to a text's, exactly.

    Args:
        features: the features of a text; a text that has none ("1003", where words with digits are left out) has its
            lower-cased runs instead, so that not all such texts are alike.
        keys_of: sets are compared by the rarity of these terms (`RarityIndex`); None: by `JaccardIndex`.

    Example:
        >>> index = TextIndex(lambda text: frozenset(text.split()))
        >>> index.add([(0, "buy a red lamp"), (1, "sell a boat")])
        >>> index.search("buy a lamp", k=1)
        [(0, 0.75)]
    """

    def __init__(self, features: Callable[[str], frozenset[str]], keys_of: TermKeys | None = None) -> None:
        self._encode = features
        self._index = JaccardIndex()
        self._rarity = None if keys_of is None else RarityIndex(keys_of)
        self._token_of: defaultdict[str, int] = defaultdict(count().__next__)

    def __len__(self) -> int:
        return len(self._index)

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """Add texts, each with its number; of texts alike the higher number is found first."""
        numbers: list[int] = []
        sizes: list[int] = []
        tokens: list[int] = []
        new: dict[str, int] = {}
        for number, text in texts:
            found = sorted(self._features(text))
            new |= {feature: self._token_of[feature] for feature in found if feature not in self._token_of}
            numbers.append(number)
            sizes.append(len(found))
            tokens.extend(map(self._token_of.__getitem__, found))
        if self._rarity is not None:
            self._rarity.terms.add(new)
        if numbers:
            ids = np.array(numbers, dtype=np.int64)
            self._index.add_arrays(ids, np.array(sizes, dtype=np.int32), np.array(tokens, dtype=np.uint32), ids)

    def _features(self, text: str) -> frozenset[str]:
        return self._encode(text) or frozenset(text.lower().split())

    def search(self, text: str, k: int) -> list[tuple[int, float]]:
        """Return (number, similarity) of the k texts most like this one that share a feature with it, best first."""
        features = self._features(text)
        if not features:
            return []
        if self._rarity is not None:
            matches = self._rarity.search([self._index], features, k=k, threshold=0.0)
            return [(number, near) for near, _, number in matches if near > 0.0]
        known = [self._token_of[feature] for feature in features if feature in self._token_of]
        found = self._index.search(known, n_features=len(features), k=k, threshold=0.0)
        return [pair for pair in found if pair[1] > 0.0]

    def similarities(self, text: str, numbers: Sequence[int]) -> list[float]:
        """Return the similarities by rarity of these texts to a text, as `search` finds them.

        Raises:
            KeyError: one of the numbers is of no text.
        """
        if self._rarity is None:
            raise KeyError("an index by rarity")
        return list(map(float, self._rarity.similarities_to([self._index], self._features(text), numbers)))
