"""`seasoned chat`: a coding assistant that learns."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from seasoned.cli.format.output import json_option, wants_json
from seasoned.cli.model_options import example, model_settings, server_options
from seasoned.cli.redact_option import redact_option
from seasoned.errors import counted

if TYPE_CHECKING:
    from seasoned.chat import Assistant
    from seasoned.cli.chat.terminal_screen import TerminalScreen

__all__ = ["chat", "converse", "interruptible"]

_LOCAL_CONTEXT, _CONTEXT = 3_500, 24_000
_LOCAL_ANSWER, _ANSWER = 512, 4_096
_NOT_DONE = 1
_WITH_COMMAND = ("command", "folder", "memory", "redact", "upstream", "mode", "guard")


@click.command(
    context_settings={"allow_interspersed_args": False},  # options after a program are that program's
    epilog=example(
        "seasoned chat --model openai:gpt-4o-mini",
        'seasoned chat --once "run the tests" --allow "make test" --json',
        "seasoned chat -- claude",
    ),
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
@click.option(
    "--model",
    default="local",
    show_default=True,
    metavar="MODEL",
    help="Language model: local, local:PATH.gguf, openai:MODEL, anthropic:MODEL or litellm:PROVIDER/MODEL.",
)
@server_options
@click.option(
    "--folder", "-C", type=click.Path(path_type=Path), default=".", help="Folder in the repository.  [default: here]"
)
@click.option("--memory", metavar="MEMORY", help="Memory of all chats.  [default: ~/.local/state/seasoned/chat.db]")
@redact_option
@click.option("--resume", metavar="SESSION", help="Go on with a session of this repository, or with the `latest`.")
@click.option("--sessions", is_flag=True, help="List the sessions of this repository, and end.")
@click.option("--once", metavar="REQUEST", help="Answer one request, ask nothing, and end: for scripts.")
@json_option
@click.option(
    "--allow",
    multiple=True,
    metavar="KIND",
    help="Permit a kind of action: edit, run, fetch, or narrower, such as 'git commit'. Can be repeated.",
)
@click.option("--recall/--no-recall", default=True, show_default=True, help="Ask the memory before each answer.")
@click.option("--temperature", type=click.FloatRange(min=0), default=0.0, show_default=True, help="Of the model.")
@click.option("--context-tokens", type=click.IntRange(min=1000), help="Largest prompt.  [default: 24000; local 3500]")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Longest answer.  [default: 4096; local 512]")
@click.option("--max-calls", type=click.IntRange(min=1), default=50, show_default=True, help="Answers in one turn.")
@click.option("--upstream", metavar="URL", help="Server of COMMAND's model.  [default: the one that it would call]")
@click.option(
    "--mode",
    type=click.Choice(["observe", "advise", "examples"]),
    default="examples",
    show_default=True,
    help="What memory does with COMMAND's calls of its model.",
)
@click.option(
    "--guard",
    type=click.Choice(["ask", "deny", "off"]),
    default="ask",
    show_default=True,
    help="What a tool call of COMMAND gets that is known to fail here, where hooks can be given (claude, codex).",
)
@click.pass_context
def chat(
    ctx: click.Context,
    /,
    command: tuple[str, ...],
    model: str,
    folder: Path,
    memory: str | None,
    redact: str | None,
    resume: str | None,
    sessions: bool,
    once: str | None,
    allow: tuple[str, ...],
    recall: bool,
    temperature: float,
    context_tokens: int | None,
    max_tokens: int | None,
    max_calls: int,
    upstream: str | None,
    mode: Literal["observe", "advise", "examples"],
    guard: Literal["ask", "deny", "off"],
    **model_options: Any,
) -> None:
    """Work on a repository with a model that learns from you, from tests and builds, and from what lasts in git.

    It reads, writes, edits, searches, runs commands and fetches pages. Before it changes, runs or fetches something of
    a kind that you have not permitted, it asks. Ctrl-C stops it, and keeps what was done; type what to do instead.
    What it learns is kept for each repository apart. /help lists its commands.

    With COMMAND (claude, codex, opencode, or any other that takes a base URL from its environment), that assistant is
    started instead, with its model calls through a gateway that learns from them. At the end you are shown what was
    learned, and asked for one key. Its options are --folder, --memory, --redact, --upstream,
    --mode and --guard.
    """
    _refuse_settings_of_the_folder(ctx)
    redactor = None if redact is None else _redactor(redact)
    if command:
        _refuse_options_of_the_chat(ctx)
        from seasoned.cli.chat.wrapped_command import WrappedOptions, run_wrapped

        answer = None if guard == "off" else guard
        ctx.exit(run_wrapped(command, WrappedOptions(folder, memory, upstream, mode, answer, redactor)))
    if wants_json() and once is None:
        raise click.UsageError("--json is for --once; give a request, or leave it out")
    if once is not None and not once.strip():
        raise click.UsageError("--once is blank; write a request")
    if sessions:
        _list_sessions(folder, memory)
        return
    if once is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("no terminal: a chat needs one; write --once REQUEST in a script")
    is_local = model.partition(":")[0] == "local"
    opened = {
        "folder": folder,
        "memory_path": memory,
        "session": resume,
        "granted": allow,
        "redact": redactor,
        "recalls": recall,
        "context_tokens": context_tokens or (_LOCAL_CONTEXT if is_local else _CONTEXT),
        "max_tokens": max_tokens or (_LOCAL_ANSWER if is_local else _ANSWER),
        "temperature": temperature,
        "max_calls": max_calls,
    }
    if once is None:
        _converse(model, model_settings(model_options), opened)
    else:
        _answer_once(ctx, once, model, model_settings(model_options), opened, as_json=wants_json())


def _redactor(rules: str) -> Callable[[str], str]:
    from seasoned.states.redactor_identity import named_redactor  # the prompt comes before it is loaded

    return named_redactor(rules)


def _refuse_settings_of_the_folder(ctx: click.Context) -> None:
    """Refuse settings of `seasoned.toml` in the working folder, which may come with a repository of somebody else."""
    source = click.core.ParameterSource.DEFAULT_MAP
    given = [name for name in ctx.params if ctx.get_parameter_source(name) == source]
    if given and not os.environ.get("SEASONED_CONFIG"):
        raise click.UsageError(
            f"seasoned.toml of this folder sets {', '.join(given)} of chat, and may be somebody else's. "
            "Remove [chat] from it, or name a file of your own in SEASONED_CONFIG"
        )


def _refuse_options_of_the_chat(ctx: click.Context) -> None:
    """Refuse options that have no meaning for another assistant."""
    given = [
        parameter.opts[0]
        for parameter in ctx.command.params
        if parameter.name not in _WITH_COMMAND
        and ctx.get_parameter_source(parameter.name or "") == click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{', '.join(given)}: not for another assistant; leave it out, or pass it after COMMAND")


def _list_sessions(folder: Path, memory: str | None) -> None:
    from seasoned.chat import ChatLog, default_memory_path, repository_root, sessions_folder
    from seasoned.cli.format.output import printable_line

    path = default_memory_path() if memory is None else memory
    for name, request in ChatLog.sessions(sessions_folder(path, repository_root(folder))):
        click.echo(f"{name}  {printable_line(request)[:100]}")


# ---------------------------------------------------------------------------------------------- one request


def _answer_once(
    ctx: click.Context, request: str, model: str, settings: dict[str, Any], opened: dict[str, Any], *, as_json: bool
) -> None:
    from seasoned.chat import EscapeFilter, ScriptScreen, open_assistant, plain_text
    from seasoned.llms import open_llm

    escapes = EscapeFilter()

    def write(text: str) -> None:
        sys.stdout.write(escapes.add(text))
        sys.stdout.flush()

    screen = ScriptScreen() if as_json else ScriptScreen(write, lambda text: click.echo(plain_text(text), err=True))
    with open_assistant(open_llm(model, **settings), screen, **opened) as assistant:
        asyncio.run(_once(assistant, request))
        report = assistant.last
        if report is None:  # interrupted before it began
            raise KeyboardInterrupt
        if as_json:
            click.echo(json.dumps({"session": assistant.log.session, **report.record()}, ensure_ascii=False))
    if report.error is not None:
        raise report.error
    if report.ended == "interrupted":
        raise KeyboardInterrupt
    if report.ended != "done":
        ctx.exit(_NOT_DONE)


async def _once(assistant: Assistant, request: str) -> None:
    try:
        await interruptible(assistant.turn(request))
    finally:
        await assistant.toolbox.aclose()
        await assistant.llm.aclose()


# ---------------------------------------------------------------------------------------------- a conversation


def _converse(model: str, settings: dict[str, Any], opened: dict[str, Any]) -> None:
    from seasoned.chat import default_memory_path, repository_root, sessions_folder
    from seasoned.cli.chat.terminal_screen import TerminalScreen

    path = default_memory_path() if opened["memory_path"] is None else opened["memory_path"]
    folder = sessions_folder(path, repository_root(opened["folder"]))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    asyncio.run(converse(TerminalScreen(folder / "requests.txt"), model, settings, opened))


async def converse(screen: TerminalScreen, model: str, settings: dict[str, Any], opened: dict[str, Any]) -> None:
    """Answer the user's requests until the user ends the chat.

    The first prompt comes before the memory and the model's client are loaded, unless a session is resumed.

    Args:
        screen: a terminal.
        model: its specification.
        settings: of the model, and of one that `/model` opens.
        opened: arguments of `open_assistant`.
    """
    from seasoned.chat import repository_root

    loaded = asyncio.create_task(asyncio.to_thread(importlib.import_module, "seasoned.chat.slash_commands"))
    first: str | None = None
    if opened.get("session") is None:
        screen.line(f"{repository_root(opened['folder']).name}: {model}. /help lists commands, Ctrl-D ends.", "dim")
        with contextlib.suppress(EOFError):
            first = await screen.request()
        if first is None:
            await loaded
            return
    await loaded
    from seasoned.chat import SlashCommands, open_assistant
    from seasoned.llms import open_llm

    with open_assistant(open_llm(model, **settings), screen, **opened) as assistant:
        commands = SlashCommands(assistant, lambda spec: open_llm(spec, **settings))
        screen.keep_requests(assistant.memory.session.redaction.query)
        screen.line(_greeting(assistant), "dim")
        try:
            while True:
                try:
                    line = first if first is not None else await screen.request()
                except EOFError:
                    break
                first = None
                if line.startswith("/"):
                    if not await interruptible(commands.run(line), True):
                        break
                elif line.strip():
                    await interruptible(assistant.turn(line))
        finally:
            assistant.judge_files()
            await assistant.toolbox.aclose()
            await assistant.llm.aclose()


def _greeting(assistant: Assistant) -> str:
    known = counted(assistant.memory.stats().episodes, "episode")
    turns = len(assistant.log.turns)
    resumed = f", {counted(turns, 'turn')} so far" if turns else ""
    fence = "" if assistant.toolbox.is_fenced else "; commands are not fenced on this system"
    return f"{known} of this repository known; session {assistant.log.session}{resumed}{fence}"


async def interruptible(work: Coroutine[Any, Any, Any], otherwise: Any = None) -> Any:
    """Return what the work returns; Ctrl-C cancels the work alone, and SIGTERM or a closed terminal everything."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    caller = asyncio.current_task()

    def stop() -> None:
        task.cancel()
        if caller is not None:
            loop.call_soon(caller.cancel)

    signals: dict[int, Callable[[], object]] = {signal.SIGINT: task.cancel, signal.SIGHUP: stop}
    for number, handler in signals.items():
        with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
            loop.add_signal_handler(number, handler)
    try:
        return await task
    except asyncio.CancelledError:
        if caller is not None and caller.cancelling():
            raise
        return otherwise
    finally:
        for number in signals:
            with contextlib.suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(number)
