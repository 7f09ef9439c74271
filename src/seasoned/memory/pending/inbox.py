"""Episodes that are committed as they came, and derived by whoever looks next: to commit one takes one statement.

To number an episode's texts and to add up its evidence takes several round trips, and the namespace's row, so that
writers take turns. An *arrival* needs neither: it is a row of `episode` whose `ordinal` is negative, and whose `line`
holds the episode as canonical JSON. Whoever next reads or writes the namespace *folds* what has arrived, in its order;
who cannot lays it over what is stored (see `overlay`).

An arrival's number is that of its transaction. So a snapshot tells below which number nothing becomes visible later.
Ids are unique in `episode`, arrivals included, so that one id never has two contents, however many write at once.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

from seasoned.canonical_json import canonical_json
from seasoned.errors import (
    EpisodeConflictError,
    InputError,
    IntegrityError,
    ReadOnlyStoreError,
    SeasonedError,
    StoreBusyError,
    StoreError,
    excerpt,
)
from seasoned.memory.reading.reader import check_same_encoder
from seasoned.memory.stores.base import Store, Version
from seasoned.memory.stores.postgres.schema import FIRST_ARRIVAL
from seasoned.memory.stores.sqlite_schema import MAX_STEPS
from seasoned.memory.values.content_hash import episode_from_line, episode_record, line_digest
from seasoned.memory.writing.episode_writer import Writer
from seasoned.memory.writing.note_records import note_row
from seasoned.protocols import StateEncoder
from seasoned.types import Episode, Note

__all__ = ["AGAIN_S", "AGAIN_WAIT_S", "FOLD_WAIT_S", "REFUSED_S", "Arrivals", "RememberingEncoder", "fold"]

FOLD_WAIT_S = 0.2
"""How long a reader waits for a writer that holds the namespace, before it derives for itself what has arrived."""

AGAIN_WAIT_S = 0.001
"""How long it waits for the same writer when it tries again: who waited once in vain is in a long import's way."""

AGAIN_S = 0.25
"""How long it leaves that writer alone before it tries again."""

REFUSED_S = 60.0
"""For how long a connection that may not fold is not asked again: rights are granted, and standbys take over."""

_BATCH = 250
_A_TRANSACTION = 500
_TRIES = 5
_REMEMBERED_STATES = 512
_REMEMBERED_CHARACTERS = 16 * 1024  # a state with more is encoded again: together they would fill the memory

# One row, if the namespace is still encoded as we think, and if nobody has this id. The lock keeps nobody waiting but
# who encodes the namespace anew; what was waited for is looked at again.
_ARRIVE = (
    "INSERT INTO episode (namespace_id, ordinal, id, task, ending, steps, model, policy, arm, subject, created_at, "
    f"digest, line) SELECT id, pg_current_xact_id()::text::bigint + ({FIRST_ARRIVAL}), "
    "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? "
    "FROM (SELECT id FROM namespace WHERE id = ? AND encoder = ? FOR KEY SHARE) AS held ON CONFLICT DO NOTHING"
)


def _fold(store: Store, namespace_id: int, writer: Writer, ordinals: list[int]) -> None:
    for start in range(0, len(ordinals), _BATCH):
        rows = store.execute_in(
            "DELETE FROM episode WHERE namespace_id = ? AND ordinal IN {values} "
            "RETURNING ordinal, id, created_at, digest, line",
            (namespace_id,),
            ordinals[start : start + _BATCH],
        )
        writer.add(
            [
                (episode_from_line(store.path, id_, line, content), created_at)
                for _, id_, created_at, content, line in sorted(rows)
            ]
        )
        store.execute_in(
            "UPDATE namespace SET notes = notes + (SELECT count(*) FROM note WHERE namespace_id = namespace.id "
            f"AND episode_id IN {{values}}) WHERE id = {namespace_id}",
            (),
            [row[1] for row in rows],
        )


def fold(store: Store, namespace_id: int, writer: Writer) -> None:
    """Number and derive what has arrived in a namespace; inside a transaction of it."""
    _fold(store, namespace_id, writer, store.waiting(namespace_id))


class RememberingEncoder:
    """An encoder that remembers the last states: one that was looked up, or arrived, is not soon encoded again.

    It holds at most 512 states, none of more than 16,384 characters.
    """

    def __init__(self, encoder: StateEncoder) -> None:
        self.identity = encoder.identity
        self._encode = encoder.features
        self._remembered = functools.lru_cache(_REMEMBERED_STATES)(encoder.features)

    def features(self, state: str) -> frozenset[str]:
        """Return what the encoder makes of a state."""
        return self._remembered(state) if len(state) <= _REMEMBERED_CHARACTERS else self._encode(state)


