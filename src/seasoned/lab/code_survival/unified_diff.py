"""A unified diff read: which lines it adds to which file. Names may hold anything, binary files hold no lines."""

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
    """What a patch adds to one file: its lines that are not blank, in order. `binary`: git tells no lines."""

    path: bytes
    lines: tuple[bytes, ...]
    binary: bool = False


def same_line(line: bytes) -> bytes:
    r"""Return what two lines share that differ in blanks only, as `git blame -w` sees it: the line without any.

    Example:
        >>> same_line(b"  if x :\t\r\n")
        b'ifx:'
    """
    return b"".join(line.split())


def read_patch(patch: str | bytes) -> tuple[Addition, ...]:
    r"""Return what a unified diff (`git diff`, `diff -u`) adds, file by file; deleted files add nothing.

    Hunks are read by the numbers of lines that they announce, so that a line that looks like a header is none.

    Raises:
        InputError: it is no unified diff, or is cut off.

    Example:
        >>> read_patch("--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-a\n+b\n+c\n")
        (Addition(path=b'x.py', lines=(b'b', b'c'), binary=False),)
    """
    if not isinstance(patch, str | bytes):
        raise InputError(f"patch = {excerpt(patch)}", "a patch is the text of a unified diff", "Pass `git diff`.")
    lines = (patch.encode("utf-8", "surrogateescape") if isinstance(patch, str) else patch).split(b"\n")
    found: dict[bytes, list[bytes]] = {}
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
            path, named = _name(line[4:], b"b/"), True
        elif (hunk := _HUNK.match(line)) and named:
            hunks = True
            left = [int(n) if n is not None else 1 for n in hunk.groups()]
            at = _read_hunk(lines, at, left, found.setdefault(path, []) if path is not None else [])
        elif line.startswith((b"GIT binary patch", b"Binary files ")) and not hunks:
            binary.append(_binary_name(line, lines, at))
    if not named:
        raise InputError(
            f"patch = {excerpt(patch)}", "a patch is a unified diff, with `+++` before each file", "Pass `git diff`."
        )
    return (
        *(Addition(name, tuple(added)) for name, added in found.items()),
        *(Addition(name, (), binary=True) for name in binary),
    )


def _read_hunk(lines: list[bytes], at: int, left: list[int], added: list[bytes]) -> int:
    """Read as many lines as the hunk announced; return where it ends."""
    while left[0] > 0 or left[1] > 0:
        line = lines[at] if at < len(lines) else b""
        kind = line[:1]
        if at >= len(lines) or kind not in (b"+", b"-", b" ", b"\\", b"", b"\r"):
            raise InputError(
                f"line {at + 1} of the patch: {excerpt(line.decode('utf-8', 'replace'))}",
                "a hunk has as many lines as it announces",
                "The patch is cut off or damaged: make it again.",
            )
        at += 1
        if kind == b"\\":  # "\ No newline at end of file"
            continue
        left[0] -= kind != b"+"
        left[1] -= kind != b"-"
        if kind == b"+" and same_line(line[1:]):
            added.append(line[1:].removesuffix(b"\r"))
    return at


def _name(shown: bytes, prefix: bytes) -> bytes | None:
    """Return the file's name; None for /dev/null."""
    if shown.startswith(b'"') and (end := shown.rfind(b'"')) > 0:
        shown = _ESCAPE.sub(_unescaped, shown[1:end])
    else:
        shown = shown.split(b"\t", 1)[0]
    return None if shown == b"/dev/null" else shown.removeprefix(prefix)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPED.get(code, code)


def _binary_name(line: bytes, lines: list[bytes], at: int) -> bytes:
    """Return the name of a binary file, as far as the patch tells it: as shown, for a person."""
    if line.startswith(b"Binary files "):
        return line.removeprefix(b"Binary files ").removesuffix(b" differ").rpartition(b" and ")[2].removeprefix(b"b/")
    header = next((one for one in reversed(lines[:at]) if one.startswith(b"diff --git ")), b"")
    return header.removeprefix(b"diff --git ")
