"""A learning run: its memory, its arm, its learning episodes and its transfer episodes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np

from seasoned.agents import Arm, EpisodeResult, RunRecord, UniformReader, play_run, read_results
from seasoned.build import close_reader, make_reader, open_env
from seasoned.envs.user_code import code_hashes
from seasoned.errors import ConfigError, EnvError, SeasonedError
from seasoned.lab.arms.cascade_arm import CascadeArmReader
from seasoned.lab.arms.registry import build_arm
from seasoned.lab.results.run_results import ERROR_FILE, FILLED_FOLDER, MEMORY_FILE, read_lab_file, run_folder
from seasoned.lab.runner.file_lock import hold_lock
from seasoned.lab.runner.watchdog import Watchdog
from seasoned.lab.suites.env_rotation import env_order, expand_variables
from seasoned.lab.suites.suite import RunKey, Suite, Task
from seasoned.memory import Memory
from seasoned.policies import ModelAlone
from seasoned.protocols import LLM, Chooser, Environment, PriorReader, Usage
from seasoned.states.encoder_names import named_encoder

__all__ = ["OnEpisode", "OutOfBudget", "Workbench", "write_error"]

_LONGEST_LINE, _LONGEST_TRACEBACK = 2_000, 20_000
_WAIT_S, _CANCEL_S = 20.0, 2.0
_FILLING = 0  # the seed stream of filling; those of the transfers begin at 1

OnEpisode = Callable[[RunKey, EpisodeResult | None, Usage], None]
"""Called with each new episode and its usage, or None for an aborted one; raises `OutOfBudget` to stop after it."""


class OutOfBudget(Exception):  # noqa: N818 - a signal, not an error
    """The signal that the budget is spent: the run stops after the episode that it has just recorded."""


class Workbench:
    """The player of the learning runs of one experiment in one process, with one model.

    Args:
        folder: of the experiment.
        cache: the file of the model's answers.
        episode_seconds: time limit of an episode; None: no limit.
    """

    def __init__(self, folder: Path, cache: Path, episode_seconds: float | None = None) -> None:
        self._folder = folder
        self._cache = cache
        self._episode_seconds = episode_seconds
        self._suite, _ = read_lab_file(folder)
        self._loop = asyncio.Runner()
        self._reader: PriorReader | Chooser | None = None

    def close(self) -> None:
        """Close the model."""
        try:
            if self._reader is not None:
                self._loop.run(close_reader(self._reader))
        finally:
            self._reader = None
            self._loop.close()

    def open_model(self) -> PriorReader | Chooser:
        """Return the reader of the model, which is made once.

        Raises:
            SeasonedError: the model cannot be made.
        """
        suite = self._suite
        if self._reader is None:
            self._reader = make_reader(
                suite.model,
                method=suite.reader,
                cache=None if suite.model == "uniform" else self._cache,
                calibrate=suite.calibrate,
                menu=suite.menu,
                **suite.model_settings,
            )
        return self._reader

    def check_arms(self) -> None:
        """Build every arm once with the model, over an empty memory.

        Raises:
            SeasonedError: the model or an arm cannot be made.
        """
        reader = self.open_model()
        for arm in self._suite.arms:
            with Memory.open(":memory:") as memory:
                tokens = None if arm.budget_of is None else 1.0
                build_arm(arm, memory=memory, llm=_llm_of(reader), reader=reader, seed=0, tokens_per_episode=tokens)

    def play(self, run: RunKey, on_episode: OnEpisode) -> bool:
        """Play the remaining episodes of a run, and return whether it ended. An error is written to its folder.

        The run is locked. If a worker of an interrupted experiment still holds the lock, this waits for some seconds;
        after that the run fails.

        Raises:
            OutOfBudget: raised by `on_episode`.
            KeyboardInterrupt: Ctrl-C; the current episode is played again when the run is resumed.
        """
        home = run_folder(self._folder, run)
        try:
            home.mkdir(parents=True, exist_ok=True)
            with hold_lock(home / "lock", f"{run} is being played", wait_s=_WAIT_S):
                (home / ERROR_FILE).unlink(missing_ok=True)
                self._run(self._play(run, home, on_episode))
        except (OutOfBudget, KeyboardInterrupt):
            raise
        except BaseException as error:  # environments raise SystemExit and CancelledError, too
            write_error(home, error)
            return False
        return True

    def _run(self, playing: Coroutine[Any, Any, None]) -> None:
        """Run the coroutine; if the loop ends before it does, cancel it, so that it does not run on in the next run."""
        task: asyncio.Task[None] | None = None

        async def play() -> None:
            nonlocal task
            task = asyncio.current_task()
            await playing

        try:
            self._loop.run(play())
        finally:
            if task is not None and not task.done():
                task.cancel()
                self._loop.run(_wait_for(task))

    async def _play(self, run: RunKey, home: Path, on_episode: OnEpisode) -> None:
        suite, task = self._suite, self._suite.task(run.task)
        reader = self.open_model()
        async with contextlib.AsyncExitStack() as stack:
            watchdog = stack.enter_context(Watchdog(home, self._episode_seconds))
            encoder = named_encoder(suite.encoder)
            memory = stack.enter_context(Memory.open(home / MEMORY_FILE, namespace="default", encoder=encoder))
            arm = build_arm(
                suite.arm(run.arm),
                memory=memory,
                llm=_llm_of(reader),
                reader=reader,
                seed=run.seed,
                success=task.success,
                tokens_per_episode=self._tokens_per_episode(run),
            )
            if isinstance(arm.reader, CascadeArmReader):  # it owns its teacher; the student belongs to the workbench
                stack.push_async_callback(arm.reader.aclose)
            environments: list[Environment] = []
            for spec in task.env:
                environments.append(open_env(expand_variables(spec)))
                stack.push_async_callback(self._close, environments[-1], watchdog)
            record = RunRecord(home, _settings(suite, task, run), code_hashes(map(expand_variables, task.env)))
            known = len(record.results)

            def next_environment(episode: int) -> Environment:
                watchdog.begin()
                return environments[env_order(run.seed, episode, len(environments))]

            if suite.fill_episodes:
                await play_run(
                    next_environment,
                    ModelAlone(),
                    UniformReader(),
                    memory=memory,
                    episodes=suite.fill_episodes,
                    seed=int(np.random.SeedSequence([run.seed, _FILLING]).generate_state(1)[0]),
                    record=RunRecord(
                        home / FILLED_FOLDER, _settings(suite, task, run), code_hashes(map(expand_variables, task.env))
                    ),
                    learn=arm.learn,
                    arm=FILLED_FOLDER,
                    keep_aborted=False,
                    episode_seconds=self._episode_seconds,
                    lost=lambda episode, usage: on_episode(run, None, usage),
                )
            await play_run(
                next_environment,
                arm.policy,
                arm.reader,
                memory=memory,
                episodes=suite.episodes(run),
                seed=run.seed,
                record=record,
                play=arm.play,
                learn=arm.learn,
                arm=run.arm,
                keep_aborted=False,
                episode_seconds=self._episode_seconds,
                progress=lambda episode, result: on_episode(run, result, result.usage) if episode >= known else None,
                lost=lambda episode, usage: on_episode(run, None, usage),
            )
            watchdog.end()
            _write_unusable_answers(home, arm)
            for i, transfer in enumerate(task.transfer):
                environment = open_env(expand_variables(transfer.env))
                stack.push_async_callback(self._close, environment, watchdog)
                settings = _settings(suite, task, run) | {"transfer": transfer.env}
                record = RunRecord(home / f"transfer-{i}", settings, code_hashes([expand_variables(transfer.env)]))
                known = len(record.results)

                def same_environment(episode: int, environment: Environment = environment) -> Environment:
                    watchdog.begin()
                    return environment

                await play_run(
                    same_environment,
                    arm.policy,
                    arm.reader,
                    memory=None,
                    episodes=transfer.episodes,
                    seed=int(np.random.SeedSequence([run.seed, 1 + i]).generate_state(1)[0]),
                    record=record,
                    play=arm.play,
                    arm=run.arm,
                    episode_seconds=self._episode_seconds,
                    progress=lambda episode, result, known=known: (  # type: ignore[misc]
                        on_episode(run, result, result.usage) if episode >= known else None
                    ),
                    lost=lambda episode, usage: on_episode(run, None, usage),
                )
                watchdog.end()

    async def _close(self, environment: Environment, watchdog: Watchdog) -> None:
        """Close an environment within the time limit of an episode."""
        watchdog.begin()
        try:
            async with asyncio.timeout(self._episode_seconds) as timer:
                await environment.aclose()
        except TimeoutError as error:
            if not timer.expired():
                raise
            raise EnvError(
                f"{environment.name} did not close",
                f"an environment closes within {self._episode_seconds:g} seconds",
                "Find out what it waits for, or allow more episode_seconds.",
            ) from error

    def _tokens_per_episode(self, run: RunKey) -> float | None:
        """Return the mean tokens per episode, learning included, of the run of the arm in `budget_of`; None: no arm."""
        of = self._suite.arm(run.arm).budget_of
        if of is None:
            return None
        other = RunKey(run.task, of, run.seed)
        results = read_results(run_folder(self._folder, other))
        if len(results) < self._suite.episodes(other):
            raise ConfigError(
                f"{other} has {len(results)} of {self._suite.episodes(other)} episodes",
                f"the budget of {run.arm} is the tokens of {of}, so that run must end first",
                "Correct that run and resume.",
            )
        return float(np.mean([result.usage.tokens for result in results]))


def _llm_of(reader: PriorReader | Chooser) -> LLM | None:
    llm = getattr(reader, "llm", None)
    return llm if isinstance(llm, LLM) else None


def _settings(suite: Suite, task: Task, run: RunKey) -> dict[str, Any]:
    """Return the settings that the scores of a run depend on."""
    arm = suite.arm(run.arm)
    return {
        "task": task.name,
        "env": list(task.env),
        "arm": {"name": arm.name, "kind": arm.kind, "settings": dict(arm.settings), "budget_of": arm.budget_of},
        "model": suite.model,
        "reader": suite.reader,
        "calibrate": suite.calibrate,
        "seed": run.seed,
        **(
            {} if suite.menu == "list" else {"menu": suite.menu}
        ),  # left out if default, so that older runs can be resumed
        **({} if suite.encoder == "words" else {"encoder": suite.encoder}),
        **({"fill_episodes": suite.fill_episodes} if suite.fill_episodes else {}),
    }


def _write_unusable_answers(home: Path, arm: Arm) -> None:
    """Write the unusable answers of a baseline's model to `faults.json` for the report."""
    faults = [str(fault) for fault in getattr(getattr(arm.reader, "memory", None), "faults", ())]
    if faults:
        (home / "faults.json").write_text(json.dumps(faults, indent=2) + "\n")


