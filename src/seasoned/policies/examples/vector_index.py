"""Vector index of texts: exact cosine search over their embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_instance
from seasoned.core.similarity import CosineIndex
from seasoned.errors import EncoderMismatchError, InputError, excerpt
from seasoned.protocols import Embedder

__all__ = ["Vector", "VectorIndex"]

Vector = npt.NDArray[np.float32]


class VectorIndex:
    """Texts by key, searched by meaning: exact cosine over an embedder's vectors (`seasoned.core.similarity`).

    Args:
        embedder: computes the vectors; with a `CachedEmbedder` no text is embedded twice.

    Raises:
        InputError: it is not an Embedder.

    Example:
        >>> from seasoned.llms.embeddings.batched_embedder import ScriptedEmbedder
        >>> index = VectorIndex(ScriptedEmbedder())
        >>> index.add_many([("e1", "page cart"), ("e2", "a red lamp")])
        >>> index.search("page cart total", k=1)[0][0]
        'e1'
    """

    def __init__(self, embedder: Embedder) -> None:
        rule = "embedder must have identity, dimensions and embed()"
        self._embedder = check_instance("embedder", embedder, Embedder, rule, "Pass an Embedder.")
        self.identity = embedder.identity
        self._index: CosineIndex | None = None

    def __len__(self) -> int:
        return 0 if self._index is None else len(self._index)

    def __contains__(self, key: object) -> bool:
        return self._index is not None and key in self._index

    def add(self, key: str, text: str) -> None:
        """Add a text, or replace the text of its key. Raises: as `add_many`."""
        self.add_many([(key, text)])

    def add_many(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add (key, text) pairs, embedded together.

        Raises:
            InputError: a text is blank, or a key occurs twice.
            EncoderMismatchError: the embedder's identity has changed.
            ModelError: the embedder failed; nothing was added.
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
        """Remove a text.

        Raises:
            InputError: no text has this key.
        """
        if self._index is None:
            raise InputError(f"key = {excerpt(key)}", "key must be in the index", "Add it first.")
        self._index.remove(key)

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return the keys of the k nearest texts with their cosines, best first; among equals the newest first.

        Raises:
            InputError: the text is blank, or k is below 1.
            EncoderMismatchError: the embedder's identity has changed.
            ModelError: the embedder failed.
        """
        self._check_embedder()
        return self.nearest(self._embedder.embed([text])[0], k)

    def nearest(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """Return the result of `search` for a text with this vector."""
        return [] if self._index is None else self._index.search(vector, k)

    def cosines(self, vector: Vector, keys: Sequence[str]) -> list[float]:
        """Return the cosines between a vector and the vectors of some keys, in order.

        Raises:
            InputError: no text has one of the keys.
        """
        return self._index.cosines(vector, keys) if self._index is not None and keys else []

    def _check_embedder(self) -> None:
        if self._embedder.identity != self.identity:
            raise EncoderMismatchError(
                f"vectors of {self.identity!r}, and the embedder {self._embedder.identity!r}",
                "all vectors of an index must come from one embedder",
                "Make the index again.",
            )
