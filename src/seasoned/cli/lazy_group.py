"""Command group that imports a command when it is called, and lists its commands under headings."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from typing import Any

import click

from seasoned.checks import suggest
from seasoned.cli.exit_codes import closed_pipe_ends, finish
from seasoned.config import check_names, load_settings

__all__ = ["LazyGroup"]

_OTHER = "Other commands"
_MAX_SUMMARY_CHARS = 200  # a longer line is wrapped, not cut


class LazyGroup(click.Group):
    """A group that imports a command when it is called, or when `--help` lists it; ends with our exit codes.

    Args:
        headings: heading of the help to its commands, each a name and a `package.module:attribute`. A command whose
            module is not installed is left out.
    """

    def __init__(self, *args: Any, headings: Mapping[str, Mapping[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._headings = headings
        self._paths = {name: path for commands in headings.values() for name, path in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the installed commands, sorted."""
        return sorted({*super().list_commands(ctx), *filter(self._is_installed, self._paths)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if there is none of this name."""
        if cmd_name not in self._paths or not self._is_installed(cmd_name):
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._paths[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        if ctx.parent is None:
            _check_settings(cmd_name, command, (ctx.default_map or {}).get(cmd_name, {}))
        return command

    def _is_installed(self, name: str) -> bool:
        return importlib.util.find_spec(self._paths[name].partition(":")[0]) is not None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of the help, each with its summary, under their headings."""
        installed = self.list_commands(ctx)
        width = max(map(len, installed), default=0)
        others = [name for name in installed if name not in self._paths]
        for heading, names in (*self._headings.items(), (_OTHER, others)):
            rows = []
            for name in names:
                command = self.get_command(ctx, name) if name in installed else None
                if command is not None and not command.hidden:
                    rows.append((name.ljust(width), command.get_short_help_str(_MAX_SUMMARY_CHARS)))
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command to call; the error for an unknown name suggests another one, or its group."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand:
            name, known = args[0], self.list_commands(ctx)
            groups = ((group, self.get_command(ctx, group)) for group in known)
            within = [group for group, one in groups if isinstance(one, click.Group) and name in one.list_commands(ctx)]
            hint = f"Write: {ctx.command_path} {within[0]} {name}." if within else suggest(name, known)
            raise click.UsageError(f"no command {name!r}. {hint}", ctx) from None

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments; a closed pipe (`--help | head -1`) ends quietly."""
        if parent is None:
            extra["default_map"] = load_settings()
            check_names("", extra["default_map"], self._paths)
        with closed_pipe_ends():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command; a closed pipe ends quietly. The value that a command returns is no exit code."""
        with closed_pipe_ends():
            super().invoke(ctx)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and exit with a code that tells the kind of error; see `seasoned --help`."""
        run = super().main
        sys.exit(finish(lambda: run(*args, **{**kwargs, "standalone_mode": False})))


def _check_settings(section: str, command: click.Command, settings: object) -> None:
    """Refuse settings that are no option of `command`; ConfigError suggests the closest option."""
    ctx = click.Context(command)
    names = command.list_commands(ctx) if isinstance(command, click.Group) else []
    options = [option.name for option in command.params if isinstance(option, click.Option) and option.name]
    check_names(section, settings, [*names, *options])
    if isinstance(command, click.Group) and isinstance(settings, Mapping):
        for name in names:
            if name in settings and (inner := command.get_command(ctx, name)) is not None:
                _check_settings(f"{section}.{name}", inner, settings[name])
