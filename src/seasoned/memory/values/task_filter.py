"""Filter of queries: all episodes, or all but those with one task."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TaskFilter"]


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Excludes the episodes with a task; None: excludes nothing."""

    task: str | None = None

    def __bool__(self) -> bool:
        """Whether anything is excluded."""
        return self.task is not None

    @property
    def condition(self) -> str:
        """SQL condition on `episode`, appended to other conditions; `values` are its parameters."""
        return "" if self.task is None else " AND task <> ?"

    @property
    def values(self) -> tuple[str, ...]:
        """Parameters of the condition."""
        return () if self.task is None else (self.task,)
