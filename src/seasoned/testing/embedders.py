"""What every embedder promises."""

from __future__ import annotations

import numpy as np

from seasoned.errors import InputError, excerpt
from seasoned.protocols import Embedder
from seasoned.testing.requirement import name_of, require

__all__ = ["check_embedder"]

_TEXTS = ("page cart, total 12", "page pay", "page cart, total 12", "ein rotes Lämpchen")
_ROUNDING = 1e-4


def check_embedder(embedder: Embedder) -> None:
    """Embed a few texts and check what comes back; this calls the model.

    Checked: identity; dimensions; one float32 unit vector a text, in their order, finite; equal texts get equal
    vectors, and a text gets the one that it gets alone, as far as rounding goes; no texts get no vectors; one str in
    place of a list, and a blank text, are refused.

    Raises:
        InputError: the first promise that is broken.
        ModelError: the model failed.

    Example:
        >>> from seasoned.llms.embeddings.batched_embedder import ScriptedEmbedder
        >>> check_embedder(ScriptedEmbedder())
    """
    who = f"embedder {name_of(embedder)}"
    require(isinstance(embedder, Embedder), who, "it has identity, dimensions and embed", "Add what is missing.")
    require(bool(embedder.identity), f"{who}, identity = {embedder.identity!r}", "it is not empty", "Name the model.")
    rows = embedder.embed(_TEXTS)
    wanted = (len(_TEXTS), embedder.dimensions)
    require(
        isinstance(rows, np.ndarray) and rows.dtype == np.float32 and rows.shape == wanted,
        f"{who}: {getattr(rows, 'dtype', type(rows).__name__)} of shape {np.shape(rows)}",
        f"a float32 vector a text: shape {wanted}",
        "Return an array of float32.",
    )
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    require(
        bool((np.abs(lengths - 1.0) <= _ROUNDING).all()),
        f"{who}: vectors of length {excerpt(lengths.tolist())}",
        "a vector is finite and of length 1",
        "Scale it: seasoned.core.cosine_index.unit_rows.",
    )
    require(bool((rows[0] == rows[2]).all()), who, "equal texts have equal vectors", "Ask for each text once.")
    alone = embedder.embed(_TEXTS[3:])[0]
    require(
        float(np.abs(alone - rows[3]).max()) <= _ROUNDING,
        f"{who}: {excerpt(_TEXTS[3])} alone and in company",
        "the vectors are in the texts' order, and depend on nothing else",
        "Match them by index.",
    )
    none = embedder.embed([])
    require(np.shape(none) == (0, embedder.dimensions), f"{who}: no texts", "no texts, no vectors", "Return (0, d).")
    for bad in ("page", [" "]):
        try:
            embedder.embed(bad)
        except InputError:
            continue
        require(False, f"{who}: embed({bad!r})", "texts are a list, and none is blank", "Raise InputError.")
