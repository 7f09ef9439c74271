"""`seasoned memory judge`: let a model score the steps of stored episodes."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import click

from seasoned.cli.format.output import echo_fields, echo_json, number, printable
from seasoned.cli.format.run_display import usage_line
from seasoned.cli.memory.common_options import (
    example,
    find_episode,
    json_option,
    memory_argument,
    namespace_option,
    writing,
)
from seasoned.cli.run import model_options, model_settings
from seasoned.errors import ModelAnswerError, counted
from seasoned.judges import JudgeAgreement, LLMJudge, add_judgement, agreement
from seasoned.judges.episode_view import check_finished
from seasoned.llms import LLM_SPECIFICATIONS, open_llm
from seasoned.memory import Memory
from seasoned.protocols import LLM, Judgement
from seasoned.types import Episode

__all__ = ["judge"]


@click.command(
    epilog=example(
        "seasoned memory judge agent.db --model openai:gpt-4o-mini --votes 3 --source judge:gpt-4o-mini",
        "seasoned memory judge agent.db --episode 4f2a --hide-outcome --again",
    )
)
@memory_argument
@click.option("--model", default="local", show_default=True, help=f"{', '.join(LLM_SPECIFICATIONS)}.")
@click.option("--votes", default=1, show_default=True, metavar="N", help="For each step; an odd number.")
@click.option("--source", default="judge", show_default=True, metavar="NAME", help="Recorded with every reward.")
@click.option("--hide-outcome", is_flag=True, help="Do not tell the judge the score and the ending.")
@click.option("--rubric", metavar="TEXT", help="What counts, in your words.")
@click.option("--episode", "episode_ids", multiple=True, metavar="ID", help="Only this one; may be repeated.")
@click.option("--again", is_flag=True, help="Also what this source has judged; the new scores supersede.")
@click.option("--chunk-steps", default=10, show_default=True, metavar="N", help="Judged in one call, at most.")
@click.option("--text-chars", default=1000, show_default=True, metavar="N", help="Of a state that is shown.")
@click.option("--retries", default=2, show_default=True, metavar="N", help="After a refused reply.")
@click.option("--seed", default=0, show_default=True, metavar="N", help="Of the first vote.")
@click.option("--example", "show_example", is_flag=True, help="Show the model a judged episode first.")
@click.option("--cache", type=click.Path(dir_okay=False), help="Keep the model's answers in this file.")
@model_options
@namespace_option
@json_option
def judge(
    path: str,
    model: str,
    source: str,
    hide_outcome: bool,
    episode_ids: tuple[str, ...],
    again: bool,
    votes: int,
    rubric: str | None,
    chunk_steps: int,
    text_chars: int,
    retries: int,
    seed: int,
    show_example: bool,
    cache: str | None,
    namespace: str | None,
    as_json: bool,
    **about_model: Any,
) -> None:
    """Let a model score finished episodes.

    It gives every step a score in [-1, 1], which is stored as feedback. Episodes that SOURCE has judged are left
    alone, so that the same command again goes on where it stopped. A reply that breaks a rule is asked for again,
    then refused: that episode stays unjudged, the others go on, and the command ends with code 5. Aborted and
    quarantined episodes are not judged. Where the environment gave rewards, the scores are compared with them.
    """
    with writing(path, namespace) as memory:
        llm = open_llm(model, cache, **model_settings(about_model))
        asked = LLMJudge(
            llm,
            votes=votes,
            show_outcome=not hide_outcome,
            rubric=rubric,
            example=show_example,
            chunk_steps=chunk_steps,
            text_chars=text_chars,
            retries=retries,
            seed=seed,
            source=source,
        )
        wanted, skipped = _wanted(memory, episode_ids, source, again=again)
        began = time.perf_counter()
        judged, refused = asyncio.run(_judge_all(memory, llm, asked, wanted))
        seconds = time.perf_counter() - began
    _echo(llm.name, asked, judged, refused, skipped, seconds, _beside_the_truth(wanted, judged), as_json=as_json)
    if refused:
        raise ModelAnswerError(
            f"{counted(len(refused), 'episode')} of {len(wanted)} refused",
            "a judgement is whole, or there is none; what was judged is stored",
            "Use a model that follows instructions, or fewer --chunk-steps; the same command judges what is left.",
        )


def _wanted(
    memory: Memory, episode_ids: Sequence[str], source: str, *, again: bool
) -> tuple[list[Episode], Counter[str]]:
    """Return the episodes to judge, and how many are left out, by reason. Those that are named must be finished."""
    named = [find_episode(memory, id_) for id_ in episode_ids]
    for episode in named:
        check_finished(episode)
    spoken: defaultdict[str, set[int]] = defaultdict(set)  # a judge that was killed while it spoke speaks again
    for event in memory.events():
        if event.source == source:
            spoken[event.episode_id].add(event.step)
    aside, _ = memory.excluded_ids()
    wanted: dict[str, Episode] = {}
    skipped: Counter[str] = Counter()
    for episode in named or memory.episodes():
        id_ = str(episode.id)
        if episode.ending == "aborted":
            skipped["aborted"] += 1
        elif id_ in aside:
            skipped["quarantined"] += 1
        elif len(spoken[id_]) == len(episode.steps) and not again:
            skipped["judged already"] += 1
        else:
            wanted[id_] = episode
    return list(wanted.values()), skipped


async def _judge_all(
    memory: Memory, llm: LLM, judge: LLMJudge, episodes: Sequence[Episode]
) -> tuple[dict[str, Judgement], dict[str, str]]:
    """Return the judgements that were stored, and why the others were refused, by episode."""
    judged: dict[str, Judgement] = {}
    refused: dict[str, str] = {}
    try:
        for place, episode in enumerate(episodes, start=1):
            id_ = str(episode.id)
            try:
                judged[id_] = await judge.judge(episode)
            except ModelAnswerError as error:
                refused[id_] = str(error)
                click.echo(printable(f"refused: {place}/{len(episodes)} {id_}: {error}"), err=True)
                continue
            add_judgement(memory, id_, judged[id_])
    finally:
        await llm.aclose()
    return judged, refused


def _beside_the_truth(episodes: Sequence[Episode], judged: Mapping[str, Judgement]) -> JudgeAgreement | None:
    """How far the scores agree with the environment's rewards; None where it gave none."""
    known = [episode for episode in episodes if str(episode.id) in judged]
    if not any(step.reward for episode in known for step in episode.steps):
        return None
    return agreement(known, [judged[str(episode.id)] for episode in known])


