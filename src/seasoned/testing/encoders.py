"""What every state encoder promises."""

from __future__ import annotations

from seasoned.errors import excerpt
from seasoned.protocols import StateEncoder
from seasoned.testing.requirement import name_of, require

__all__ = ["check_encoder"]

_TEXTS = (
    "page:cart total:12",
    "Page:Cart  total:12\n",
    "ein Käufer 買い物",
    "x",
    " ".join(f"word{i}" for i in range(500)),
)


def check_encoder(encoder: StateEncoder) -> None:
    """Check that features are non-empty text sets, the same at every call, and named by a stable identity.

    Raises:
        InputError: the first promise that is broken.
    """
    who = f"encoder {name_of(encoder)}"
    require(isinstance(encoder, StateEncoder), who, "it has identity and features", "Add what is missing.")
    identity = encoder.identity
    require(
        isinstance(identity, str) and identity.strip() != "",
        f"{who}, identity = {excerpt(identity)}",
        "an identity is a text, not blank",
        "Name the encoder and every setting that changes a feature.",
    )
    for text in _TEXTS:
        features = encoder.features(text)
        seen = f"{who}, features({excerpt(text, 30)}) = {excerpt(features)}"
        require(isinstance(features, frozenset), seen, "features are a frozenset", "Wrap them in frozenset(...).")
        require(
            all(isinstance(feature, str) and feature for feature in features),
            seen,
            "a feature is a text, not empty",
            "Leave empty ones out.",
        )
        require(encoder.features(text) == features, seen, "equal texts have equal features", "Keep no state.")
    require(
        encoder.features(_TEXTS[0]) != encoder.features(_TEXTS[-1]),
        who,
        "states without a word in common differ in their features",
        "Build features from the text.",
    )
    require(encoder.identity == identity, who, "the identity does not change", "Compute it once.")
