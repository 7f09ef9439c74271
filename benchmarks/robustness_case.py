"""A case of `robustness.py`: measures of a preset, and the aim of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Measures = Mapping[str, float]
Aim = tuple[str, float]
"""`<=` or `>=`, and a bound."""


@dataclass(frozen=True)
class Case:
    """A situation, its measures by preset, and their aims.

    Args:
        name: of the case.
        measure: the measures of a preset; `quick` with fewer runs.
        aims: by the beginning of a measure's name; the longest that fits counts.
    """

    name: str
    measure: Callable[[str, bool], Measures]
    aims: Mapping[str, Aim] = field(default_factory=dict)

    def _aim(self, measure: str) -> Aim | None:
        fitting = [start for start in self.aims if measure.startswith(start)]
        return self.aims[max(fitting, key=len)] if fitting else None

    def aim_of(self, measure: str) -> str:
        """Return the aim as text; '' if there is none."""
        aim = self._aim(measure)
        return "" if aim is None else f"{aim[0]} {aim[1]:g}"

    def misses(self, measure: str, value: float) -> bool:
        """Return whether the value misses the aim; NaN always does."""
        aim = self._aim(measure)
        if value != value:
            return True
        return aim is not None and (value > aim[1] if aim[0] == "<=" else value < aim[1])
