"""BM25: how well a text matches a query, by the words that they share."""

from __future__ import annotations

import math
import re
from collections import Counter

from seasoned.agents.baselines.token_checks import check_fraction

__all__ = ["BM25"]

_WORD = re.compile(r"\w+")
_MOST_CHARS = 50_000


class BM25:
    """Okapi BM25 over texts that are added one by one (Robertson and Zaragoza, The Probabilistic Relevance Framework:
    BM25 and Beyond, 2009, doi 10.1561/1500000019).

    For a query's distinct words w, a text with f occurrences of w and length |d| in words, N texts of mean length L,
    n of them with w:

        score = sum_w idf(w) * f * (k1 + 1) / (f + k1 * (1 - b + b * |d| / L)),
        idf(w) = log(1 + (N - n + 0.5) / (n + 0.5)).

    The 1 in the idf is not in the source, whose weight is negative for a word in most of the texts: words that all
    states of a task share would then push a text down. A word that a query repeats counts once. Only the first 50,000
    characters of a text are read.

    Args:
        k1: how soon repetition stops to count, at least 0.
        b: how much a text's length counts, in [0, 1].

    Raises:
        InputError: a value is outside its range.

    Example:
        >>> index = BM25()
        >>> [index.add(text) for text in ("a red door", "a green door", "the sea")]
        [0, 1, 2]
        >>> {text: round(score, 2) for text, score in index.scores("red door").items()}
        {0: 1.38, 1: 0.45}
    """  # noqa: D205 - the name of the source

    def __init__(self, k1: float = 1.2, b: float = 0.75) -> None:
        self._k1 = check_fraction("k1", k1)
        self._b = check_fraction("b", b, 1.0)
        self._lengths: list[int] = []
        self._total = 0
        self._postings: dict[str, list[tuple[int, int]]] = {}

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, text: str) -> int:
        """Add a text, and return its number."""
        words = Counter(_words(text))
        number, length = len(self._lengths), words.total()
        self._lengths.append(length)
        self._total += length
        for word, times in words.items():
            self._postings.setdefault(word, []).append((number, times))
        return number

    def scores(self, query: str) -> dict[int, float]:
        """Return the score of every text that shares a word with the query; each is above 0."""
        found: dict[int, float] = {}
        n_texts = len(self._lengths)
        for word in dict.fromkeys(_words(query)):
            postings = self._postings.get(word, ())
            idf = math.log1p((n_texts - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, times in postings:
                long = 1.0 - self._b + self._b * self._lengths[number] * n_texts / self._total
                found[number] = found.get(number, 0.0) + idf * times * (self._k1 + 1.0) / (times + self._k1 * long)
        return found


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:_MOST_CHARS].lower())
