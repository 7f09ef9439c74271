"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from seasoned.cli.model_options import example, model_settings, server_options
from seasoned.cli.redact_option import redact_option
from seasoned.envs import ENVIRONMENTS
from seasoned.llms import LLM_SPECIFICATIONS
from seasoned.policies import PRESETS

__all__ = [
    "SignedNumber",
    "encoder_option",
    "env_option",
    "example",
    "holdout_option",
    "model_option",
    "model_settings",
    "namespace_option",
    "overwrite_option",
    "policy_option",
    "redact_option",
    "seed_option",
    "server_options",
]


namespace_option = click.option(
    "--namespace", "-n", metavar="NAME", help="Namespace in the memory; needed if there are several."
)
holdout_option = click.option(
    "--holdout/--no-holdout",
    default=True,
    show_default=True,
    help="Make a share of the decisions without memory, so that its lift is measured.",
)
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace the target if it exists.")
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all random draws."
)


def policy_option(*names: str, text: str = "Policy preset.") -> Callable[..., Any]:
    """Return the option that names a policy: one of `names`, or a preset; `text` is its help."""
    return click.option(
        "--policy", default="default", show_default=True, type=click.Choice([*names, *sorted(PRESETS)]), help=text
    )


def env_option(**attributes: Any) -> Callable[..., Any]:
    """Return the option that names an environment; `attributes` are those of a click option."""
    text = f"Environment, KIND:TARGET?OPTION=VALUE. Kinds: {', '.join(ENVIRONMENTS.names())}."
    return click.option("--env", metavar="ENV", help=text, **attributes)


def encoder_option(when: str, default: str = "words") -> Callable[..., Any]:
    """Return the option that names the encoder of a new memory; `when` begins its help."""
    meanings = {
        "words": "",
        "masked": "numbers, ids and times are hidden",
        "transcript": "conversations, as imports write them",
    }
    meanings[default] = ", ".join(filter(None, (meanings[default], "the default")))
    names = "; ".join(f"{name} ({meaning})" if meaning else name for name, meaning in meanings.items())
    return click.option(
        "--encoder",
        metavar="ENCODER",
        help=f"{when}: how states are compared. {names}; or an identity, as `seasoned memory namespaces` prints it.",
    )


# ---------------------------------------------------------------------------------------------- models


def model_option(*others: str) -> Callable[..., Any]:
    """Return the option that names a model: one that `open_llm` opens, or one of `others`."""
    *forms, last = [*LLM_SPECIFICATIONS, *others]
    text = f"Language model: {', '.join(forms)} or {last}."
    return click.option("--model", default="local", show_default=True, metavar="MODEL", help=text)


# ---------------------------------------------------------------------------------------------- numbers


class SignedNumber(click.types.FloatParamType):
    """A float that may be negative, for a command with `ignore_unknown_options`: `-1` is a number, not an option."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; refuse a misspelt option, and suggest the closest one."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            if ctx is None or not str(value).startswith("-"):
                raise
            from difflib import get_close_matches  # for misspellings only

            known = [name for one in ctx.command.params if isinstance(one, click.Option) for name in one.opts]
            close = get_close_matches(str(value), known, n=1)
            raise click.NoSuchOption(str(value), possibilities=close, ctx=ctx) from None
