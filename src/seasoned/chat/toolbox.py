"""The tools of a chat: read, write, edit, search, run, fetch, ask; each under the permissions of its user."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seasoned.actions import call_action, parse_tool_call
from seasoned.chat.chat_screen import ChatScreen, TurnInterrupt
from seasoned.chat.file_change import FileChange, text_reward
from seasoned.chat.permission_kinds import EDIT, FETCH, RUN, Permissions, RequestedAction, command_request
from seasoned.chat.repository import Repository, git_folders
from seasoned.chat.terminal_text import plain_text
from seasoned.chat.web_page import fetch_page, page_address
from seasoned.checks import suggest
from seasoned.errors import InputError, SeasonedError, excerpt
from seasoned.protocols import Tool, ToolCall
from seasoned.types import Edit, Feedback, Score

if TYPE_CHECKING:
    from seasoned.envs.shell.shell import Shell

__all__ = ["INVALID", "TOOLS", "ToolOutcome", "Toolbox"]

INVALID = "invalid_arguments"
"""The argument that stands for arguments which are no JSON object."""

MAX_RESULT_CHARS = 16_000
_MAX_REDIRECTS = 5
_ONE_EDIT = 50_000  # characters of an edited call, so that its distance is soon computed


def _tool(name: str, words: str, **parameters: str) -> Tool:
    """Return a tool; its parameters are texts, or whole numbers (`int: ...`); a name with `_` may be left out."""
    properties = {
        key.rstrip("_"): {
            "type": "integer" if said.startswith("int: ") else "string",
            "description": said.removeprefix("int: "),
        }
        for key, said in parameters.items()
    }
    required = [key for key in parameters if not key.endswith("_")]
    return Tool(name, words, {"type": "object", "properties": properties, "required": required})


TOOLS = (
    _tool(
        "read_file",
        "Return a text file of the repository, with line numbers.",
        path="relative to the repository",
        first_line_="int: 1 if left out",
        n_lines_="int: 400 if left out",
    ),
    _tool(
        "write_file", "Create a file, or replace it as a whole.", path="relative to the repository", content="all of it"
    ),
    _tool(
        "edit_file",
        "Replace a text that occurs exactly once in a file.",
        path="relative to the repository",
        old="the text, with enough lines around it to be unique; without line numbers",
        new="the text in its place",
    ),
    _tool(
        "search",
        "Return the lines of files, and the paths, in which a pattern occurs.",
        pattern="a text, or a regular expression without * and +",
        path_="a folder or file; the whole repository if left out",
    ),
    _tool(
        "run", "Run a shell command in the repository's root, and return its output and exit code.", command="for sh -c"
    ),
    _tool("fetch", "Return the text of a web page.", url="http or https"),
    _tool("ask_user", "Ask the user a question, when you cannot find out or decide.", question="one question"),
)
"""The tools, as a model is told of them."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool call came to.

    Args:
        text: the result, for the model.
        is_error: whether the call could not be done.
        denied: the kinds that the user did not permit.
        change: of a file.
        feedback: of the user on the call.
        exit_code: of a command.
    """

    text: str
    is_error: bool = False
    denied: tuple[str, ...] = ()
    change: FileChange | None = None
    feedback: Feedback | None = None
    exit_code: int | None = None


class Toolbox:
    """Carries out tool calls in one repository.

    Commands run in `seasoned.envs.Shell`, which on Linux lets them write in the repository alone.

    Args:
        repository: where.
        permissions: of the session.
        screen: asks the user.
        timeout_s: of one command.

    Attributes:
        on_change: called before a change is written, so that it can be undone after a crash; it returns a function that
            takes this back, for a change that could not be written.
    """

    def __init__(
        self, repository: Repository, permissions: Permissions, screen: ChatScreen, *, timeout_s: float = 120.0
    ) -> None:
        self.repository, self.permissions, self.screen = repository, permissions, screen
        self.on_change: Callable[[FileChange], Callable[[], object]] = lambda _: lambda: None
        self._timeout_s = timeout_s
        self._shells: dict[tuple[bool, tuple[Path, ...]], Shell] = {}
        self._tools: dict[str, Callable[..., Awaitable[ToolOutcome]]] = {
            "read_file": self._read_file,
            "write_file": self._write_file,
            "edit_file": self._edit_file,
            "search": self._search,
            "run": self._run,
            "fetch": self._fetch,
            "ask_user": self._ask_user,
        }

    @functools.cached_property
    def is_fenced(self) -> bool:
        """Whether the kernel keeps commands from writing outside of the repository."""
        from seasoned.envs.shell.supervisor import landlock_version

        return landlock_version() > 0

    async def call(self, call: ToolCall) -> ToolOutcome:
        """Carry out a call; one that is not valid, or fails, has an outcome that says why.

        Raises:
            TurnInterrupt: the user has interrupted the turn at a question.
        """
        try:
            arguments = _checked(call)
            return await self._tools[call.name](**arguments)
        except SeasonedError as error:
            return ToolOutcome(f"error: {plain_text(str(error))}", is_error=True)
        except TurnInterrupt:
            raise
        except Exception as error:  # an argument that nobody thought of ends the call, and not the chat
            return ToolOutcome(f"error: {plain_text(f'{type(error).__name__}: {error}')}", is_error=True)

    async def aclose(self) -> None:
        """Kill running commands, and remove the shells' own folders."""
        while self._shells:
            await self._shells.popitem()[1].aclose()

    # ------------------------------------------------------------------------------------------ files

    async def _git_refusal(self, path: str) -> ToolOutcome | None:
        """Ask for reading git's own files, each time; return the outcome if it is not permitted."""
        if not self.repository.is_of_git(path):
            return None
        question = f"Read {excerpt(plain_text(path), 200)} (hooks, and a configuration that may have keys)?"
        answer = await self.screen.choose(question, {"y": "yes", "n": "no"}, "n")
        return None if answer == "y" else self._denied((f"read {path}",), answer)

    async def _read_file(self, path: str, first_line: int = 1, n_lines: int = 400) -> ToolOutcome:
        if refusal := await self._git_refusal(path):
            return refusal
        lines = self.repository.read(path).splitlines()
        first = max(1, first_line)
        shown = lines[first - 1 : first - 1 + max(1, n_lines)]
        text = "\n".join(f"{number:>5}  {line}" for number, line in enumerate(shown, first))
        rest = len(lines) - (first - 1 + len(shown))
        more = f"\n({rest} more lines)" if rest > 0 else ""
        return ToolOutcome((_cut(plain_text(text)) or "(empty)") + more)

    async def _search(self, pattern: str, path: str = ".") -> ToolOutcome:
        if refusal := await self._git_refusal(path):
            return refusal
        found = await asyncio.to_thread(self.repository.search, pattern, path)
        return ToolOutcome(_cut(plain_text("\n".join(found))) or "(nothing found)")

    async def _write_file(self, path: str, content: str) -> ToolOutcome:
        before = self.repository.read_or_none(path)
        change = FileChange(self.repository.name(self.repository.path(path)), before, content)
        return await self._change(change, lambda text: call_action("write_file", {"path": path, "content": text}))

    async def _edit_file(self, path: str, old: str, new: str) -> ToolOutcome:
        before = self.repository.read(path)
        if "\r\n" in before:  # the model is shown lines without their ends
            old, new = (text.replace("\r\n", "\n").replace("\n", "\r\n") for text in (old, new))
        times = before.count(old) if old else 0
        if times != 1:
            seen = f"old = {excerpt(old)} occurs {times} times in {excerpt(path)}"
            raise InputError(seen, "the text to replace occurs exactly once", "Read the file, and take more lines.")
        head, _, tail = before.partition(old)
        change = FileChange(self.repository.name(self.repository.path(path)), before, head + new + tail)

        def edited(text: str) -> str | None:
            if not (text.startswith(head) and text.endswith(tail) and len(text) >= len(head) + len(tail)):
                return None
            return call_action("edit_file", {"path": path, "old": old, "new": text[len(head) : len(text) - len(tail)]})

        return await self._change(change, edited)

    async def _change(self, change: FileChange, edited_call: Callable[[str], str | None]) -> ToolOutcome:
        """Write a change that the user permits, maybe after an edit."""
        if change.before == change.after:
            return ToolOutcome("the file has this text already")
        written, feedback = change, None
        self.screen.diff(change.diff())
        if self.permissions.missing(RequestedAction((EDIT,)), EDIT):
            options = {"y": "yes", "a": "yes, and all later changes", "e": "edit it first", "n": "no"}
            answer = await self.screen.choose(f"Write {change.path} ({change.counts})?", options, "n")
            if answer == "e":
                text = await self.screen.edit(change.after or "", change.path)
                if text is None:
                    return self._denied((EDIT,), "n")
                if text != change.after:
                    written = FileChange(change.path, change.before, text)
                    feedback = _edit_feedback(change, text, edited_call(text))
            elif answer == "a":
                self.permissions.grant([EDIT])
            elif answer != "y":
                return self._denied((EDIT,), answer)
        if written.before != written.after:
            take_back = self.on_change(written)
            try:
                self.repository.replace(change.path, written.before, written.after)
            except BaseException:
                take_back()
                raise
        said = f"wrote {written.path} ({written.counts})"
        if feedback is not None:
            said += (
                "; the user edited the change first:\n" + FileChange(written.path, change.after, written.after).diff()
            )
        return ToolOutcome(_cut(said), change=written, feedback=feedback)

    # ------------------------------------------------------------------------------------------ commands

    async def _run(self, command: str) -> ToolOutcome:
        self.screen.line(f"$ {command}", "strong")
        request = command_request(command, self.repository.root)
        missing = self.permissions.missing(request, RUN)
        fenced = self.is_fenced
        if missing:
            options = {"y": "yes"}
            if request.lasting:
                options["a"] = f"always: {', '.join(missing)}"
            if fenced:
                options["o"] = "yes, and it may write outside the repository"
            options["n"] = "no"
            why = f" ({request.reason})" if request.reason else ""
            answer = await self.screen.choose(f"Run {excerpt(plain_text(command), 200)}{why}?", options, "n")
            if answer == "a" and request.lasting:
                self.permissions.grant(missing)
            elif answer == "o" and fenced:
                fenced = False
            elif answer != "y":
                return self._denied(missing, answer)
        # Git alone writes to the git folder of a linked worktree; no other command beside it gets in there.
        is_git = bool(request.kinds) and all(kind.startswith("git ") for kind in request.kinds) and request.lasting
        result = await self._shell(fenced, self._git_folders if fenced and is_git else ()).run(command)
        text = plain_text(result.output).strip("\n")
        ended = (
            f"exit code: {result.exit_code}" if result.ended == "exited" else f"exit code: 124\nstopped: {result.ended}"
        )
        self.screen.line("\n".join([*text.splitlines()[-12:], ended]), "dim")
        return ToolOutcome(f"{_cut(text)}\n{ended}".lstrip("\n"), exit_code=result.exit_code)

    @functools.cached_property
    def _git_folders(self) -> tuple[Path, ...]:
        return git_folders(self.repository.root)

    def _shell(self, fenced: bool, more: tuple[Path, ...] = ()) -> Shell:
        from seasoned.envs.shell.shell import Shell, ShellLimits  # loaded with the first command

        if (fenced, more) not in self._shells:
            root = self.repository.root
            names = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "GOPATH", "JAVA_HOME", "CARGO_HOME", "RUSTUP_HOME")
            env = {name: os.environ[name] for name in names if os.environ.get(name)}
            git = Path("~/.gitconfig").expanduser()
            if git.is_file():
                env["GIT_CONFIG_GLOBAL"] = str(git)
            limits = ShellLimits(timeout_s=self._timeout_s, max_output_bytes=MAX_RESULT_CHARS)
            writable = [root, *more] if fenced else None
            self._shells[fenced, more] = Shell(root, limits=limits, env=env, writable=writable)
        return self._shells[fenced, more]

    # ------------------------------------------------------------------------------------------ the world

    async def _fetch(self, url: str) -> ToolOutcome:
        for _ in range(_MAX_REDIRECTS):
            address = await asyncio.to_thread(page_address, url)
            kind = f"fetch {address.host}"
            reason = "" if address.is_public else "it is no public address"
            missing = self.permissions.missing(RequestedAction((kind,), reason, lasting=address.is_public), FETCH)
            self.screen.line(f"fetch {address.url}", "strong")
            if missing:
                options = {"y": "yes", **({"a": f"always: {kind}"} if address.is_public else {}), "n": "no"}
                why = f" ({reason})" if reason else ""
                answer = await self.screen.choose(f"Fetch {excerpt(address.url, 200)}{why}?", options, "n")
                if answer == "a" and address.is_public:
                    self.permissions.grant(missing)
                elif answer != "y":
                    return self._denied(missing, answer)
            page = await asyncio.to_thread(fetch_page, address)
            if page.redirect is None:
                return ToolOutcome(f"HTTP {page.status}\n{_cut(plain_text(page.text))}", is_error=page.status >= 400)
            url = page.redirect
        raise InputError(f"url {excerpt(url)}", f"a page redirects at most {_MAX_REDIRECTS} times", "Take another one.")

    async def _ask_user(self, question: str) -> ToolOutcome:
        answer = await self.screen.ask(plain_text(question))
        if answer is None:
            return ToolOutcome("nobody is there to answer: decide yourself, and say what you assumed")
        return ToolOutcome(f"the user answers: {plain_text(answer)}")

    def _denied(self, kinds: tuple[str, ...], answer: str) -> ToolOutcome:
        """Return the outcome of a call that was not permitted; an answer that is no key says what to do instead."""
        if not self.screen.is_interactive:
            said = f"denied: nobody is there to permit it; --allow {kinds[0]!r} would"
        elif answer in ("", "n"):
            said = "denied by the user"
        else:
            said = f"denied by the user, who says: {plain_text(answer)}"
        self.screen.line(said, "bad")
        return ToolOutcome(said, denied=kinds)


