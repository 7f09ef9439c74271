"""What a memory gives out and takes in whole. The part of `Memory` that exports and imports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seasoned.memory.parts.source_weights import Sources
from seasoned.memory.transfer import jsonl as json_lines
from seasoned.memory.transfer.importer import Once, import_parsed
from seasoned.memory.writing.episode_writer import Writer, with_id
from seasoned.protocols import StateEncoder
from seasoned.types import Episode, Note

__all__ = ["Exchange"]


class Exchange(Sources):
    """Exports and imports one namespace."""

    namespace: str
    gamma: float
    encoder: StateEncoder
    _writer: Writer

    def _checked(self, episode: Episode) -> Episode:
        """Return an episode as it may be stored."""
        return episode

    def _checked_note(self, note: Note) -> Note:
        """Return a note as it may be stored."""
        return note

    def export(self) -> Iterator[str]:
        """Yield the namespace as JSON Lines: a header, episodes in commit order, feedback, quarantines, notes.

        It is what the memory held at the first line; the memory may be used while the lines are read.
        """
        header = {"namespace": self.namespace, "encoder": self.encoder.identity, "gamma": self.gamma}
        return json_lines.export_lines(self._store, self._reader, header)

    def import_lines(self, lines: Iterable[str], *, dry_run: bool = False) -> tuple[int, int]:
        """Store what `export` gave, all or nothing; what is stored already is left alone.

        Returns:
            How many episodes and feedback events were new, or would be: a dry run takes everything back.

        Raises:
            InputError: a line is wrong; the message names it, and nothing was imported.
        """
        parsed = Once(json_lines.parse_lines(lines), self._store.path)
        return self._write(
            lambda: import_parsed(self._store, self._id, self._writer, self._checked, self._checked_note, parsed),
            dry_run=dry_run,
        )

    def import_episodes(self, episodes: Iterable[tuple[Episode, float | None]], *, dry_run: bool = False) -> int:
        """Store episodes, each with the time at which it was stored elsewhere (None for now); all or none.

        Returns:
            How many were not stored already; a dry run takes everything back.

        Raises:
            InputError, EpisodeConflictError, StoreError: as for `add`; nothing was imported.
        """
        timed = [(with_id(self._checked(episode)), created_at) for episode, created_at in episodes]
        counts: list[int] = []
        self._write(lambda: counts.append(self._writer.add(timed)), dry_run=dry_run)
        return max(counts)  # of several attempts, one may have been committed though its answer was lost
