"""BM25: relevance of texts to a query by their shared words."""

from __future__ import annotations

import math
import re
from collections import Counter

from seasoned.checks import check_number

__all__ = ["BM25"]

_WORD = re.compile(r"\w+")
_MAX_CHARS = 50_000


class BM25:
    """Okapi BM25 over a growing list of texts.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009, doi
    10.1561/1500000019. For a query's distinct words w, a text with f occurrences of w and length |d| in words, N texts
    of mean length L, n of them with w:

        score = sum_w idf(w) * f * (k1 + 1) / (f + k1 * (1 - b + b * |d| / L)),
        idf(w) = log(1 + (N - n + 0.5) / (n + 0.5)).

    The 1 in the idf is not in the source, whose weight is negative for a word in most of the texts: words that occur in
    all states of a task would then lower the score of a text. A repeated word of a query counts once. Only the first
    50,000 characters of a text are indexed.

    Args:
        k1: saturation of repeated words, at least 0.
        b: weight of a text's length, in [0, 1].

    Raises:
        InputError: a value is outside its range.

    Example:
        >>> index = BM25()
        >>> [index.add(text) for text in ("a red door", "a green door", "the sea")]
        [0, 1, 2]
        >>> {text: round(score, 2) for text, score in index.scores("red door").items()}
        {0: 1.38, 1: 0.45}
    """

    def __init__(self, k1: float = 1.2, b: float = 0.75) -> None:
        self._k1 = check_number("k1", k1, 0.0)
        self._b = check_number("b", b, 0.0, 1.0)
        self._lengths: list[int] = []
        self._total_length = 0
        self._postings: dict[str, list[tuple[int, int]]] = {}

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, text: str) -> int:
        """Add a text, and return its number."""
        words = Counter(_words(text))
        number, length = len(self._lengths), words.total()
        self._lengths.append(length)
        self._total_length += length
        for word, count in words.items():
            self._postings.setdefault(word, []).append((number, count))
        return number

    def scores(self, query: str) -> dict[int, float]:
        """Return the score, above 0, of every text that shares a word with the query, by the text's number."""
        scores: dict[int, float] = {}
        n_texts = len(self._lengths)
        for word in dict.fromkeys(_words(query)):
            postings = self._postings.get(word, ())
            idf = math.log1p((n_texts - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                length = 1.0 - self._b + self._b * self._lengths[number] * n_texts / self._total_length
                weight = count * (self._k1 + 1.0) / (count + self._k1 * length)
                scores[number] = scores.get(number, 0.0) + idf * weight
        return scores


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:_MAX_CHARS].lower())
