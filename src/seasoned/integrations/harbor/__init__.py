"""Harbor and Terminal-Bench: our agent in their containers, their agents with our examples, and import of their jobs.

Learning and testing are separate: an agent never reads the grader's files and never writes to a memory. The reward of a
trial is imported afterwards from the job's folder (`import_job`), which refuses trials that ran as a test.

Two further names, `SeasonedAgent` (see `ActingAgent`) and `WithExamples` (see `WrappedAgent`), are created on first
access, since they subclass Harbor's own agent (extra `harbor`, Python 3.12 or newer).
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
    """Create the agents that Harbor loads by this module's path."""
    if name not in ("SeasonedAgent", "WithExamples"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from seasoned.integrations.harbor.agent_classes import seasoned_agent, with_examples

    return seasoned_agent() if name == "SeasonedAgent" else with_examples()
