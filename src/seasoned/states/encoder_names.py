"""Named encoders, for the command line and for suites; other encoders are named by their identity."""

from __future__ import annotations

from seasoned.checks import suggest
from seasoned.errors import InputError, UnknownNameError, excerpt
from seasoned.protocols import StateEncoder
from seasoned.states.encoder_identity import encoder_from_identity
from seasoned.states.masks import ALL_MASKS
from seasoned.states.subwords import SubwordEncoder
from seasoned.states.tokens import TokenEncoder
from seasoned.states.transcript.transcript_encoder import TranscriptEncoder

__all__ = ["ENCODERS", "named_encoder"]

ENCODERS: dict[str, StateEncoder] = {
    "words": TokenEncoder(),
    "masked": TokenEncoder(masks=ALL_MASKS),
    "subwords": SubwordEncoder(),
    "transcript": TranscriptEncoder(),
}


def named_encoder(spec: str) -> StateEncoder:
    """Return the encoder with this name or identity.

    Raises:
        InputError: there is no such name or identity.

    Example:
        >>> named_encoder("words")
        TokenEncoder(ngram=1, masks=(), urls=None, multiset=False)
    """
    if spec in ENCODERS:
        return ENCODERS[spec]
    try:
        return encoder_from_identity(spec)
    except UnknownNameError as error:
        raise InputError(
            f"encoder {excerpt(spec)}",
            f"an encoder must be {', '.join(ENCODERS)}, or the identity of a built-in one",
            f"{suggest(spec, ENCODERS)} See: seasoned memory namespaces --json; or make the namespace in Python with "
            "an encoder of your own.",
        ) from error
