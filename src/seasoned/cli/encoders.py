"""Encoders that have a name on the command line; any other goes by its identity, which may be long."""

from __future__ import annotations

from seasoned.cli.screen import one_line
from seasoned.errors import InputError, UnknownNameError, excerpt
from seasoned.protocols import StateEncoder
from seasoned.registry import suggest
from seasoned.states import ALL_MASKS, TokenEncoder, encoder_from_identity

__all__ = ["encoder_shown", "named_encoder"]

_ENCODERS = {"words": TokenEncoder(), "masked": TokenEncoder(masks=ALL_MASKS)}
_NAMES = {encoder.identity: name for name, encoder in _ENCODERS.items()}


def named_encoder(spec: str) -> StateEncoder:
    """Return the encoder that somebody named.

    Raises:
        InputError: none has this name or identity.
    """
    if spec in _ENCODERS:
        return _ENCODERS[spec]
    try:
        return encoder_from_identity(spec)
    except UnknownNameError as error:
        raise InputError(
            f"--encoder {excerpt(spec)}",
            f"an encoder must be {', '.join(_ENCODERS)}, or the identity of a built-in one",
            f"{suggest(spec, _ENCODERS)} See: seasoned memory namespaces --json; or make the namespace in Python with "
            "an encoder of your own.",
        ) from error


def encoder_shown(identity: str) -> str:
    """Return what a person reads: the name, and an identity that fits a line.

    Example:
        >>> encoder_shown(TokenEncoder().identity), encoder_shown(TokenEncoder(masks=ALL_MASKS).identity)
        ('tokens/v1 (words)', 'masked')
        >>> len(encoder_shown("x" * 4000))
        80
    """
    name = _NAMES.get(identity)
    short = one_line(identity)
    if name is None:
        return short
    return f"{identity} ({name})" if short == identity else name
