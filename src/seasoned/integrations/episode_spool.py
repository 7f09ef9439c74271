"""Episodes of an import that wait until it is known whether another run has a reward."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator

from seasoned.errors import InputError
from seasoned.integrations.json_input import ReadEpisode
from seasoned.memory.values.content_hash import episode_from_record, episode_record

__all__ = ["EpisodeSpool"]

_HELD_BYTES = 16 * 1024 * 1024  # in memory; more is in a temporary file


class EpisodeSpool:
    """Keeps episodes without a reward in order, in memory while they are few, else in a temporary file.

    Example:
        >>> from seasoned import Episode, Step
        >>> spool = EpisodeSpool()
        >>> spool.add("a.jsonl", ReadEpisode(Episode("t", [Step("s", "a")]), 3, None, rewarded=False))
        >>> [(file, read.line, read.episode.task) for file, read in spool.read()]
        [('a.jsonl', 3, 't')]
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_HELD_BYTES, "w+", encoding="utf-8")  # noqa: SIM115 - `read` closes it

    def add(self, file: str, read: ReadEpisode) -> None:
        """Keep an episode.

        Raises:
            InputError: the temporary file cannot be written.
        """
        said = [read.line, read.created_at, read.format, dict(read.skipped), read.reward_fields]
        try:
            self._file.write(json.dumps([file, *said, episode_record(read.episode)]) + "\n")
        except OSError as error:
            raise InputError(
                f"a temporary file: {error.strerror or error}",
                "episodes without a reward wait in it",
                "Free space, or say whether they await feedback: --awaits-feedback, --counts.",
            ) from error

    def read(self) -> Iterator[tuple[str, ReadEpisode]]:
        """Yield the episodes with their files, once."""
        with self._file:
            self._file.seek(0)
            for line in self._file:
                file, number, created_at, format_, skipped, reward_fields, record = json.loads(line)
                yield (
                    file,
                    ReadEpisode(
                        episode_from_record(record),
                        number,
                        created_at,
                        rewarded=False,
                        format=format_,
                        skipped=skipped,
                        reward_fields=tuple(reward_fields),
                    ),
                )
