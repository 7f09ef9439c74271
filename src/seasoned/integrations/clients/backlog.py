"""Episodes that wait in this process while the store is down."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable

from seasoned.errors import (
    EncoderMismatchError,
    EpisodeConflictError,
    ReadOnlyStoreError,
    RedactionMismatchError,
    StoreError,
    counted,
)
from seasoned.integrations.clients.ended_episode import EndedEpisode
from seasoned.memory import Memory

__all__ = ["Backlog"]

_RETRY_S = 5.0
_MAX_CHARS = 64 * 2**20
_REFUSED = (EncoderMismatchError, EpisodeConflictError, ReadOnlyStoreError, RedactionMismatchError)
_LOG = logging.getLogger("seasoned.clients")


class Backlog:
    """Stores ended episodes in their order; while the store fails, they wait.

    After a failure `add` leaves the store alone for `retry_s`, since an attempt may take half a minute. Beyond
    `max_chars` the oldest episodes are lost. The log has one line when the store begins to fail, one when episodes
    begin to be lost, and one when the store takes them again.

    Args:
        memory: takes the episodes.
        refused: called with the error of an episode that the store will never take; the next ones go on.
        retry_s: in seconds.
        max_chars: the states and actions that may wait.

    Not safe for threads: one thread adds the episodes.
    """

    def __init__(
        self,
        memory: Memory,
        refused: Callable[[Exception], None],
        *,
        retry_s: float = _RETRY_S,
        max_chars: int = _MAX_CHARS,
    ) -> None:
        self._memory = memory
        self._refused = refused
        self._retry_s, self._max_chars = retry_s, max_chars
        self._waiting: deque[EndedEpisode] = deque()
        self._n_chars = self._n_lost = 0
        self._failed_at: float | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the store failed, and has taken no episode since."""
        return self._failed_at is not None

    def add(self, episode: EndedEpisode) -> None:
        """Store an episode after those that wait; it waits as well while the store fails."""
        self.keep(episode)
        if self._failed_at is None or time.monotonic() - self._failed_at >= self._retry_s:
            with contextlib.suppress(StoreError):  # which was logged
                self.flush()

    def keep(self, episode: EndedEpisode) -> None:
        """Let an episode wait."""
        self._waiting.append(episode)
        self._n_chars += episode.size_chars
        while self._n_chars > self._max_chars and len(self._waiting) > 1:
            lost = self._taken()
            self._n_lost += 1
            if self._n_lost == 1:
                _LOG.error("LOST: too many episodes wait for the store; the first that is lost is %s.", lost.id)

    def flush(self) -> None:
        """Store all that waits.

        Raises:
            StoreError: the store failed; what is left waits on.
        """
        while self._waiting:
            try:
                self._waiting[0].store(self._memory)
            except StoreError as error:
                if not isinstance(error, _REFUSED):
                    self._fail(error)
                    raise
                self._refuse(error)
            except Exception as error:
                self._refuse(error)
            self._taken()
        if self._failed_at is not None:
            lost = f"; {counted(self._n_lost, 'episode')} were lost" if self._n_lost else ""
            _LOG.warning("The store takes episodes again: all that waited are stored%s.", lost)
            self._failed_at, self._n_lost = None, 0

    def _refuse(self, error: Exception) -> None:
        self._waiting[0].set_aside(error)
        self._refused(error)

    def lose(self) -> None:
        """Name in the log what still waits at the end, and let go of it."""
        left = [episode for episode in self._waiting if episode.is_kept]
        lost = [episode for episode in self._waiting if not episode.is_kept]
        if left:
            ids = ", ".join(episode.id for episode in left)
            _LOG.warning("The next process stores %s, whose calls are on disk: %s", counted(len(left), "episode"), ids)
        if lost:
            ids = ", ".join(episode.id for episode in lost)
            _LOG.error("LOST: the store did not take %s: %s", counted(len(lost), "episode"), ids)
        self._waiting.clear()

    def _taken(self) -> EndedEpisode:
        episode = self._waiting.popleft()
        self._n_chars -= episode.size_chars
        return episode

    def _fail(self, error: StoreError) -> None:
        if self._failed_at is None:
            _LOG.warning("The store fails: episodes wait in this process until it takes them. %s", error)
        self._failed_at = time.monotonic()
