"""The root of the command line: `seasoned`."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import signal
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import click

import seasoned
from seasoned.checks import suggest
from seasoned.cli.exit_codes import closed_pipe_ends, exit_codes_help, finish
from seasoned.config import ENV_PREFIX, check_names, load_settings

__all__ = ["LazyGroup", "cli", "main"]

COMMANDS = {
    "demo": "seasoned.cli.demo:demo",
    "lab": "seasoned.cli.lab:lab",
    "memory": "seasoned.cli.memory.group:memory",
    "run": "seasoned.cli.run:run",
    "serve": "seasoned.cli.serve:serve",
}


class LazyGroup(click.Group):
    """A group that imports a command when it is called, or when `--help` lists it; ends with our exit codes.

    Args:
        paths: command name to `package.module:attribute`. A name whose module is not installed is no command.
    """

    def __init__(self, *args: Any, paths: dict[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._paths = paths

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands that are there."""
        return sorted({*super().list_commands(ctx), *filter(self._module_is_there, self._paths)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, imported now; None if there is none of this name."""
        if cmd_name not in self._paths or not self._module_is_there(cmd_name):
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._paths[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        check_settings(cmd_name, command, (ctx.default_map or {}).get(cmd_name, {}))
        return command

    def _module_is_there(self, name: str) -> bool:
        return importlib.util.find_spec(self._paths[name].partition(":")[0]) is not None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a name that is not known gets the closest one as advice."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand:
            known = self.list_commands(ctx)
            raise click.UsageError(f"no command {args[0]!r}. {suggest(args[0], known)}", ctx) from None

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse; a closed pipe (`--help | head -1`) ends quietly."""
        if parent is None:
            extra["default_map"] = load_settings()
            check_names("", extra["default_map"], self._paths)
        with closed_pipe_ends():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> None:
        """Run; a closed pipe ends quietly. What a command returns is no exit code."""
        with closed_pipe_ends():
            super().invoke(ctx)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run and exit with a code that says how it went; see `seasoned --help`."""
        run = super().main
        sys.exit(finish(lambda: run(*args, **{**kwargs, "standalone_mode": False})))


def check_settings(section: str, command: click.Command, given: object) -> None:
    """Refuse settings that no option of `command` reads; ConfigError names the closest one."""
    commands = command.commands if isinstance(command, click.Group) else {}
    options = [option.name for option in command.params if isinstance(option, click.Option) and option.name]
    check_names(section, given, [*commands, *options])
    for name, inner in commands.items():
        if isinstance(given, Mapping) and name in given:
            check_settings(f"{section}.{name}", inner, given[name])


@click.command(
    "seasoned",
    cls=LazyGroup,
    paths=COMMANDS,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "auto_envvar_prefix": ENV_PREFIX,
    },
    epilog=exit_codes_help(),
)
@click.version_option(seasoned.__version__, prog_name="seasoned", message="%(prog)s %(version)s")
def cli() -> None:
    """Agents that learn from their own episodes at inference time, with no gradient update.

    Every option can also be set by an environment variable (SEASONED_RUN_MODEL) or in seasoned.toml (a table [run] with
    a key model).

    Example: seasoned memory stats agent.db
    """


def main() -> None:
    """Run the `seasoned` command of the shell."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character gets its number, not a traceback.
            with contextlib.suppress(io.UnsupportedOperation):
                stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    # A polite request to stop becomes a Ctrl-C, which a running event loop knows how to take: the episode in flight is
    # kept, marked aborted.
    signal.signal(signal.SIGTERM, _interrupt)
    cli.main(prog_name="seasoned")


def _interrupt(*_: object) -> None:
    """Pass a request to stop on as Ctrl-C; a shell starts its background jobs deaf to that, but not to this."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
