"""Token encoder, the default: the set of a state's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_flag, check_instance, check_items, check_whole
from seasoned.errors import InputError, excerpt
from seasoned.states.masks import Mask, apply_masks
from seasoned.states.urls import UrlRules

__all__ = ["MAX_NGRAM", "MAX_STATE_CHARS", "TokenEncoder", "check_state"]

MAX_NGRAM = 8
MAX_STATE_CHARS = 10_000_000


@dataclass(frozen=True, slots=True)
class TokenEncoder:
    r"""The maximal non-blank runs of a text, lower-cased: `frozenset(text.lower().split())`.

    Source: JitRL, arXiv 2601.18510, states as sets of tokens. Optional steps, in this order: URLs are normalised, masks
    are applied, n-grams are added, and repeated features are numbered.

    Args:
        ngram: in [1, 8]; the features are the runs, the pairs of neighbouring runs, and so on up to this length, joined
            by one blank (so that no pair equals a run).
        masks: the masks to apply, in order: `seasoned.states.ALL_MASKS`, or custom ones.
        urls: the rules for URLs in the text; None leaves URLs unchanged.
        multiset: count the occurrences of each feature. The first occurrence is the feature itself, the i-th is the
            feature, a tab and i (no feature contains a tab), so that the Jaccard similarity of two such sets is that of
            the multisets: `seasoned.core.multiset_jaccard` of the counts.

    Raises:
        InputError: a setting breaks its rule.

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
        check_whole("ngram", self.ngram, 1, MAX_NGRAM, next_step="2 adds pairs of words.")
        if isinstance(self.masks, Mask | str) or not isinstance(self.masks, Iterable):
            raise InputError(f"masks = {excerpt(self.masks)}", "masks must be a list of Mask", "Pass [NUMBERS].")
        masks = check_items("masks", tuple(self.masks), Mask, next_step="Build each with Mask(...).")
        if self.urls is not None:
            check_instance("urls", self.urls, UrlRules, next_step="Pass UrlRules(), or None.")
        check_flag("multiset", self.multiset)
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
        """Return the feature set of `state`; empty if only blanks are left.

        Raises:
            InputError: the state is not a str, is longer than `MAX_STATE_CHARS`, or cannot be written as UTF-8.

        Example:
            >>> from seasoned.states import NUMBERS
            >>> sorted(TokenEncoder(masks=[NUMBERS]).features("total: 12 of 40"))
            ['<*>', 'of', 'total:']
        """
        # The hot path: every decision calls this once.
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
    """Yield each occurrence of a feature under its own name: `no`, then `no<tab>2`. Features never contain a tab."""
    seen: dict[str, int] = {}
    for feature in features:
        count = seen[feature] = seen.get(feature, 0) + 1
        yield feature if count == 1 else f"{feature}\t{count}"


def check_state(state: object) -> None:
    """Check that a state can be encoded; InputError if it is not a str, is too long, or is not writable as UTF-8."""
    state = check_instance("state", state, str, next_step="Describe it in words.")
    if len(state) > MAX_STATE_CHARS:
        raise InputError(
            f"a state of {len(state)} characters",
            f"a state must have at most {MAX_STATE_CHARS} characters",
            "Keep the parts that the decision depends on.",
        )
    try:
        state.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"state has a lone surrogate {state[error.start]!r} at character {error.start}",
            "a state must be text that UTF-8 can encode",
            "Decode the bytes it came from with errors='replace'.",
        ) from None
