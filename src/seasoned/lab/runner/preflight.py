"""Checks before the first episode: every environment opens, and the model and the arms can be made."""

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
    """An environment that needs installed software which opening does not check, such as a browser."""

    def check_installed(self) -> None:
        """Raise an error if something is missing."""
        ...


def preflight(workers: Workers, job: Job, tasks: Sequence[Task]) -> None:
    """Open and close every environment of some tasks once; make the model, and every arm with it.

    This runs in the workers, so an environment that ends its process does not end this one. No episode is begun, no
    request is sent to a model, and no browser is started (only its installation is checked).

    Raises:
        SeasonedError: the model cannot be made, or an environment cannot be opened; the first error, after the name of
            its task, with a list of the others.
    """
    by_spec: dict[str, str] = {}
    for task in tasks:
        for spec in (*task.env, *(transfer.env for transfer in task.transfer)):
            by_spec.setdefault(spec, task.name)
    checks: list[tuple[str, Future[Any]]] = []
    errors: list[SeasonedError] = []

    def submit(subject: str, function: Callable[..., Any], *arguments: Any) -> None:
        try:
            checks.append((subject, workers.submit(_error_of, function, *arguments)))
        except BrokenProcessPool:
            return  # the check that broke the pool reports it

    submit("", _make_model, job)
    for spec, name in by_spec.items():
        submit(f"task {name}: ", _open_and_close, spec)
    for subject, future in checks:
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            errors.append(
                EnvError(
                    f"{subject}its process ended",
                    "a model and an environment open without ending their process",
                    "Check the code that makes it.",
                )
            )
            break  # later checks were not executed
        if error is not None:
            raise error
        if (failure := future.result()) is not None:
            errors.append(type(failure)(f"{subject}{failure.seen}", failure.rule, failure.next_step))
    if errors:
        raise _combined(errors)


def _combined(errors: Sequence[SeasonedError]) -> SeasonedError:
    first = errors[0]
    if len(errors) == 1:
        return first
    others = "; ".join(each.seen for each in errors[1:4]) + ("; ..." if len(errors) > 4 else "")
    return type(first)(first.seen, first.rule, f"{first.next_step} Nothing was played. Other errors: {others}.")


def _error_of(function: Callable[..., object], *arguments: Any) -> SeasonedError | None:
    """Return the error of a call as a value: a cluster changes the class of raised errors."""
    try:
        function(*arguments)
    except SeasonedError as error:
        return error
    return None


def _make_model(job: Job) -> None:
    workbench_of(job).check_arms()


async def _close(environment: Environment) -> None:
    """Close an environment; a timeout is ignored here, because its runs have a limit of their own."""
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
    except BaseException as error:  # user-written environments may raise anything
        raise EnvError(
            f"environment {excerpt(spec)} ({type(error).__name__}: {excerpt(str(error), 200)})",
            "every environment opens before the first episode",
            "Correct it, or leave its task out.",
        ) from error
