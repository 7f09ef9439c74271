"""An embedder whose vectors are cached in one SQLite file, by (embedder's identity, sha256 of the text)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_instance
from seasoned.errors import EncoderMismatchError, ModelAnswerError
from seasoned.llms.embeddings.batched_embedder import Vectors, check_text_list
from seasoned.protocols import Embedder, Usage
from seasoned.sqlite_cache import CacheFile, CacheFormat, Codec, SqliteCache, SqlValue

__all__ = ["CachedEmbedder"]

_FORMAT = CacheFormat(
    noun="a vector cache",
    application_id=0x5EA50EBD,
    schema=(
        "CREATE TABLE embedders (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, dimensions INTEGER,"
        " current INTEGER NOT NULL)",
        # With row ids: a vector is longer than the part of a row that an index stores in its own pages.
        "CREATE TABLE vectors (id INTEGER PRIMARY KEY, embedder INTEGER NOT NULL, digest BLOB NOT NULL,"
        " vector BLOB NOT NULL, UNIQUE (embedder, digest))",
    ),
    repair="Delete the file; the texts are embedded again.",
    secure_delete=True,
)
_BATCH_SIZE = 256
_LENGTH_ROUNDING = 1e-3


class _VectorKey(NamedTuple):
    embedder_id: int
    digest: bytes


class CachedEmbedder:
    """An embedder whose vectors are cached in a file; the file belongs to one embedder at a time.

    New vectors are committed in batches of 256 texts: if a later call fails, the vectors of earlier batches are stored.
    Many processes and threads may share the file. Errors are never stored. Texts are not stored, only their digests.

    Args:
        embedder: called for the vectors that are missing.
        path: the file; created if it is missing.
        reindex: make this embedder the file's owner from now on. The other embedder's vectors stay, under its identity.

    Raises:
        InputError: `embedder` is not an embedder.
        EncoderMismatchError: the file belongs to another embedder, and `reindex` is off.
        ForeignStoreError: the file has another format; it is left untouched.
        NewerStoreError: a newer seasoned wrote the file.
        StoreError: the file cannot be opened.

    Example:
        >>> from seasoned.llms.embeddings.batched_embedder import ScriptedEmbedder
        >>> model = ScriptedEmbedder()
        >>> cached = CachedEmbedder(model, "vectors.db")
        >>> _ = cached.embed(["page cart", "page pay"])
        >>> _ = CachedEmbedder(model, "vectors.db").embed(["page pay"])
        >>> model.spent.calls
        1
    """

    def __init__(self, embedder: Embedder, path: str | os.PathLike[str], *, reindex: bool = False) -> None:
        self._embedder = check_instance(
            "embedder", embedder, Embedder, "an embedder has identity, dimensions and embed", "Pass an embedder."
        )
        self._identity = embedder.identity
        self._file = CacheFile(path, _FORMAT)
        self._vectors: SqliteCache[_VectorKey, Vectors] = SqliteCache(
            self._file, Codec("vectors", ("embedder", "digest", "vector"), _encode, self._decode)
        )
        self._id, self._dimensions = self._take_ownership(reindex=reindex)

    @property
    def identity(self) -> str:
        """The wrapped embedder's identity."""
        return self._identity

    @property
    def dimensions(self) -> int:
        """The length of a vector; no call is made if the file records it.

        Raises:
            ModelError: the embedder had to be called, and failed.
        """
        if self._dimensions is None:
            self._record_dimensions(self._embedder.dimensions)
        return int(self._dimensions or 0)

    @property
    def spent(self) -> Usage | None:
        """The usage of the wrapped embedder's calls; None if it does not record it."""
        usage: Usage | None = getattr(self._embedder, "spent", None)
        return usage

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a text, in their order; vectors that are missing in the file are embedded and stored.

        Raises:
            InputError: a text is blank, or too long for the model.
            IntegrityError: a stored vector is damaged.
            ModelError: the embedder had to be called, and failed.
            StoreError: the file failed.
        """
        checked = check_text_list(texts)
        keys = {text: _VectorKey(self._id, _digest(text)) for text in checked}
        vectors = self._vectors.get_many(sorted(set(keys.values())))
        if vectors:
            lengths = np.linalg.norm(np.stack(list(vectors.values())), axis=1)
            if not (np.abs(lengths - 1.0) <= _LENGTH_ROUNDING).all():  # false for NaN as well
                raise self._file.damaged("a vector that is not of length 1")
        missing = [text for text, key in keys.items() if key not in vectors]
        for start in range(0, len(missing), _BATCH_SIZE):
            batch = missing[start : start + _BATCH_SIZE]
            rows = self._embedder.embed(batch)
            self._record_dimensions(rows.shape[1])
            new = {keys[text]: row for text, row in zip(batch, rows, strict=True)}
            self._vectors.put_many(new)
            vectors |= new
        if not checked:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return np.stack([vectors[keys[text]] for text in checked])

    def forget(self, texts: Sequence[str]) -> int:
        """Delete the vectors of erased texts, of every embedder, and return the number of deleted vectors.

        Raises:
            InputError: a text is blank.
            StoreError: the file failed.
        """
        digests = [(_digest(text),) for text in dict.fromkeys(check_text_list(texts))]
        with self._file.transaction() as connection:
            n_deleted = connection.executemany("DELETE FROM vectors WHERE digest = ?", digests).rowcount
        with self._file.reading() as connection:  # empties the write-ahead log, unless another process is reading
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return n_deleted

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._file.park()

    def _take_ownership(self, *, reindex: bool) -> tuple[int, int | None]:
        """Make this embedder the file's owner; return its id in the file, and the length of its vectors if recorded."""
        with self._file.transaction() as connection:
            row = connection.execute("SELECT identity FROM embedders WHERE current").fetchone()
            if row is not None and row[0] != self._identity and not reindex:
                raise EncoderMismatchError(
                    f"{self._file.path} holds vectors of {row[0]!r}, not of {self._identity!r}",
                    "vectors of two embedders are never compared",
                    "Pass that embedder, another file, or reindex=True to embed again.",
                )
            connection.execute("UPDATE embedders SET current = 0")
            connection.execute("INSERT OR IGNORE INTO embedders (identity, current) VALUES (?, 0)", (self._identity,))
            connection.execute("UPDATE embedders SET current = 1 WHERE identity = ?", (self._identity,))
            query = "SELECT id, dimensions FROM embedders WHERE identity = ?"
            embedder_id, dimensions = connection.execute(query, (self._identity,)).fetchone()
            return int(embedder_id), dimensions

    def _record_dimensions(self, dimensions: int) -> None:
        """Record the length of this embedder's vectors, and check it against the recorded length."""
        if self._dimensions is None:
            with self._file.transaction() as connection:
                update = "UPDATE embedders SET dimensions = coalesce(dimensions, ?) WHERE id = ? RETURNING dimensions"
                self._dimensions = int(connection.execute(update, (dimensions, self._id)).fetchall()[0][0])
        if self._dimensions != dimensions:
            raise ModelAnswerError(
                f"{self._identity} gave {dimensions} numbers, and {self._dimensions} before",
                "the vectors of one embedder have one length",
                "Give the changed model another name, and pass reindex=True.",
            )

    def _decode(self, stored: SqlValue) -> Vectors:
        if self._dimensions is None:  # the process that stored the vector has recorded its length
            with self._file.reading() as connection:
                row = connection.execute("SELECT dimensions FROM embedders WHERE id = ?", (self._id,)).fetchone()
            self._dimensions = row[0]
        if not isinstance(stored, bytes) or self._dimensions is None or len(stored) != 4 * self._dimensions:
            size = len(stored) if isinstance(stored, bytes) else 0
            raise ValueError(f"a vector of {size} bytes, for {self._dimensions} dimensions")
        return np.frombuffer(stored, dtype="<f4").astype(np.float32, copy=False)


def _encode(vector: Vectors) -> bytes:
    return vector.astype("<f4").tobytes()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
