"""Encoder of conversations: recent calls, who spoke, the keys and word values of JSON, words; the goal apart."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, zip_longest

from seasoned.states.masks import HASHES, TIMESTAMPS, TOKENS, UUIDS, Mask, apply_masks
from seasoned.states.tokens import check_state
from seasoned.states.transcript.goals import goal_feature
from seasoned.states.transcript.transcript_text import MAX_GOAL_CHARS, Transcript, parse_transcript

__all__ = ["TranscriptEncoder"]

# The masks are UUIDS, TOKENS, HASHES and TIMESTAMPS. A word with a digit is left out whole, so no number is cut off it.
_SHORTEST_TOKEN = 13  # `eyJ` of a JWT, 8 characters, a dot, and one more; no mask of ids matches a blank
_SHORTEST_HASH = 7
_HEX = re.compile("[0-9a-f]{7}")
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|[s\u017f]ep|oct|nov|dec)"
_DATE_SIGNS = "-/.:"  # one stands between two digits of every date and time in digits
_TIME_IN_DIGITS, _EPOCH = re.compile(r"\d[-/.:]\d"), re.compile(r"\d{8}")
_TIMES_IN_WORDS = tuple(map(re.compile, (f" {_MONTH}", r" \d")))
_WORD = re.compile(r"[^\W_]\w*+(?:['-]++\w++)*+")
_DIGIT = re.compile(r"\d")
_MAX_VALUES = 2000  # of one JSON text
_ENUM_WORDS = 3
_SHORT_WORDS, _FIRST_WORDS, _MAX_READ_CHARS = 8, 3, 10_000
_LONG = "text:long"


@dataclass(frozen=True, slots=True)
class TranscriptEncoder:
    """The features of a conversation's state (`Transcript`).

    | part | features |
    |---|---|
    | the last calls | `call:NAME`, `before:NAME`, `earlier:NAME`; without a name where there was none |
    | the last speaker | `from:user`, `from:tool` |
    | JSON in a message | `KEY=`; `KEY=VALUE` for words, booleans, null, 0 and empty lists; words of long values |
    | any other text of up to 8 words, and of a user | its words, lower-cased |
    | a longer one, such as a file | `text:long`, the first 3 words of its first line, and one feature of all words |
    | the goal | one feature of all its words (`seasoned.states.transcript.goals`), compared apart from the others |

    Times, amounts, ids and other words with a digit are left out, rare words are not. But a file or a page has hundreds
    of words that no other step has, which would make all steps unlike: they are one feature, equal for equal words.
    What the agent said beside its calls is not encoded. A text that is no transcript has the features of one message of
    a user.

    Example:
        >>> from seasoned.states.transcript.transcript_text import InputMessage, Transcript
        >>> message = InputMessage("tool find", '{"status": "ok", "order": {"id": "W77", "total": 12}}')
        >>> features = TranscriptEncoder().features(Transcript([message], ["find"]).text)
        >>> sorted(features)
        ['before:', 'call:find', 'earlier:', 'from:tool', 'id=', 'order=', 'status=', 'status=ok', 'total=']
    """

    identity: str = field(default="transcript/v2", init=False, repr=False, compare=False)

    def features(self, state: str) -> frozenset[str]:
        """Return the features of a state; empty if it holds no word.

        Raises:
            InputError: the state is not a str, is too long, or cannot be written as UTF-8.
        """
        check_state(state)
        transcript = parse_transcript(state)
        if transcript is None:
            return frozenset(_of_text(state))
        features = set(_of_calls(transcript))
        for message in transcript.messages:
            if not message.speaker.startswith("assistant"):
                features.update(_of_text(message.text, long=message.speaker != "user"))
        if goal := goal_feature(_words(transcript.goal)):
            features.add(goal)
        return frozenset(features)


def _of_calls(transcript: Transcript) -> Iterator[str]:
    for label, name in zip_longest(("call", "before", "earlier"), reversed(transcript.recent), fillvalue=""):
        yield f"{label}:{name}"
    yield f"from:{transcript.messages[-1].speaker.split()[0]}"


def _of_text(text: str, *, long: bool = False) -> Iterable[str]:
    """Return the features of a message; with `long`, a long text that is no JSON has few."""
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        try:
            return set(islice(_of_json(json.loads(stripped)), _MAX_VALUES))
        except (ValueError, RecursionError):
            pass
    return _of_long_text(stripped) if long else _words(text)


def _of_long_text(text: str) -> Iterable[str]:
    words = list(dict.fromkeys(_words(text[:_MAX_READ_CHARS])))
    if len(words) <= _SHORT_WORDS:
        return words
    line, several, _ = text.partition("\n")
    first = (list(dict.fromkeys(_words(line[:_MAX_READ_CHARS]))) if several else words)[:_FIRST_WORDS]
    digest = hashlib.blake2b(" ".join(words).encode(), digest_size=8).hexdigest()
    return [_LONG, *first, f"text {digest}"]  # with a blank, so that it is compared as a whole by rarity too


def _of_json(value: object) -> Iterator[str]:
    """Yield the features of a JSON value, from the outside in."""
    pending: list[tuple[str, object]] = [("", value)]
    for key, one in pending:  # grows while it is read
        if isinstance(one, dict):
            if not one:
                yield f"{key}={{}}"
            for name, inner in one.items():
                label = " ".join(_words(name)) or "<*>"
                yield f"{label.replace(' ', '_')}="
                pending.append((label.replace(" ", "_"), inner))
        elif isinstance(one, list):
            if not one:
                yield f"{key}=[]"
            pending.extend((key, inner) for inner in one)
        elif one is None or isinstance(one, bool):
            yield f"{key}={json.dumps(one)}"
        elif one == 0:
            yield f"{key}=0"
        elif isinstance(one, str):
            words = list(_words(one))
            if 0 < len(words) <= _ENUM_WORDS:
                yield f"{key}={'_'.join(words)}"
            else:
                yield from words


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text, without ids, times and amounts."""
    return _words_of_short(text) if len(text) <= MAX_GOAL_CHARS else _read_words(text)


@functools.lru_cache(maxsize=4096)  # a goal and the keys of results come again at each step
def _words_of_short(text: str) -> tuple[str, ...]:
    return _read_words(text)


def _read_words(text: str) -> tuple[str, ...]:
    has_no_digit = _known_word if len(text) <= _MAX_READ_CHARS else _has_no_digit
    lowered = text.lower()
    if masks := list(_possible_masks(text, lowered)):
        lowered = apply_masks(text, masks).lower()
    return tuple(filter(has_no_digit, _WORD.findall(lowered)))


def _possible_masks(text: str, lowered: str) -> Iterator[Mask]:
    """Yield the masks that may match in a text: to apply one that cannot costs more than to see that."""
    longest = max(map(len, text.split()), default=0)  # of what is between blanks
    if longest >= _SHORTEST_TOKEN:
        yield UUIDS
        yield TOKENS
    is_hex = longest >= _SHORTEST_HASH and _HEX.search(lowered)
    if is_hex or "0x" in lowered:
        yield HASHES
    if (
        ((is_hex or not lowered.isascii()) and _EPOCH.search(lowered))
        or (any(sign in lowered for sign in _DATE_SIGNS) and _TIME_IN_DIGITS.search(lowered))
        or any(probe.search(lowered) for probe in _TIMES_IN_WORDS)
    ):
        yield TIMESTAMPS


def _has_no_digit(word: str) -> bool:
    return word.isalpha() or not _DIGIT.search(word)


_known_word = functools.lru_cache(maxsize=4096)(_has_no_digit)
