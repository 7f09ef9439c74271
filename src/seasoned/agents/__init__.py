"""The episode loop and its record, and an agent that plans, reasons and acts."""

from seasoned.agents.baselines.uniform_reader import UniformReader
from seasoned.agents.cascade.decided_by import DecidedPlay
from seasoned.agents.cascade.distillation import DistillBudget, Distilled, distill
from seasoned.agents.loop.arm import Arm, InformedReader, Learn, Play, PromptMemory
from seasoned.agents.loop.episode import episode_seed, play_episode
from seasoned.agents.loop.step_log import EpisodeLog, StepLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.agents.react import Agent, AgentResult, Asked, Shown, StepEvent, Templates, Unshown, Verdict
from seasoned.agents.runs.cost_ledger import Ledger
from seasoned.agents.runs.learning_curves import Comparison, block_means, compare
from seasoned.agents.runs.run import play_run
from seasoned.agents.runs.run_record import RunRecord, provenance, read_code, read_lost, read_results

__all__ = [
    "Agent",
    "AgentResult",
    "Arm",
    "Asked",
    "Comparison",
    "DecidedPlay",
    "DistillBudget",
    "Distilled",
    "EpisodeLog",
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
