"""What people already have, read as episodes: trajectories, telemetry, transcripts."""

from seasoned.integrations.formats import FORMATS, read_episodes
from seasoned.integrations.json_input import Accepted, Line, Read, Refusal, bounded_lines

__all__ = ["FORMATS", "Accepted", "Line", "Read", "Refusal", "bounded_lines", "read_episodes"]
