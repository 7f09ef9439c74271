"""Many episodes: each is scored before it is written, committed when it ends, and skipped when a run is resumed."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Protocol, cast

from seasoned.agents.loop.arm import Learn, Play
from seasoned.agents.loop.episode import episode_seed, play_episode
from seasoned.agents.loop.step_log import EpisodeLog, StepLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.agents.loop.usage_meter import measure_usage
from seasoned.agents.runs.run_record import RunRecord, new_run_id
from seasoned.checks import check_number
from seasoned.errors import ConfigError, EnvError, InputError, NotFoundError
from seasoned.judges.judge_feedback import FeedbackMemory, add_judgement, judge_episode
from seasoned.protocols import Chooser, Environment, Judge, Judgement, ModelJudge, Policy, PriorReader, Usage
from seasoned.types import LATE_REWARD as LATE
from seasoned.types import Episode

__all__ = ["LATE", "EpisodeMemory", "play_run"]


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
    ) -> AbstractContextManager[EpisodeLog]:
        """Return a recorder that commits the episode on exit."""
        ...

    def get(self, episode_id: str) -> Episode:
        """Return a stored episode."""
        ...


async def play_run(
    environment: Environment | Callable[[int], Environment],
    policy: Policy,
    reader: PriorReader | Chooser,
    *,
    memory: EpisodeMemory | None,
    episodes: int,
    seed: int,
    run_id: str | None = None,
    record: RunRecord | None = None,
    judges: tuple[Judge | ModelJudge, ...] = (),
    play: Play = play_episode,
    learn: Learn | None = None,
    arm: str | None = None,
    keep_aborted: bool = True,
    episode_seconds: float | None = None,
    progress: Callable[[int, EpisodeResult], None] = lambda episode, result: None,
    lost: Callable[[int, Usage], None] = lambda episode, usage: None,
) -> list[EpisodeResult]:
    """Play episodes one after the other, and return how each went.

    Episode e has the id `run_id-e` and the seed `episode_seed(seed, e)`, so that a run that was broken off goes on
    where it stopped: what the record, or the memory under this run's id, holds is not played again. What the record
    holds must be in the memory, or the run would go on as if it had never learned from it. After Ctrl-C the episode in
    flight is in memory, marked aborted.

    Args:
        environment: what is played, or a function from an episode's number to what is played in it.
        policy, reader: see `play_episode`.
        memory: where finished episodes go; None to keep nothing.
        episodes: how many in all, those of an earlier part of the run included.
        seed: of the run.
        run_id: names the episodes in memory where there is no record, which has an id of its own; None: a new one.
        record: where results go; None to keep them only in the result.
        judges: score each finished episode; their rewards become feedback events, and what asking a model for them
            cost is part of the episode's usage. Where one fails, the run ends with its error. The episode stays stored,
            unjudged by that judge, and is judged when the run goes on, or later by `seasoned memory judge`.
        play: plays one episode.
        learn: told of every finished episode, in order, those of an earlier part of the run included; what it asks of
            a model is part of the episode's usage. It needs a memory, which holds what it is told.
        arm: stored with each episode.
        keep_aborted: whether an episode that broke off is stored, marked aborted. Nothing retrieves it, but it counts
            as an episode that has passed: without it a run that was broken off ends exactly as one that was not.
        episode_seconds: how long an episode may take, with what is learned from it; None: as long as it likes. What
            waits is interrupted; what keeps the thread busy cannot be.
        progress: called after each episode.
        lost: told what an episode that broke off while it was played had asked of the model; the record keeps it too.
            A process that is killed tells nobody.

    Raises:
        ConfigError: the memory lacks an episode that the record holds; nothing was played.
        EnvError: an episode took longer than `episode_seconds`.
        InputError: a record, and a `run_id` beside it; `learn` without a memory; or a limit that is not above 0.
        SeasonedError: what the environment, the reader, the memory or a judge raises.
    """
    if learn is not None and memory is None:
        raise InputError("learn without a memory", "what is learned is learned from stored episodes", "Pass a memory.")
    if record is not None and run_id is not None:
        raise InputError(f"run_id = {run_id!r}, and a record", "a record's run has the record's id", "Leave it out.")
    if episode_seconds is not None and check_number("episode_seconds", episode_seconds) <= 0:
        raise InputError(f"episode_seconds = {episode_seconds!r}", "a limit is above 0", "Leave it out for no limit.")
    run_id = record.run_id if record else run_id or new_run_id()
    if record is not None:
        if memory is not None:
            _check_remembered(memory, record)
        record.begin()
    run = _Run(policy, reader, memory, record, judges, play, learn, arm, run_id, keep_aborted, lost)
    results: list[EpisodeResult] = []
    for number in range(episodes):
        here = environment(number) if callable(environment) else environment
        async with _within(episode_seconds, number, here):
            known = await run.known(number, here)
            if known is None:
                known = await run.play_one(number, here, episode_seed(seed, number))
        results.append(known)
        progress(number, known)
    if record is not None:
        record.finish()
    return results


@contextlib.asynccontextmanager
async def _within(seconds: float | None, number: int, environment: Environment) -> AsyncIterator[None]:
    """Limit an episode's time."""
    try:
        async with asyncio.timeout(seconds) as timer:
            yield
    except TimeoutError as error:
        if not timer.expired():
            raise  # somebody else's
        raise EnvError(
            f"{environment.name}: episode {number} has not ended",
            f"it has {seconds:g} seconds",
            "Look what it waits for, or allow more episode_seconds.",
        ) from error


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


