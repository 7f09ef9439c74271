"""Root of the command line: `seasoned`."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
import warnings

import click

import seasoned
from seasoned.cli.exit_codes import exit_codes_help
from seasoned.cli.lazy_group import LazyGroup
from seasoned.config import ENV_PREFIX

__all__ = ["cli", "main"]

HEADINGS = {
    "Play": {"demo": "seasoned.cli.demo:demo", "run": "seasoned.cli.run:run", "lab": "seasoned.cli.lab:lab"},
    "Work": {"chat": "seasoned.cli.chat.chat_command:chat"},
    "Use a memory": {
        "memory": "seasoned.cli.memory.group:memory",
        "lift": "seasoned.cli.lift:lift",
        "serve": "seasoned.cli.serve:serve",
        "mcp": "seasoned.cli.mcp:mcp",
    },
}
"""To add a command: a file of its name in this folder, and its line here."""


@click.command(
    "seasoned",
    cls=LazyGroup,
    headings=HEADINGS,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "auto_envvar_prefix": ENV_PREFIX,
    },
    epilog=exit_codes_help(),
)
@click.version_option(seasoned.__version__, prog_name="seasoned", message="%(prog)s %(version)s")
def cli() -> None:
    """Agents that learn from their own episodes at inference time, without training the model.

    Every option can also be set by an environment variable (SEASONED_RUN_MODEL) or in seasoned.toml (key model of the
    table [run]).

    Example: seasoned memory stats agent.db
    """


def main() -> None:
    """Run the `seasoned` command of the shell."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character gets its code point, not a traceback.
            with contextlib.suppress(io.UnsupportedOperation):
                stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    # SIGTERM becomes Ctrl-C, which a running event loop handles: the episode in flight is stored as aborted.
    signal.signal(signal.SIGTERM, _interrupt)
    cli.main(prog_name="seasoned")


def _interrupt(*_: object) -> None:
    """Turn SIGTERM into Ctrl-C. A shell starts its background jobs with SIGINT ignored, but not SIGTERM."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