def _checked(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call.

    Raises:
        InputError: there is no such tool, or the arguments do not fit it.
    """
    names = [tool.name for tool in TOOLS]
    if call.name not in names:
        raise InputError(f"tool {excerpt(call.name)}", "there is no such tool", suggest(call.name, names))
    schema: Mapping[str, Any] = next(tool.parameters for tool in TOOLS if tool.name == call.name)
    known: Mapping[str, Mapping[str, str]] = schema["properties"]
    given = dict(parse_tool_call({"name": call.name, "arguments": call.arguments}).arguments)
    if set(given) == {INVALID}:
        raise InputError(f"arguments {excerpt(given[INVALID])}", "they are one JSON object", "Correct the call.")
    for key, value in given.items():
        if key not in known:
            raise InputError(f"argument {excerpt(key)} of {call.name}", "it has no such argument", suggest(key, known))
        if known[key]["type"] == "integer" and isinstance(value, float | str):
            with contextlib.suppress(ValueError, OverflowError):
                given[key] = int(value)
        is_right = isinstance(given[key], str if known[key]["type"] == "string" else int) and not isinstance(
            value, bool
        )
        if not is_right:
            rule = f"it must be a {'text' if known[key]['type'] == 'string' else 'whole number'}"
            raise InputError(f"argument {key} of {call.name} = {excerpt(value)}", rule, "Correct the call.")
    for key in schema["required"]:
        if key not in given:
            raise InputError(f"{call.name} without {key}", f"it needs {', '.join(schema['required'])}", "Add it.")
    return given


def _edit_feedback(change: FileChange, text: str, edited_call: str | None) -> Feedback:
    """Return a user's edit as feedback: with the edited call where there is one, else its reward alone."""
    if edited_call is not None and len(text) + len(change.after or "") <= _ONE_EDIT:
        return Edit(edited_call, comment="edited before it was written")
    return Score(text_reward(change.after or "", text), comment="edited before it was written")


def _cut(text: str) -> str:
    """Return a text without its middle, if it is too long for a prompt."""
    if len(text) <= MAX_RESULT_CHARS:
        return text
    half = MAX_RESULT_CHARS // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
