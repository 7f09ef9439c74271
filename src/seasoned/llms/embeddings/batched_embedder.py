"""What every embedder has in common: texts checked and asked in batches, vectors checked and scaled, and the cost kept.

The vectors come from a model; nothing here decides what they mean.
"""

from __future__ import annotations

import abc
import hashlib
import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_instance, check_texts
from seasoned.core.cosine_index import unit_rows
from seasoned.errors import InputError, ModelAnswerError, excerpt
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
    """Embeds in batches: an `Embedder` but for the call itself. Each distinct text is asked once.

    `spent` is what all calls took so far.

    Args:
        batch_size: texts a call, at most.
        dimensions: the length of a vector; None: what the model first answers with.

    Raises:
        InputError: a number is outside its range.
    """

    def __init__(self, batch_size: int, dimensions: int | None) -> None:
        for name, value in (("batch_size", batch_size), ("dimensions", dimensions)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"{name} = {excerpt(value)}", "it is a whole number, at least 1", "Pass 1 or more.")
        self._batch_size = batch_size
        self._dimensions = dimensions
        self._counting = threading.Lock()
        self.spent = Usage()

    @property
    @abc.abstractmethod
    def identity(self) -> str:
        """Names the model and everything that changes a vector, not where it runs."""

    @abc.abstractmethod
    def _ask(self, texts: list[str]) -> tuple[npt.ArrayLike, Usage]:
        """One call: a row a text, in their order, and what it cost."""

    @property
    def dimensions(self) -> int:
        """The length of a vector; where nobody said, one short text is embedded to see.

        Raises:
            ModelError: that call failed.
        """
        if self._dimensions is None:
            self.embed(["dimensions"])
        return int(self._dimensions or 0)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector a text, in their order: shape (n, dimensions). All batches, or an error.

        Raises:
            InputError: a text is blank, or too long for the model: nothing is cut off.
            ModelAnswerError: a vector has NaN, no direction or another length, or not every text has one.
            ModelError: the model failed.
        """
        wanted = check_text_list(texts)
        distinct = list(dict.fromkeys(wanted))
        found: dict[str, Vectors] = {}
        for start in range(0, len(distinct), self._batch_size):
            batch = distinct[start : start + self._batch_size]
            raw, usage = self._ask(batch)
            with self._counting:
                self.spent += usage
            found |= zip(batch, self._checked(raw, len(batch)), strict=True)
        if not wanted:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return np.stack([found[text] for text in wanted])

    def _checked(self, raw: npt.ArrayLike, n_texts: int) -> Vectors:
        try:
            rows = unit_rows("its vectors", raw, self._dimensions)
        except InputError as error:
            raise ModelAnswerError(f"{self.identity}: {error.seen}", error.rule, error.next_step) from error
        if len(rows) != n_texts:
            raise ModelAnswerError(
                f"{self.identity}: {len(rows)} vectors for {n_texts} texts", "each has one", "Check the endpoint."
            )
        self._dimensions = rows.shape[1]
        return rows


class ScriptedEmbedder(BatchedEmbedder):
    """An embedder that follows a script: deterministic, in process, for tests and documentation.

    Args:
        script: a text to its vector, any length; None: every word is a direction of its own, drawn from its hash, and
            a text is the sum of its words, case folded, so that texts that share words are alike.
        dimensions: the length of a vector.
        name: part of the identity; give two scripts two names.
        batch_size: texts a call, at most.

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

    def _ask(self, texts: list[str]) -> tuple[npt.ArrayLike, Usage]:
        words = sum(len(text.split()) for text in texts)
        return [list(self._script(text)) for text in texts], Usage(calls=1, prompt_tokens=words)

    def _words(self, text: str) -> list[float]:
        total = np.zeros(self.dimensions)
        for word in text.casefold().split():
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
            total += np.random.default_rng(seed).standard_normal(self.dimensions)
        return [float(value) for value in total]
