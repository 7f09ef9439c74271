"""What a person reads of an encoder."""

from __future__ import annotations

from seasoned.cli.format.output import one_line
from seasoned.states.encoder_names import ENCODERS

__all__ = ["encoder_shown"]

_NAMES = {encoder.identity: name for name, encoder in ENCODERS.items()}


def encoder_shown(identity: str) -> str:
    """Return the name, and an identity that fits a line.

    Example:
        >>> encoder_shown(ENCODERS["words"].identity), encoder_shown(ENCODERS["masked"].identity)
        ('tokens/v1 (words)', 'masked')
        >>> len(encoder_shown("x" * 4000))
        80
    """
    name = _NAMES.get(identity)
    short = one_line(identity)
    if name is None:
        return short
    return f"{identity} ({name})" if short == identity else name
