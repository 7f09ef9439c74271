"""The base class of embedders: checked texts in batches, checked unit vectors, and the usage of calls."""

from __future__ import annotations

import abc
import hashlib
import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_instance, check_texts, check_whole
from seasoned.core.similarity import unit_rows
from seasoned.errors import InputError, ModelAnswerError
from seasoned.protocols import Usage

__all__ = ["BatchedEmbedder", "ScriptedEmbedder", "check_text_list"]

Vectors = npt.NDArray[np.float32]


def check_text_list(texts: Sequence[str]) -> list[str]:
    """Return the texts, if each can be embedded: a str, not blank, encodable as UTF-8.

    Raises:
        InputError: a text breaks a rule, or `texts` is no sequence of texts.

    Example:
        >>> check_text_list(("page:cart", "page:pay"))
        ['page:cart', 'page:pay']
    """
    next_step = "Pass [text] for one text."
    ordered = check_instance("texts", texts, Sequence, "texts must be a list of texts", next_step)
    return list(check_texts("texts", ordered, next_step=next_step))


class BatchedEmbedder(abc.ABC):
    """An `Embedder` in batches, without the call itself. Each distinct text of a request is embedded once.

    Args:
        batch_size: the largest number of texts a call.
        dimensions: the length of a vector; None: that of the model's first answer.

    Attributes:
        spent: the usage of all calls so far.

    Raises:
        InputError: a number is outside its range.
    """

    def __init__(self, batch_size: int, dimensions: int | None) -> None:
        self._batch_size = check_whole("batch_size", batch_size, 1)
        self._dimensions = None if dimensions is None else check_whole("dimensions", dimensions, 1)
        self._usage_lock = threading.Lock()
        self.spent = Usage()

    @property
    @abc.abstractmethod
    def identity(self) -> str:
        """The model and every setting that changes a vector, without its location."""

    @abc.abstractmethod
    def _embed_batch(self, texts: list[str]) -> tuple[npt.ArrayLike, Usage]:
        """Send one batch; return one row a text, in their order, and the usage."""

    @property
    def dimensions(self) -> int:
        """The length of a vector; if it is unknown, one short text is embedded.

        Raises:
            ModelError: that call failed.
        """
        if self._dimensions is None:
            self.embed(["dimensions"])
        return int(self._dimensions or 0)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector a text, in their order: shape (n, dimensions).

        Raises:
            InputError: a text is blank, or too long for the model: nothing is cut off.
            ModelAnswerError: a vector has NaN, is zero or has another length, or a text has no vector.
            ModelError: the model failed.
        """
        checked = check_text_list(texts)
        distinct = list(dict.fromkeys(checked))
        vectors: dict[str, Vectors] = {}
        for start in range(0, len(distinct), self._batch_size):
            batch = distinct[start : start + self._batch_size]
            raw, usage = self._embed_batch(batch)
            with self._usage_lock:
                self.spent += usage
            vectors |= zip(batch, self._check_rows(raw, len(batch)), strict=True)
        if not checked:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return np.stack([vectors[text] for text in checked])

    def _check_rows(self, raw: npt.ArrayLike, n_texts: int) -> Vectors:
        try:
            rows = unit_rows("its vectors", raw, self._dimensions)
        except InputError as error:
            raise ModelAnswerError(f"{self.identity}: {error.seen}", error.rule, error.next_step) from error
        if len(rows) != n_texts:
            raise ModelAnswerError(
                f"{self.identity}: {len(rows)} vectors for {n_texts} texts",
                "each text has one vector",
                "Check the endpoint.",
            )
        self._dimensions = rows.shape[1]
        return rows


class ScriptedEmbedder(BatchedEmbedder):
    """A scripted embedder: deterministic, in process, for tests and documentation.

    Args:
        script: maps a text to its vector, of any norm; None: every case-folded word has a random direction drawn from
            its hash, and a text is the sum of its words, so that texts with common words are similar.
        dimensions: the length of a vector.
        name: part of the identity; give two scripts two names.
        batch_size: the largest number of texts a call.

    Example:
        >>> embedder = ScriptedEmbedder()
        >>> cart, pay, lamp = embedder.embed(["page cart", "page pay", "a red lamp"])
        >>> bool(cart @ pay > cart @ lamp), embedder.spent.calls
        (True, 1)
    """

    def __init__(
        self,
        script: Callable[[str], Sequence[float]] | None = None,
        dimensions: int = 64,
        name: str = "words",
        batch_size: int = 64,
    ) -> None:
        super().__init__(batch_size, dimensions)
        self._script = script or self._words
        self._name = name

    @property
    def identity(self) -> str:
        """`scripted:NAME?dimensions=D`."""
        return f"scripted:{self._name}?dimensions={self._dimensions}"

    def _embed_batch(self, texts: list[str]) -> tuple[npt.ArrayLike, Usage]:
        words = sum(len(text.split()) for text in texts)
        return [list(self._script(text)) for text in texts], Usage(calls=1, prompt_tokens=words)

    def _words(self, text: str) -> list[float]:
        total = np.zeros(self.dimensions)
        for word in text.casefold().split():
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
            total += np.random.default_rng(seed).standard_normal(self.dimensions)
        return [float(value) for value in total]
