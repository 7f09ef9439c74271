"""Baselines of a comparison, each implemented from its paper."""

from seasoned.agents.baselines.attempts import Attempts
from seasoned.agents.baselines.bm25 import BM25
from seasoned.agents.baselines.full_context import FullContext
from seasoned.agents.baselines.past_successes import ByBM25, BySearch, PastSuccesses
from seasoned.agents.baselines.prompt_evolution import Evolution
from seasoned.agents.baselines.reflection import LessonWriter
from seasoned.agents.baselines.reflexion import Reflexion
from seasoned.agents.baselines.self_consistency import MajorityPolicy, SelfConsistency
from seasoned.agents.baselines.success_criterion import SuccessCriterion
from seasoned.agents.baselines.workflow_memory import Workflows

__all__ = [
    "BM25",
    "Attempts",
    "ByBM25",
    "BySearch",
    "Evolution",
    "FullContext",
    "LessonWriter",
    "MajorityPolicy",
    "PastSuccesses",
    "Reflexion",
    "SelfConsistency",
    "SuccessCriterion",
    "Workflows",
]
