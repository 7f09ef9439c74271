"""The memory of an agent: episodes in, neighbours and evidence out."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from types import TracebackType
from typing import Literal, Self, TypeVar

from seasoned.checks import check_text
from seasoned.core import check_gamma
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.memory.namespace import Namespace, enter_namespace, list_namespaces
from seasoned.memory.parts.recall import Recalling
from seasoned.memory.pending.inbox import CachingEncoder, Inbox
from seasoned.memory.reading.reader import Reader
from seasoned.memory.retrieval.retriever import Retriever
from seasoned.memory.stats import MemoryStats, gather_stats
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.registry import open_store
from seasoned.memory.values.corruption import EncoderFailedError
from seasoned.memory.values.text_limits import check_max_text_bytes, check_sizes
from seasoned.memory.verify import Verification, verify
from seasoned.memory.writing.episode_writer import Writer, with_id
from seasoned.memory.writing.note_records import NoteWriter
from seasoned.memory.writing.recorder import EpisodeRecorder
from seasoned.protocols import StateEncoder
from seasoned.types import Backup, Episode, Evidence, Neighbor, Note

__all__ = ["Memory"]

MAX_TEXT_BYTES = 1024 * 1024
Redact = Callable[[str], str]
Text = TypeVar("Text", str, str | None)


class Memory(Recalling):
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

    def __init__(
        self, store: Store, entered: Namespace, encoder: StateEncoder, max_text_bytes: int, redact: Redact | None
    ) -> None:
        self.namespace = entered.name
        self.gamma = entered.gamma
        self.encoder = encoder
        self.max_text_bytes = max_text_bytes
        self._redact = redact
        self._store = store
        self._id = entered.id
        if store.pending is not None:
            encoder = CachingEncoder(encoder)
        self._reader = Reader(store, entered.id)
        self._writer = Writer(store, entered.id, encoder)
        self._inbox = Inbox(store, entered.id, encoder, self._writer)
        self._retriever = Retriever(store, entered.id, self._reader, self._writer, self._inbox, encoder, max_text_bytes)

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
        redact: Redact | None = None,
    ) -> Memory:
        """Open a memory; make it if it does not exist.

        Args:
            path: a file, ":memory:" for one that is gone when it is closed, or `postgresql://...` for a shared store.
            namespace: the caller's key (a site, an agent); nothing is read across namespaces.
            gamma: the discount of `search().return_`, in [0, 1]. None: the namespace's own, 0.95 for a new one.
            encoder: turns a state into the features that similarity compares. None: the default token encoder.
            create: make the file and the namespace if they do not exist.
            read_only: refuse every write.
            reindex: if the namespace was encoded by another encoder, encode it again with this one.
            max_text_bytes: the largest state or action that is accepted, as UTF-8.
            redact: rewrites states, actions, tasks and reasons before they are stored or looked up, such as
                `seasoned.states.Redactor`; and the texts of notes and feedback. Ids, subjects, sources, authors and
                names stay: erasure needs them. What is learned about an action is learned about its redacted text.

        Raises:
            InputError: gamma, the namespace or the size limit breaks a rule.
            NotFoundError: there is no such file or namespace, and `create` is False.
            ForeignStoreError, NewerStoreError: the file is not ours, or is newer than we are. It is left as it was.
            EncoderMismatchError: the namespace was encoded by another encoder, and `reindex` is False.
        """
        check_text("namespace", namespace)
        max_text_bytes = check_max_text_bytes(max_text_bytes)
        if gamma is not None:
            check_gamma(gamma)
        if encoder is not None and not isinstance(encoder, StateEncoder):
            raise InputError(
                f"encoder = {excerpt(encoder)}", "an encoder has an identity and features()", "See seasoned.states."
            )
        if encoder is None:
            from seasoned.states import TokenEncoder  # a quarter of the package's import time

            encoder = TokenEncoder()
        store = open_store(path, create=create, read_only=read_only)
        writes = create and not read_only
        try:
            entered = store.retrying(
                lambda: enter_namespace(store, namespace, gamma, encoder, create=writes, reindex=reindex)
            )
            return cls(store, entered, encoder, max_text_bytes, redact)
        except BaseException:
            store.close()
            raise

    @staticmethod
    def namespaces(path: str | os.PathLike[str], *, read_only: bool = True) -> dict[str, str]:
        """Return the namespaces of a store, each with the identity of its encoder.

        With `read_only=False` an older store is migrated, and an empty file becomes a store.

        Raises:
            NotFoundError, ForeignStoreError, NewerStoreError: as for `open`.
        """
        return list_namespaces(path, read_only=read_only)

    # ------------------------------------------------------------------------------------------ writing

    def add(self, episode: Episode) -> str:
        """Store a finished episode, whole or not at all, and return its id. On disk when this returns.

        With an explicit id it is idempotent: the same content again is a no-op. On PostgreSQL it is committed as it
        came; it waits for nobody but who encodes the namespace anew. Whoever looks next derives its evidence.

        Raises:
            InputError: it breaks a rule; nothing was written.
            EpisodeConflictError: its id is stored with other content.
            StoreError: the disk is full, busy (for 30 s: StoreBusyError) or broken; nothing was written.
        """
        return self._add_noted(episode, ())

    def _add_noted(self, episode: Episode, notes: Sequence[Note]) -> str:
        """Store an episode, and what was noted while it was played."""
        named = with_id(self._checked(episode))
        if self._inbox.add(named, notes):
            return str(named.id)

        def change() -> None:  # also for notes that come again: those that are known are left alone
            self._writer.add([(named, None)])
            NoteWriter(self._store, self._id).add_recorded(notes)

        if notes or self._store.pending is None:
            self._write(change)
        return str(named.id)

    def add_many(self, episodes: Iterable[Episode]) -> list[str]:
        """Store several episodes in one transaction, all or none, and return their ids."""
        named = [with_id(self._checked(episode)) for episode in episodes]
        self._write(lambda: self._writer.add([(episode, None) for episode in named]))
        return [str(episode.id) for episode in named]

    def _derive_before_read(self) -> None:
        self._inbox.try_derive()

    def _derive_before_write(self) -> None:
        self._inbox.derive_all()

    def _checked(self, episode: Episode) -> Episode:
        if not isinstance(episode, Episode):
            raise InputError(f"episode = {excerpt(episode)}", "add() takes an Episode", "Build it with Episode(...).")
        if self._redact is not None:
            from seasoned.states.redaction import redact_episode

            episode = redact_episode(episode, self._redact)
        check_sizes(episode, self.max_text_bytes)
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
        """Return a recorder of a new episode: record its steps inside the context; `get` reads a stored one.

        It commits on exit; an exception marks the episode aborted.
        """
        check_text("task", task)
        self._store.check_open()
        fields = {"id": id, "model": model, "policy": policy, "arm": arm, "subject": subject}

        def commit(episode: Episode, notes: Sequence[Note]) -> str:
            return self._add_noted(episode, notes) if notes else self.add(episode)

        return EpisodeRecorder(commit, task, fields, self._own_note)

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

        At or above `threshold` (Jaccard, in [0, 1]); ties by recency, the later step first. Steps of aborted episodes
        are never found, nor is anything of an episode that has not ended, nor steps of `exclude_task`.

        Raises:
            InputError: the state is blank or too large, k is below 1, or the threshold is outside [0, 1].
        """
        gamma = self.gamma if gamma is None else gamma
        state, exclude_task = self._redacted(state), self._redacted(exclude_task)
        return self._store.retrying(
            lambda: self._retriever.search(state, k, threshold, gamma=gamma, exclude_task=exclude_task)
        )

    def _redacted(self, text: Text) -> Text:
        """Return a text that is asked for as it would be stored; what is no text is refused later."""
        return self._redact(text) if self._redact is not None and isinstance(text, str) else text

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
        backup: Backup | None = None,
        propensity_floor: float | None = None,
        shown_steps: Collection[tuple[str, int]] = (),
    ) -> Evidence:
        """Return what is known about the moments most like `state`, per action.

        `unit="steps"`: the k most similar stored steps. `unit="states"`: all steps at the k most similar distinct
        states, read from aggregates, so that the cost does not grow with how often a state was visited (with
        `exclude_task` all steps there are summed anew). A step's weight is
        `similarity^similarity_power * decay^age_in_episodes`.

        With `backup`, `totals` and `squares` are not of the returns that were played,
        but of values backed up through the graph of all stored steps (`seasoned.core.ValueGraph`): episodes are
        combined. Counts, weights and spread stay; the scatter of the returns around their means stays in `squares`.

        With `propensity_floor`, a step weighs `1 / max(propensity, floor)` as well, and `weights` are effective numbers
        of steps; all steps at the states are summed anew (see `seasoned.policies.JitRLSettings`).

        With `shown_steps`, as (episode id, step), at most 10,000, `unshown` says how many of each action's steps are
        none of these: what the model has read in its prompt stays in the sums, and adds no weight to a shift. What is
        not stored, or no neighbour, is passed over.

        Raises:
            InputError: as for `search`; or `similarity_power` < 0, `decay` outside (0, 1], a floor outside [1e-6, 1] or
                with `unit="steps"`, or with `backup` gamma = 1.
        """
        gamma = self.gamma if gamma is None else gamma
        state, exclude_task = self._redacted(state), self._redacted(exclude_task)
        return self._store.retrying(
            lambda: self._retriever.evidence(
                state,
                k=k,
                unit=unit,
                threshold=threshold,
                gamma=gamma,
                similarity_power=similarity_power,
                decay=decay,
                exclude_task=exclude_task,
                backup=backup,
                propensity_floor=propensity_floor,
                shown_steps=shown_steps,
            )
        )

    # ------------------------------------------------------------------------------------------ the whole
    def __len__(self) -> int:
        """Return the number of stored steps, aborted episodes included."""
        return self._read(self._reader.step_count)

    def get(self, episode_id: str) -> Episode:
        """Return a stored episode with the environment's rewards.

        Raises:
            NotFoundError: no such episode.
        """
        check_text("episode id", episode_id)
        for _, _, _, episode in self._read(lambda: list(self._reader.episodes(id_=episode_id))):
            return episode
        raise NotFoundError(
            f"episode {excerpt(episode_id)}", "it is not in this namespace", "List what is: memory.episodes()."
        )

    def episodes(self, *, task: str | None = None, last: int | None = None) -> list[Episode]:
        """Return stored episodes in commit order: all, those of one task, or the last few."""
        if task is not None:
            check_text("task", task)
        if last is not None and (isinstance(last, bool) or not isinstance(last, int) or last < 1):
            raise InputError(
                f"last = {excerpt(last)}", "it must be a whole number, at least 1", "Leave it out to list all."
            )
        about = self._redacted(task)
        return [one for _, _, _, one in self._read(lambda: list(self._reader.episodes(task=about, last=last)))]

    def verify(self) -> Verification:
        """Check that the store is whole: hash all that is raw, derive again all that is derived.

        Returns:
            What was checked, with `.hash` over the raw content: equal content gives equal hashes in any store.

        Raises:
            IntegrityError: at the first disagreement; the message says what.
        """
        try:
            return self._read(lambda: verify(self._store, self._id, self.namespace, self.encoder.features))
        except EncoderFailedError as failed:
            raise failed.reason from None

    def stats(self) -> MemoryStats:
        """Return what this namespace holds."""

        def attempt() -> MemoryStats:
            with self._retriever.view(self.gamma, 1.0) as view_id:
                spread = self._retriever.spread(view_id)
                return gather_stats(self._store, self._id, self.namespace, self.encoder.identity, self.gamma, spread)

        return self._store.retrying(attempt)

    def known_gammas(self) -> tuple[float, ...]:
        """Return the discounts at which returns are stored, in ascending order.

        A search at another discount computes its returns and stores them, and every later write keeps them up.

        Example:
            >>> with Memory.open(":memory:", gamma=0.5) as memory:
            ...     _ = memory.search("cart", gamma=1.0)
            ...     memory.known_gammas()
            (0.5, 1.0)
        """
        sql = "SELECT DISTINCT gamma FROM view WHERE namespace_id = ? AND decay = 1.0 ORDER BY gamma"
        rows = self._read(lambda: self._store.execute(sql, (self._id,)).fetchall())
        return tuple(float(row[0]) for row in rows)

    def close(self) -> None:
        """Close the store. What was added is on disk already; what nobody has derived yet is, if that can be done."""
        try:
            self._inbox.close()
        finally:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
