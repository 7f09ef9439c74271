"""The reader of unified diffs: the lines that a patch adds to each file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seasoned.errors import InputError, excerpt

__all__ = ["Addition", "read_patch", "same_line"]

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


@dataclass(frozen=True, slots=True)
class Addition:
    """The lines that a patch adds to one file, without blank ones, in order; none if the file is `binary`."""

    path: bytes
    lines: tuple[bytes, ...]
    binary: bool = False


def same_line(line: bytes) -> bytes:
    r"""Return the line without blanks: equal for lines that `git blame -w` considers equal.

    Example:
        >>> same_line(b"  if x :\t\r\n")
        b'ifx:'
    """
    return b"".join(line.split())


def read_patch(patch: str | bytes) -> tuple[Addition, ...]:
    r"""Return the additions of a unified diff (`git diff`, `diff -u`), file by file; deleted files have none.

    Hunks are read by the line counts of their headers, so a content line that looks like a header is not one.

    Raises:
        InputError: it is not a unified diff, or is cut off.

    Example:
        >>> read_patch("--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-a\n+b\n+c\n")
        (Addition(path=b'x.py', lines=(b'b', b'c'), binary=False),)
    """
    if not isinstance(patch, str | bytes):
        raise InputError(f"patch = {excerpt(patch)}", "a patch is the text of a unified diff", "Pass `git diff`.")
    lines = (patch.encode("utf-8", "surrogateescape") if isinstance(patch, str) else patch).split(b"\n")
    added_by_path: dict[bytes, list[bytes]] = {}
    binary: list[bytes] = []
    path: bytes | None = None
    named = hunks = False
    at = 0
    while at < len(lines):
        line = lines[at].removesuffix(b"\r")
        at += 1
        if line.startswith(b"diff --git "):
            path, hunks, named = None, False, True
        elif line.startswith(b"+++ "):
            path, named = _path(line[4:], b"b/"), True
        elif (hunk := _HUNK.match(line)) and named:
            hunks = True
            remaining = [int(n) if n is not None else 1 for n in hunk.groups()]
            at = _read_hunk(lines, at, remaining, added_by_path.setdefault(path, []) if path is not None else [])
        elif line.startswith((b"GIT binary patch", b"Binary files ")) and not hunks:
            binary.append(_binary_name(line, lines, at))
    if not named:
        raise InputError(
            f"patch = {excerpt(patch)}", "a patch is a unified diff, with `+++` before each file", "Pass `git diff`."
        )
    return (
        *(Addition(name, tuple(added)) for name, added in added_by_path.items()),
        *(Addition(name, (), binary=True) for name in binary),
    )


def _read_hunk(lines: list[bytes], at: int, remaining: list[int], added: list[bytes]) -> int:
    """Read the lines of a hunk by the counts of its header, and return the index after it."""
    while remaining[0] > 0 or remaining[1] > 0:
        line = lines[at] if at < len(lines) else b""
        kind = line[:1]
        if at >= len(lines) or kind not in (b"+", b"-", b" ", b"\\", b"", b"\r"):
            raise InputError(
                f"line {at + 1} of the patch: {excerpt(line.decode('utf-8', 'replace'))}",
                "a hunk has as many lines as its header states",
                "The patch is cut off or damaged: make it again.",
            )
        at += 1
        if kind == b"\\":  # "\ No newline at end of file"
            continue
        remaining[0] -= kind != b"+"
        remaining[1] -= kind != b"-"
        if kind == b"+" and same_line(line[1:]):
            added.append(line[1:].removesuffix(b"\r"))
    return at


def _path(text: bytes, prefix: bytes) -> bytes | None:
    """Return the path of a file; None for /dev/null."""
    if text.startswith(b'"') and (end := text.rfind(b'"')) > 0:
        text = _ESCAPE.sub(_unescaped, text[1:end])
    else:
        text = text.split(b"\t", 1)[0]
    return None if text == b"/dev/null" else text.removeprefix(prefix)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPED.get(code, code)


def _binary_name(line: bytes, lines: list[bytes], at: int) -> bytes:
    """Return the path of a binary file as it is in the patch, for display."""
    if line.startswith(b"Binary files "):
        return line.removeprefix(b"Binary files ").removesuffix(b" differ").rpartition(b" and ")[2].removeprefix(b"b/")
    header = next((one for one in reversed(lines[:at]) if one.startswith(b"diff --git ")), b"")
    return header.removeprefix(b"diff --git ")
