"""What every judge promises."""

from __future__ import annotations

from seasoned.protocols import Judge
from seasoned.testing.demands import name_of, require
from seasoned.types import Episode, Step, check_finite

__all__ = ["check_judge"]


def check_judge(judge: Judge) -> None:
    """Check the scores of three episodes: known step indices, finite rewards, every time alike.

    Raises:
        InputError: the first promise that is broken.
    """
    who = f"judge {name_of(judge)}"
    require(isinstance(judge, Judge), who, "it has source and score", "Add what is missing.")
    source = judge.source
    require(
        isinstance(source, str) and source.strip() != "",
        f"{who}, source = {source!r}",
        "a source is a text",
        "Name it.",
    )
    for steps, final in (
        ([Step("page:cart", "click(checkout)")], None),
        ([Step("page:cart", "wait", -0.5)] * 3, "page:cart"),
        ([Step(f"page:{i}", f"click({i})", float(i)) for i in range(50)], "page:done"),
    ):
        episode = Episode("checkout", steps, final_state=final)
        scores = judge.score(episode)
        for index, reward in scores.items():
            require(
                isinstance(index, int) and not isinstance(index, bool) and 0 <= index < len(steps),
                f"{who} scored step {index!r} of {len(steps)}",
                "rewards are keyed by step index, from 0",
                "Use enumerate(episode.steps).",
            )
            check_finite(f"reward of {who} for step {index}", reward)
        require(dict(judge.score(episode)) == dict(scores), who, "equal episodes score alike", "Keep no state.")
