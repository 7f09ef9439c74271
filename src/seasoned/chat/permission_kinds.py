"""Permissions of a chat: the kinds of what it may do, and those that the user has granted for the session."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["EDIT", "FETCH", "RUN", "Permissions", "RequestedAction", "command_request"]

EDIT, RUN, FETCH = "edit", "run", "fetch"
"""Kinds of actions: files of the repository, any command, any page."""

_FREE = ("ls", "cat", "head", "tail", "wc", "pwd", "true", "echo")
_PLAIN = re.compile(r"[\w \t./:'\"+@%,^-]+")
"""A command without redirection, substitution, assignment, pattern or second command."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WITH_COMMAND = (  # their first argument says what they do
    *("apt", "brew", "bun", "bundle", "cargo", "composer", "conda", "deno", "docker", "dotnet", "gh", "git", "go"),
    *("gradle", "hatch", "just", "kubectl", "make", "mvn", "nox", "npm", "npx", "pdm", "pip", "pip3", "pnpm"),
    *("poetry", "rake", "rye", "task", "tox", "uv", "yarn"),
)
_INTERPRETERS = re.compile(r"(?:python[\d.]*|node|deno|ruby|perl|php|bash|sh|zsh|dash|fish|pwsh)")
_LAUNCHERS = (  # they run what their arguments name
    *("command", "doas", "env", "eval", "exec", "find", "ionice", "nice", "nohup", "parallel", "script", "setsid"),
    *("source", "ssh", "stdbuf", "su", "sudo", "time", "timeout", "unshare", "watch", "xargs", "."),
)
_DEVICES = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero")


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """What the model wants to do, by its kinds: each must be granted.

    Args:
        kinds: such as `git commit`; empty: it needs no permission.
        reason: of the question, where the kind does not say it.
        lasting: whether a permission can be remembered for the session.
    """

    kinds: tuple[str, ...]
    reason: str = ""
    lasting: bool = True


def command_request(command: str, root: Path) -> RequestedAction:
    """Return the kinds of a shell command, by its programs.

    Of a program with commands of its own the first argument counts (`git commit`). A command that the rules cannot
    read, that starts others (`sudo`, `xargs`), sets variables, or names a path outside the repository is of a kind of
    its own: the whole text. Commands that only show files of the repository need no permission.

    Example:
        >>> root = Path("/repo")
        >>> command_request("ls src", root).kinds, command_request("git add . && pytest -q", root).kinds
        ((), ('git add', 'pytest'))
        >>> command_request("rm -r ../other", root)
        RequestedAction(kinds=('rm -r ../other',), reason='it names ../other, outside the repository', lasting=False)
    """
    text = " ".join(command.split())
    words = _words(command)
    if words is None:
        return RequestedAction((text,))
    outside = next((word for part in words for word in part if _leads_outside(word, root)), None)
    if outside is not None:
        return RequestedAction((text,), f"it names {outside}, outside the repository", lasting=False)
    if _PLAIN.fullmatch(command) and words[0][0] in _FREE:
        return RequestedAction(())
    kinds = [_kind(part) for part in words]
    if None in kinds:
        return RequestedAction((text,))
    return RequestedAction(tuple(dict.fromkeys(kind for kind in kinds if kind)))


def _words(command: str) -> list[list[str]] | None:
    """Return the words of each simple command, targets of redirections included; None if a part cannot be read."""
    if len(command) > 4096 or any(mark in command for mark in ("`", "$", "<(", ">(", "<<", "\\", "{", "}")):
        return None
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    parts: list[list[str]] = [[]]
    try:
        for token in lexer:
            if token and set(token) <= set(";&|()\n"):
                parts.append([])
            elif not (token and set(token) <= set("<>&|")):
                parts[-1].append(token)
    except ValueError:  # a quote without its end
        return None
    found = [part for part in parts if part]
    return found or None


def _kind(words: list[str]) -> str | None:
    """Return the kind of a simple command; None if the whole text must be asked for."""
    name = words[0].rpartition("/")[2]
    arguments = [word for word in words[1:] if not word.startswith("-")]
    if _ASSIGNMENT.match(words[0]) or words[0] in _LAUNCHERS or name in _LAUNCHERS:
        return None
    if words[0] != name and words[0].startswith("/"):
        return words[0]
    if _INTERPRETERS.fullmatch(name):
        if words[1:2] == ["-m"] and len(words) > 2:
            return f"{name} -m {words[2]}"
        plain = len(words) > 1 and not words[1].startswith("-")
        return f"{name} {words[1]}" if plain else None
    if name in _WITH_COMMAND:
        if words[1:] and words[1].startswith("-"):  # `git -c alias.x=!sh x`
            return None
        taken = 2 if name in ("uv", "npm", "pnpm", "yarn", "poetry", "docker", "gh") and arguments[:1] == ["run"] else 1
        return " ".join([name, *arguments[:taken]])
    return words[0]


def _leads_outside(word: str, root: Path) -> bool:
    """Return whether a word, or the value of an option in it, is a path outside the root."""
    for text in {word, word.partition("=")[2], word[2:] if word.startswith("-") else word}:
        if text.startswith("~"):
            return True
        if "://" not in text and text not in _DEVICES:  # any other word may name a link that leads outside
            found = Path(os.path.realpath(root / text))
            if not found.is_relative_to(root) and not _is_program(text, word):
                return True
    return False


def _is_program(text: str, word: str) -> bool:
    return text == word and text.startswith(("/bin/", "/usr/bin/", "/usr/local/bin/")) and os.access(text, os.X_OK)


class Permissions:
    """The kinds of actions that are granted for one session.

    Args:
        granted: kinds that are granted from the start: `edit`, `run` (every command in the repository), `fetch` (every
            page), or narrower ones, such as `git commit` and `fetch docs.python.org`.

    Example:
        >>> permissions = Permissions(["pytest"])
        >>> permissions.missing(RequestedAction(("pytest", "git push")), RUN)
        ('git push',)
        >>> permissions.grant(["git push"])
        >>> permissions.missing(RequestedAction(("pytest", "git push")), RUN)
        ()
    """

    def __init__(self, granted: Iterable[str] = ()) -> None:
        self._granted = set(granted)

    def missing(self, request: RequestedAction, general: str) -> tuple[str, ...]:
        """Return the kinds that are not granted.

        Args:
            request: the action.
            general: the kind that includes these: `edit`, `run` or `fetch`. It does not include what must be asked
                for each time.
        """
        if not request.lasting:
            return request.kinds
        if general in self._granted:
            return ()
        return tuple(kind for kind in request.kinds if kind not in self._granted)

    def grant(self, kinds: Iterable[str]) -> None:
        """Grant kinds for the rest of the session."""
        self._granted.update(kinds)

    @property
    def granted(self) -> tuple[str, ...]:
        """The granted kinds, sorted."""
        return tuple(sorted(self._granted))
