"""Patterns of secrets: the built-in rules of redaction.

A rule runs its pattern only if one of its telltale texts occurs, so a text without telltales costs a few scans in C.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["RULES", "SecretRule"]


def _unchanged(found: str) -> str:
    return found


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A pattern of secrets.

    Args:
        mark: the name of the secret in the redacted text.
        spans: returns the spans of the secrets in a text, in order and without overlap.
        canonical: returns the same text for equal secrets.
        telltales: a text with none of these, in small letters, has no such secret; empty: always search.
    """

    mark: str
    spans: Callable[[str], Iterator[tuple[int, int]]]
    canonical: Callable[[str], str] = _unchanged
    telltales: tuple[str, ...] = ()


def _rule(
    mark: str, telltales: tuple[str, ...], pattern: str, canonical: Callable[[str], str] = _unchanged
) -> SecretRule:
    """Return a rule for the group `secret` of each match, or the whole match without such a group."""
    regex = re.compile(pattern)
    group = "secret" if "secret" in regex.groupindex else 0

    def spans(text: str) -> Iterator[tuple[int, int]]:
        return (found.span(group) for found in regex.finditer(text))

    return SecretRule(mark, spans, canonical, telltales)


_WORD = "[A-Za-z0-9_-]"
_START = "(?<![A-Za-z0-9])"
_PREFIXES = (
    "sk",
    "rk",
    "pk",
    "whsec",
    "gsk",
    "r8",
    "hf",
    "npm",
    "pypi",
    "dapi",
    "shpat",
    "lin_api",
    "dop_v1",
    "xapp",
    "glpat",
    "ghp",
    "gho",
    "ghu",
    "ghs",
    "ghr",
    "github_pat",
    "xoxa",
    "xoxb",
    "xoxe",
    "xoxp",
    "xoxr",
    "xoxs",
)
# A capital or a digit within 64 characters: `sk-learn-something-long` is a name.
_RANDOM = "(?=[a-z_-]{0,64}[A-Z0-9])"

_API_KEYS = (
    # Up to its last line, or to the first character of neither Base64 nor headers.
    _rule(
        "api-key",
        ("private key",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[A-Za-z0-9+/=\s\\:,.()]|-(?!----))*+(?:-----END [A-Z0-9 ]{0,60}-----)?+",
    ),
    _rule(
        "api-key",
        tuple(prefix + separator for prefix in _PREFIXES for separator in "-_"),
        rf"{_START}(?:{'|'.join(_PREFIXES)})[-_]{_RANDOM}{_WORD}{{16,}}+",
    ),
    _rule("api-key", ("akia", "asia", "abia", "acca"), rf"{_START}A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{{16,}}+"),
    _rule("api-key", ("aiza",), rf"{_START}AIza{_WORD}{{30,}}+"),
    _rule("api-key", ("ya29.",), rf"{_START}ya29\.{_WORD}{{20,}}+"),
    _rule("api-key", ("sg.",), rf"{_START}SG\.{_WORD}{{16,64}}+\.{_WORD}{{16,}}+"),
    _rule("api-key", ("age-secret-key-1",), rf"{_START}AGE-SECRET-KEY-1[A-Z0-9]{{20,}}+"),
)

_OPAQUE = "[A-Za-z0-9._~+/=-]"
_KEYWORDS = (
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "access-key",
    "accesskey",
    "private_key",
    "session_id",
    "session-id",
    "sessionid",
    "credential",
)
_KEYWORD = f"(?i:{'|'.join(map(re.escape, _KEYWORDS))})"
_GAP = r"[^\S\r\n]{0,4}"
# Quotes of JSON, with the backslashes of JSON within JSON.
_QUOTE = r"\\{0,7}[\"']"
_SCHEMES = "bearer|basic|digest|token|apikey|negotiate|ntlm"
_PLAIN = r"[^\s&;,\"'\\<>()\[\]{}]"

