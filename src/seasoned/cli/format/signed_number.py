"""A number that may begin with a minus, in commands whose options may be misspelt in its place."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["SignedNumber"]


class SignedNumber(click.types.FloatParamType):
    """A float, where `-1` must not be read as an option: what is neither is an option that does not exist."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or refuse a misspelt option with the closest one."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            if ctx is None or not str(value).startswith("-"):
                raise
            from difflib import get_close_matches  # for misspellings only

            known = [name for one in ctx.command.params if isinstance(one, click.Option) for name in one.opts]
            close = get_close_matches(str(value), known, n=1)
            raise click.NoSuchOption(str(value), possibilities=close, ctx=ctx) from None
