"""Pages of the web as text, for a chat: of bounded size, with the address of each redirect for permission."""

from __future__ import annotations

import contextlib
import html
import http.client
import ipaddress
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from seasoned.checks import check_text
from seasoned.errors import InputError, NotFoundError, excerpt

__all__ = ["FetchedPage", "PageAddress", "fetch_page", "page_address", "page_text"]

_MAX_BYTES = 2 << 20
_TIMEOUT_S = 20.0
_HIDDEN = ("script", "style", "noscript", "template", "svg", "title")
_BLOCKS = ("p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "section", "article", "table")
_MARKUP = re.compile(r"<(?:(?P<name>/?[A-Za-z][^\s/>\x00]{0,64}+)|!--|[!?/])")
_TAG_MARK = re.compile(r"[>\"']")
_RAW = {
    "script": re.compile(r"</script(?=[\s/>])", re.IGNORECASE),
    "style": re.compile(r"</style(?=[\s/>])", re.IGNORECASE),
}
_LONG_NUMBER = re.compile(r"&#[xX]?[0-9A-Fa-f]{8}[0-9A-Fa-f]*+;?")  # no character; too long for an int


@dataclass(frozen=True, slots=True)
class PageAddress:
    """An address, and whether its host is on the public internet."""

    url: str
    host: str
    is_public: bool


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """An answer: its status and text, or the address to which it redirects."""

    status: int
    text: str
    redirect: str | None = None


def page_address(url: object) -> PageAddress:
    """Return an address, if it is one of http or https.

    Raises:
        InputError: it is something else.

    Example:
        >>> page_address("http://127.0.0.1:8000/x")
        PageAddress(url='http://127.0.0.1:8000/x', host='127.0.0.1:8000', is_public=False)
    """
    text = check_text("url", url)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not host or any(char.isspace() for char in text) or len(text) > 2000:
        raise InputError(f"url {excerpt(text)}", "a page has an http(s) address", "Write https://HOST/PATH.")
    return PageAddress(text, host if port is None else f"{host}:{port}", _is_public(host))


def _is_public(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_global
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):  # UnicodeError: an empty label, or one that is too long
        return True  # the request will say so
    return all(ipaddress.ip_address(str(one).partition("%")[0]).is_global for one in found)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def fetch_page(address: PageAddress) -> FetchedPage:
    """Return the text of a page; a redirect is not followed, since its host may need a permission of its own.

    Raises:
        NotFoundError: the host does not answer.
    """
    opener = urllib.request.build_opener(_NoRedirect)
    headers = {"User-Agent": "seasoned-chat", "Accept": "text/*, */*;q=0.1"}
    request = urllib.request.Request(address.url, headers=headers)  # noqa: S310 - `page_address` refuses other schemes
    try:
        try:
            answer = opener.open(request, timeout=_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            if 300 <= answer.status < 400 and (target := answer.headers.get("location")):
                return FetchedPage(answer.status, "", urljoin(address.url, target))
            return _read(answer, answer.status)
    except (OSError, ValueError, LookupError, http.client.HTTPException) as error:  # LookupError: a character set
        raise NotFoundError(f"{excerpt(address.url)} ({error})", "the host answers", "Try another address.") from error


def _read(answer: Any, status: int) -> FetchedPage:
    kind = answer.headers.get_content_type()
    if not (kind.startswith("text/") or kind.endswith(("json", "xml", "javascript"))):
        return FetchedPage(status, f"({kind}, not shown)")
    text = answer.read(_MAX_BYTES).decode(answer.headers.get_content_charset() or "utf-8", "replace")
    return FetchedPage(status, page_text(text) if "html" in kind else text)


class _MarkupScanner:
    """Splits HTML into tags and texts from left to right; every search that fails ends the markup, so it is linear.

    As in a browser, a comment or a tag that is not closed hides the rest, and `<` before anything but a name is text.
    """

    def __init__(self, markup: str) -> None:
        self._markup = markup
        self._unclosed: set[str] = set()  # quotes that do not occur again

    def pieces(self) -> Iterator[tuple[str, str]]:
        """Yield (name, text): a tag's name, `/` before that of an end, with no text; or no name and a text."""
        at, end = 0, len(self._markup)
        while at < end:
            found = _MARKUP.search(self._markup, at)
            yield "", self._markup[at : found.start() if found else end]
            if found is None:
                return
            if name := (found["name"] or "").lower():
                at = self._tag_end(found.end())
                yield name, ""
                if name in _RAW and at < end:
                    closing = _RAW[name].search(self._markup, at)
                    at = closing.start() if closing else end
            else:
                close = "-->" if found[0] == "<!--" else ">"
                closed = self._markup.find(close, found.end())
                at = closed + len(close) if closed >= 0 else end

    def _tag_end(self, at: int) -> int:
        """Return where a tag ends: after the first `>` that is in no quotes, or at the end of the markup."""
        while found := _TAG_MARK.search(self._markup, at):
            at = found.end()
            if (mark := found[0]) == ">":
                return at
            if mark not in self._unclosed:
                closed = self._markup.find(mark, at)
                at = max(at, closed + 1)
                if closed < 0:
                    self._unclosed.add(mark)
        return len(self._markup)


def page_text(markup: str) -> str:
    r"""Return the visible text of HTML, a line for each block.

    Example:
        >>> page_text("<head><title>x</title></head><h1>Install</h1><p>Run <b>make</b>.</p><script>1</script>")
        'Install\nRun make.'
    """
    parts: list[str] = []
    hidden: list[str] = []
    for name, text in _MarkupScanner(markup).pieces():
        if name in _HIDDEN:
            hidden.append(name)
        elif hidden and name == f"/{hidden[-1]}":
            hidden.pop()
        elif hidden:
            continue
        elif name.removeprefix("/") in _BLOCKS:
            parts.append("\n")
        elif text:
            parts.append(html.unescape(_LONG_NUMBER.sub("\ufffd", text)))
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line)
