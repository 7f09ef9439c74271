"""The episode loop and its record."""

from seasoned.agents.curves import Comparison, block_means, compare
from seasoned.agents.episode import EpisodeResult, StepLog, episode_seed, play_episode
from seasoned.agents.record import RunRecord, provenance
from seasoned.agents.run import play_run
from seasoned.agents.uniform import UniformReader

__all__ = [
    "Comparison",
    "EpisodeResult",
    "RunRecord",
    "StepLog",
    "UniformReader",
    "block_means",
    "compare",
    "episode_seed",
    "play_episode",
    "play_run",
    "provenance",
]
