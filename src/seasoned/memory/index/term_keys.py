"""Keys of terms: 64-bit hashes of their texts, made for many features at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from seasoned.core.arrays import Floats
from seasoned.memory.index.blocks import Bools, Ints, ranges
from seasoned.states.subwords import MAX_SPLIT_FEATURE, MAX_SPLIT_WORD, subword_terms

__all__ = ["TermKeys", "keys_by", "subword_keys", "sums_by_set", "text_keys", "whole_keys"]

TermKeys = Callable[[Sequence[str]], tuple[Ints, Ints]]
"""From features to how many terms each has, and the keys of these, one feature after the other. The feature itself is
the first of its terms; a later one may be repeated."""

_MAX_HASHED = MAX_SPLIT_FEATURE  # characters; a longer text has a digest for a key
_NGRAM = 4
_WORD, _DIGIT, _BLANK = 1, 2, 4
_FEW = 64  # features, of which it is quicker to split one after the other


def _mixed(codes: Ints) -> Ints:
    """Return 64 bits for each number, those of different ones being different (splitmix64: Steele et al. 2014)."""
    z = codes.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Ints = z ^ (z >> np.uint64(31))
    return mixed


_FACTORS = _mixed(np.arange(1 << 20, (1 << 20) + _MAX_HASHED)) | np.uint64(1)  # by place in the text
_LESS_THAN, _MORE_THAN = _mixed(np.array([ord("<"), ord(">")]))
_TWO_BLANKS = _FACTORS[:2] * _mixed(np.array([ord(" ")]))
_BEFORE_GRAM = (_mixed(np.array([2 + _NGRAM])) + _TWO_BLANKS.sum())[0]


class _Texts(NamedTuple):
    """Texts as characters, one text after the other; those that are too long are empty here.

    Attributes:
        codes: the code points.
        mixed: 64 bits for each.
        starts: where each text starts.
        sizes: how many characters each has.
    """

    codes: Ints
    mixed: Ints
    starts: Ints
    sizes: Ints

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Texts:
        """Return these texts."""
        short = [text if len(text) <= _MAX_HASHED else "" for text in texts]
        codes = np.frombuffer("".join(short).encode("utf-32-le", "surrogatepass"), dtype="<u4")
        sizes = np.fromiter(map(len, short), dtype=np.int64, count=len(short))
        return cls(codes, _mixed(codes), np.cumsum(sizes) - sizes, sizes)

    def keys(self, starts: Ints, sizes: Ints) -> Ints:
        """Return the keys of parts of the texts: `h = mix(n) + sum_i r_i mix(c_i) mod 2^64` for n characters c."""
        at = ranges(starts, sizes)
        products = self.mixed[at] * _FACTORS[at - np.repeat(starts, sizes)]
        keys: Ints = _mixed(sizes) + sums_by_set(products, sizes)
        return keys


def sums_by_set(values: Floats | Ints, sizes: Ints) -> Ints:
    """Return the sum of each set's values, given one set after the other; 0 for an empty set."""
    found = np.zeros(len(sizes), dtype=values.dtype)
    filled = sizes > 0
    if filled.any():
        starts = (np.cumsum(sizes, dtype=np.int64) - sizes)[filled]
        found[filled] = np.add.reduceat(values, starts)
    return found


def text_keys(texts: Sequence[str]) -> Ints:
    """Return the key of each text, shape (n,), uint64.

    Of ten million texts any two have the same key with a probability of about one in 300,000; they count as one term.

    Example:
        >>> keys = text_keys(["refund", "refunds", "refund"])
        >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
        (True, False)
    """
    return _text_keys(texts, _Texts.of(texts))


def _text_keys(texts: Sequence[str], as_characters: _Texts) -> Ints:
    keys = as_characters.keys(as_characters.starts, as_characters.sizes)
    for at, text in enumerate(texts):
        if len(text) > _MAX_HASHED:
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            keys[at] = int.from_bytes(digest, "little")
    return keys


