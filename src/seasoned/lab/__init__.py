"""Analysis of recorded episodes: replay, audit, diagnosis, off-policy evaluation, drift."""

from seasoned.lab.diagnosis.doctor import Diagnosis, diagnose
from seasoned.lab.diagnosis.drift import Drift, drift
from seasoned.lab.diagnosis.flip_audit import FlipAudit, audit
from seasoned.lab.diagnosis.policy_evaluation import PolicyEvaluation, evaluate
from seasoned.lab.diagnosis.replay import ReplayedEpisode, replay

__all__ = [
    "Diagnosis",
    "Drift",
    "FlipAudit",
    "PolicyEvaluation",
    "ReplayedEpisode",
    "audit",
    "diagnose",
    "drift",
    "evaluate",
    "replay",
]
