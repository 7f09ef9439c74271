"""Subword encoder: the words of natural language, and the character n-grams inside them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_items, check_whole
from seasoned.errors import InputError, excerpt
from seasoned.states.masks import Mask, apply_masks
from seasoned.states.tokens import MAX_NGRAM, check_state

__all__ = ["MAX_SPLIT_FEATURE", "MAX_SPLIT_WORD", "SubwordEncoder", "subword_terms"]

MAX_SPLIT_WORD = 64
MAX_SPLIT_FEATURE = 256
_NGRAM = 4
_WORDS = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class SubwordEncoder:
    r"""The words of a text without punctuation, lower-cased, and the character n-grams of each word.

    "Refunds?" and "refund" are different runs, but share most n-grams. The n-grams are those of the word between `<`
    and `>`, so that a prefix differs from a suffix (Bojanowski, Grave, Joulin and Mikolov 2017, Enriching Word Vectors
    with Subword Information; they sum the vectors of lengths 3 to 6, here the n-grams of one length are features). Each
    begins with `#`, which is in no word. A word is a run of letters, digits and underscores (`\w+`); one of more than
    64 characters is most likely an id, and has no n-grams.

    The number of features is four to five times that of `TokenEncoder`'s for English text, and so are the time and
    memory of the index.

    Args:
        n: the length of the n-grams, in [2, 8].
        masks: the masks to apply first, in order: `seasoned.states.ALL_MASKS`, or custom ones.

    Raises:
        InputError: a setting breaks its rule.

    Example:
        >>> sorted(SubwordEncoder().features("Refund, now!"))
        ['#<now', '#<ref', '#efun', '#fund', '#now>', '#refu', '#und>', 'now', 'refund']
    """

    n: int = _NGRAM
    masks: Iterable[Mask] = ()
    identity: str = field(init=False, repr=False, compare=False)
    """`subwords/v1`, then every setting that is not the default, as canonical JSON."""

    def __post_init__(self) -> None:
        check_whole("n", self.n, 2, MAX_NGRAM, next_step=f"The default is {_NGRAM}.")
        if isinstance(self.masks, Mask | str) or not isinstance(self.masks, Iterable):
            raise InputError(f"masks = {excerpt(self.masks)}", "masks must be a list of Mask", "Pass [NUMBERS].")
        masks = check_items("masks", tuple(self.masks), Mask, next_step="Build each with Mask(...).")
        object.__setattr__(self, "masks", masks)
        settings: dict[str, Any] = {}
        if self.n != _NGRAM:
            settings["n"] = self.n
        if masks:
            settings["masks"] = [[mask.name, mask.pattern, mask.replacement] for mask in masks]
        object.__setattr__(self, "identity", f"subwords/v1 {canonical_json(settings)}" if settings else "subwords/v1")

    def features(self, state: str) -> frozenset[str]:
        """Return the feature set of `state`; empty if it holds no word.

        Raises:
            InputError: the state is not a str, is longer than `MAX_STATE_CHARS`, or cannot be written as UTF-8.
        """
        check_state(state)
        words = set(_WORDS.findall(apply_masks(state, self.masks).lower()))
        features = set(words)
        for word in words:
            features.update(_ngrams(word, self.n))
        return frozenset(features)


def subword_terms(feature: str) -> list[str]:
    """Return a feature, its words and the 4-grams of these, each once: the terms by which features are alike.

    The feature itself is among them, so that "3-4" and "4-3" differ. A feature with a blank in it is an n-gram of runs
    or a numbered occurrence, and has no other term, nor has one of more than 256 characters, which is most likely data.
    A word with a digit is most likely an id, and has no n-grams: those of random ids are rare, and would outweigh
    the words beside them. N-grams begin with two blanks, as no other term does.

    Example:
        >>> subword_terms("refund?")
        ['refund?', 'refund', '  <ref', '  refu', '  efun', '  fund', '  und>']
        >>> subword_terms("->"), subword_terms("go north"), subword_terms("id:7f3a")
        (['->'], ['go north'], ['id:7f3a', 'id', '7f3a', '  <id>'])
    """
    if feature.isalpha():
        return list(dict.fromkeys([feature, *_ngrams(feature, _NGRAM, "  ")]))
    if len(feature) > MAX_SPLIT_FEATURE or len(feature.split()) != 1:
        return [feature]
    words = _WORDS.findall(feature)
    grams = (gram for word in words if not _DIGIT.search(word) for gram in _ngrams(word, _NGRAM, "  "))
    return list(dict.fromkeys([feature, *words, *grams]))


def _ngrams(word: str, n: int, mark: str = "#") -> list[str]:
    """Return the n-grams of a word between `<` and `>`, each after a mark."""
    if len(word) > MAX_SPLIT_WORD:
        return []
    marked = f"<{word}>"
    return [mark + marked[start : start + n] for start in range(len(marked) - n + 1)]
