"""URL normalisation: ids in the path, values in the query and fragments, which change between visits, are removed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from seasoned.checks import check_text
from seasoned.errors import InputError, excerpt
from seasoned.states.masks import HASHES, TIMESTAMPS, TOKENS, UUIDS

__all__ = ["UrlRules", "normalize_url"]

_ID = "*"
_ID_MASKS = (UUIDS, TOKENS, HASHES, TIMESTAMPS)
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443, "ftp": 21}
_SAFE = "!$'()*,;:@[]~"
_SAFE_IN_PATH = _SAFE + "&+="
_MALFORMED = re.compile(r"[\s\x00-\x1f\x7f]")
_TAIL = ".,;:!?)]}"

# An absolute URL, or a path at the start of a value. A scheme has one starting point and a bounded length.
_FOUND = re.compile(
    r"""(?:(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,31}://|(?<![^\s"'(=:,;\[{|])/(?=[^/\s]))[^\s"'<>`|\\^]*+""", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _PathRule:
    """A parsed pattern such as `/shop/{name}/item`; each segment is (name or None, its prefix, its suffix)."""

    segments: tuple[tuple[str | None, str, str], ...]
    replacement: str

    def rewrite(self, path: list[str]) -> str | None:
        """Return the rewritten path, or None if the rule does not match; `path` is unquoted segments."""
        if len(path) != len(self.segments):
            return None
        values: dict[str, str] = {}
        for segment, (name, before, after) in zip(path, self.segments, strict=True):
            folded = segment.casefold()
            if name is None:
                if folded != before:
                    return None
            elif len(folded) > len(before) + len(after) and folded.startswith(before) and folded.endswith(after):
                values[name] = segment[len(before) : len(segment) - len(after)]
            else:
                return None
        return re.sub(r"\{(\w+)\}", lambda match: quote(values[match[1]], _SAFE_IN_PATH), self.replacement)


def _read_rule(pattern: str, replacement: str) -> _PathRule:
    def refused(rule: str) -> InputError:
        return InputError(f"URL rule {excerpt(pattern)} -> {excerpt(replacement)}", rule, "Try '/shop/{name}/item'.")

    check_text("URL pattern", pattern)
    check_text("URL replacement", replacement)
    for path in (pattern, replacement):
        if not path.startswith("/") or _MALFORMED.search(path):
            raise refused("both must be paths, which begin with / and contain no blank")
    segments: list[tuple[str | None, str, str]] = []
    for segment in filter(None, pattern.split("/")):
        match = re.fullmatch(r"([^{}]*)(?:\{([^\W\d]\w*)\}([^{}]*))?", segment)
        if match is None:
            raise refused("a segment must have at most one {name}")
        segments.append((match[2], match[1].casefold(), (match[3] or "").casefold()))
    names = [name for name, _, _ in segments if name]
    if len(set(names)) != len(names):
        raise refused("each {name} must occur once in a pattern")
    if re.search(r"[{}]", re.sub(r"\{(\w+)\}", lambda m: "" if m[1] in names else m[0], replacement)):
        raise refused("a replacement must use only the {name}s of its pattern")
    return _PathRule(tuple(segments), replacement)


@dataclass(frozen=True, slots=True)
class UrlRules:
    """Rules of URL normalisation, in addition to those of `normalize_url`.

    Args:
        paths: pattern to replacement, tried in order; only the first match is applied. A `{name}` matches a segment, or
            the rest of one (`/p/item-{id}`), and is replaced by the matched text in a replacement.
        keep_values: query keys whose values are kept.
        drop_keys: query keys that are dropped.

    Raises:
        InputError: a rule or a key is not well formed.

    Example:
        >>> rules = UrlRules(paths={"/shop/{name}/item": "/shop/*/item"}, keep_values=["tab"], drop_keys=["ref"])
        >>> normalize_url("/shop/tea-and-co/item?tab=price&ref=mail", rules)
        '/shop/*/item?tab=price'
    """

    paths: Mapping[str, str] | Iterable[tuple[str, str]] = ()
    keep_values: Iterable[str] = ()
    drop_keys: Iterable[str] = ()
    _rules: tuple[_PathRule, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pairs = tuple(self.paths.items()) if isinstance(self.paths, Mapping) else tuple(self.paths)
        for pair in pairs:
            if isinstance(pair, str) or len(pair) != 2:
                raise InputError(f"paths has {excerpt(pair)}", "paths must map patterns to paths", "Pass a dict.")
        object.__setattr__(self, "paths", tuple((pattern, replacement) for pattern, replacement in pairs))
        for name in ("keep_values", "drop_keys"):
            keys = getattr(self, name)
            if isinstance(keys, str):
                rule = f"{name} must be a list of keys"
                raise InputError(f"{name} = {excerpt(keys)}", rule, f"Pass [{excerpt(keys)}].")
            object.__setattr__(self, name, tuple(sorted({check_text("query key", key).casefold() for key in keys})))
        object.__setattr__(self, "_rules", tuple(_read_rule(*pair) for pair in pairs))

    def settings(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return {
            "paths": [list(pair) for pair in self.paths],
            "keep_values": list(self.keep_values),
            "drop_keys": list(self.drop_keys),
        }

    def apply(self, text: str) -> str:
        """Return `text` with every URL in it normalised: absolute URLs, and paths from `/`.

        Malformed URLs are left unchanged, and so is punctuation at the end of a sentence.

        Example:
            >>> UrlRules().apply("see https://Shop.example/user/42, then (/cart?b=1&a=2).")
            'see https://shop.example/user/*, then (/cart?a&b).'
        """
        return _FOUND.sub(self._replace, text) if "/" in text else text

    def _replace(self, match: re.Match[str]) -> str:
        found = match[0]
        url = found.rstrip(_TAIL)
        try:
            return self._normalize(url) + found[len(url) :]
        except ValueError:
            return found

    def _normalize(self, url: str) -> str:
        """Return the normal form, or raise ValueError for a malformed URL."""
        parts = urlsplit(url)
        path = self._path(parts.path, rooted=bool(parts.netloc) or parts.path.startswith("/"))
        route = parts.fragment.removeprefix("!")
        fragment = ""
        if route.startswith("/"):
            place, _, query = route.partition("?")
            fragment = "#" + self._path(place, rooted=True) + self._query(query)
        return _origin(parts, url) + path + self._query(parts.query) + fragment

    def _path(self, path: str, *, rooted: bool) -> str:
        segments = [unquote(segment) for segment in path.split("/") if segment]
        for rule in self._rules:
            if (rewritten := rule.rewrite(segments)) is not None:
                return rewritten
        return ("/" if rooted else "") + "/".join(
            _ID if _is_id(part) else quote(part, _SAFE_IN_PATH) for part in segments
        )

    def _query(self, query: str) -> str:
        pairs = set()
        for key, value in parse_qsl(query, keep_blank_values=True) if query else ():
            folded = key.casefold()
            if key and folded not in self.drop_keys:
                kept = f"={quote(value, _SAFE)}" if folded in self.keep_values else ""
                pairs.add((_ID if _is_id(key) else quote(key, _SAFE)) + kept)
        return "?" + "&".join(sorted(pairs)) if pairs else ""


def _is_id(part: str) -> bool:
    # Every id contains a digit, except hashes of letters only, so most segments are decided here.
    if part.isalpha() and len(part) < 32:
        return False
    return part.isdecimal() or any(mask.covers(part) for mask in _ID_MASKS)


def _origin(parts: SplitResult, url: str) -> str:
    """Return scheme, host and port, without the default port and without user and password."""
    if not parts.netloc:
        if parts.scheme in _DEFAULT_PORTS:
            raise ValueError(f"{parts.scheme} needs a host")
        slashes = "//" if url.lower().startswith(f"{parts.scheme}://") and parts.scheme else ""
        return f"{parts.scheme}:{slashes}" if parts.scheme else ""
    host, port = (parts.hostname or "").rstrip("."), parts.port
    if not host:
        raise ValueError("there is no host")
    if ":" in host:
        host = f"[{host}]"
    shown = "" if port is None or port == _DEFAULT_PORTS.get(parts.scheme) else f":{port}"
    return f"{parts.scheme}:" * bool(parts.scheme) + f"//{host}{shown}"


_DEFAULT_RULES = UrlRules()


def normalize_url(url: str, rules: UrlRules = _DEFAULT_RULES) -> str:
    """Return a URL without the parts that change between visits.

    Path segments that are ids (integers, UUIDS, TOKENS, HASHES, TIMESTAMPS) become `*`, unless a rule matches the path.
    The query becomes its sorted keys. The fragment is removed, unless it is a route (`#/...`), which is normalised like
    a path. Scheme and host are lower-cased; the default port, user, password, doubled and trailing slashes are removed.

    Raises:
        InputError: the URL is malformed (blanks, no host, a bad port, ...), or not text.

    Example:
        >>> normalize_url("HTTPS://Shop.example:443/user/edit/42/?sort=up&page=3#reviews")
        'https://shop.example/user/edit/*?page&sort'
    """
    check_text("URL", url)
    try:
        if _MALFORMED.search(url):
            raise ValueError("it contains a blank or a control character")  # noqa: TRY301
        return rules._normalize(url)
    except ValueError as error:
        raise InputError(
            f"URL {excerpt(url)}", f"a URL must be well formed ({error})", "Quote its parts with urllib.parse.quote."
        ) from None
