"""Checks of the episodes that await feedback."""

from __future__ import annotations

from collections.abc import Sequence

from seasoned.lab.diagnosis.check_result import CheckResult, finding_if, share
from seasoned.memory import AwaitingEpisode, Event, FeedbackRule

__all__ = ["check_awaiting", "check_rule_failures"]

_MAX_SHARE = 0.5
_OF_RULES = "rules"  # the source of rewards by rules, or its begin, `rules:tests`
_MIN_EPISODES = 3
_UNITS_S = {"days": 86_400.0, "hours": 3600.0, "minutes": 60.0}


def check_awaiting(
    n_episodes: int, awaiting: Sequence[AwaitingEpisode], rule: FeedbackRule, now: float
) -> list[CheckResult]:
    """Check that most episodes are judged; nothing where no episode awaits feedback and none ever will.

    Args:
        n_episodes: of the namespace, without aborted ones.
        awaiting: those that await feedback.
        rule: of the namespace.
        now: in seconds since 1970.
    """
    if not awaiting and not rule.required:
        return []
    oldest_s = max((now - one.created_at for one in awaiting), default=0.0)
    overdue = sum(one.due_at is not None and one.due_at <= now for one in awaiting)
    seen = f"{share(len(awaiting), n_episodes, 'episodes')} await feedback, and are no evidence until then"
    if awaiting:
        seen += f"; the oldest for {_age_text(oldest_s)}"
    if overdue:
        seen += f"; {overdue} beyond the deadline"
    return [
        finding_if(
            len(awaiting) >= _MIN_EPISODES and len(awaiting) > _MAX_SHARE * n_episodes,
            "episodes that await feedback",
            seen,
            rule=f"at most {_MAX_SHARE:.0%} of the episodes, or fewer than {_MIN_EPISODES}",
            next_step="Judge them (memory.feedback, seasoned memory judge), or say what silence means: "
            "seasoned memory limits MEMORY --deadline 7d --silence 0.",
            numbers={"episodes": n_episodes, "awaiting": len(awaiting), "oldest_s": oldest_s, "overdue": overdue},
        )
    ]


def check_rule_failures(
    events: Sequence[Event], awaiting: Sequence[AwaitingEpisode], rule: FeedbackRule
) -> list[CheckResult]:
    """Check that rules judge more than failures; nothing where they gave few rewards.

    An episode in which no rule found a failure awaits feedback. So if rules find nothing else, what is compared and
    learned from are the episodes that failed.

    Args:
        events: that count.
        awaiting: episodes that await feedback.
        rule: of the namespace.
    """
    rewards = [event.reward for event in events if event.source.partition(":")[0] == _OF_RULES]
    if len(rewards) < _MIN_EPISODES:
        return []
    n_good = sum(reward >= 0 for reward in rewards)
    has_deadline = rule.policy is not None and rule.policy.deadline_s is not None
    return [
        finding_if(
            not n_good and len(awaiting) >= _MIN_EPISODES and not has_deadline,
            "rules that find failures only",
            f"{share(n_good, len(rewards), 'rewards of rules')} are 0 or more; {len(awaiting)} episodes await feedback",
            rule=f"some, or fewer than {_MIN_EPISODES} episodes await feedback, or silence has a meaning",
            next_step="Only episodes with a failure are compared and learned from. If an episode without one is good "
            "news, say so: seasoned memory limits MEMORY --deadline 1h --silence 0.",
            numbers={"rewards": len(rewards), "not_negative": n_good, "awaiting": len(awaiting)},
        )
    ]


def _age_text(age_s: float) -> str:
    unit, unit_s = next(((unit, size) for unit, size in _UNITS_S.items() if age_s >= 2.0 * size), ("seconds", 1.0))
    return f"{age_s / unit_s:.0f} {unit}"
