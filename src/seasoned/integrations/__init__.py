"""Importers of foreign files as episodes: trajectories, telemetry, transcripts."""

from seasoned.integrations.formats import FORMATS, read_episodes
from seasoned.integrations.json_input import FileLine, ReadEpisode, ReadResult, Refusal, bounded_lines

__all__ = ["FORMATS", "FileLine", "ReadEpisode", "ReadResult", "Refusal", "bounded_lines", "read_episodes"]
