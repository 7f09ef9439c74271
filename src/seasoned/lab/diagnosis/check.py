"""What a check of a memory says: the numbers it saw, the rule, and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Check", "Number", "finding_if", "not_checked", "share"]

Verdict = Literal["finding", "fine", "not checked"]
Number = int | float | str | None


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Args:
        name: what was checked.
        verdict: `finding`, `fine`, or `not checked` where too little was recorded to say.
        seen: the numbers, in words.
        rule: what they were held against.
        next_step: what to change; None unless it is a finding.
        numbers: the same numbers, for a program.
    """

    name: str
    verdict: Verdict
    seen: str
    rule: str
    next_step: str | None = None
    numbers: Mapping[str, Number] = field(default_factory=dict)


def finding_if(
    broken: bool, name: str, seen: str, *, rule: str, next_step: str, numbers: Mapping[str, Number]
) -> Check:
    """Return a check that found something if the rule is broken, and is fine otherwise."""
    if broken:
        return Check(name, "finding", seen, rule, next_step, numbers)
    return Check(name, "fine", seen, rule, None, numbers)


def not_checked(name: str, seen: str, rule: str, **numbers: Number) -> Check:
    """Return a check that could not be made."""
    return Check(name, "not checked", seen, rule, None, numbers)


def share(part: int, whole: int, of: str) -> str:
    """Return a part of a whole as a person reads it.

    Example:
        >>> share(3, 40, "steps")
        '3 of 40 steps (8 %)'
    """
    return f"{part} of {whole} {of} ({100 * part / whole:.0f} %)" if whole else f"0 of 0 {of}"
