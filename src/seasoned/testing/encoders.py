"""The conformance check of state encoders."""

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
    """Check that features are sets of non-empty texts, equal at every call, and that the identity is stable.

    Raises:
        InputError: the first violation.
    """
    subject = f"encoder {name_of(encoder)}"
    require(isinstance(encoder, StateEncoder), subject, "it has identity and features", "Add the missing members.")
    identity = encoder.identity
    require(
        isinstance(identity, str) and identity.strip() != "",
        f"{subject}, identity = {excerpt(identity)}",
        "an identity is a text, not blank",
        "Name the encoder and every setting that changes a feature.",
    )
    for text in _TEXTS:
        features = encoder.features(text)
        seen = f"{subject}, features({excerpt(text, 30)}) = {excerpt(features)}"
        require(isinstance(features, frozenset), seen, "features are a frozenset", "Wrap them in frozenset(...).")
        require(
            all(isinstance(feature, str) and feature for feature in features),
            seen,
            "a feature is a text, not empty",
            "Leave out empty ones.",
        )
        require(encoder.features(text) == features, seen, "equal texts have equal features", "Keep no state.")
    require(
        encoder.features(_TEXTS[0]) != encoder.features(_TEXTS[-1]),
        subject,
        "states without a common word have different features",
        "Build features from the text.",
    )
    require(encoder.identity == identity, subject, "the identity does not change", "Compute it once.")
