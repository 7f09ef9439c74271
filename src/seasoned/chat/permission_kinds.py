"""Permissions of a chat: the kinds of what it may do, and those that the user has granted for the session."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from glob import iglob
from itertools import islice
from pathlib import Path

from seasoned.errors import InputError, excerpt

__all__ = ["EDIT", "FETCH", "RUN", "Permissions", "RequestedAction", "command_request"]

EDIT, RUN, FETCH = "edit", "run", "fetch"
"""Kinds of actions: files of the repository, any command, any page."""

_FREE = ("ls", "cat", "head", "tail", "wc", "pwd", "true", "echo")
_PLAIN = re.compile(r"[\w \t./:'\"+@%,^-]+")
"""A command without redirection, substitution, assignment, pattern or second command."""
_FOLLOWS = re.compile(r"-\w*[LR].*|--[dfr].*")
"""Options by which a program that shows files reads others: through links, below folders, from a list."""
_HARMLESS = re.compile(r"(?<!\S)[12&]?>{1,2} ?(?:(?<=>)&[12]|/dev/null)(?=[\s;|&)]|$)")
"""Redirections that write nothing: `2>&1`, `>/dev/null`."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WITH_COMMAND = (  # their first argument says what they do
    *("apt", "brew", "bun", "bundle", "cargo", "composer", "conda", "deno", "docker", "dotnet", "gh", "git", "go"),
    *("gradle", "hatch", "just", "kubectl", "make", "mvn", "nox", "npm", "npx", "pdm", "pip", "pip3", "pnpm"),
    *("pipenv", "poetry", "rake", "rye", "task", "tox", "uv", "yarn"),
)
_INTERPRETERS = re.compile(
    r"(?:i?python[\d.]*|pypy[\d.]*|node|ruby|perl|php|lua|julia|tclsh|Rscript|bash|sh|zsh|ksh|csh|tcsh|dash|fish|pwsh)"
)
_LAUNCHERS = (  # they run what their arguments name
    *(
        "ash",
        "awk",
        "at",
        "batch",
        "bunx",
        "busybox",
        "chroot",
        "crontab",
        "ed",
        "emacs",
        "entr",
        "ex",
        "expect",
        "flock",
    ),
    *("gawk", "gdb", "less", "man", "mawk", "more", "nawk", "nsenter", "nvim", "pipx", "pkexec", "rsync", "runuser"),
    *(
        "screen",
        "sed",
        "strace",
        "systemd-run",
        "tar",
        "taskset",
        "tmux",
        "toybox",
        "uvx",
        "vi",
        "view",
        "vim",
        "vimdiff",
    ),
    *("command", "doas", "env", "eval", "exec", "find", "ionice", "nice", "nohup", "parallel", "script", "setsid"),
    *("source", "ssh", "stdbuf", "su", "sudo", "time", "timeout", "unshare", "watch", "xargs", "."),
)
_SHELL_WORDS = (  # a command follows, or they change what later words mean
    *(
        "!",
        "[[",
        "alias",
        "bind",
        "builtin",
        "case",
        "coproc",
        "declare",
        "do",
        "done",
        "elif",
        "else",
        "enable",
        "esac",
    ),
    *("export", "fi", "for", "function", "hash", "if", "in", "let", "local", "mapfile", "printf", "read", "readarray"),
    *("readonly", "select", "set", "shopt", "then", "trap", "typeset", "unalias", "unset", "until", "while"),
)
_RUN_CODE = ("IPython", "asyncio", "cProfile", "code", "coverage", "pdb", "profile", "runpy", "timeit", "trace")
"""Modules of Python that run the code or the program in their arguments: `python -m timeit CODE`."""
_RUNNERS = (  # the rest of the command is one
    *(("bundle", "exec"), ("hatch", "run"), ("pdm", "run"), ("pipenv", "run"), ("poetry", "run"), ("rye", "run")),
    ("uv", "run"),
)
_RUNS_OTHERS = re.compile(r"--?(?:exec|toolexec|vettool|to-command|use-comp|compress-p|filter|pre|rsh|eval|script-s).*")
"""Options whose value is a program."""
_GIT_RUNS = re.compile(
    r"git (?:(?:bisect|clone|config|difftool|filter-branch|mergetool|rebase|submodule)\b|grep .*-(?:\w*O|-o)"
    r"|(?:archive|fetch|ls-remote|pull|push|remote)\b.*(?: --[eur]|::)).*",
    re.DOTALL,
)
_TARGET = re.compile(r"[\w./][\w./-]*|-[jksB]*\d*")
_PATTERN = re.compile(r"[*?\[]")
_MAX_PATTERNS, _MAX_MATCHES = 3, 2000
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
    read, that starts others (`sudo`, `sed`, `if`), sets variables, writes to a file (`>`) or has a comment is of a kind
    of its own: the whole text. So is one that names a path outside the repository, or in its `.git`, which is asked for
    each time. Commands that only show files of the repository need no permission.

    Raises:
        InputError: the command has characters that no command can have.

    Example:
        >>> root = Path("/repo")
        >>> command_request("ls src", root).kinds, command_request("git add . && pytest -q", root).kinds
        ((), ('git add', 'pytest'))
        >>> command_request("rm -r ../other", root)
        RequestedAction(kinds=('rm -r ../other',), reason='it names ../other, outside the repository', lasting=False)
    """
    if "\0" in command or any("\ud800" <= character <= "\udfff" for character in command):
        raise InputError(f"command {excerpt(repr(command))}", "a NUL or half a character", "Leave it out.")
    text = command.strip()
    words = _words(command)
    if words is None:
        return RequestedAction((text,))
    reason = next((why for part in words for word in part if (why := _each_time(word, root))), "")
    if reason:
        return RequestedAction((text,), reason, lasting=False)
    if _PLAIN.fullmatch(command) and words[0][0] in _FREE and not any(_FOLLOWS.fullmatch(word) for word in words[0]):
        return RequestedAction(())
    command = _HARMLESS.sub(" ", command)
    kinds = [_kind(part) for part in _words(command) or [["!"]]]
    if None in kinds or ">" in command:
        return RequestedAction((text,))
    return RequestedAction(tuple(dict.fromkeys(kind for kind in kinds if kind)))


def _words(command: str) -> list[list[str]] | None:
    """Return the words of each simple command, targets of redirections included; None if a part cannot be read."""
    if len(command) > 4096 or any(mark in command for mark in ("`", "$", "<(", ">(", "<<", "\\", "{", "}", "#", "\r")):
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
    program = words[0]
    name = program.rpartition("/")[2]
    first = words[1] if len(words) > 1 else ""
    if name == "sed" and first == "-n" and re.fullmatch(r"\d+(?:,\d+)?p", "".join(words[2:3])):  # it shows lines
        return None if any(word.startswith("-") for word in words[3:]) else f"{program} -n"
    if _ASSIGNMENT.match(program) or name in _LAUNCHERS or name in _SHELL_WORDS or program in _LAUNCHERS:
        return None
    if any(_RUNS_OTHERS.fullmatch(word) for word in words[1:]) or (set(program) & set("*?[")):
        return None
    if _INTERPRETERS.fullmatch(name):
        if first == "-m" and len(words) > 2:
            return None if words[2] in _RUN_CODE else f"{program} -m {words[2]}"
        return f"{program} {first}" if first and not first.startswith("-") else None
    if name not in _WITH_COMMAND:
        return program
    if first.startswith("-") or _GIT_RUNS.fullmatch(" ".join([name, *words[1:]])):  # `git -c alias.x=!sh x`
        return None
    if name == "make":
        return " ".join([program, *words[1:]]) if all(map(_TARGET.fullmatch, words[1:])) else None
    if (name, first) in _RUNNERS or name == "npx":
        start = 1 if name == "npx" else 2
        inner = _kind(words[start:]) if words[start:] and not words[start].startswith("-") else None
        return inner and " ".join([program, *words[1:start], inner])
    if first in ("dlx", "eval", "exec", "tool", "x"):
        return None
    arguments = [word for word in words[1:] if not word.startswith("-")]
    return " ".join([program, *arguments[: 2 if first == "run" else 1]])


def _each_time(word: str, root: Path) -> str:
    """Return why a word, or the value of an option in it, is asked for each time; empty if it is not."""
    texts = {word, word.partition("=")[2], word[2:] if word.startswith("-") else word}
    for text in texts | {text.lstrip("@") for text in texts}:
        outside = text.startswith("~") or text.lower().startswith("file:")
        if outside or re.search(r"(?:^|/)\.[^/]*[*?\[]", text):  # `.*` may be `..`
            return f"it names {word}, outside the repository"
        if _PATTERN.search(text) and (why := _of_matches(text, root)):
            return f"{word} matches {why}"
        if text in _DEVICES:
            continue
        found = Path(os.path.realpath(root / text))  # any word may name a link
        if not found.is_relative_to(root):
            if not _is_program(text, word):
                return f"it names {word}, outside the repository"
        elif ".git" in [part.lower() for part in (*found.relative_to(root).parts, *text.split("/"))]:
            return f"it names {word}, in .git"
    return ""


def _of_matches(pattern: str, root: Path) -> str:
    """Return what a pattern of the shell matches outside the repository, such as a link's target; empty for nothing."""
    if sum(bool(_PATTERN.search(part)) for part in pattern.split("/")) > _MAX_PATTERNS:
        return "paths in too many folders to look through"
    try:
        matches = list(islice(iglob(pattern, root_dir=root), _MAX_MATCHES + 1))  # noqa: PTH207, as a shell does
    except (OSError, ValueError, re.error):
        return "paths that cannot be listed"
    if len(matches) > _MAX_MATCHES:
        return f"more than {_MAX_MATCHES} paths"
    for match in matches:
        found = Path(os.path.realpath(root / match))
        if not found.is_relative_to(root):
            return f"{match}, a link that leads outside the repository"
        if ".git" in [part.lower() for part in found.relative_to(root).parts]:
            return f"{match}, a link that leads into .git"
    return ""


def _is_program(text: str, word: str) -> bool:
    if text != word or os.path.normpath(text) != text or not text.startswith(("/bin/", "/usr/bin/", "/usr/local/bin/")):
        return False
    return Path(text).is_file() and os.access(text, os.X_OK)


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
