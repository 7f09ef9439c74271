"""Conformance checks for the protocols, for whoever writes an environment, encoder, memory, policy, model or judge.

Each takes a real object and raises at the first promise that it breaks, `EnvError` for environments and `InputError`
for the rest; a pass returns None. They are not asserts: they hold under `python -O` too.
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
