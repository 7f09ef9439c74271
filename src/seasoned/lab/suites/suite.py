"""A suite is data: the tasks, the arms, the seeds and the budget of an experiment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seasoned.llms import Menu

__all__ = ["SAME_TASK", "ArmSpec", "ExperimentBudget", "RunKey", "Suite", "Task", "Transfer"]

SAME_TASK = "same task"
"""The split that is learned from."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """What is played after the last learning episode, with nothing learned from it.

    Args:
        split: `new slots` (the same kind of task, other names and places) or `held-out task`, say.
        env: the environment's specification.
        episodes: how many.
    """

    split: str
    env: str
    episodes: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """What one learning run plays.

    Args:
        name: names the task in results.
        env: environment specifications. Where there are several, episode e plays one of them, in rounds whose order
            is drawn from the run's seed and is the same for every arm.
        episodes: how many are learned from.
        max_score: the best possible score, where the environment does not know it; scores are normalised by it.
        success: an episode with at least this score is a pass; None: the best possible score, if it is known.
        transfer: what is played in the end.
    """

    name: str
    env: tuple[str, ...]
    episodes: int
    max_score: float | None = None
    success: float | None = None
    transfer: tuple[Transfer, ...] = ()


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """One way to act and learn.

    Args:
        name: names the arm in results.
        kind: a key of `seasoned.lab.arms.registry.ARMS`.
        settings: of the kind.
        budget_of: the arm whose tokens per run this one may spend; it runs after that one.
        episodes: fewer than the task's, for an arm that is dear; None: the task's.
        tasks: the tasks that it plays; empty: all.
    """

    name: str
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget_of: str | None = None
    episodes: int | None = None
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExperimentBudget:
    """Where an experiment stops, with the episodes in flight at most above it; None: no limit.

    Args:
        calls, tokens, usd: asked of a model now; answers from the cache cost nothing.
        seconds: wall clock of one call of `run` or `resume`.
        episode_seconds: wall clock of one episode, with what is learned from it. It stops nothing but the run whose
            episode takes longer, which has failed.
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    episode_seconds: float | None = None


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """One learning run: a task, an arm, a seed."""

    task: str
    arm: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task}/{self.arm}/{self.seed}"


@dataclass(frozen=True, slots=True)
class Suite:
    """An experiment: every arm plays every task on every seed.

    Args:
        name: of the suite.
        about: what it asks, in a sentence.
        model: the model's specification; see `seasoned.build.make_reader`.
        reader: how its policy is read.
        calibrate: divide out letter preference.
        menu: how the candidates are shown to a model that is read by `exact`.
        encoder: how every run's memory compares states: a name, or an encoder's identity; see
            `seasoned.states.encoder_names.named_encoder`.
        seeds: of the learning runs; the same for every arm, so that runs are paired.
        tasks, arms: what is played, and how.
        fill_episodes: how many episodes of actions drawn at random each run's memory is filled with first, the same
            for every arm: stored and learned from, and in no score. For tasks at which the model alone never succeeds.
        reference: the arm that the others are compared with.
        budget: where it stops.
        model_settings: of the model: `base_url`, prices.
    """

    name: str
    about: str
    seeds: tuple[int, ...]
    tasks: tuple[Task, ...]
    arms: tuple[ArmSpec, ...]
    model: str = "local"
    reader: str = "auto"
    calibrate: bool = True
    menu: Menu = "list"
    encoder: str = "words"
    fill_episodes: int = 0
    reference: str = "alone"
    budget: ExperimentBudget = field(default_factory=ExperimentBudget)
    model_settings: Mapping[str, Any] = field(default_factory=dict)

    def task(self, name: str) -> Task:
        """Return the task called `name`."""
        return next(task for task in self.tasks if task.name == name)

    def arm(self, name: str) -> ArmSpec:
        """Return the arm called `name`."""
        return next(arm for arm in self.arms if arm.name == name)

    def episodes(self, run: RunKey) -> int:
        """Return how many episodes a run learns from."""
        own = self.arm(run.arm).episodes
        return self.task(run.task).episodes if own is None else min(own, self.task(run.task).episodes)

    def runs(self) -> list[RunKey]:
        """Return every learning run, seed by seed, an arm after the arm whose budget it has."""
        return [
            RunKey(task.name, arm.name, seed)
            for seed in self.seeds
            for task in self.tasks
            for arm in sorted(self.arms, key=lambda arm: arm.budget_of is not None)
            if not arm.tasks or task.name in arm.tasks
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the suite as JSON data; `read_suite` reads it."""
        data = dataclasses.asdict(self)
        data["seeds"] = list(self.seeds)
        return data
