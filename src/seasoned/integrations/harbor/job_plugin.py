"""Plugin for Harbor jobs: imports a job when it has ended."""

from __future__ import annotations

from typing import Any

from seasoned.checks import check_text
from seasoned.integrations.harbor.job_import import JobImport, import_job
from seasoned.memory import Memory

__all__ = ["LearnFromJob"]


class LearnFromJob:
    """`harbor run --plugin seasoned.integrations.harbor:LearnFromJob --plugin-kwarg memory=agent.db ...`.

    Trials in test mode are always refused (`import_job`).

    Args:
        memory: a file, made if it does not exist, or `postgresql://...`.
        namespace: of the memory.
        reward_key: name of the reward, if there are several.
    """

    def __init__(self, memory: str, namespace: str = "default", reward_key: str | None = None) -> None:
        self.imported: JobImport | None = None
        self._memory = check_text("memory", memory)
        self._namespace = check_text("namespace", namespace)
        self._reward_key = reward_key
        self._folder: Any = None

    async def on_job_start(self, job: Any) -> None:
        """Store the job's folder."""
        self._folder = job.job_dir

    async def on_job_end(self, job_result: Any) -> None:
        """Import the job's trials."""
        del job_result
        with Memory.open(self._memory, namespace=self._namespace) as memory:
            self.imported = import_job(memory, self._folder, reward_key=self._reward_key)