def _echo(
    model: str,
    judge: LLMJudge,
    judged: Mapping[str, Judgement],
    refused: Mapping[str, str],
    skipped: Counter[str],
    seconds: float,
    beside: JudgeAgreement | None,
    *,
    as_json: bool,
) -> None:
    n_steps = sum(len(one.rewards) for one in judged.values())
    if as_json:
        echo_json(
            {
                "source": judge.source,
                "model": model,
                "judged": list(judged),
                "steps": n_steps,
                "skipped": dict(skipped),
                "refused": [{"episode_id": id_, "reason": reason} for id_, reason in refused.items()],
                "usage": dataclasses.asdict(judge.spent),
                "agreement": beside
                and {**dataclasses.asdict(beside), "accuracy": beside.accuracy, "kappa": beside.kappa},
            }
        )
        return
    rewards = [reward for one in judged.values() for reward in one.rewards.values()]
    weights = [weight for one in judged.values() for weight in one.weights.values()]
    fields = {"judged": f"{counted(len(judged), 'episode')}, {counted(n_steps, 'step')}, as {judge.source!r}"}
    if rewards:
        fields["mean score"] = f"{number(fmean(rewards))}, between {number(min(rewards))} and {number(max(rewards))}"
        fields["mean weight"] = number(fmean(weights))
    fields["left alone"] = ", ".join(f"{count} {reason}" for reason, count in skipped.items()) or "none"
    fields["refused"] = str(len(refused))
    fields["usage"] = usage_line(judge.spent, seconds)
    echo_fields(fields)
    if beside is not None:
        click.echo(f"\nbeside the environment's rewards\n{beside}")
