"""Commands of calls: which of them run tests and print nothing else, and which show a text that others wrote.

An agent writes its commands, so it can let one print what a rule rewards (`echo "5 passed in 0.1s"`), or print what was
no failure of its own (`cat error.log`). So a command is read word by word, as a shell does, and one that is not fully
known runs no tests.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from seasoned.actions import parse_tool_call, tool_name
from seasoned.errors import InputError

__all__ = ["called_command", "reports_tests", "shows_foreign_text"]

_MAX_CHARS = 4096  # a longer command is not read
_MAX_DEPTH = 3
_FIELDS = ("command", "cmd", "commands", "script", "code", "input", "bash", "shell_command", "keystrokes", "args")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")  # by which a stored action keeps its capitals

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,99}=.{0,1000}", re.DOTALL)
_DURATION = re.compile(r"\d{1,9}(?:\.\d{1,9})?[smhd]?")
_PREFIXES = ("command", "env", "nice", "sudo", "time", "xvfb-run")
_LAUNCHERS = {
    **dict.fromkeys(("hatch", "pdm", "pipenv", "poetry", "rye", "uv"), "run"),
    **dict.fromkeys(("bundle", "pnpm", "yarn"), "exec"),
}

_TESTERS = (
    *("pytest", "py.test", "tox", "nox", "nose2", "jest", "vitest", "mocha", "ava", "ctest", "phpunit", "rspec"),
    *("run_tests.sh", "run-tests.sh", "runtests.sh", "test.sh", "tests.sh", "run_tests.py", "runtests.py"),
)
_TEST_MODULES = ("pytest", "unittest", "nose2", "tox", "nox")
_TEST_FILE = re.compile(r"(?:.{0,200}/)?(?:tests?|test_\w{1,100}|\w{1,100}_tests?|run_?tests?)\.(?:py|sh)")
_TEST_TARGET = re.compile(r"(?:[\w.-]{1,50}:)?(?:tests?|check|verify|nextest)(?:[:_-][\w:.-]{1,100})?")
_BUILDERS = (
    *("bazel", "bun", "cargo", "composer", "deno", "dotnet", "flutter", "go", "gradle", "gradlew", "just", "make"),
    *("meson", "mix", "mvn", "mvnw", "ninja", "npm", "pnpm", "rake", "sbt", "swift", "task", "yarn"),
)
_SILENT = (
    *(
        "cd",
        "export",
        "false",
        "mkdir",
        "popd",
        "pushd",
        "pwd",
        "rm",
        "set",
        "sleep",
        "touch",
        "true",
        "ulimit",
        "unset",
    ),
)
_INSTALLERS = ("npm", "pip", "pip3", "pnpm", "poetry", "uv", "yarn")
_INSTALLS = ("ci", "install", "sync")
_FILTERS = ("cat", "egrep", "grep", "head", "tail", "tee")
_READS_FOLDERS = re.compile(r"-[A-Za-z0-9]{0,20}[rRd]|--(?:rec|de|di)")  # of grep; a long option may be cut short
_PLAIN_ECHO = re.compile(r"[A-Za-z _:=-]{0,100}(?:\$\?|\$\{PIPESTATUS\[0\]\})?")

_READERS = (
    *("awk", "bat", "cat", "cut", "dmesg", "echo", "egrep", "find", "grep", "head", "hexdump", "journalctl", "jq"),
    *("less", "ls", "more", "nl", "printf", "rg", "sed", "sort", "strings", "tail", "tree", "uniq", "wc", "zcat"),
)
_SHOWING = {
    "docker": ("logs",),
    "git": ("blame", "diff", "grep", "log", "show", "status"),
    "kubectl": ("describe", "get", "logs"),
}
_READING_TOOLS = (
    "*read*",
    "*view*",
    "*cat",
    "*grep*",
    "*search*",
    "*fetch*",
    "*brows*",
    "*open*",
    "*scrape*",
    "*crawl*",
)


def called_command(action: str) -> str | None:
    r"""Return the command that a call runs; None if the call has none, or it is too long to be read.

    Example:
        >>> called_command('bash({"command":"pytest -q"})'), called_command("cd /repo && make test")
        ('pytest -q', 'cd /repo && make test')
        >>> called_command('run_tests({"path":"tests"})') is None
        True
    """
    name = tool_name(action)
    if name is None:
        return action if len(action) <= _MAX_CHARS else ""
    try:
        arguments: Mapping[str, Any] = parse_tool_call(action).arguments
    except InputError:
        inner = action.strip()[len(name) :].strip().removeprefix("(").removesuffix(")")
        return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), inner[: _MAX_CHARS + 1])
    for field in _FIELDS:
        value = arguments.get(field)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return shlex.join(value)
    return None


def reports_tests(action: str) -> bool:
    """Return whether the result of a call may report a test run: of a command, only if it prints nothing else.

    Example:
        >>> [reports_tests(one) for one in ("cd a && pytest -q 2>&1 | tail -5", 'pytest; echo "5 passed in 1s"')]
        [True, False]
        >>> reports_tests('run_tests({"path":"tests"})')
        True
    """
    command = called_command(action)
    return True if command is None else _runs_tests(command, 0)


def shows_foreign_text(action: str, tool: str = "") -> bool:
    """Return whether a call does nothing but show a text: its errors and codes may be those of anything.

    Args:
        action: the call.
        tool: its name, where the call does not tell.

    Example:
        >>> [shows_foreign_text(one) for one in ("cat error.log", "cat a; make", 'read_file({"path":"error.log"})')]
        [True, False, True]
    """
    command = called_command(action)
    if command is None:
        name = (tool_name(action) or tool).lower()
        return any(fnmatchcase(name, each) for each in _READING_TOOLS)
    return _only_reads(command, 0)


@functools.lru_cache(maxsize=1024)  # a rule after the other asks
def _runs_tests(command: str, depth: int) -> bool:
    parts = _simple_commands(command)
    if parts is None:
        return False
    n_tests = 0
    for words, is_piped in parts:
        inner = _inner_command(words)
        if inner is not None:
            if depth >= _MAX_DEPTH or not _runs_tests(inner, depth + 1):
                return False
            n_tests += 1
        elif _is_test(words):
            n_tests += 1
        elif not (_is_silent(words) or (is_piped and n_tests and _is_filter(words))):
            return False
    return n_tests > 0


@functools.lru_cache(maxsize=1024)
def _only_reads(command: str, depth: int) -> bool:
    parts = _simple_commands(command)
    if parts is None:
        return False
    n_readers = 0
    for words, _ in parts:
        inner = _inner_command(words)
        if inner is not None:
            if depth >= _MAX_DEPTH or not _only_reads(inner, depth + 1):
                return False
            n_readers += 1
        elif words and (
            words[0] in _READERS or (words[0] in _SHOWING and _first_argument(words) in _SHOWING[words[0]])
        ):
            n_readers += 1
        elif not _is_silent(words):
            return False
    return n_readers > 0


def _inner_command(words: Sequence[str]) -> str | None:
    """Return the command in `bash -lc COMMAND`; None of any other."""
    is_shell = len(words) == 3 and words[0] in ("bash", "sh", "zsh") and re.fullmatch(r"-[a-z]{0,9}c", words[1])
    return words[2] if is_shell else None


def _is_test(words: Sequence[str]) -> bool:
    if not words:
        return False
    name, argument = words[0], _first_argument(words)
    if name in _TESTERS:
        return True
    if re.fullmatch(r"python[\d.]{0,6}", name):
        if "-m" in words[1:3]:
            module = words[words.index("-m") + 1 :]
            return module[:1] != [] and (module[0] in _TEST_MODULES or module[:3] == ["coverage", "run", "-m"])
        return (argument is not None and _TEST_FILE.fullmatch(argument) is not None) or words[1:3] == [
            "manage.py",
            "test",
        ]
    if name in ("bash", "sh"):
        return argument is not None and _TEST_FILE.fullmatch(argument) is not None
    if name == "npx" and argument is not None:
        return argument in _TESTERS
    if name in _BUILDERS:
        goals = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        goals = goals[1:] if goals[:1] == ["run"] else goals
        return bool(goals) and any(_TEST_TARGET.fullmatch(goal) for goal in goals[:3])
    return _TEST_FILE.fullmatch(name) is not None


def _is_silent(words: Sequence[str]) -> bool:
    if not words or words[0] in _SILENT:
        return True
    if words[0] == "echo":
        return _PLAIN_ECHO.fullmatch(" ".join(words[1:])) is not None
    if words[0] in (".", "source"):
        return len(words) == 2 and words[1].endswith(("activate", ".env", ".envrc"))
    return words[0] in _INSTALLERS and _first_argument(words) in _INSTALLS


def _is_filter(words: Sequence[str]) -> bool:
    """Return whether a command passes on lines of what is piped into it, and reads nothing else."""
    if not words or words[0] not in _FILTERS:
        return False
    is_grep = words[0].endswith("grep")
    if is_grep and any(_READS_FOLDERS.match(word) for word in words[1:]):
        return False
    given = [word for word in words[1:] if not word.startswith("-") and not word.isdigit()]
    return words[0] == "tee" or len(given) <= (1 if is_grep else 0)


def _first_argument(words: Sequence[str]) -> str | None:
    return next((word for word in words[1:] if not word.startswith("-")), None)


def _simple_commands(command: str) -> list[tuple[list[str], bool]] | None:
    """Return the words of each simple command, and whether it reads from a pipe; None if a part cannot be read."""
    if len(command) > _MAX_CHARS or "`" in command or "$(" in command:
        return None
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    try:
        tokens = list(lexer)
    except ValueError:  # a quote without its end
        return None
    found: list[tuple[list[str], bool]] = []
    words: list[str] = []
    is_piped = is_target = False
    for token in tokens:
        if is_target:  # of a redirection
            is_target = False
        elif token and all(char in ";&|()\n" for char in token):
            found.append((words, is_piped))
            words, is_piped = [], token in ("|", "|&")
        elif token and all(char in "<>&|" for char in token):
            if token.startswith("<"):  # a file or a text that is read
                return None
            words, is_target = words[:-1] if words[-1:] and words[-1].isdigit() else words, True
        elif token and all(char in ";&|()<>\n" for char in token):
            return None
        else:
            words.append(token)
    found.append((words, is_piped))
    return [(list(_launched(one)), piped) for one, piped in found if one]


def _launched(words: list[str]) -> Iterator[str]:
    """Yield the words of a command without what only launches it: assignments, `sudo`, `timeout 60`, `uv run`."""
    at = 0
    while at < len(words):
        word = words[at].rpartition("/")[2]
        if _ASSIGNMENT.fullmatch(words[at]) or word in _PREFIXES:
            at += 1
        elif word == "timeout":
            at += 1
            while at < len(words) and (words[at].startswith("-") or _DURATION.fullmatch(words[at])):
                at += 1
        elif word in _LAUNCHERS and words[at + 1 : at + 2] == [_LAUNCHERS[word]]:
            at += 2
        else:
            yield word
            yield from words[at + 1 :]
            return
