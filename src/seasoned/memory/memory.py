"""The memory of an agent: episodes in, neighbours and evidence out."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

import numpy as np

from seasoned.core import check_gamma
from seasoned.errors import ConfigError, EncoderMismatchError, InputError, NotFoundError, excerpt
from seasoned.memory import lines as json_lines
from seasoned.memory.database import Database, store_errors
from seasoned.memory.events import Event
from seasoned.memory.reader import Reader
from seasoned.memory.recorder import EpisodeRecorder
from seasoned.memory.retrieval import Retriever, check_size
from seasoned.memory.schema import STEP_BITS
from seasoned.memory.verify import Verification, verify
from seasoned.memory.writer import Writer
from seasoned.protocols import StateEncoder
from seasoned.types import Episode, Evidence, Neighbor, check_finite, check_reward, check_text

__all__ = ["Memory", "MemoryStats"]

DEFAULT_GAMMA = 0.95
MAX_TEXT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """What a namespace holds. `spread` is the robust spread of its returns at `gamma`, in reward units."""

    path: str
    namespace: str
    encoder: str
    gamma: float
    episodes: int
    aborted: int
    steps: int
    states: int
    distinct_states: int
    actions: int
    tasks: int
    feedback: int
    mean_episode_reward: float | None
    spread: float
    file_bytes: int | None


class Memory:
    """Stored episodes of one namespace, with exact retrieval.

    Open one with `Memory.open`. Safe to share between threads, and between processes on one file: each sees the others'
    committed episodes at its next query. What `add` returned from is on disk.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> with Memory.open(":memory:", namespace="shop", gamma=0.5) as memory:
        ...     episode_id = memory.add(Episode(task="checkout", steps=[
        ...         Step("page:cart total:12", "click(checkout)", 0.0), Step("page:pay", "click(confirm)", 1.0)]))
        ...     [neighbor] = memory.search("page:cart total:12", k=10, threshold=0.8)
        ...     neighbor.experience.return_
        0.5
    """

    def __init__(self, database: Database, namespace: str, gamma: float | None, encoder: StateEncoder, *, create: bool,
                 reindex: bool, max_text_bytes: int) -> None:  # fmt: skip
        self.encoder = encoder
        self.namespace = namespace
        self.max_text_bytes = max_text_bytes
        self._db = database
        with store_errors(database.path):
            self._id, self.gamma = self._enter_namespace(gamma, create=create, reindex=reindex)
        self._reader = Reader(database, self._id)
        self._writer = Writer(database, self._id, encoder)
        self._retriever = Retriever(database, self._id, encoder, self._writer, max_text_bytes)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        namespace: str = "default",
        gamma: float | None = None,
        encoder: StateEncoder | None = None,
        create: bool = True,
        read_only: bool = False,
        reindex: bool = False,
        max_text_bytes: int = MAX_TEXT_BYTES,
    ) -> Memory:
        """Open a memory; make it if it does not exist.

        Args:
            path: a file, or ":memory:" for one that is gone when it is closed.
            namespace: the caller's key (a site, an agent); nothing is ever read across namespaces.
            gamma: the discount of `search().return_`, in [0, 1]. None: the namespace's own, 0.95 for a new one.
            encoder: turns a state into the features that similarity compares. None: the default token encoder.
            create: make the file and the namespace if they do not exist.
            read_only: refuse every write.
            reindex: if the namespace was encoded by another encoder, encode it again with this one.
            max_text_bytes: the largest state or action that is accepted, as UTF-8.

        Raises:
            InputError: gamma or the namespace breaks a rule.
            NotFoundError: there is no such file or namespace, and `create` is False.
            ForeignStoreError, NewerStoreError: the file is not ours, or is newer than we are. It is left as it was.
            EncoderMismatchError: the namespace was encoded by another encoder, and `reindex` is False.
        """
        check_text("namespace", namespace)
        if gamma is not None:
            check_gamma(gamma)
        if str(path).startswith(("postgresql://", "postgres://")):
            raise ConfigError(excerpt(str(path)), "this version stores memories in SQLite files", "Name a file.")
        if encoder is None:
            from seasoned.states import TokenEncoder  # a quarter of the package's import time

            encoder = TokenEncoder()
        database = Database(path, create=create, read_only=read_only)
        try:
            return cls(database, namespace, gamma, encoder, create=create and not read_only,
                       reindex=reindex, max_text_bytes=max_text_bytes)  # fmt: skip
        except BaseException:
            database.close()
            raise

    @staticmethod
    def namespaces(path: str | os.PathLike[str]) -> dict[str, str]:
        """Return the namespaces of a store, each with the identity of its encoder.

        Raises:
            NotFoundError, ForeignStoreError, NewerStoreError: as for `open`.
        """
        database = Database(path, create=False, read_only=True)
        try:
            with store_errors(database.path):
                return dict(database.execute("SELECT name, encoder FROM namespace ORDER BY name").fetchall())
        finally:
            database.close()

    def _enter_namespace(self, gamma: float | None, *, create: bool, reindex: bool) -> tuple[int, float]:
        find = "SELECT id, encoder, gamma FROM namespace WHERE name = ?"
        row = self._db.execute(find, (self.namespace,)).fetchone()
        if row is None:
            if not create:
                known = [name for (name,) in self._db.execute("SELECT name FROM namespace ORDER BY name")]
                raise NotFoundError(
                    f"namespace {excerpt(self.namespace)}",
                    f"this memory has {', '.join(map(repr, known)) or 'none'}",
                    "Choose one.",
                )
            with self._db.transaction():
                self._db.execute(
                    "INSERT INTO namespace (name, encoder, gamma, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
                    (self.namespace, self.encoder.identity, DEFAULT_GAMMA if gamma is None else gamma, time.time()),
                )
            row = self._db.execute(find, (self.namespace,)).fetchone()
        if row[1] != self.encoder.identity:
            if not reindex:
                raise EncoderMismatchError(
                    f"encoder {self.encoder.identity!r}",
                    f"namespace {self.namespace!r} was encoded by {row[1]!r}, and features of two encoders are never mixed",
                    "Open it with that encoder, or pass reindex=True to encode it again.",
                )
            with self._db.transaction():
                Writer(self._db, row[0], self.encoder).reindex()
        return row[0], row[2] if gamma is None else gamma

    # ------------------------------------------------------------------------------------------ writing

    def add(self, episode: Episode) -> str:
        """Store a finished episode, whole or not at all, and return its id. On disk when this returns.

        With an explicit id it is idempotent: the same content again is a no-op.

        Raises:
            InputError: it breaks a rule; nothing was written.
            EpisodeConflictError: its id is stored with other content.
            StoreError: the disk is full, busy or broken; nothing was written.
        """
        return self.add_many([episode])[0]

    def add_many(self, episodes: Iterable[Episode]) -> list[str]:
        """Store several episodes in one transaction, all or none, and return their ids."""
        checked = [self._checked(episode) for episode in episodes]
        with self._db.transaction():
            return [self._writer.add(episode) for episode in checked]

    def _checked(self, episode: Episode) -> Episode:
        if not isinstance(episode, Episode):
            raise InputError(f"episode = {excerpt(episode)}", "add() takes an Episode", "Build it with Episode(...).")
        for step in episode.steps:
            check_size("state", step.state, self.max_text_bytes)
            for action in (step.action, *(step.prior or ())):
                check_size("action", action, self.max_text_bytes)
        for name in ("task", "final_state", "id", "model", "policy", "arm", "subject"):
            check_size(name, getattr(episode, name) or "", self.max_text_bytes)
        return episode

    def episode(
        self,
        task: str,
        *,
        id: str | None = None,  # noqa: A002  (the contract's name)
        model: str | None = None,
        policy: str | None = None,
        arm: str | None = None,
        subject: str | None = None,
    ) -> EpisodeRecorder:
        """Return a recorder: record the steps inside its context, it commits on exit; an exception marks it aborted."""
        check_text("task", task)
        fields = {"id": id, "model": model, "policy": policy, "arm": arm, "subject": subject}
        return EpisodeRecorder(self.add, task, fields)

    def feedback(
        self,
        episode_id: str,
        reward: float,
        step: int | None = None,
        source: str = "human",
        *,
        author: str | None = None,
        weight: float = 1.0,
    ) -> str:
        """Add `weight * reward` to a step's reward, as an event; returns and evidence are derived again.

        The same source, author and step supersedes what it said before.

        Args:
            episode_id: as `add` returned it.
            reward: in reward units.
            step: its index; None for the last step.
            source: who speaks (`human`, `judge`, `tests`, ...).
            author: which one of them.
            weight: how much this source counts.

        Returns:
            The event's id, for `revoke`.

        Raises:
            InputError: a value breaks a rule.
            NotFoundError: no such episode or step.
        """
        check_text("episode id", episode_id)
        check_text("source", source)
        if author is not None:
            check_text("author", author)
        reward, weight = check_reward("reward", reward), check_finite("weight", weight)
        check_reward("reward * weight", reward * weight)
        with self._db.transaction():
            if step is None:
                step = self._last_step(episode_id)
            elif isinstance(step, bool) or not isinstance(step, int | np.integer):
                raise InputError(f"step = {excerpt(step)}", "a step is named by its index", "Count from 0.")
            event = Event(uuid.uuid4().hex, episode_id, int(step), reward, weight, source, author, time.time())
            self._writer.feedback(event)
        return event.id

    def _last_step(self, episode_id: str) -> int:
        row = self._db.execute(
            "SELECT steps FROM episode WHERE namespace_id = ? AND id = ?", (self._id, episode_id)
        ).fetchone()
        return max(row[0] - 1, 0) if row else 0

    def revoke(self, event_id: str) -> None:
        """Take a feedback event back; the step's reward and the returns follow. What it superseded stays superseded.

        Raises:
            NotFoundError: no such event.
        """
        check_text("event id", event_id)
        with self._db.transaction():
            self._writer.revoke(event_id, at=time.time())

    # ------------------------------------------------------------------------------------------ retrieval

    def search(
        self,
        state: str,
        k: int = 10,
        threshold: float = 0.0,
        *,
        gamma: float | None = None,
        exclude_task: str | None = None,
    ) -> list[Neighbor]:
        """Return the k stored steps whose states are most like `state`, best first; exact.

        At or above `threshold` (Jaccard, in [0, 1]); ties by recency, the later step first. Steps of aborted episodes are
        never found, nor is anything of an episode that has not ended, nor steps of `exclude_task`.

        Raises:
            InputError: the state is blank or too large, k is below 1, or the threshold is outside [0, 1].
        """
        return self._retriever.search(
            state, k, threshold, gamma=self.gamma if gamma is None else gamma, exclude_task=exclude_task
        )

    def evidence(
        self,
        state: str,
        *,
        k: int,
        unit: Literal["steps", "states"],
        threshold: float,
        gamma: float | None = None,
        similarity_power: float = 0.0,
        decay: float = 1.0,
        exclude_task: str | None = None,
    ) -> Evidence:
        """Return what is known about the moments most like `state`, per action.

        `unit="steps"`: the k most similar stored steps. `unit="states"`: all steps at the k most similar distinct states,
        read from aggregates, so that the cost does not grow with how often a state was visited (with `exclude_task` the
        steps are read one by one). A step's weight is `similarity^similarity_power * decay^age_in_episodes`.

        Raises:
            InputError: as for `search`; or `similarity_power` < 0, or `decay` outside (0, 1].
        """
        return self._retriever.evidence(
            state,
            k=k,
            unit=unit,
            threshold=threshold,
            gamma=self.gamma if gamma is None else gamma,
            similarity_power=similarity_power,
            decay=decay,
            exclude_task=exclude_task,
        )

    # ------------------------------------------------------------------------------------------ the whole

    def __len__(self) -> int:
        """Return the number of stored steps, aborted episodes included."""
        with self._db.snapshot():
            row = self._db.execute("SELECT coalesce(sum(steps), 0) FROM episode WHERE namespace_id = ?", (self._id,))
            return int(row.fetchone()[0])

    def get(self, episode_id: str) -> Episode:
        """Return a stored episode with the environment's rewards.

        Raises:
            NotFoundError: no such episode.
        """
        check_text("episode id", episode_id)
        with self._db.snapshot():
            for _, _, _, episode in self._reader.episodes("AND episode.id = ?", episode_id):
                return episode
        raise NotFoundError(
            f"episode {excerpt(episode_id)}", "it is not in this namespace", "List what is: memory.episodes()."
        )

    def episodes(self, *, task: str | None = None, last: int | None = None) -> list[Episode]:
        """Return stored episodes in commit order: all, those of one task, or the last few."""
        where, parameters = ("", ()) if task is None else ("AND task = ?", (check_text("task", task),))
        if last is not None and (isinstance(last, bool) or not isinstance(last, int) or last < 1):
            raise InputError(f"last = {excerpt(last)}", "it is a whole number, at least 1", "None lists all.")
        with self._db.snapshot():
            if last is not None:
                row = self._db.execute(
                    f"SELECT min(ordinal) FROM (SELECT ordinal FROM episode WHERE namespace_id = ? {where} "
                    "ORDER BY ordinal DESC LIMIT ?)",
                    (self._id, *parameters, min(last, sys.maxsize)),
                ).fetchone()
                where, parameters = f"{where} AND ordinal >= ?", (*parameters, row[0] if row[0] is not None else 0)
            return [episode for _, _, _, episode in self._reader.episodes(where, *parameters)]

    def events(self, episode_id: str | None = None) -> list[Event]:
        """Return feedback events in the order in which they were given, revoked ones included."""
        where, parameters = (
            ("", ()) if episode_id is None else ("AND episode.id = ?", (check_text("episode id", episode_id),))
        )
        with self._db.snapshot():
            return [event for _, event in self._reader.events(where, *parameters)]

    def verify(self) -> Verification:
        """Check that the store is whole: hash all that is raw, derive again all that is derived.

        Returns:
            What was checked, with `.hash` over the raw content: equal content gives equal hashes in any store.

        Raises:
            IntegrityError: at the first disagreement; the message says what.
        """
        with self._db.snapshot():
            return verify(self._db, self._id, self.namespace, self.encoder.features)

    def stats(self) -> MemoryStats:
        """Return what this namespace holds."""
        with self._retriever.view(self.gamma, 1.0) as view_id:
            row = self._db.execute(
                "SELECT count(*), coalesce(sum(ending = 'aborted'), 0), coalesce(sum(steps), 0), count(DISTINCT task) "
                "FROM episode WHERE namespace_id = ?",
                (self._id,),
            ).fetchone()
            counts = self._db.execute(
                "SELECT states, feature_sets, actions, events FROM namespace WHERE id = ?", (self._id,)
            ).fetchone()
            rewards = self._db.execute(
                f"SELECT sum(reward + feedback), count(DISTINCT visit >> {STEP_BITS}) FROM step WHERE namespace_id = ? AND live",
                (self._id,),
            ).fetchone()
            pages = self._db.execute(
                "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            ).fetchone()
            return MemoryStats(
                path=self._db.path,
                namespace=self.namespace,
                encoder=self.encoder.identity,
                gamma=self.gamma,
                episodes=row[0],
                aborted=row[1],
                steps=row[2],
                states=counts[0],
                distinct_states=counts[1],
                actions=counts[2],
                tasks=row[3],
                feedback=counts[3],
                mean_episode_reward=rewards[0] / rewards[1] if rewards[1] else None,
                spread=self._retriever.spread(view_id),
                file_bytes=pages[0],
            )

    def export(self) -> Iterator[str]:
        """Yield the namespace as JSON Lines: a header, episodes in commit order, feedback in the order given."""
        with self._db.snapshot():
            header = {"namespace": self.namespace, "encoder": self.encoder.identity, "gamma": self.gamma}
            yield from json_lines.export_lines(self._reader, header)

    def import_lines(self, lines: Iterable[str]) -> tuple[int, int]:
        """Store what `export` gave, all or nothing; what is stored already is left alone.

        Returns:
            How many episodes and feedback events were new.

        Raises:
            InputError: a line is wrong; the message names it, and nothing was imported.
        """
        parsed = list(json_lines.parse_lines(lines))
        with self._db.transaction():
            before = self._counts()
            said: dict[str, int] = {}
            for number, item in parsed:
                with json_lines.naming(number, item):
                    if isinstance(item, Event):
                        said.setdefault(item.id, number)
                        self._writer.feedback(item)
                    else:
                        self._writer.add(self._checked(item[0]), created_at=item[1])
            for event_id in self._reader.broken_supersessions():
                with json_lines.naming(said.get(event_id, len(parsed)), event_id):
                    raise ValueError("an event is superseded by a later one of its source, author and step")
            after = self._counts()
        return after[0] - before[0], after[1] - before[1]

    def _counts(self) -> tuple[int, int]:
        row = self._db.execute("SELECT episodes, events FROM namespace WHERE id = ?", (self._id,)).fetchone()
        return row[0], row[1]

    def close(self) -> None:
        """Close the store. What was added is on disk already."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