class Arrivals:
    """What arrives in one namespace of a store that derives later."""

    def __init__(self, store: Store, namespace_id: int, encoder: StateEncoder, writer: Writer) -> None:
        self._store = store
        self._ns = namespace_id
        self._encoder = encoder
        self._writer = writer
        self._left = False
        self._wait_s = FOLD_WAIT_S
        self.refused_s = REFUSED_S
        self._refused: tuple[int, float] | None = None
        self._again_at = 0.0

    def add(self, episode: Episode, notes: Sequence[Note] = ()) -> bool:
        """Commit a named episode, to be derived later, and what was noted meanwhile.

        Returns:
            Whether it was added. If not, nothing was written: it is stored already, or an id of its notes is taken.

        Raises:
            InputError: it breaks a rule, or its encoder refuses a state; nothing was written.
            EpisodeConflictError: its id is stored with other contents.
            EncoderMismatchError: the namespace was encoded anew.
        """
        if len(episode.steps) > MAX_STEPS:
            raise InputError(f"{len(episode.steps)} steps", f"an episode has at most {MAX_STEPS}", "Split it.")
        self._store.check_key("episode id", str(episode.id))
        for text in (*(step.state for step in episode.steps), episode.final_state):
            if text is not None:
                self._encoder.features(text)  # it may refuse
        line = canonical_json(episode_record(episode))
        content = line_digest("episode", line)
        row = (
            episode.id,
            episode.task,
            episode.ending,
            len(episode.steps),
            episode.model,
            episode.policy,
            episode.arm,
            episode.subject,
            time.time(),
            content,
            line,
            self._ns,
            self._encoder.identity,
        )
        for note in notes:
            self._store.check_key("note id", note.id)
        said = [note_row(self._ns, note) for note in notes]
        new = self._store.retrying(lambda: self._commit(str(episode.id), content, row, said))
        self._left = True
        return new

    def _commit(self, episode_id: str, content: bytes, row: tuple[Any, ...], said: Sequence[tuple[Any, ...]]) -> bool:
        for _ in range(_TRIES):
            try:
                if self._arrived(row, said):
                    return True
            except IntegrityError:  # an id of a note is taken: whoever holds the namespace finds another
                return False
            if self._is_stored(episode_id, content):
                return False
            self._again_at = 0.0
            self.fold_waiting()  # a dump that was restored may hold this transaction's number
        raise StoreBusyError(
            f"episode {excerpt(episode_id)}", "others take it away as often as it is added", "Try again."
        )

    def _arrived(self, row: tuple[Any, ...], said: Sequence[tuple[Any, ...]]) -> bool:
        if not said:
            return bool(self._store.commit(_ARRIVE, row))
        with self._store.transaction(None):  # nobody else is kept waiting
            arrived = bool(self._store.execute(f"{_ARRIVE} RETURNING ordinal", row).fetchall())
            if arrived:
                self._store.insert("note", said)
        return arrived

    def _is_stored(self, episode_id: str, content: bytes) -> bool:
        with self._store.snapshot():
            [encoder] = self._store.execute("SELECT encoder FROM namespace WHERE id = ?", (self._ns,)).fetchone()
            known = self._store.execute(
                "SELECT digest FROM episode WHERE namespace_id = ? AND id = ?", (self._ns, episode_id)
            ).fetchone()
        check_same_encoder(encoder, self._encoder.identity)
        if known is not None and known[0] != content:
            raise EpisodeConflictError(
                f"episode {excerpt(episode_id)} is stored with other content",
                "one id names one episode",
                "Use another id, or leave the id to the memory.",
            )
        return known is not None

    def fold(self) -> None:
        """Fold what has arrived, inside a transaction, before anything is written."""
        fold(self._store, self._ns, self._writer)

    def can_fold(self) -> bool:
        """Whether there can be arrivals, and they can be folded from here, now."""
        if not self._store.derives_later or self._store.read_only or self._store.in_transaction():
            return False
        return time.monotonic() >= self._again_at

    def was_refused(self, version: Version) -> bool:
        """Whether this connection was told lately that it may not fold."""
        generation, since = self._refused or (None, 0.0)
        return version.generation == generation and time.monotonic() - since < self.refused_s

    def fold_waiting(self) -> bool:
        """Fold what has arrived, before something is read; return whether all of it could be.

        Where that cannot be, it goes on waiting: the role may not write, the server is a standby, or a writer holds the
        namespace for longer than `FOLD_WAIT_S`.
        """
        if not self.can_fold():
            return False
        version = self._store.version(self._ns)
        if version.waiting is None:
            return True
        if self.was_refused(version):
            return False
        with self._store.lock:
            with self._store.snapshot():
                ordinals = self._store.waiting(self._ns)
            try:
                for start in range(0, len(ordinals), _A_TRANSACTION):
                    with self._store.transaction(self._ns, wait_s=self._wait_s):
                        _fold(self._store, self._ns, self._writer, ordinals[start : start + _A_TRANSACTION])
            except StoreBusyError:
                self._wait_s, self._again_at = AGAIN_WAIT_S, time.monotonic() + AGAIN_S
                return False
            except StoreError as error:
                if not isinstance(error, ReadOnlyStoreError) and not self._store.lacks_rights(error):
                    raise
                self._refused = version.generation, time.monotonic()
                return False
            self._left, self._wait_s = False, FOLD_WAIT_S
            return True

    def close(self) -> None:
        """Fold what this memory left, if that can be done without ado; what cannot be waits for the next reader."""
        if self._left:
            self._left, self._again_at = False, 0.0
            try:
                self.fold_waiting()
            except SeasonedError:
                return
