"""Episode loops, runs and their records, cascades, and an agent that plans, reasons and acts."""

from seasoned.agents.baselines.uniform_reader import UniformReader
from seasoned.agents.cascade.attribution import CascadePlay
from seasoned.agents.cascade.distillation import DistillationBudget, DistillationResult, distill
from seasoned.agents.loop.arm import Arm, InformedReader, Learn, Play, PromptMemory
from seasoned.agents.loop.episode import episode_seed, play_episode
from seasoned.agents.loop.step_log import EpisodeLog, StepLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.agents.react import (
    Agent,
    AgentResult,
    DiscountedEvidence,
    ModelCall,
    PromptImpression,
    StepEvent,
    Templates,
    VerifyResult,
)
from seasoned.agents.runs.cost_ledger import Ledger
from seasoned.agents.runs.curve_comparison import CurveComparison, block_means, compare_curves
from seasoned.agents.runs.run import play_run
from seasoned.agents.runs.run_record import RunRecord, provenance, read_code, read_lost_usage, read_results

__all__ = [
    "Agent",
    "AgentResult",
    "Arm",
    "CascadePlay",
    "CurveComparison",
    "DiscountedEvidence",
    "DistillationBudget",
    "DistillationResult",
    "EpisodeLog",
    "EpisodeResult",
    "InformedReader",
    "Learn",
    "Ledger",
    "ModelCall",
    "Play",
    "PromptImpression",
    "PromptMemory",
    "RunRecord",
    "StepEvent",
    "StepLog",
    "Templates",
    "UniformReader",
    "VerifyResult",
    "block_means",
    "compare_curves",
    "distill",
    "episode_seed",
    "play_episode",
    "play_run",
    "provenance",
    "read_code",
    "read_lost_usage",
    "read_results",
]
