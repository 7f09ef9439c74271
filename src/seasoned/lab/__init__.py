"""Looking at what was recorded: replay, audit, diagnosis, off-policy evaluation, drift."""

from seasoned.lab.audit import Audit, audit
from seasoned.lab.doctor import Diagnosis, diagnose
from seasoned.lab.drift import Drift, drift
from seasoned.lab.evaluation import Evaluation, evaluate
from seasoned.lab.replay import ReplayedEpisode, replay

__all__ = [
    "Audit",
    "Diagnosis",
    "Drift",
    "Evaluation",
    "ReplayedEpisode",
    "audit",
    "diagnose",
    "drift",
    "evaluate",
    "replay",
]
