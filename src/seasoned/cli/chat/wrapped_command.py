"""`seasoned chat -- COMMAND ...`: another assistant behind a gateway of its own, for one process alone."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal

import click

from seasoned.errors import SeasonedError

__all__ = ["WrappedOptions", "run_wrapped"]

_KEYS = {"g": "good", "b": "bad", "c": "correct"}
_NO_HOOKS = "no guard: hooks are given to claude and codex alone, without settings or hooks of your own as arguments"
_KILLED = 128  # and the signal's number: the exit code by which shells name a signal


@dataclass(frozen=True, slots=True)
class WrappedOptions:
    """Options of `seasoned chat -- COMMAND`.

    Args:
        folder: in the repository.
        memory_path: of the memory; None: that of all chats.
        upstream: URL of the model's server; None: the one that the assistant would call.
        mode: what memory does with the assistant's calls of its model.
        guard: what a tool call gets that is known to fail; None: nothing.
        redact: rewrites every text before it is written to disk; None: what the repository's namespace records.
    """

    folder: Path
    memory_path: str | None
    upstream: str | None
    mode: Literal["observe", "advise", "examples"]
    guard: Literal["ask", "deny"] | None = "ask"
    redact: Callable[[str], str] | None = None


def run_wrapped(command: Sequence[str], options: WrappedOptions) -> int:
    """Run an assistant behind a gateway, show what was learned, ask for one key, and return the assistant's exit code.

    Raises:
        SeasonedError: the assistant could not be started.
    """
    from seasoned.chat import default_memory_path, repository_root
    from seasoned.chat.wrapped.assistant_launch import assistant_launch, model_api, upstream_of
    from seasoned.chat.wrapped.session_gateway import session_gateway
    from seasoned.chat.wrapped.session_guard import session_guard

    root = repository_root(options.folder)
    path = default_memory_path() if options.memory_path is None else options.memory_path
    api = model_api(command, os.environ)
    upstream = options.upstream or upstream_of(api, os.environ)
    session = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    with (
        session_gateway(path, root, session, upstream, mode=options.mode, redact=options.redact) as url,
        session_guard(path, root, session, _answer(command, options), redact=options.redact) as (hooks, tally),
    ):
        launch = assistant_launch(command, api, url, session, os.environ, hooks=hooks)
        code = _run(launch.command, launch.environment, options.folder)
    try:
        guarded = tally.line if launch.has_hooks else _NO_HOOKS
        _conclude(path, root, session, guarded, options.redact)
    except SeasonedError as error:  # the exit code stays the assistant's
        click.echo(f"seasoned: {error}", err=True)
    return code


def _answer(command: Sequence[str], options: WrappedOptions) -> Literal["ask", "deny"] | None:
    """Return what a doomed call gets: only Claude Code knows a hook that asks its user."""
    return "deny" if options.guard == "ask" and Path(command[0]).name != "claude" else options.guard


def _run(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> int:
    """Run the assistant on this terminal; Ctrl-C is its own, and the other signals are passed on."""
    process = subprocess.Popen(command, env=environment, cwd=folder)  # noqa: S603, it is what the user wrote
    with process, _passing_on(process):
        code = process.wait()
    return code if code >= 0 else _KILLED - code


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        if number != signal.SIGINT:  # a terminal sends Ctrl-C to both
            process.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _conclude(
    path: str | os.PathLike[str], root: Path, session: str, guarded: str, redact: Callable[[str], str] | None
) -> None:
    """Show what was learned and what the guard did, and ask how it went; a script is asked nothing."""
    from seasoned.chat import chat_memory, plain_text
    from seasoned.chat.wrapped.session_report import give_verdict, session_report

    with chat_memory(path, root, redact=redact) as memory:
        report = session_report(memory, session)
        for line in filter(None, [*report.lines(), guarded]):
            click.echo(plain_text(f"seasoned: {line}"), err=True)
        if report.last is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        click.echo(
            "seasoned: How did the last request go? [g] good  [b] bad  [c] correct  [any other key] skip", err=True
        )
        with contextlib.suppress(KeyboardInterrupt, EOFError, click.Abort):
            verdict = _KEYS.get(click.getchar().lower())
            words = None
            if verdict == "correct":
                words = click.prompt("What would have been right", err=True).strip()
            if verdict is not None:
                give_verdict(memory, report.last, verdict, words)
                click.echo("seasoned: thank you", err=True)
