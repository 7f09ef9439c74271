"""Permissions of a token: its scopes, and the author and the weight of its feedback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seasoned.checks import check_number
from seasoned.errors import InputError, excerpt
from seasoned.service.bearer_tokens import Scope, Token
from seasoned.types import FeedbackRecord

__all__ = ["ForbiddenError", "authored", "check_own", "check_scope"]


class ForbiddenError(InputError):
    """The request's token does not allow it."""


def check_scope(holder: Token, scope: Scope) -> None:
    """Refuse a request whose token lacks a scope.

    Raises:
        ForbiddenError: it does.
    """
    if not holder.may(scope):
        raise ForbiddenError(
            f"a token with the scopes {', '.join(sorted(holder.scopes))}",
            f"this needs the scope {scope}",
            "Use another token, or have the scope added to this one.",
        )


def authored(holder: Token, target: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request's feedback, with the author and the source of its token.

    Raises:
        ForbiddenError: they are another's, or the weight is above 1, and the token is no `admin`.
        InputError: the weight is no number above 0.
    """
    named = dict(target)
    if "weight" in named and check_number("weight", named["weight"], above=0.0) > 1 and not holder.may("admin"):
        rule = "a weight above 1 needs the scope admin"
        raise ForbiddenError(f"weight = {named['weight']}", rule, "Leave it out, or use a token with the scope.")
    if holder.author is None:
        return named
    for name, own in (("author", holder.author), ("source", holder.source)):
        if named.setdefault(name, own) != own and not holder.may("admin"):
            seen = f"{name} = {excerpt(named[name])}"
            raise ForbiddenError(seen, f"this token's {name} is {excerpt(own)}", "Leave it out, or use its token.")
    return named


def check_own(holder: Token, record: FeedbackRecord) -> None:
    """Refuse a request to take back another author's feedback.

    Raises:
        ForbiddenError: it is another's, and the token is no `admin`.
    """
    own = holder.author is None or record.author == holder.author  # its metrics have their own sources
    if not own and not holder.may("admin"):
        seen = f"feedback {excerpt(record.id)} of {excerpt(record.author)}"
        raise ForbiddenError(seen, f"this token's author is {excerpt(holder.author)}", "Ask its author, or an admin.")
