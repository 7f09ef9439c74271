"""Importers of foreign files as episodes: trajectories, telemetry, transcripts."""

from typing import TYPE_CHECKING

from seasoned.lazy_names import lazy_names

if TYPE_CHECKING:
    from seasoned.integrations.formats import FORMATS, read_episodes
    from seasoned.integrations.json_input import FileLine, ReadEpisode, ReadResult, Refusal, bounded_lines

__all__ = ["FORMATS", "FileLine", "ReadEpisode", "ReadResult", "Refusal", "bounded_lines", "read_episodes"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "seasoned.integrations.formats": ["FORMATS", "read_episodes"],
        "seasoned.integrations.json_input": ["FileLine", "ReadEpisode", "ReadResult", "Refusal", "bounded_lines"],
    },
)
