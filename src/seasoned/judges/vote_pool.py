"""Pool of several votes on one step: a reward and its weight."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from seasoned.checks import check_number
from seasoned.errors import InputError, excerpt

__all__ = ["PooledVote", "check_votes", "pool"]


@dataclass(frozen=True, slots=True)
class PooledVote:
    """Pooled votes: a `reward` in [-1, 1], and its `weight` in (0, 1]."""

    reward: float
    weight: float


def check_votes(votes: object) -> int:
    """Return `votes`, the number of votes, if it is odd.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_votes(3)
        3
    """
    if isinstance(votes, bool) or not isinstance(votes, int) or votes < 1 or votes % 2 == 0:
        raise InputError(
            f"votes = {excerpt(votes)}", "votes must be an odd whole number: their median is a vote", "Pass 1, 3 or 5."
        )
    return votes


def pool(votes: Sequence[float]) -> PooledVote:
    """Return the median vote, weighted by the agreement of the votes.

        reward = median(v),  weight = 1 - sum_i |v_i - reward| / k

    The weight is 1 if all votes are equal, so a single vote has weight 1; it is above 0 because k is odd and |v| <= 1.
    If all votes are -1 or 1, `reward * weight` is exactly their mean. In general disagreement shrinks the weighted
    reward towards 0, and a single outlier does not move the median. (The rule is ours; the mean absolute deviation from
    the median is Laplace's measure of spread.)

    Raises:
        InputError: an even number of votes, or one outside [-1, 1].

    Example:
        >>> pool([1.0, 1.0, -1.0])
        PooledVote(reward=1.0, weight=0.33333333333333337)
    """
    check_votes(len(votes))
    for vote in votes:
        check_number("vote", vote, -1.0, 1.0)
    reward = statistics.median(votes)
    deviation = statistics.fmean(abs(vote - reward) for vote in votes)
    return PooledVote(reward, 1.0 - deviation)
