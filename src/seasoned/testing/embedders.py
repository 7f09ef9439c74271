"""The conformance check of embedders."""

from __future__ import annotations

import numpy as np

from seasoned.errors import InputError, excerpt
from seasoned.protocols import Embedder
from seasoned.testing.requirement import name_of, require

__all__ = ["check_embedder"]

_TEXTS = ("page cart, total 12", "page pay", "page cart, total 12", "ein rotes Lämpchen")
_ROUNDING = 1e-4


def check_embedder(embedder: Embedder) -> None:
    """Embed a few texts and check the vectors; this calls the model.

    Checked: identity; dimensions; one finite float32 unit vector per text, in the order of the texts; equal texts have
    equal vectors; the vector of a text does not depend on the others, up to rounding; no texts give no vectors; a str
    instead of a list, and a blank text, are refused.

    Raises:
        InputError: the first violation.
        ModelError: the model failed.

    Example:
        >>> from seasoned.llms.embeddings.batched_embedder import ScriptedEmbedder
        >>> check_embedder(ScriptedEmbedder())
    """
    subject = f"embedder {name_of(embedder)}"
    require(
        isinstance(embedder, Embedder), subject, "it has identity, dimensions and embed", "Add the missing members."
    )
    require(
        bool(embedder.identity), f"{subject}, identity = {embedder.identity!r}", "it is not empty", "Name the model."
    )
    rows = embedder.embed(_TEXTS)
    expected = (len(_TEXTS), embedder.dimensions)
    require(
        isinstance(rows, np.ndarray) and rows.dtype == np.float32 and rows.shape == expected,
        f"{subject}: {getattr(rows, 'dtype', type(rows).__name__)} of shape {np.shape(rows)}",
        f"one float32 vector per text: shape {expected}",
        "Return an array of float32.",
    )
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    require(
        bool((np.abs(lengths - 1.0) <= _ROUNDING).all()),
        f"{subject}: vectors of length {excerpt(lengths.tolist())}",
        "a vector is finite and of length 1",
        "Scale it: seasoned.core.similarity.unit_rows.",
    )
    require(
        bool((rows[0] == rows[2]).all()), subject, "equal texts have equal vectors", "Embed each distinct text once."
    )
    alone = embedder.embed(_TEXTS[3:])[0]
    require(
        float(np.abs(alone - rows[3]).max()) <= _ROUNDING,
        f"{subject}: {excerpt(_TEXTS[3])} alone and in a batch",
        "vectors are in the order of the texts, and do not depend on the batch",
        "Match them by index.",
    )
    none = embedder.embed([])
    require(
        np.shape(none) == (0, embedder.dimensions),
        f"{subject}: no texts",
        "no texts give no vectors",
        "Return an array of shape (0, d).",
    )
    for bad in ("page", [" "]):
        try:
            embedder.embed(bad)
        except InputError:
            continue
        require(False, f"{subject}: embed({bad!r})", "texts are a list without blank texts", "Raise InputError.")
