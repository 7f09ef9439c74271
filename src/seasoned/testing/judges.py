"""What every judge promises."""

from __future__ import annotations

from seasoned.checks import check_number
from seasoned.errors import excerpt
from seasoned.protocols import Judge, Judgement, ModelJudge, Usage
from seasoned.sync import Sync
from seasoned.testing.requirement import name_of, require
from seasoned.types import Episode, Step

__all__ = ["check_judge"]

_EPISODES = tuple(
    Episode("checkout", steps, final_state=final)
    for steps, final in (
        ([Step("page:cart", "click(checkout)")], None),
        ([Step("page:cart", "wait", -0.5)] * 3, "page:cart"),
        ([Step(f"page:{i}", f"click({i})", float(i)) for i in range(50)], "page:done"),
    )
)


def check_judge(judge: Judge | ModelJudge) -> None:
    """Check the scores of three episodes: known step indices, finite rewards, every time alike.

    A judge that asks a model is asked about two short episodes: its rewards have weights in (0, 1], and a usage that
    counts a call. That it says the same again is not checked: few models do.

    Raises:
        InputError: the first promise that is broken.
        ModelError: the model failed, or did not obey.
    """
    who = f"judge {name_of(judge)}"
    known = isinstance(judge, Judge | ModelJudge)
    require(known, who, "it has source, and score or judge", "Add what is missing.")
    source = judge.source
    require(
        isinstance(source, str) and source.strip() != "",
        f"{who}, source = {source!r}",
        "a source is a text",
        "Name it.",
    )
    if isinstance(judge, ModelJudge):
        _check_model_judge(who, judge)
        return
    for episode in _EPISODES:
        scores = judge.score(episode)
        for index, reward in scores.items():
            _check_reward(who, index, reward, episode)
        require(dict(judge.score(episode)) == dict(scores), who, "equal episodes score alike", "Keep no state.")


def _check_model_judge(who: str, judge: ModelJudge) -> None:
    with Sync(judge) as asked:
        for episode in _EPISODES[:2]:
            found = asked.judge(episode)
            require(isinstance(found, Judgement), f"{who}: {excerpt(found)}", "judge returns a Judgement", "Build one.")
            require(found.source == judge.source, f"{who}: source {found.source!r}", "it is the judge's", "Pass it on.")
            for index, reward in found.rewards.items():
                _check_reward(who, index, reward, episode)
            require(
                set(found.weights) == set(found.rewards),
                f"{who}: weights of steps {sorted(found.weights)}, rewards of {sorted(found.rewards)}",
                "rewards and weights are of the same steps",
                "Give each reward a weight.",
            )
            for index, weight in found.weights.items():
                require(
                    0.0 < check_number("weight", weight) <= 1.0,
                    f"{who}: weight {weight} of step {index}",
                    "a weight is in (0, 1]",
                    "Use 1 for a reward that counts in full.",
                )
            usage = found.usage
            counted = isinstance(usage, Usage) and usage.calls + usage.cached_calls >= 1
            require(counted, f"{who}: {excerpt(usage)}", "a judgement counts the calls that it took", "Add them up.")


def _check_reward(who: str, index: object, reward: object, episode: Episode) -> None:
    n_steps = len(episode.steps)
    require(
        isinstance(index, int) and not isinstance(index, bool) and 0 <= index < n_steps,
        f"{who} scored step {index!r} of {n_steps}",
        "rewards are keyed by step index, from 0",
        "Use enumerate(episode.steps).",
    )
    check_number(f"reward of {who} for step {index}", reward)
