"""Batch of episodes: limited concurrency, results in order, and independent failures."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from seasoned.checks import check_whole
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Environment

__all__ = ["Environments", "environments_of", "play_many"]

Environments = Callable[[int], Environment | Awaitable[Environment]] | Iterable[Environment]
"""Environments, one per episode; or a function from an episode's number (from 0) to its environment."""

T = TypeVar("T")


def environments_of(
    environments: Environments, seeds: Sequence[int] | None, episodes: int | None, concurrency: int
) -> list[Callable[[], Environment | Awaitable[Environment]]]:
    """Return one function per episode that opens its environment.

    Raises:
        InputError: the number of episodes is missing or contradictory, or one environment would run two concurrent
            episodes.
    """
    check_whole("concurrency", concurrency, 1)
    if episodes is not None:
        check_whole("episodes", episodes, 1)
    if seeds is not None and episodes is not None and len(seeds) != episodes:
        raise InputError(
            f"{len(seeds)} seeds, episodes = {episodes}", "each episode needs one seed", "Leave episodes out."
        )
    count = len(seeds) if seeds is not None else episodes
    if callable(environments):
        if count is None:
            raise InputError(
                "seeds = None, episodes = None",
                "a function that makes environments needs a number of episodes",
                "Pass episodes=10, for example.",
            )
        make = environments
        return [lambda number=number: make(number) for number in range(count)]  # type: ignore[misc]
    listed: object = environments
    if not isinstance(listed, Iterable) or isinstance(listed, str | bytes):
        raise InputError(
            f"environments = {excerpt(environments)}",
            "environments must be a list, or a function from a number to an environment",
            "Pass [environment], or lambda number: open_env(...).",
        )
    envs: list[Environment] = list(listed)
    if count is not None and count != len(envs):
        raise InputError(
            f"{len(envs)} environments, {count} episodes",
            "each episode needs one environment",
            "Pass as many environments as episodes.",
        )
    if concurrency > 1 and len({id(env) for env in envs}) < len(envs):
        raise InputError(
            "one environment, listed twice",
            "an environment can run one episode at a time",
            "Pass a function that makes environments, or concurrency=1.",
        )
    return [lambda env=env: env for env in envs]  # type: ignore[misc]


async def play_many(
    openers: Sequence[Callable[[], Environment | Awaitable[Environment]]],
    play_one: Callable[[int, Environment], Awaitable[T]],
    failed: Callable[[int, Exception], T],
    unclosed: Callable[[T, Exception], T],
    *,
    concurrency: int,
    closes: bool,
) -> list[T]:
    """Return the result of each episode, in order; at most `concurrency` are played at a time.

    Args:
        openers: open the environment of each episode.
        play_one: plays one episode; `failed` turns its error into a result.
        failed: returns the result of an episode whose environment could not be opened or raised an error.
        unclosed: returns the result of an episode whose environment could not be closed.
        concurrency: largest number of concurrent episodes.
        closes: whether to close each environment after its episode.
    """
    semaphore = asyncio.Semaphore(concurrency)

    async def one(number: int) -> T:
        async with semaphore:
            try:
                opened = openers[number]()
                environment = await opened if inspect.isawaitable(opened) else opened
            except Exception as error:
                return failed(number, error)
            close_errors: list[Exception] = []
            try:
                result = await play_one(number, environment)
            except Exception as error:
                result = failed(number, error)
            finally:
                if closes:
                    try:
                        await environment.aclose()
                    except Exception as error:
                        close_errors.append(error)
            return unclosed(result, close_errors[0]) if close_errors else result

    tasks = [asyncio.create_task(one(number)) for number in range(len(openers))]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
