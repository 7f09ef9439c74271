"""Which commands name the grader's files: its tests, the solution, its logs.

A fence, no wall: it reads what a command says, not what a program that the command starts will do. What isolates a
trial is Harbor itself, which brings the tests into the container after the agent has left. The fence stops an agent
that goes looking (a model that has read about Terminal-Bench does), says so in words that the model reads, and keeps
such steps out of memories.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

__all__ = ["GRADER_PATHS", "grader_path"]

GRADER_PATHS = ("/tests", "/solution", "/oracle", "/logs/verifier")
"""Where Harbor and Terminal-Bench keep what grades a task; whatever lies below is meant too."""

_QUOTING = re.compile(r"\\\n|[\\'\"`]|\$(?=['\"])")
_UNKNOWN = re.compile(r"\$\([^()]*\)|\$\{[^{}]*\}|\$\w+|\{[^{}\s]*\}")  # what only the shell knows: any name
_WORD = re.compile(r"[^\s;|&<>()=:,]+")
_CHANGE = re.compile(r"\b(?:cd|pushd)\s+(?:--\s+)?([^\s;|&<>()]+)|(?:^|\s)-C\s*([^\s;|&<>()]+)")
_WALKERS = frozenset(("ack", "ag", "cp", "diff", "du", "fd", "find", "mv", "rg", "rsync", "tar", "tree", "zip"))
_WALKERS_IF_RECURSIVE = frozenset(("egrep", "fgrep", "grep", "ls"))


def grader_path(command: str, cwd: str | None = None) -> str | None:
    """Return the grader's folder that a shell command names, walks over or could expand to; None if it names none.

    Quotes and backslashes are taken away, `..` is resolved, wildcards, braces and variables in an absolute path stand
    for anything, relative names are read from `cwd` and from every folder that the command changes to. A walk over `/`
    (`find /`, `grep -r x /`) counts.

    Args:
        command: as it is given to the shell.
        cwd: where it runs; None: not known, where a relative name is not the grader's.

    Example:
        >>> grader_path("cat /te'st's/x"), grader_path("cd / && ls sol*"), grader_path("cd /app; ls tests")
        ('/tests', '/solution', None)
    """
    plain = _QUOTING.sub("", command)
    bases = list(_bases(plain, cwd))
    # Read twice: what stands inside `$(...)` is a command too, and what comes of it is any name.
    names = dict.fromkeys(_WORD.findall(plain) + _WORD.findall(_UNKNOWN.sub("*", plain)))
    walks = _walks(plain)
    for word in (posixpath.join(base, name) for name in names for base in bases):
        if not word.startswith("/"):
            continue
        parts = posixpath.normpath(word).strip("/").split("/")
        for path in GRADER_PATHS:
            wanted = path.strip("/").split("/")
            if parts == [""] or len(parts) < len(wanted):
                over = parts == [""] or all(map(fnmatchcase, wanted, parts))
                if walks and over:
                    return path
            elif all(map(fnmatchcase, wanted, parts)):
                return path
    return None


def _walks(command: str) -> bool:
    """Whether a command has a program in it that goes through folders."""
    words = command.replace(";", " ").replace("|", " ").replace("&", " ").replace("(", " ").split()
    names = {posixpath.basename(word) for word in words}
    recursive = any(word.startswith("-") and ("r" in word or "R" in word) for word in words)
    return not names.isdisjoint(_WALKERS) or (recursive and not names.isdisjoint(_WALKERS_IF_RECURSIVE))


def _bases(command: str, cwd: str | None) -> Iterator[str]:
    """Yield the folders that a relative name may be read from."""
    bases = [cwd or "."]
    for found in _CHANGE.finditer(command):
        folder = found[1] or found[2]
        bases += [one for base in list(bases) if (one := posixpath.normpath(posixpath.join(base, folder))) not in bases]
        if len(bases) > 64:
            break
    yield from bases
