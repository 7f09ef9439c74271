"""Option that names the rules of a redactor, without loading one: the prompt of a chat comes before."""

from __future__ import annotations

import click

from seasoned.states.secret_patterns import RULES

__all__ = ["redact_option"]

redact_option = click.option(
    "--redact", metavar="RULES", help=f"Replace secrets before anything is stored: {','.join(RULES)}, or all."
)
