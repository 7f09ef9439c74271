"""Fields: named facts extracted from a state's text for templates, by plain rules, without a tagger or a model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_instance, check_pattern, check_text, check_whole
from seasoned.errors import InputError, excerpt
from seasoned.states.buckets import Buckets, as_run
from seasoned.states.recent_actions import split_recent
from seasoned.states.word_lists import NOT_NOUNS

__all__ = ["Field", "FieldValue", "Nouns", "PatternMatch", "RecentVerbs"]

FieldValue = str | tuple[str, ...]
"""One run without blanks, or several words."""

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@runtime_checkable
class Field(Protocol):
    """Extracts one fact from a state's text. Deterministic and local; a custom field implements these two members."""

    @property
    def identity(self) -> str:
        """The rule and every setting that changes its result."""
        ...

    def extract(self, state: str) -> FieldValue:
        """Return the fact: a text, or a tuple of words."""
        ...


@dataclass(frozen=True, slots=True)
class Nouns:
    """The distinct nouns of a text, lower-cased, in order of appearance; the line of recent actions is left out.

    It uses no part-of-speech tagger. With a vocabulary, the nouns are the words in it, which is exact; write one for a
    known site or game. Without one, they are the words that are not on short lists of English function words,
    adjectives and verbs, which is a rough guess, and useless in other languages.

    Args:
        vocabulary: single words; empty for the guess.

    Raises:
        InputError: an entry is not a single word.

    Example:
        >>> Nouns().extract("You open the mailbox. There is a leaflet in the mailbox.")
        ('mailbox', 'leaflet')
        >>> Nouns(["leaflet"]).extract("You open the mailbox. There is a leaflet in the mailbox.")
        ('leaflet',)
    """

    vocabulary: Iterable[str] = ()
    identity: str = field(init=False, repr=False, compare=False)
    _known: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.vocabulary, str):
            raise InputError(
                f"vocabulary = {excerpt(self.vocabulary)}", "vocabulary must be a list of words", "Split it."
            )
        words = {check_text("word", word).lower() for word in self.vocabulary}
        for word in words:
            if not _WORD.fullmatch(word):
                raise InputError(f"word {excerpt(word)}", "a word must be of letters and hyphens", "Split it.")
        object.__setattr__(self, "vocabulary", tuple(sorted(words)))
        object.__setattr__(self, "_known", frozenset(words))
        object.__setattr__(self, "identity", f"nouns/v1 {canonical_json({'vocabulary': sorted(words)})}")

    def extract(self, state: str) -> tuple[str, ...]:
        """Return the nouns of `state`."""
        known = self._known
        words = dict.fromkeys(_WORD.findall(split_recent(state)[0].lower()))
        return tuple(word for word in words if (word in known if known else len(word) > 1 and word not in NOT_NOUNS))


@dataclass(frozen=True, slots=True)
class RecentVerbs:
    r"""The verbs of the last `n` actions in the line of `with_recent_actions`, oldest first.

    The verb of an action is its first word: `go` in `go north`, `click` in `click(checkout)`.

    Example:
        >>> RecentVerbs(n=2).extract("hall\nrecent:look recent:go_north recent:click(ok)")
        ('go', 'click')
    """

    n: int = 3
    identity: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_whole("n", self.n, 1)
        object.__setattr__(self, "identity", f"recent_verbs/v1 {canonical_json({'n': self.n})}")

    def extract(self, state: str) -> tuple[str, ...]:
        """Return the verbs."""
        verbs = (re.match(r"[^\W_]+", action) for action in split_recent(state)[1][-self.n :])
        return tuple(verb[0] for verb in verbs if verb)


@dataclass(frozen=True, slots=True)
class PatternMatch:
    r"""The first match of a pattern, as one run or as the bucket of a number.

    Args:
        pattern: a regular expression; the result is its first group, or the whole match if it has no group. Letters
            match in both cases. Nested repeats can take exponential time on some texts.
        buckets: convert the match, as a number (with commas as thousands marks), into a bucket's label.
        missing: the result if nothing matches, or if the match is not a finite number.

    Raises:
        InputError: the pattern is not a regular expression, or `missing` is blank.

    Example:
        >>> PatternMatch(r"total: \$([\d.,]+)", Buckets((10, 20))).extract("2 items, total: $12.50")
        '10-20'
        >>> PatternMatch(r"you are in the (\w+ \w+)").extract("You are in the living room.")
        'living_room'
    """

    pattern: str
    buckets: Buckets | None = None
    missing: str = "none"
    identity: str = field(init=False, repr=False, compare=False)
    _regex: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        regex = check_pattern("pattern", self.pattern, re.IGNORECASE)
        object.__setattr__(self, "_regex", regex)
        object.__setattr__(self, "missing", as_run(check_text("missing", self.missing)))
        if self.buckets is not None:
            check_instance("buckets", self.buckets, Buckets, next_step="Pass Buckets((10, 20)), or None.")
        edges = None if self.buckets is None else list(self.buckets.edges)
        settings = {"pattern": self.pattern, "edges": edges, "missing": self.missing}
        object.__setattr__(self, "identity", f"found/v1 {canonical_json(settings)}")

    def extract(self, state: str) -> str:
        """Return the match, its bucket, or `missing`."""
        match = self._regex.search(state)
        text = as_run((match[1] if self._regex.groups else match[0]) or "") if match else ""
        if not text or self.buckets is None:
            return text or self.missing
        try:
            return self.buckets.label(float(text.replace(",", "")))
        except ValueError:  # not a number, or (InputError) not a finite number
            return self.missing
