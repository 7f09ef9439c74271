"""Texts by meaning: their embeddings, and the nearest of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from seasoned.core.cosine_index import CosineIndex
from seasoned.errors import EncoderMismatchError, InputError, excerpt
from seasoned.protocols import Embedder

__all__ = ["Vector", "VectorIndex"]

Vector = npt.NDArray[np.float32]


class VectorIndex:
    """Texts by key, found by what they mean: exact cosine over an embedder's vectors (`seasoned.core.cosine_index`).

    Args:
        embedder: makes the vectors; a `CachedEmbedder`, so that opening does not embed again.

    Raises:
        InputError: it is no embedder.

    Example:
        >>> from seasoned.llms.embeddings.batched_embedder import ScriptedEmbedder
        >>> index = VectorIndex(ScriptedEmbedder())
        >>> index.add_many([("e1", "page cart"), ("e2", "a red lamp")])
        >>> index.search("page cart total", k=1)[0][0]
        'e1'
    """

    def __init__(self, embedder: Embedder) -> None:
        if not isinstance(embedder, Embedder):
            raise InputError(f"embedder = {excerpt(embedder)}", "it has identity, dimensions and embed", "Pass one.")
        self._embedder = embedder
        self.identity = embedder.identity
        self._index: CosineIndex | None = None

    def __len__(self) -> int:
        return 0 if self._index is None else len(self._index)

    def __contains__(self, key: object) -> bool:
        return self._index is not None and key in self._index

    def add(self, key: str, text: str) -> None:
        """Add a text; a key that is there already gets the new one. Raises what `add_many` raises."""
        self.add_many([(key, text)])

    def add_many(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add (key, text) pairs, embedded together.

        Raises:
            InputError: a text is blank, or a key is there twice.
            EncoderMismatchError: the embedder is another one now.
            ModelError: it failed; nothing was added.
        """
        added = list(pairs)
        if not added:
            return
        self._check_embedder()
        rows = self._embedder.embed([text for _, text in added])
        if self._index is None:
            self._index = CosineIndex(rows.shape[1])
        self._index.add([key for key, _ in added], rows)

    def remove(self, key: str) -> None:
        """Take a text out.

        Raises:
            InputError: no text has this key.
        """
        if self._index is None:
            raise InputError(f"key = {excerpt(key)}", "it is in the index", "Add it first.")
        self._index.remove(key)

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return the k keys whose texts are most like this one, best first, with cosines; equal ones: the newest first.

        Raises:
            InputError: the text is blank, or k is below 1.
            EncoderMismatchError: the embedder is another one now.
            ModelError: it failed.
        """
        self._check_embedder()
        return self.nearest(self._embedder.embed([text])[0], k)

    def nearest(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """Return what `search` does, for a text whose vector is known."""
        return [] if self._index is None else self._index.search(vector, k)

    def cosines(self, vector: Vector, keys: Sequence[str]) -> list[float]:
        """Return how like a vector those of some keys are, in their order.

        Raises:
            InputError: no text has one of the keys.
        """
        return self._index.cosines(vector, keys) if self._index is not None and keys else []

    def _check_embedder(self) -> None:
        if self._embedder.identity != self.identity:
            raise EncoderMismatchError(
                f"vectors of {self.identity!r}, and the embedder {self._embedder.identity!r}",
                "vectors of two embedders are never compared",
                "Make the index again.",
            )
