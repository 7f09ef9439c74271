"""The episode loop and its record, and an agent that plans, reasons and acts."""

from seasoned.agents.arm import Arm, InformedReader, Learn, Play, PromptMemory
from seasoned.agents.curves import Comparison, block_means, compare
from seasoned.agents.deciding import DecidedPlay
from seasoned.agents.distilling import DistillBudget, Distilled, distill
from seasoned.agents.episode import EpisodeResult, StepLog, episode_seed, play_episode
from seasoned.agents.ledger import Ledger
from seasoned.agents.reacting import Agent, AgentResult, Asked, Shown, StepEvent, Templates, Unshown, Verdict
from seasoned.agents.record import RunRecord, provenance, read_code, read_lost, read_results
from seasoned.agents.run import play_run
from seasoned.agents.uniform import UniformReader

__all__ = [
    "Agent",
    "AgentResult",
    "Arm",
    "Asked",
    "Comparison",
    "DecidedPlay",
    "DistillBudget",
    "Distilled",
    "EpisodeResult",
    "InformedReader",
    "Learn",
    "Ledger",
    "Play",
    "PromptMemory",
    "RunRecord",
    "Shown",
    "StepEvent",
    "StepLog",
    "Templates",
    "UniformReader",
    "Unshown",
    "Verdict",
    "block_means",
    "compare",
    "distill",
    "episode_seed",
    "play_episode",
    "play_run",
    "provenance",
    "read_code",
    "read_lost",
    "read_results",
]
