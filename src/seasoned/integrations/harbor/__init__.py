"""Harbor and Terminal-Bench: an agent of ours in their containers, theirs with our examples, and what both teach.

Learning and testing are apart: an agent never looks at the grader and never writes to a memory; what a trial was worth
is read afterwards from the job's folder (`import_job`), and a trial that was run as a test is refused there.

Two names more are here, made when they are asked for, since they subclass Harbor's own agent (extra `harbor`, Python
3.12 or newer): `SeasonedAgent`, see `ActingAgent`, and `WithExamples`, see `WrappedAgent`.
"""

from __future__ import annotations

from typing import Any

from seasoned.integrations.harbor.acting_agent import ActingAgent
from seasoned.integrations.harbor.container import CommandRunner, ContainerShell
from seasoned.integrations.harbor.grader_fence import GRADER_PATHS, grader_path
from seasoned.integrations.harbor.job_import import JobImport, Trial, import_job, read_job
from seasoned.integrations.harbor.job_plugin import LearnFromJob
from seasoned.integrations.harbor.wrapped_agent import WrappedAgent

__all__ = [
    "GRADER_PATHS",
    "ActingAgent",
    "CommandRunner",
    "ContainerShell",
    "JobImport",
    "LearnFromJob",
    "Trial",
    "WrappedAgent",
    "grader_path",
    "import_job",
    "read_job",
]


def __getattr__(name: str) -> Any:
    """Make the agents that Harbor names by this module's path."""
    if name not in ("SeasonedAgent", "WithExamples"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from seasoned.integrations.harbor.agent_classes import seasoned_agent, with_examples

    return seasoned_agent() if name == "SeasonedAgent" else with_examples()
