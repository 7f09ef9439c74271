"""Looking at what was recorded: replay, audit, diagnosis, off-policy evaluation, drift."""

from seasoned.lab.diagnosis.doctor import Diagnosis, diagnose
from seasoned.lab.diagnosis.drift import Drift, drift
from seasoned.lab.diagnosis.flip_audit import Audit, audit
from seasoned.lab.diagnosis.policy_evaluation import Evaluation, evaluate
from seasoned.lab.diagnosis.replay import ReplayedEpisode, replay

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
