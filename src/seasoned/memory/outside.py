"""What a question leaves out: the steps of a task, and single steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from seasoned.errors import InputError, excerpt
from seasoned.types import check_step, check_text

__all__ = ["MAX_LEFT_OUT", "Outside", "check_steps"]

MAX_LEFT_OUT = 10_000
"""How many single steps one question may leave out."""


def check_steps(steps: object) -> frozenset[tuple[str, int]]:
    """Return stored steps as (episode id, step), each once.

    Raises:
        InputError: they are something else, or more than 10,000.

    Example:
        >>> sorted(check_steps([("e1", 0), ["e1", 2], ("e1", 0)]))
        [('e1', 0), ('e1', 2)]
    """
    if isinstance(steps, str | bytes) or not isinstance(steps, Collection):
        raise InputError(
            f"exclude_steps = {excerpt(steps)}", "they are a collection of (episode id, step)", "Pass a list."
        )
    if len(steps) > MAX_LEFT_OUT:
        raise InputError(
            f"{len(steps)} steps to exclude", f"a question leaves out at most {MAX_LEFT_OUT}", "Exclude the task."
        )
    found = set()
    for one in steps:
        if isinstance(one, str | bytes) or not isinstance(one, Collection) or len(one) != 2:
            raise InputError(f"exclude_steps: {excerpt(one)}", "a step is (episode id, step)", "Pass ('e1', 0), say.")
        episode_id, step = one
        found.add((check_text("episode id", episode_id), check_step(step)))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Outside:
    """Where to look: outside of a task, and of some visits; each visit with its distinct state and its action."""

    task: str | None = None
    visits: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return self.task is not None or bool(self.visits)

    @property
    def sets(self) -> frozenset[int]:
        """The distinct states at which single steps are left out."""
        return frozenset(set_id for set_id, _ in self.visits.values())

    @property
    def groups(self) -> frozenset[tuple[int, int]]:
        """The distinct states and actions of which single steps are left out."""
        return frozenset(self.visits.values())

    @property
    def condition(self) -> str:
        """An SQL condition on `step` and `episode`, to follow others; `values` are those of its marks."""
        task = "" if self.task is None else " AND task <> ?"
        # Numbers of ours, so that no mark is needed for each.
        visits = f" AND step.visit NOT IN ({', '.join(map(str, sorted(self.visits)))})" if self.visits else ""
        return task + visits

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the condition's marks."""
        return () if self.task is None else (self.task,)
