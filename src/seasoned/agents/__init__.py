"""The episode loop and its record."""

from seasoned.agents.episode import EpisodeResult, StepLog, episode_seed, play_episode
from seasoned.agents.record import RunRecord, provenance
from seasoned.agents.run import play_run
from seasoned.agents.uniform import UniformReader

__all__ = [
    "EpisodeResult",
    "RunRecord",
    "StepLog",
    "UniformReader",
    "episode_seed",
    "play_episode",
    "play_run",
    "provenance",
]
