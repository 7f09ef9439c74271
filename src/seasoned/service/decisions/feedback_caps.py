"""Caps on what tokens without the scope `admin` give: the size of a reward, and the sum of named ones.

Both are 1, or the limit `max_step_feedback` of the memory (`seasoned memory limits`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator

from seasoned.errors import excerpt
from seasoned.memory import Memory
from seasoned.memory.values.author_cap import AuthorCap, AuthorCapError
from seasoned.service.bearer_tokens import ANYONE, Token
from seasoned.service.permissions import ForbiddenError
from seasoned.types import Episode

__all__ = ["check_episode_rewards", "check_reward_cap", "named_feedback"]

_CAP = 1.0
_NEXT_STEP = "Send less, or ask the operator: seasoned memory limits --max-step-feedback, or a token with admin."


def check_reward_cap(memory: Memory, holder: Token, reward: float, weight: float = 1.0) -> None:
    """Refuse a reward above the cap. Without tokens there is none.

    Raises:
        ForbiddenError: it is.
    """
    if holder is ANYONE or holder.may("admin") or abs(reward * weight) <= _CAP:
        return
    if not abs(reward * weight) <= (cap := _cap(memory)):
        rule = f"without the scope admin a reward is between -{cap:g} and {cap:g} in this memory"
        raise ForbiddenError(f"reward = {reward * weight:g}", rule, _NEXT_STEP)


def check_episode_rewards(memory: Memory, holder: Token, episode: Episode) -> None:
    """Refuse an episode with a step whose reward is above the cap of feedback.

    The single token has no author whom others must not outvote: its episodes have the environment's own units, unless
    the operator set a limit.

    Raises:
        ForbiddenError: it is one.
    """
    if holder.author is None and memory.feedback_limits().max_step_feedback is None:
        return
    check_reward_cap(memory, holder, max((step.reward for step in episode.steps), key=abs, default=0.0))


@contextlib.contextmanager
def named_feedback(holder: Token, source: str, declared: Collection[str]) -> Iterator[AuthorCap | None]:
    """Return a context for storing feedback whose source is a name that the client gave, such as that of a metric.

    The absolute rewards of one author on one step under such names add up to at most the cap, so that many names are no
    many votes. Names that the operator declared do not count.

    Args:
        holder: of the token.
        source: the name.
        declared: names of the operator.

    Returns:
        The cap to store the feedback with; None: there is none.

    Raises:
        ForbiddenError: the sum would be larger.
    """
    if holder.author is None or holder.may("admin") or source in declared:
        yield None
        return
    try:
        yield AuthorCap(_CAP, (holder.source, *declared))
    except AuthorCapError as error:
        next_step = f"{_NEXT_STEP} Or have the name declared: [[score]] in the file of --rewards."
        raise ForbiddenError(f"{error.seen}, with {excerpt(source)}", error.rule, next_step) from error


def _cap(memory: Memory) -> float:
    limit = memory.feedback_limits().max_step_feedback
    return _CAP if limit is None else limit
