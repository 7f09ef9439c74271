"""Storage of the rewards of rules as feedback."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from seasoned.errors import NotFoundError, excerpt
from seasoned.integrations.conversation import content_id
from seasoned.integrations.rewards.foreign_scores import ForeignScore
from seasoned.integrations.rewards.reward_rules import RewardEvent
from seasoned.memory import Memory
from seasoned.memory.values.author_cap import AuthorCap
from seasoned.types import Outcome, feedback_record

__all__ = ["store_rewards", "store_score"]


def store_rewards(memory: Memory, events: Mapping[str, Sequence[RewardEvent]]) -> None:
    """Store the rewards of episodes, by their ids, as feedback in one transaction.

    The source is that of the rule, the author its name. The same reward again is stored once, and an event that was
    revoked stays revoked. Another reward of the same rule for the same step supersedes it.

    Raises:
        NotFoundError: no such episode or step.
        StoreError: as for `Memory.feedback`.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> from seasoned.integrations.rewards import ToolResult, load_rules
        >>> from seasoned.integrations.step_results import StepResult
        >>> found = [StepResult(0, "make({})", ToolResult("make", "Exit code: 2"))]
        >>> with Memory.open(":memory:") as memory:
        ...     id_ = memory.add(Episode("build", [Step("a change", "make({})")], awaits_feedback=True))
        ...     store_rewards(memory, {id_: load_rules("default").episode_events(found)})
        ...     memory.search("a change", k=1)[0].experience.reward
        -0.1
    """
    memory.feedback_batch(_arguments(id_, event) for id_, found in events.items() for event in found)


def _arguments(episode_id: str, event: RewardEvent) -> dict[str, Any]:
    """Return the arguments of the feedback, with an id that follows from them."""
    given = feedback_record(event.feedback) if isinstance(event.feedback, Outcome) else event.feedback
    content = [episode_id, event.step, event.source, event.rule, given, event.weight]
    about = {"step": event.step, "source": event.source, "author": event.rule, "weight": event.weight}
    return {"episode_id": episode_id, "feedback": event.feedback, "id": content_id("rule", content), **about}


def store_score(
    memory: Memory,
    score: ForeignScore,
    content: object,
    *,
    author: str | None = None,
    cap: AuthorCap | None = None,
    dry_run: bool = False,
) -> str:
    """Store the score of another system as feedback on the first of its targets that is recorded; return its id.

    The same content again is stored once. A later score of the same name and author on the same step supersedes it. As
    any feedback, it ends a running episode of a wrapped client or a gateway.

    Args:
        memory: has the episode.
        score: what is stored.
        content: the score as JSON, from which the id follows.
        author: who sent it.
        cap: on what the author's feedback on the step may count in all.
        dry_run: look for the target, and store nothing.

    Raises:
        NotFoundError: no target is recorded.
        StoreError: as for `Memory.feedback`.
    """
    id_ = content_id("score", [author, content])
    for target in score.targets:
        with contextlib.suppress(NotFoundError):
            if dry_run:
                if memory.response_step(target) is None:
                    memory.get(target)
                return id_
            return memory.feedback(
                target, score.feedback, source=score.source, author=author, weight=score.weight, id=id_, cap=cap
            )
    raise NotFoundError(
        f"a score on {', '.join(map(excerpt, score.targets))}",
        "no response or episode with such an id is recorded",
        "Check the id: that of the response, or of the trace or session by which the episode was recorded.",
    )
