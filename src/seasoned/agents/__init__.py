"""The episode loop and its record."""

from seasoned.agents.arm import Arm, InformedReader, Learn, Play, PromptMemory
from seasoned.agents.curves import Comparison, block_means, compare
from seasoned.agents.episode import EpisodeResult, StepLog, episode_seed, play_episode
from seasoned.agents.record import RunRecord, provenance, read_results
from seasoned.agents.run import play_run
from seasoned.agents.uniform import UniformReader

__all__ = [
    "Arm",
    "Comparison",
    "EpisodeResult",
    "InformedReader",
    "Learn",
    "Play",
    "PromptMemory",
    "RunRecord",
    "StepLog",
    "UniformReader",
    "block_means",
    "compare",
    "episode_seed",
    "play_episode",
    "play_run",
    "provenance",
    "read_results",
]
