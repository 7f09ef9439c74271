"""Before anything is played: whether each environment opens, and the model is one. A typo ends the command at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol, runtime_checkable

from seasoned.build import open_env
from seasoned.errors import EnvError, SeasonedError, excerpt
from seasoned.lab.runner.workers import Job, Workers, workbench_of
from seasoned.lab.suites.env_rotation import expand_variables
from seasoned.lab.suites.suite import Task
from seasoned.protocols import Environment

__all__ = ["preflight"]

_CLOSE_S = 1.0


@runtime_checkable
class _Installed(Protocol):
    """An environment that needs more than what opening it shows, such as a browser."""

    def check_installed(self) -> None:
        """Raise what is missing."""
        ...


def preflight(workers: Workers, job: Job, tasks: Sequence[Task]) -> None:
    """Open every environment of some tasks once, and close it; make the model, and every arm with it.

    It happens in the workers: an environment that ends its process there does not end this one. No episode is begun,
    no model is asked, no browser is started (whether there is one is looked up).

    Raises:
        SeasonedError: what making the model raises, or opening an environment; the first with the task's name in
            front, with how many others there are.
    """
    by_spec: dict[str, str] = {}
    for task in tasks:
        for spec in (*task.env, *(transfer.env for transfer in task.transfer)):
            by_spec.setdefault(spec, task.name)
    asked: list[tuple[str, Future[Any]]] = []
    troubles: list[SeasonedError] = []

    def ask(what: str, function: Callable[..., Any], *arguments: Any) -> None:
        try:
            asked.append((what, workers.submit(_trouble, function, *arguments)))
        except BrokenProcessPool:
            return  # which of those before it broke the pool is said there

    ask("", _make_model, job)
    for spec, name in by_spec.items():
        ask(f"task {name}: ", _open_and_close, spec)
    for what, future in asked:
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            troubles.append(
                EnvError(
                    f"{what}its process ended",
                    "a model and an environment open without ending the process that they are in",
                    "Look at what it does where it is made.",
                )
            )
            break  # those behind it were not tried
        if error is not None:
            raise error
        if (trouble := future.result()) is not None:
            troubles.append(type(trouble)(f"{what}{trouble.seen}", trouble.rule, trouble.next_step))
    if troubles:
        raise _together(troubles)


def _together(troubles: Sequence[SeasonedError]) -> SeasonedError:
    first = troubles[0]
    if len(troubles) == 1:
        return first
    others = "; ".join(each.seen for each in troubles[1:4]) + ("; ..." if len(troubles) > 4 else "")
    return type(first)(first.seen, first.rule, f"{first.next_step} Nothing was played. Also in trouble: {others}.")


def _trouble(function: Callable[..., object], *arguments: Any) -> SeasonedError | None:
    """What a call raises, as a value: an error that is raised comes back from a cluster as another kind of error."""
    try:
        function(*arguments)
    except SeasonedError as error:
        return error
    return None


def _make_model(job: Job) -> None:
    workbench_of(job).check_arms()


async def _close(environment: Environment) -> None:
    """What does not close in time is the trouble of its runs, which may be given less."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_S):
            await environment.aclose()


def _open_and_close(spec: str) -> None:
    try:
        environment = open_env(expand_variables(spec))
        try:
            if isinstance(environment, _Installed):
                environment.check_installed()
        finally:
            asyncio.run(_close(environment))
    except SeasonedError:
        raise
    except BaseException as error:  # an environment of somebody's own may raise anything
        raise EnvError(
            f"environment {excerpt(spec)} ({type(error).__name__}: {excerpt(str(error), 200)})",
            "every environment opens before anything is played",
            "Mend it, or leave its task out.",
        ) from error
