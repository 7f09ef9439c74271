"""Many episodes: each is scored before it is written, committed when it ends, and skipped when a run is resumed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, cast

from seasoned.agents.episode import EpisodeResult, StepLog, episode_seed, play_episode
from seasoned.agents.record import RunRecord
from seasoned.errors import NotFoundError
from seasoned.protocols import Environment, Judge, Policy, PriorReader, Usage
from seasoned.types import Episode

__all__ = ["EpisodeMemory", "play_run"]


class EpisodeMemory(Protocol):
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

    def feedback(self, episode_id: str, reward: float, step: int | None, source: str) -> str:
        """Add a reward to a step."""
        ...


async def play_run(
    environment: Environment,
    policy: Policy,
    reader: PriorReader,
    *,
    memory: EpisodeMemory | None,
    episodes: int,
    seed: int,
    run_id: str,
    record: RunRecord | None = None,
    judges: tuple[Judge, ...] = (),
    arm: str | None = None,
    progress: Callable[[int, EpisodeResult], None] = lambda episode, result: None,
) -> list[EpisodeResult]:
    """Play episodes one after the other, and return how each went.

    Episode e has the id `run_id-e` and the seed `episode_seed(seed, e)`, so that a run that was broken off goes on
    where it stopped: what the record or the memory holds is not played again. After Ctrl-C the episode in flight is in
    memory, marked aborted.

    Args:
        environment, policy, reader: see `play_episode`.
        memory: where finished episodes go; None to keep nothing.
        episodes: how many in all, those of an earlier part of the run included.
        seed: of the run.
        run_id: names the run's episodes in memory.
        record: where results go; None to keep them only in the result.
        judges: score each finished episode; their rewards become feedback events.
        arm: stored with each episode.
        progress: called after each episode.
    """
    results: list[EpisodeResult] = []
    for number in range(episodes):
        known = record.results.get(number) if record else None
        episode_id = f"{run_id}-{number:05d}"
        if known is None and memory is not None:
            known = _stored(memory, episode_id, environment, judges)
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


async def _play_one(
    environment: Environment,
    policy: Policy,
    reader: PriorReader,
    memory: EpisodeMemory | None,
    judges: tuple[Judge, ...],
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
    _judge(memory, attempt, judges)
    return result


def _judge(memory: EpisodeMemory, episode_id: str, judges: tuple[Judge, ...]) -> None:
    """Judging again supersedes what the same judges said before."""
    for judge in judges:
        for step, reward in judge.score(memory.get(episode_id)).items():
            memory.feedback(episode_id, reward, step, judge.source)


def _is_stored(memory: EpisodeMemory, episode_id: str) -> bool:
    try:
        memory.get(episode_id)
    except NotFoundError:
        return False
    return True


def _stored(
    memory: EpisodeMemory, episode_id: str, environment: Environment, judges: tuple[Judge, ...]
) -> EpisodeResult | None:
    """An episode that was committed just before the run was killed, perhaps unjudged, from what memory holds of it."""
    while _is_stored(memory, episode_id):
        episode = memory.get(episode_id)
        if episode.ending != "aborted":
            _judge(memory, episode_id, judges)
            score = sum(step.reward for step in episode.steps)
            return EpisodeResult(
                score, environment.max_score, len(episode.steps), episode.ending, 0, 0.0, 0, 0.0, 0.0,
                Usage(cost_usd=None),
            )  # fmt: skip
        episode_id += "'"
    return None
