"""Vectors kept on disk, one SQLite file, by (embedder's identity, sha256 of the text): no text is embedded twice."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from seasoned import sqlite_connection
from seasoned.errors import EncoderMismatchError, InputError, IntegrityError, ModelAnswerError, excerpt
from seasoned.llms.cache.cache_file import CacheFile
from seasoned.llms.embeddings.batched_embedder import check_texts
from seasoned.protocols import Usage
from seasoned.protocols.models import Embedder

__all__ = ["CachedEmbedder"]

_APPLICATION_ID = 0x5EA50EBD
_VERSION = 1
_SCHEMA = (
    "CREATE TABLE embedders (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, dimensions INTEGER,"
    " current INTEGER NOT NULL)",
    # With row ids: a vector is longer than what an index keeps in its own pages.
    "CREATE TABLE vectors (id INTEGER PRIMARY KEY, embedder INTEGER NOT NULL, digest BLOB NOT NULL,"
    " vector BLOB NOT NULL, UNIQUE (embedder, digest))",
)
_LOOKED_UP_AT_ONCE = 500
_KEPT_AT_ONCE = 256
_ROUNDING = 1e-3


class CachedEmbedder:
    """An embedder whose vectors are kept in a file; the file belongs to one embedder at a time.

    What was asked for is committed every 256 texts: where a later call fails, what was paid for is kept. Many processes
    and threads may share the file. Errors are never stored. Texts are not stored, only their digests.

    Args:
        embedder: asked for what is missing.
        path: the file; made if it is missing.
        reindex: let the file belong to this embedder from now on. The other's vectors stay, under its identity.

    Raises:
        EncoderMismatchError: the file belongs to another embedder, and `reindex` is off.
        ForeignStoreError: the file is something else; it is left untouched.
        NewerStoreError: a newer seasoned wrote it.
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
        if not isinstance(embedder, Embedder):
            raise InputError(f"embedder = {excerpt(embedder)}", "it has identity, dimensions and embed", "Pass one.")
        self._embedder = embedder
        self._identity = embedder.identity
        self._file = CacheFile(
            os.fspath(path), _APPLICATION_ID, _VERSION, _SCHEMA, "a file of vectors", overwrites=True
        )
        self._id, self._dimensions = self._enter(reindex=reindex)

    @property
    def identity(self) -> str:
        """The wrapped embedder's."""
        return self._identity

    @property
    def dimensions(self) -> int:
        """The length of a vector; no call is made where the file knows it.

        Raises:
            ModelError: the embedder had to be asked, and failed.
        """
        if self._dimensions is None:
            self._learn_dimensions(self._embedder.dimensions)
        return int(self._dimensions or 0)

    @property
    def spent(self) -> Usage | None:
        """What the wrapped embedder's calls took; None if it does not say."""
        spent: Usage | None = getattr(self._embedder, "spent", None)
        return spent

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a text, in their order: those in the file, and the others asked for and stored.

        Raises:
            InputError: a text is blank, or too long for the model.
            IntegrityError: a stored vector is damaged.
            ModelError: the embedder had to be asked, and failed.
            StoreError: the file failed.
        """
        wanted = check_texts(texts)
        digests = {text: hashlib.sha256(text.encode()).digest() for text in wanted}
        found = self._stored(sorted(set(digests.values())))
        missing = [text for text, digest in digests.items() if digest not in found]
        for start in range(0, len(missing), _KEPT_AT_ONCE):
            asked = missing[start : start + _KEPT_AT_ONCE]
            rows = self._embedder.embed(asked)
            self._learn_dimensions(rows.shape[1])
            new = {digests[text]: row for text, row in zip(asked, rows, strict=True)}
            self._store(new)
            found |= new
        if not wanted:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return np.stack([found[digests[text]] for text in wanted])

    def forget(self, texts: Sequence[str]) -> int:
        """Delete the vectors of texts, of every embedder, and return how many there were: for what is to be erased.

        Raises:
            InputError: a text is blank.
            StoreError: the file failed.
        """
        digests = [(hashlib.sha256(text.encode()).digest(),) for text in dict.fromkeys(check_texts(texts))]
        with self._transaction() as connection:
            gone = connection.executemany("DELETE FROM vectors WHERE digest = ?", digests).rowcount
        with self._using() as connection:  # out of the log as well, unless somebody is reading
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return gone

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._file.park()

    def _enter(self, *, reindex: bool) -> tuple[int, int | None]:
        with self._transaction() as connection:
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
            asked = "SELECT id, dimensions FROM embedders WHERE identity = ?"
            number, dimensions = connection.execute(asked, (self._identity,)).fetchone()
            return int(number), dimensions

    def _learn_dimensions(self, dimensions: int) -> None:
        if self._dimensions is None:
            with self._transaction() as connection:
                known = "UPDATE embedders SET dimensions = coalesce(dimensions, ?) WHERE id = ? RETURNING dimensions"
                self._dimensions = int(connection.execute(known, (dimensions, self._id)).fetchall()[0][0])
        if self._dimensions != dimensions:
            raise ModelAnswerError(
                f"{self._identity} gave {dimensions} numbers, and {self._dimensions} before",
                "the vectors of one embedder are all as long",
                "Give the changed model another name, and pass reindex=True.",
            )

    def _stored(self, digests: list[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        found: dict[bytes, npt.NDArray[np.float32]] = {}
        with self._using() as connection:
            for start in range(0, len(digests), _LOOKED_UP_AT_ONCE):
                some = digests[start : start + _LOOKED_UP_AT_ONCE]
                marks = ",".join("?" * len(some))
                query = f"SELECT digest, vector FROM vectors WHERE embedder = ? AND digest IN ({marks})"
                rows = connection.execute(query, (self._id, *some)).fetchall()
                if rows and self._dimensions is None:  # whoever stored them has learned it before
                    known = connection.execute("SELECT dimensions FROM embedders WHERE id = ?", (self._id,))
                    self._dimensions = known.fetchone()[0]
                found |= {digest: self._decoded(vector) for digest, vector in rows}
        if found:
            lengths = np.linalg.norm(np.stack(list(found.values())), axis=1)
            if not (np.abs(lengths - 1.0) <= _ROUNDING).all():  # NaN is caught as well
                raise self._damaged("a vector that is not of length 1")
        return found

    def _decoded(self, vector: bytes) -> npt.NDArray[np.float32]:
        if self._dimensions is None or len(vector) != 4 * self._dimensions:
            raise self._damaged(f"a vector of {len(vector)} bytes, for {self._dimensions} dimensions")
        return np.frombuffer(vector, dtype="<f4").astype(np.float32, copy=False)

    def _damaged(self, seen: str) -> IntegrityError:
        return IntegrityError(f"{self._file.path}: {seen}", "a stored vector can be read back", "Delete the file.")

    def _store(self, vectors: dict[bytes, npt.NDArray[np.float32]]) -> None:
        with self._transaction() as connection:
            rows = [(self._id, digest, row.astype("<f4").tobytes()) for digest, row in vectors.items()]
            connection.executemany("INSERT OR IGNORE INTO vectors (embedder, digest, vector) VALUES (?, ?, ?)", rows)

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with (
            self._file.lock,
            sqlite_connection.store_errors(self._file.path, "Delete it; texts will be embedded anew."),
        ):
            yield self._file.connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
