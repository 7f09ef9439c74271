"""Many episodes at once: so many at a time, results in order, and none lost for another's failure."""

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
"""Environments to play in, one an episode; or a function that makes one from an episode's number, from 0."""

T = TypeVar("T")


def environments_of(
    environments: Environments, seeds: Sequence[int] | None, episodes: int | None, concurrency: int
) -> list[Callable[[], Environment | Awaitable[Environment]]]:
    """Return what opens the environment of each episode.

    Raises:
        InputError: nothing says how many episodes, two things say different, or one environment would be played in
            twice at the same time.
    """
    check_whole("concurrency", concurrency, 1)
    if episodes is not None:
        check_whole("episodes", episodes, 1)
    if seeds is not None and episodes is not None and len(seeds) != episodes:
        raise InputError(
            f"{len(seeds)} seeds, episodes = {episodes}", "each episode has one seed", "Leave episodes out."
        )
    count = len(seeds) if seeds is not None else episodes
    if callable(environments):
        if count is None:
            raise InputError(
                "seeds = None, episodes = None",
                "where environments are made, something says how many",
                "Pass episodes=10, say.",
            )
        make = environments
        return [lambda number=number: make(number) for number in range(count)]  # type: ignore[misc]
    listed: object = environments
    if not isinstance(listed, Iterable) or isinstance(listed, str | bytes):
        raise InputError(
            f"environments = {excerpt(environments)}",
            "they are a list of environments, or a function from a number to one",
            "Pass [environment], or lambda number: open_env(...).",
        )
    given: list[Environment] = list(listed)
    if count is not None and count != len(given):
        raise InputError(
            f"{len(given)} environments, {count} episodes",
            "each episode has one",
            "Pass as many of the one as of the other.",
        )
    if concurrency > 1 and len({id(one) for one in given}) < len(given):
        raise InputError(
            "one environment, listed twice",
            "an environment plays one episode at a time",
            "Pass a function that makes them, or concurrency=1.",
        )
    return [lambda one=one: one for one in given]  # type: ignore[misc]


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
        openers: open each episode's environment.
        play_one: plays it; what it raises becomes a result by `failed`.
        failed: a result for an episode whose environment could not be opened or played in.
        unclosed: the result of an episode whose environment could not be closed after it.
        concurrency: how many at a time.
        closes: whether to close each environment after its episode.
    """
    gate = asyncio.Semaphore(concurrency)

    async def one(number: int) -> T:
        async with gate:
            try:
                opened = openers[number]()
                environment = await opened if inspect.isawaitable(opened) else opened
            except Exception as error:
                return failed(number, error)
            faults: list[Exception] = []
            try:
                result = await play_one(number, environment)
            except Exception as error:
                result = failed(number, error)
            finally:
                if closes:
                    try:
                        await environment.aclose()
                    except Exception as error:
                        faults.append(error)
            return unclosed(result, faults[0]) if faults else result

    tasks = [asyncio.create_task(one(number)) for number in range(len(openers))]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