@dataclasses.dataclass(frozen=True)
class _Run:
    """What the episodes of one run have in common."""

    policy: Policy
    reader: PriorReader | Chooser
    memory: EpisodeMemory | None
    record: RunRecord | None
    judges: tuple[Judge | ModelJudge, ...]
    play: Play
    learn: Learn | None
    arm: str | None
    run_id: str
    keep_aborted: bool
    lost: Callable[[int, Usage], None]

    async def known(self, number: int, environment: Environment) -> EpisodeResult | None:
        """The result of an episode that was played before; what learns is told of it again."""
        recorded = self.record.results.get(number) if self.record else None
        episode = None if self.memory is None else _finished(self.memory, _episode_id(self.run_id, number))
        if recorded is not None:
            if self.learn is not None and episode is not None:
                await self.learn(episode)
            return recorded
        if episode is None:
            return None
        # Committed just before the run was killed, and perhaps unjudged.
        result = self.record.prepared(number) if self.record else None
        if result is None:  # what playing it cost is not known
            score = sum(step.reward for step in episode.steps)
            result = EpisodeResult(
                score,
                environment.max_score,
                len(episode.steps),
                episode.ending,
                0,
                0.0,
                0,
                0.0,
                0.0,
                Usage(cost_usd=None, cached_usd=None),
            )
        if self.judges:  # what an attempt to judge it cost, that was broken off, is not known either
            result = dataclasses.replace(result, usage=result.usage + Usage(cost_usd=None))
        return await self._finish(number, result, cast(str, episode.id))

    async def play_one(self, number: int, environment: Environment, seed: int) -> EpisodeResult:
        if self.memory is None:
            result = await self._play(number, environment, StepLog(), seed)
            return await self._finish(number, result, None)
        attempt = _episode_id(self.run_id, number)
        while _is_stored(self.memory, attempt):  # an aborted attempt keeps its id
            attempt += "'"
        recorder = self.memory.episode(
            environment.task, id=attempt, model=self.reader.name, policy=self.policy.name, arm=self.arm
        )
        draft = None if self.keep_aborted else StepLog()
        if draft is not None:
            result = await self._play(number, environment, draft, seed)
        with recorder as log:
            if draft is None:
                result = await self._play(number, environment, log, seed)
            else:
                draft.copy_to(log)
            if self.record is not None:
                self.record.prepare(number, result)
        return await self._finish(number, result, attempt)

    async def _play(self, number: int, environment: Environment, log: EpisodeLog, seed: int) -> EpisodeResult:
        """Play; what an episode that breaks off has asked is counted, though nothing else is left of it."""
        with measure_usage() as meter:
            try:
                return await self.play(environment, self.policy, self.reader, log, seed=seed)
            except BaseException:
                if meter.usage != Usage():
                    if self.record is not None:
                        self.record.lose(number, meter.usage)
                    self.lost(number, meter.usage)
                raise

    async def _finish(self, number: int, result: EpisodeResult, episode_id: str | None) -> EpisodeResult:
        """Judge, learn and record. Judging again supersedes what the same judges said before."""
        usage = result.usage
        if self.memory is not None and episode_id is not None:
            if result.late_rewards:
                rewards = dict(result.late_rewards)
                add_judgement(self.memory, episode_id, Judgement(LATE, rewards, dict.fromkeys(rewards, 1.0)))
            for judge in self.judges:
                judgement = await judge_episode(judge, self.memory.get(episode_id))
                add_judgement(self.memory, episode_id, judgement)
                usage += judgement.usage
            if self.learn is not None:
                usage += await self.learn(self.memory.get(episode_id))
        result = dataclasses.replace(result, usage=usage)
        if self.record is not None:
            self.record.add(number, result)
        return result


def _is_stored(memory: EpisodeMemory, episode_id: str) -> bool:
    try:
        memory.get(episode_id)
    except NotFoundError:
        return False
    return True


def _finished(memory: EpisodeMemory, episode_id: str) -> Episode | None:
    """The attempt at this episode that came to its end, if there is one."""
    while _is_stored(memory, episode_id):
        episode = memory.get(episode_id)
        if episode.ending != "aborted":
            return episode
        episode_id += "'"
    return None
