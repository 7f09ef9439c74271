"""Options of a model's server, and the examples of a command's help: what loads no model, memory or environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

__all__ = ["example", "model_settings", "server_options"]


def example(*lines: str) -> str:
    """Return the last part of a command's help: example calls, one a line."""
    return "\n".join(["\b", "Example:", *(f"  {line}" for line in lines)])


_SERVER_OPTIONS = (
    click.option("--base-url", metavar="URL", help="Address of an OpenAI-compatible server, with its version path."),
    click.option(
        "--usd-per-million-prompt-tokens",
        type=float,
        metavar="USD",
        help="Price of a million prompt tokens. The cost is known if both prices are given.",
    ),
    click.option(
        "--usd-per-million-completion-tokens", type=float, metavar="USD", help="Price of a million completion tokens."
    ),
)


def server_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the address and the prices of a model; see `model_settings`."""
    for option in reversed(_SERVER_OPTIONS):
        command = option(command)
    return command


def model_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given: a kind of model refuses a setting that it does not have."""
    return {name: value for name, value in options.items() if value is not None}
