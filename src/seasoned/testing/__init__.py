"""Conformance checks of the protocols: environments, encoders, memories, policies, models, embedders and judges.

Each check takes a real object and raises at its first violation, `EnvError` for environments and `InputError` for the
rest; else it returns None. The checks are not asserts, so they also run under `python -O`.
"""

from seasoned.testing.embedders import check_embedder
from seasoned.testing.encoders import check_encoder
from seasoned.testing.environments import check_environment
from seasoned.testing.judges import check_judge
from seasoned.testing.llms import check_llm
from seasoned.testing.memory import check_memory
from seasoned.testing.policies import check_policy

__all__ = [
    "check_embedder",
    "check_encoder",
    "check_environment",
    "check_judge",
    "check_llm",
    "check_memory",
    "check_policy",
]
