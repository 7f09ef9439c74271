"""Fence around the grader's files: detection of commands that name its tests, the solution or its logs.

The fence is no isolation: it reads the text of a command, not the behaviour of a program that the command starts.
Harbor itself isolates a trial, as it copies the tests into the container after the agent has finished. The fence stops
an agent that searches for them (a model that knows Terminal-Bench does), gives the model a readable refusal, and keeps
such steps out of memories.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from seasoned.integrations.harbor.shell_paths import UNKNOWN_NAME, ShellPath, may_match, resolve_path, shell_path

__all__ = ["GRADER_PATHS", "grader_path", "working_folder"]

GRADER_PATHS = ("/tests", "/solution", "/oracle", "/logs/verifier")
"""Folders of the grader in Harbor and Terminal-Bench, with everything below them."""

_GRADERS = {path: shell_path(path) for path in GRADER_PATHS}
_PWD = re.compile(r"\$\(\s*pwd(?:\s+-[LP])?\s*\)|`\s*pwd(?:\s+-[LP])?\s*`|\$\{PWD\}|\$PWD\b")
_QUOTING = re.compile(r"\\\n|[\\'\"`]|\$(?=['\"])")
_ASSIGNED = re.compile(r"(?:^|[\s;|&(])(\w+)=([^\s;|&()<>$`]*)")
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_CALLED = re.compile(r"\bchdir\(([^()]*)\)")
_UNKNOWN = re.compile(r"\$\([^()]*\)|\$\{[^{}]*\}|\$\w+")  # values that only the shell knows: any name, any folder
_BRACES = re.compile(r"\{([^{}\s]*)\}")
_PIECE = re.compile(r"(&&|\|\||[;|&\n()])")
_WORD = re.compile(r"[^\s;|&<>()=:,]+")
_CHANGE = re.compile(r"(?:^|\s)(cd|pushd|popd)(?:\s+-[LPe@]+)*(?:\s+--)?(?:\s+([^\s<>]+))?")
_ELSEWHERE = re.compile(r"(?:^|\s)(?:-C\s*|--(?:directory|chdir)[=\s]\s*)([^\s<>]+)")
_WALKERS = frozenset(("ack", "ag", "du", "fd", "find", "rg", "tree"))  # over the working folder, if no path is named
_COPIERS = frozenset(("cp", "diff", "mv", "rsync", "tar", "zip"))
_WALKERS_IF_RECURSIVE = frozenset(("egrep", "fgrep", "grep", "ls"))


def grader_path(command: str, cwd: str | None = None) -> str | None:
    """Return the grader's folder that a shell command names, walks over or could expand to; None if it names none.

    Quotes and backslashes are removed; `..` and `/proc/N/root` are resolved; wildcards, braces and variables match any
    text, except variables that the command itself sets. A path that begins with a variable or with `~` may be anywhere.
    Relative names are resolved from the working folder at that point: `cwd`, or the folder of a `cd`, which is assumed
    to succeed. A walk over `/` (`find /`, `grep -r x /`) counts.

    Args:
        command: text for the shell.
        cwd: its working folder; None: unknown, and a relative name is then not the grader's, unless it begins with
            `..`.

    Example:
        >>> grader_path("cat /te'st's/x"), grader_path("cd / && ls sol*"), grader_path("cd /app; ls tests")
        ('/tests', '/solution', None)
        >>> grader_path("cat ../tests/x", "/app"), grader_path("cat ../tests/x", "/app/src")
        ('/tests', None)
    """
    plain = _QUOTING.sub("", _PWD.sub("~+", command))
    known: dict[str, set[str]] = {}
    for name, value in _ASSIGNED.findall(plain):
        known.setdefault(name, set()).add(value)

    def value_of(match: re.Match[str]) -> str:
        values = known.get(match[1] or match[2], ())
        return next(iter(values)) if len(values) == 1 else match[0]

    plain = _CALLED.sub(r"; cd \1;", _VARIABLE.sub(value_of, plain))
    # The command is checked twice: with the content of `$(...)` as a command of its own, and its output as any name.
    for text in dict.fromkeys((plain, _opened(plain))):
        for places, words, walks in _pieces(text, shell_path(cwd)):
            for place in (resolve_path(place, word) for word in words for place in places):
                for path, folder in _GRADERS.items():
                    if may_match(place, folder, walks=walks):
                        return path
    return None


def working_folder(result: Any) -> str | None:
    """Return the folder that `pwd` printed in a container; None where it printed none."""
    folder = str(result.stdout or "").strip()
    return folder if result.return_code == 0 and folder.startswith("/") and "\n" not in folder else None


def _pieces(command: str, start: ShellPath) -> Iterator[tuple[list[ShellPath], list[str], bool]]:
    """Yield each simple command: the folders that its names may be read from, the names, and whether it walks."""
    here, before = start, start
    outside: list[tuple[ShellPath, ShellPath]] = []
    parts = [*_PIECE.split(command), ""]
    for part, mark in zip(parts[::2], parts[1::2], strict=True):
        piece = part
        braces = _BRACES.findall(_UNKNOWN.sub("", piece))
        if change := _CHANGE.search(piece):
            piece = f"{piece[: change.start()]} . {piece[change.end() :]}"
            if change[1] == "popd" or change[2] == "-":
                here, before = before, here
            else:
                here, before = resolve_path(here, _opened(change[2] or "~")), here
        places = [here, *(resolve_path(here, _opened(folder)) for folder in _ELSEWHERE.findall(piece))]
        words = [_opened(word) for word in _WORD.findall(piece)]
        words += [word for inner in braces for word in inner.split(",")]
        programs = {posixpath.basename(word) for word in words}
        recursive = any(word.startswith("-") and ("r" in word or "R" in word) for word in words)
        through = not programs.isdisjoint(_WALKERS) or (recursive and not programs.isdisjoint(_WALKERS_IF_RECURSIVE))
        yield places, [*words, "."] if through else words, through or not programs.isdisjoint(_COPIERS)
        if mark == "(":
            outside.append((here, before))
        elif mark == ")" and outside:
            here, before = outside.pop()


def _opened(word: str) -> str:
    """Return a name in which variables and braces match any text."""
    return _BRACES.sub("*", _UNKNOWN.sub(UNKNOWN_NAME, word))
