"""Stored episodes, exact retrieval, aggregated evidence."""

from seasoned.memory.events import Event
from seasoned.memory.keeping import Copy, Erasure
from seasoned.memory.memory import Memory
from seasoned.memory.pruning import Budget, Pruning
from seasoned.memory.recorder import EpisodeRecorder
from seasoned.memory.selection import Quarantine, Selection
from seasoned.memory.stats import MemoryStats
from seasoned.memory.verify import Verification

__all__ = [
    "Budget",
    "Copy",
    "EpisodeRecorder",
    "Erasure",
    "Event",
    "Memory",
    "MemoryStats",
    "Pruning",
    "Quarantine",
    "Selection",
    "Verification",
]
