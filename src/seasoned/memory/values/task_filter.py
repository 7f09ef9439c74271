"""What a question leaves out: the steps of a task."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Outside"]


@dataclass(frozen=True, slots=True)
class Outside:
    """Where to look: outside of a task, or everywhere."""

    task: str | None = None

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return self.task is not None

    @property
    def condition(self) -> str:
        """An SQL condition on `episode`, to follow others; `values` are those of its marks."""
        return "" if self.task is None else " AND task <> ?"

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the condition's marks."""
        return () if self.task is None else (self.task,)