def whole_keys(features: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the keys of features that are their only terms, so that two features share all or nothing."""
    return np.ones(len(features), dtype=np.int64), text_keys(features)


def keys_by(terms_of: Callable[[str], Sequence[str]]) -> TermKeys:
    """Return what makes the keys of terms that a function of one feature gives, the feature itself first."""

    def keys_of(features: Sequence[str]) -> tuple[Ints, Ints]:
        terms = list(map(terms_of, features))
        return np.array(list(map(len, terms)), dtype=np.int64), text_keys([term for some in terms for term in some])

    return keys_of


def subword_keys(features: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the keys of the features, their words and the 4-grams of these, as of `seasoned.states.subword_terms`.

    All features are split at once, in arrays: a tenth of the time of one after the other.

    Example:
        >>> lengths, keys = subword_keys(["refund?", "->"])
        >>> lengths.tolist(), bool(keys[1] == text_keys(["refund"])[0])
        ([7, 1], True)
    """
    if len(features) < _FEW:
        return _subword_keys_one_by_one(features)
    texts = _Texts.of(features)
    own = np.arange(len(features))
    kinds = _kinds(texts.codes)
    in_word = kinds & _WORD > 0
    first = np.zeros(len(texts.codes) + 1, dtype=bool)  # of a feature; the end as well
    first[texts.starts[texts.sizes > 0]] = first[-1] = True
    starts = np.flatnonzero(in_word & (first[:-1] | ~np.append(False, in_word)[:-1]))
    ends = 1 + np.flatnonzero(in_word & (first[1:] | ~np.append(in_word, False)[1:]))
    of_word = np.searchsorted(texts.starts, starts, side="right") - 1  # empty features come before their successor
    split = _split(features, texts, kinds)[of_word]
    starts, sizes, of_word = starts[split], (ends - starts)[split], of_word[split]
    n_digits = np.append(0, np.cumsum(kinds & _DIGIT > 0))
    with_grams = (sizes > 1) & (sizes <= MAX_SPLIT_WORD) & (n_digits[starts + sizes] == n_digits[starts])
    part = sizes < texts.sizes[of_word]  # of a feature that is one word the word is no other term
    keys = [_text_keys(features, texts), texts.keys(starts[part], sizes[part])]
    owners = [own, of_word[part]]
    if with_grams.any():
        keys.append(_gram_keys(texts.mixed, starts[with_grams], sizes[with_grams]))
        owners.append(np.repeat(of_word[with_grams], sizes[with_grams] - 1))
    of_each = np.concatenate(owners)
    small = of_each.astype(np.uint16) if len(features) <= 1 << 16 else of_each  # sorted by radix, in linear time
    order = np.argsort(small, kind="stable")
    return np.bincount(of_each, minlength=len(features)), np.concatenate(keys)[order]


_subword_keys_one_by_one = keys_by(subword_terms)


def _split(features: Sequence[str], texts: _Texts, kinds: Ints) -> Bools:
    """Return which features are split: those of one run of characters that are no blanks, and are not too long."""
    split = texts.sizes > 0
    n_blanks = np.append(0, np.cumsum(kinds & _BLANK > 0))
    for at in np.flatnonzero(n_blanks[texts.starts + texts.sizes] > n_blanks[texts.starts]).tolist():
        split[at] = len(features[at].split()) == 1
    return split


def _gram_keys(mixed: Ints, starts: Ints, sizes: Ints) -> Ints:
    """Return the keys of the 4-grams of words between `<` and `>`, each after two blanks, one word after the other."""
    marked = np.empty(int(sizes.sum()) + 2 * len(sizes), dtype=np.uint64)
    begins = np.cumsum(sizes + 2) - (sizes + 2)
    marked[begins], marked[begins + sizes + 1] = _LESS_THAN, _MORE_THAN
    marked[ranges(begins + 1, sizes)] = mixed[ranges(starts, sizes)]
    at = ranges(begins, sizes - 1)
    keys = np.full(len(at), _BEFORE_GRAM)
    for i in range(_NGRAM):
        keys += marked[at + i] * _FACTORS[2 + i]
    return keys


def _kinds(codes: Ints) -> Ints:
    """Return for each character whether it is of a word, a digit or a blank, as in regular expressions."""
    kinds = _ASCII[np.minimum(codes, 127)]
    beyond = np.flatnonzero(codes > 127)
    if len(beyond):
        found, at = np.unique(codes[beyond], return_inverse=True)
        kinds[beyond] = np.array([_kind(chr(code)) for code in found.tolist()], dtype=np.uint8)[at]
    return kinds


def _kind(character: str) -> int:
    is_word = character.isalnum() or character == "_"
    return _WORD * is_word + _DIGIT * character.isdecimal() + _BLANK * character.isspace()


_ASCII = np.array([_kind(chr(code)) for code in range(128)], dtype=np.uint8)
