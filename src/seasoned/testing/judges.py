"""The conformance check of judges."""

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
    """Check the scores of three episodes: valid step indices, finite rewards, equal scores at every call.

    A judge with a model judges two short episodes: its rewards have weights in (0, 1], and its usage counts a call.
    Equal judgements at every call are not checked, because few models give them.

    Raises:
        InputError: the first violation.
        ModelError: the model failed, or its reply cannot be parsed.
    """
    subject = f"judge {name_of(judge)}"
    known = isinstance(judge, Judge | ModelJudge)
    require(known, subject, "it has source, and score or judge", "Add the missing members.")
    source = judge.source
    require(
        isinstance(source, str) and source.strip() != "",
        f"{subject}, source = {source!r}",
        "a source is a text",
        "Name it.",
    )
    if isinstance(judge, ModelJudge):
        _check_model_judge(subject, judge)
        return
    for episode in _EPISODES:
        scores = judge.score(episode)
        for index, reward in scores.items():
            _check_reward(subject, index, reward, episode)
        require(
            dict(judge.score(episode)) == dict(scores), subject, "equal episodes have equal scores", "Keep no state."
        )


def _check_model_judge(subject: str, judge: ModelJudge) -> None:
    with Sync(judge) as sync_judge:
        for episode in _EPISODES[:2]:
            judgement = sync_judge.judge(episode)
            require(
                isinstance(judgement, Judgement),
                f"{subject}: {excerpt(judgement)}",
                "judge returns a Judgement",
                "Build one.",
            )
            require(
                judgement.source == judge.source,
                f"{subject}: source {judgement.source!r}",
                "the source is that of the judge",
                "Copy it.",
            )
            for index, reward in judgement.rewards.items():
                _check_reward(subject, index, reward, episode)
            require(
                set(judgement.weights) == set(judgement.rewards),
                f"{subject}: weights of steps {sorted(judgement.weights)}, rewards of {sorted(judgement.rewards)}",
                "rewards and weights have the same steps",
                "Give each reward a weight.",
            )
            for index, weight in judgement.weights.items():
                require(
                    0.0 < check_number("weight", weight) <= 1.0,
                    f"{subject}: weight {weight} of step {index}",
                    "a weight is in (0, 1]",
                    "Use 1 for full weight.",
                )
            usage = judgement.usage
            counted = isinstance(usage, Usage) and usage.calls + usage.cached_calls >= 1
            require(
                counted, f"{subject}: {excerpt(usage)}", "the usage of a judgement counts its calls", "Add them up."
            )


def _check_reward(subject: str, index: object, reward: object, episode: Episode) -> None:
    n_steps = len(episode.steps)
    require(
        isinstance(index, int) and not isinstance(index, bool) and 0 <= index < n_steps,
        f"{subject} scored step {index!r} of {n_steps}",
        "rewards are keyed by step index, from 0",
        "Use enumerate(episode.steps).",
    )
    check_number(f"reward of {subject} for step {index}", reward)