async def _wait_for(task: asyncio.Task[None]) -> None:
    await asyncio.wait({task}, timeout=_CANCEL_S)


def write_error(home: Path, error: BaseException, detail: str | None = None) -> None:
    """Write the error that aborted a run to its folder: a line, and a traceback; both are shortened if long.

    Args:
        home: the run's folder.
        error: the error.
        detail: the traceback; None: that of the error.
    """
    try:
        message = str(error)
    except Exception:  # user-written errors can fail in __str__
        message = "(the error has no readable message)"
    if not isinstance(error, SeasonedError):
        message = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if detail is None:
        detail = "".join(traceback.format_exception(error))
    if len(detail) > _LONGEST_TRACEBACK:
        half = _LONGEST_TRACEBACK // 2
        detail = f"{detail[:half]}\n...\n{detail[-half:]}"
    line = " ".join(message[: 2 * _LONGEST_LINE].split())[:_LONGEST_LINE]
    home.mkdir(parents=True, exist_ok=True)
    draft = home / f"{ERROR_FILE}.tmp"
    draft.write_text(json.dumps({"error": _encodable(line), "traceback": _encodable(detail)}) + "\n")
    draft.replace(home / ERROR_FILE)


def _encodable(text: str) -> str:
    """Return the text with lone surrogates escaped, which file names may contain."""
    return text.encode(errors="backslashreplace").decode()
