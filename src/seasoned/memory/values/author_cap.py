"""Cap on the feedback of one author, as a program sets it that takes feedback from others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from seasoned.errors import InputError

__all__ = ["AuthorCap", "AuthorCapError"]


class AuthorCapError(InputError):
    """The feedback of one author on one step would exceed its cap."""


@dataclass(frozen=True, slots=True)
class AuthorCap:
    """What one author's unrevoked feedback on a step may count in all: so many sources are no many votes.

    It is checked in the transaction that stores the feedback, so that it holds for all processes.

    Args:
        limit: of the sum of `reward * weight`, signs left out: else revocations would leave a larger sum. A namespace
            with `max_step_feedback` (`FeedbackLimits`) has that limit instead.
        excepted: sources that do not count.

    Example:
        >>> AuthorCap(1.0, ("human",)).check("step 0", [0.5, -0.25], 0.25, None)
        >>> try:
        ...     AuthorCap(1.0).check("step 0", [0.5, -0.25], 0.5, None)
        ... except AuthorCapError as error:
        ...     print(error.seen)
        1.25 of step 0
    """

    limit: float
    excepted: tuple[str, ...] = ()

    @classmethod
    def from_record(cls, record: Mapping[str, Any] | None) -> Self | None:
        """Return the cap of a spooled entry; None: it has none."""
        return None if record is None else cls(float(record["limit"]), tuple(record["excepted"]))

    def check(self, place: str, others: Iterable[float], new: float, max_step_feedback: float | None) -> None:
        """Refuse feedback beyond the limit.

        Args:
            place: the step, for the message.
            others: `reward * weight` of the author's other feedback on the step.
            new: the same of the new feedback.
            max_step_feedback: the limit of the namespace.

        Raises:
            AuthorCapError: it is.
        """
        limit = self.limit if max_step_feedback is None else max_step_feedback
        total = math.fsum(map(abs, [*others, new]))
        if total > limit and not math.isclose(total, limit):
            raise AuthorCapError(
                f"{total:g} of {place}",
                f"the feedback of one author on one step adds up to at most {limit:g}, signs left out",
                "Send less, or revoke other feedback of the step.",
            )
