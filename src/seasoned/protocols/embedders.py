"""Text embedders: the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["Embedder"]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors whose cosine measures the similarity of their meanings.

    It is synchronous, unlike other model calls, because retrieval is synchronous and a text that was embedded before is
    read from a file. An event loop that must not block calls `asyncio.to_thread(embedder.embed, texts)`.
    """

    @property
    def identity(self) -> str:
        """The model and everything that changes a vector, but not its address; stored with the vectors."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of a vector; the first access may call the model."""
        ...

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector per text, in order: shape (n, dimensions), finite; safe from any thread."""
        ...
