"""The result of one check of a memory: numbers, rule and next step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["CheckResult", "CheckVerdict", "Number", "finding_if", "not_checked", "share"]

CheckVerdict = Literal["finding", "fine", "not checked"]
Number = int | float | str | None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Args:
        name: the subject of the check.
        verdict: `finding`, `fine`, or `not checked` where too little was recorded.
        seen: the measured numbers, in words.
        rule: the rule that they must meet.
        next_step: the advice; None unless the verdict is `finding`.
        numbers: the same numbers, for a program.
        command: the next step as a line for a shell; None if it needs a decision of the reader.
    """

    name: str
    verdict: CheckVerdict
    seen: str
    rule: str
    next_step: str | None = None
    numbers: Mapping[str, Number] = field(default_factory=dict)
    command: str | None = None


def finding_if(
    broken: bool,
    name: str,
    seen: str,
    *,
    rule: str,
    next_step: str,
    numbers: Mapping[str, Number],
    command: str | None = None,
) -> CheckResult:
    """Return a finding if the rule is broken, else a result that is fine."""
    if broken:
        return CheckResult(name, "finding", seen, rule, next_step, numbers, command)
    return CheckResult(name, "fine", seen, rule, None, numbers)


def not_checked(name: str, seen: str, rule: str, **numbers: Number) -> CheckResult:
    """Return the result of a check that had too few records."""
    return CheckResult(name, "not checked", seen, rule, None, numbers)


def share(part: int, whole: int, of: str) -> str:
    """Return a part of a whole in words.

    Example:
        >>> share(3, 40, "steps")
        '3 of 40 steps (8 %)'
    """
    return f"{part} of {whole} {of} ({100 * part / whole:.0f} %)" if whole else f"0 of 0 {of}"
