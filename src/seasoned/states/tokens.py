"""The default encoder: a state's words, as a set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from seasoned.canonical_json import canonical_json
from seasoned.errors import InputError, excerpt
from seasoned.states.masks import Mask, apply_masks
from seasoned.states.urls import UrlRules

__all__ = ["MAX_NGRAM", "MAX_STATE_CHARS", "TokenEncoder", "check_state"]

MAX_NGRAM = 8
MAX_STATE_CHARS = 10_000_000


@dataclass(frozen=True, slots=True)
class TokenEncoder:
    r"""The maximal non-blank runs of a text, lower-cased: `frozenset(text.lower().split())`.

    Source: JitRL, arXiv 2601.18510, states as sets of tokens. On request, in this order: URLs are normalised, masks are
    applied, n-grams are added, and repeated features are told apart.

    Args:
        ngram: in [1, 8]; the features are the runs, the pairs of neighbouring runs, and so on up to this many, joined
            by one blank (so that no pair is ever mistaken for a run).
        masks: what to blot out, in order; `seasoned.states.ALL_MASKS`, or your own.
        urls: how to normalise each URL in the text; None leaves them.
        multiset: count how often a feature occurs. The first occurrence is the feature itself, the i-th is the feature,
            a tab and i (no feature holds a tab), so that the Jaccard similarity of two such sets is the multiset one:
            `seasoned.core.multiset_jaccard` of the counts.

    Raises:
        InputError: a setting breaks a rule.

    Example:
        >>> sorted(TokenEncoder().features("Page:Cart  total:12"))
        ['page:cart', 'total:12']
        >>> sorted(TokenEncoder(ngram=2).features("go north"))
        ['go', 'go north', 'north']
        >>> sorted(TokenEncoder(multiset=True).features("no no yes"))
        ['no', 'no\t2', 'yes']
    """

    ngram: int = 1
    masks: Iterable[Mask] = ()
    urls: UrlRules | None = None
    multiset: bool = False
    identity: str = field(init=False, repr=False, compare=False)
    """`tokens/v1`, then every setting that is not the default, as canonical JSON."""
    _plain: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.ngram, bool) or not isinstance(self.ngram, int) or not 1 <= self.ngram <= MAX_NGRAM:
            raise InputError(
                f"ngram = {excerpt(self.ngram)}", f"ngram is an integer from 1 to {MAX_NGRAM}", "2 adds pairs of words."
            )
        if isinstance(self.masks, Mask | str) or not isinstance(self.masks, Iterable):
            raise InputError(f"masks = {excerpt(self.masks)}", "masks are a list of Mask", "Pass [NUMBERS], say.")
        masks = tuple(self.masks)
        for mask in masks:
            if not isinstance(mask, Mask):
                raise InputError(f"masks hold {excerpt(mask)}", "every mask is a Mask", "Build it with Mask(...).")
        if self.urls is not None and not isinstance(self.urls, UrlRules):
            raise InputError(f"urls = {excerpt(self.urls)}", "urls is a UrlRules or None", "Pass UrlRules().")
        if not isinstance(self.multiset, bool):
            raise InputError(f"multiset = {excerpt(self.multiset)}", "multiset is True or False", "Pass multiset=True.")
        object.__setattr__(self, "masks", masks)
        settings: dict[str, Any] = {}
        if self.ngram != 1:
            settings["ngram"] = self.ngram
        if masks:
            settings["masks"] = [[mask.name, mask.pattern, mask.replacement] for mask in masks]
        if self.urls is not None:
            settings["urls"] = self.urls.settings()
        if self.multiset:
            settings["multiset"] = True
        object.__setattr__(self, "_plain", not settings)
        object.__setattr__(self, "identity", f"tokens/v1 {canonical_json(settings)}" if settings else "tokens/v1")

    def features(self, state: str) -> frozenset[str]:
        """Return the feature set of `state`; empty where nothing but blanks is left.

        Raises:
            InputError: the state is not a str, is longer than `MAX_STATE_CHARS`, or cannot be written as UTF-8.

        Example:
            >>> from seasoned.states import NUMBERS
            >>> sorted(TokenEncoder(masks=[NUMBERS]).features("total: 12 of 40"))
            ['<*>', 'of', 'total:']
        """
        # The hot path: every decision asks this once.
        if not isinstance(state, str) or len(state) > MAX_STATE_CHARS or not state.isascii():
            check_state(state)
        if self._plain:
            return frozenset(state.lower().split())
        if self.urls is not None:
            state = self.urls.apply(state)
        runs = apply_masks(state, self.masks).lower().split()
        features = list(runs)
        for size in range(2, self.ngram + 1):
            features.extend(map(" ".join, zip(*(runs[start:] for start in range(size)), strict=False)))
        return frozenset(_occurrences(features) if self.multiset else features)


def _occurrences(features: Iterable[str]) -> Iterator[str]:
    """Each feature once per occurrence, under its own name: `no`, then `no<tab>2`. No run of non-blanks has a tab."""
    seen: dict[str, int] = {}
    for feature in features:
        count = seen[feature] = seen.get(feature, 0) + 1
        yield feature if count == 1 else f"{feature}\t{count}"


def check_state(state: object) -> None:
    """Refuse, with InputError, what cannot be encoded: no str, too long, or not writable as UTF-8."""
    if not isinstance(state, str):
        raise InputError(
            f"state = {excerpt(state)}", f"a state is a str, not {type(state).__name__}", "Describe it in words."
        )
    if len(state) > MAX_STATE_CHARS:
        raise InputError(
            f"a state of {len(state)} characters",
            f"a state has at most {MAX_STATE_CHARS} characters",
            "Keep what the decision depends on.",
        )
    try:
        state.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"state has a lone surrogate {state[error.start]!r} at character {error.start}",
            "a state is text that UTF-8 can encode",
            "Decode the bytes it came from with errors='replace'.",
        ) from None