_TOKENS = (
    _rule("token", ("eyj",), rf"(?<!{_WORD})eyJ{_WORD}{{8,}}+\.{_WORD}++(?:\.{_WORD}*+){{1,3}}+"),
    _rule(
        "token",
        ("authorization",),
        rf"(?i:\bauthorization(?:{_QUOTE})?{_GAP}[:=]{_GAP}(?:{_QUOTE})?(?:(?:{_SCHEMES})[ ]{{1,4}})?+)"
        rf"(?P<secret>{_OPAQUE}{{6,}}+)",
    ),
    _rule(
        "token",
        ("bearer", "basic"),
        rf"(?i:\b(?:bearer|basic)[ ]{{1,4}})"
        rf"(?P<secret>(?=[A-Za-z._~+/=-]{{0,64}}[0-9]){_OPAQUE}{{8,}}+|{_OPAQUE}{{20,}}+)",
    ),
    # To the last @ before a slash, since passwords may contain @.
    _rule("token", ("://",), r"(?<=://)(?P<secret>[^\s/@:\"'<>]{0,256}+:[^\s/\"'<>]{1,256})(?=@)"),
    _rule(
        "token",
        _KEYWORDS,
        rf"{_KEYWORD}(?:{_QUOTE})?{_GAP}[:=]{_GAP}(?P<quote>{_QUOTE})"
        r"(?P<secret>(?:(?!(?P=quote))[^\r\n]){1,1024}+)(?=(?P=quote))",
    ),
    _rule("token", _KEYWORDS, rf"{_KEYWORD}{_GAP}={_GAP}(?P<secret>{_PLAIN}++)"),
    # After a colon it may be the label of a form field, so the value must have a digit.
    _rule("token", _KEYWORDS, rf"{_KEYWORD}(?:{_QUOTE})?{_GAP}:{_GAP}(?P<secret>(?=[^\s\d]{{0,64}}\d){_PLAIN}{{6,}}+)"),
)

# The last label begins with two letters or more: `lodash@4.17.21` is a version.
_EMAILS = (
    _rule(
        "email",
        ("@", "%40"),
        r"(?<![\w.+-])[\w.+-]++(?:@|%40)(?=[\w-]++(?:\.[\w-]++)*?\.[^\W\d_]{2})[\w-]++(?:\.[\w-]++)++",
        str.casefold,
    ),
)

_GROUP = r"[ .\u00a0-]"
# As printed: without separators, or with one separator in groups of 4-4-4-1..4 (and 1..3 more), 4-6-4 and 4-6-5.
# The decimals of a number do not match.
_CARD = re.compile(
    r"[2-6](?<![0-9][2-6])(?<![0-9]\.[2-6])(?:[0-9]{12,18}"
    rf"|[0-9]{{3}}(?P<a>{_GROUP})[0-9]{{4}}(?P=a)[0-9]{{4}}(?P=a)[0-9]{{1,4}}(?:(?P=a)[0-9]{{1,3}})?"
    rf"|[0-9]{{3}}(?P<b>{_GROUP})[0-9]{{6}}(?P=b)[0-9]{{4,5}})(?![0-9])"
)
_LAST_GROUP = re.compile(rf"{_GROUP}[0-9]+\Z")


def _digits(found: str) -> str:
    return "".join(filter(str.isdecimal, found))


def _is_card(found: str) -> bool:
    """Return whether the digits pass the Luhn check: their sum, every second one doubled, is a multiple of 10."""
    digits = _digits(found)
    doubled = [int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and sum(value // 10 + value % 10 for value in doubled) % 10 == 0


def _card_spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while found := _CARD.search(text, start):
        begin, end = found.span()
        if not _is_card(text[begin:end]) and (last := _LAST_GROUP.search(found.group())):
            end = begin + last.start()  # without the last group, which may be the security code
        if _is_card(text[begin:end]):
            yield begin, end
            start = end
        else:
            start = begin + 1  # the next group may begin a card


RULES: dict[str, tuple[SecretRule, ...]] = {
    "api-keys": _API_KEYS,
    "tokens": _TOKENS,
    "emails": _EMAILS,
    "cards": (SecretRule("card", _card_spans, _digits),),
}
"""The built-in rules by name, in the order of application."""
