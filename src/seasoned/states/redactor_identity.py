"""Redactors from their names and identities: a store can be opened with the redactor that its texts went through."""

from __future__ import annotations

import json

from seasoned.errors import InputError, UnknownNameError, excerpt
from seasoned.states.redaction import Redactor

__all__ = ["named_redactor", "redactor_from_identity"]

ALL_RULES = "all"


def redactor_from_identity(identity: str, *, own_patterns: bool = True) -> Redactor:
    """Return the redactor with this identity, and all of its settings.

    Args:
        identity: the identity.
        own_patterns: make redactors with patterns of their own too. A pattern of a file that others wrote could take
            years on a text.

    Raises:
        UnknownNameError: it has a key, which no identity holds, or patterns that are not asked for; it is of a
            function or of another version; or was altered.

    Example:
        >>> redactor_from_identity('redactor/v1 {"rules":["emails"]}')("ann@example.com")
        '[email]'
    """
    try:
        kind, _, settings = identity.partition(" ")
        record = json.loads(settings) if settings else {}
        known = kind == "redactor/v1" and (own_patterns or "patterns" not in record)
        redactor = Redactor(record["rules"], dict(record.get("patterns", []))) if known else None
    except (InputError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        redactor = None
    if redactor is None or redactor.identity != identity:
        raise UnknownNameError(
            f"redactor {excerpt(identity)}",
            "no redactor can be made of this identity",
            "Pass the redactor itself: Memory.open(..., redact=...).",
        )
    return redactor


def named_redactor(spec: str) -> Redactor:
    """Return the redactor of a command's option: `all`, names of rules with commas between, or an identity.

    Raises:
        UnknownNameError: there is no such rule or identity.

    Example:
        >>> named_redactor("emails, cards").rules
        ('emails', 'cards')
    """
    if " " in spec and "{" in spec:
        return redactor_from_identity(spec)
    return Redactor() if spec == ALL_RULES else Redactor([rule.strip() for rule in spec.split(",")])
