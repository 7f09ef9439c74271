"""Stored episodes, exact retrieval, aggregated evidence."""

from seasoned.memory.events import Event
from seasoned.memory.memory import Memory
from seasoned.memory.recorder import EpisodeRecorder
from seasoned.memory.stats import MemoryStats
from seasoned.memory.verify import Verification

__all__ = ["EpisodeRecorder", "Event", "Memory", "MemoryStats", "Verification"]
