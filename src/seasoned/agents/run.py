"""Many episodes: each is scored before it is written, committed when it ends, and skipped when a run is resumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, cast

from seasoned.agents.episode import EpisodeResult, StepLog, episode_seed, play_episode
from seasoned.agents.record import RunRecord, new_run_id
from seasoned.errors import ConfigError, InputError, NotFoundError
from seasoned.judges.judging import FeedbackMemory, give_feedback, judge_episode
from seasoned.protocols import Chooser, Environment, Judge, ModelJudge, Policy, PriorReader, Usage
from seasoned.types import Episode

__all__ = ["EpisodeMemory", "play_run"]


class EpisodeMemory(FeedbackMemory, Protocol):
    """What a run asks of a memory; see `seasoned.Memory` for what each does."""

    def episode(
        self,
        task: str,
        *,
        id: str | None,  # noqa: A002
        model: str | None,
        policy: str | None,
        arm: str | None,
    ) -> AbstractContextManager[object]:
        """Return a recorder that commits the episode on exit."""
        ...

    def get(self, episode_id: str) -> Episode:
        """Return a stored episode."""
        ...


async def play_run(
    environment: Environment,
    policy: Policy,
    reader: PriorReader | Chooser,
    *,
    memory: EpisodeMemory | None,
    episodes: int,
    seed: int,
    run_id: str | None = None,
    record: RunRecord | None = None,
    judges: tuple[Judge | ModelJudge, ...] = (),
    arm: str | None = None,
    progress: Callable[[int, EpisodeResult], None] = lambda episode, result: None,
) -> list[EpisodeResult]:
    """Play episodes one after the other, and return how each went.

    Episode e has the id `run_id-e` and the seed `episode_seed(seed, e)`, so that a run that was broken off goes on
    where it stopped: what the record, or the memory under this run's id, holds is not played again. What the record
    holds must be in the memory, or the run would go on as if it had never learned from it. After Ctrl-C the episode in
    flight is in memory, marked aborted.

    Args:
        environment, policy, reader: see `play_episode`.
        memory: where finished episodes go; None to keep nothing.
        episodes: how many in all, those of an earlier part of the run included.
        seed: of the run.
        run_id: names the episodes in memory where there is no record, which has an id of its own; None: a new one.
        record: where results go; None to keep them only in the result.
        judges: score each finished episode; their rewards become feedback events, and what asking a model for them
            cost is part of the episode's usage. Where one fails, the run ends with its error. The episode stays stored,
            unjudged by that judge, and is judged when the run goes on, or later by `seasoned memory judge`.
        arm: stored with each episode.
        progress: called after each episode.

    Raises:
        ConfigError: the memory lacks an episode that the record holds; nothing was played.
        InputError: a record, and a `run_id` beside it.
        SeasonedError: what the environment, the reader, the memory or a judge raises.
    """
    if record is not None and run_id is not None:
        raise InputError(f"run_id = {run_id!r}, and a record", "a record's run has the record's id", "Leave it out.")
    run_id = record.run_id if record else run_id or new_run_id()
    if record is not None:
        if memory is not None:
            _check_remembered(memory, record)
        record.begin()
    results: list[EpisodeResult] = []
    for number in range(episodes):
        known = record.results.get(number) if record else None
        episode_id = _episode_id(run_id, number)
        if known is None and memory is not None:
            known = await _stored(memory, episode_id, environment, judges)
            if known is not None and record is not None:
                record.add(number, known)
        if known is None:
            known = await _play_one(
                environment, policy, reader, memory, judges, episode_id, arm, seed=episode_seed(seed, number)
            )
            if record is not None:
                record.add(number, known)
        results.append(known)
        progress(number, known)
    if record is not None:
        record.finish()
    return results


def _episode_id(run_id: str, number: int) -> str:
    return f"{run_id}-{number:05d}"


def _check_remembered(memory: EpisodeMemory, record: RunRecord) -> None:
    """What was played must have been learned from: a memory that was swapped or emptied is not this run's."""
    for number in sorted(record.results):
        episode_id = _episode_id(record.run_id, number)
        if _finished(memory, episode_id) is None:
            raise ConfigError(
                f"episode {episode_id}, recorded in {record.folder}, is not in the memory",
                "a run goes on with the memory that its recorded episodes are in",
                "Bring that memory back, or choose another folder and begin anew.",
            )


async def _play_one(
    environment: Environment,
    policy: Policy,
    reader: PriorReader | Chooser,
    memory: EpisodeMemory | None,
    judges: tuple[Judge | ModelJudge, ...],
    episode_id: str,
    arm: str | None,
    *,
    seed: int,
) -> EpisodeResult:
    if memory is None:
        return await play_episode(environment, policy, reader, StepLog(), seed=seed)
    attempt = episode_id
    while _is_stored(memory, attempt):  # an aborted attempt keeps its id
        attempt += "'"
    recorder = memory.episode(environment.task, id=attempt, model=reader.name, policy=policy.name, arm=arm)
    with recorder as log:
        result = await play_episode(environment, policy, reader, cast(StepLog, log), seed=seed)
    return dataclasses.replace(result, usage=result.usage + await _judge(memory, attempt, judges))


async def _judge(memory: EpisodeMemory, episode_id: str, judges: tuple[Judge | ModelJudge, ...]) -> Usage:
    """Judging again supersedes what the same judges said before; return what asking them cost."""
    usage = Usage()
    for judge in judges:
        judgement = await judge_episode(judge, memory.get(episode_id))
        give_feedback(memory, episode_id, judgement)
        usage += judgement.usage
    return usage


def _is_stored(memory: EpisodeMemory, episode_id: str) -> bool:
    try:
        memory.get(episode_id)
    except NotFoundError:
        return False
    return True


async def _stored(
    memory: EpisodeMemory, episode_id: str, environment: Environment, judges: tuple[Judge | ModelJudge, ...]
) -> EpisodeResult | None:
    """An episode that was committed just before the run was killed, perhaps unjudged, from what memory holds of it."""
    episode = _finished(memory, episode_id)
    if episode is None:
        return None
    usage = Usage(cost_usd=None) + await _judge(memory, cast(str, episode.id), judges)  # of playing it: not known
    score = sum(step.reward for step in episode.steps)
    return EpisodeResult(score, environment.max_score, len(episode.steps), episode.ending, 0, 0.0, 0, 0.0, 0.0, usage)


def _finished(memory: EpisodeMemory, episode_id: str) -> Episode | None:
    """The attempt at this episode that came to its end, if there is one."""
    while _is_stored(memory, episode_id):
        episode = memory.get(episode_id)
        if episode.ending != "aborted":
            return episode
        episode_id += "'"
    return None
