"""The suite of an experiment as data: tasks, arms, seeds and budget."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seasoned.llms import Menu

__all__ = ["SAME_TASK", "ArmSpec", "ExperimentBudget", "RunKey", "Suite", "Task", "TransferSplit"]

SAME_TASK = "same task"
"""The split of the learning episodes."""


@dataclass(frozen=True, slots=True)
class TransferSplit:
    """Episodes that are played after the last learning episode, without learning from them.

    Args:
        split: a name such as `new slots` (the same kind of task, other names and places) or `held-out task`.
        env: the environment's specification.
        episodes: number of episodes.
    """

    split: str
    env: str
    episodes: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a learning run.

    Args:
        name: its name in results.
        env: environment specifications. Of several, each episode plays one, in rounds whose order is drawn from the
            run's seed and is the same for every arm.
        episodes: number of learning episodes.
        max_score: the best possible score, if the environment does not know it; scores are normalised by it.
        success: an episode with at least this score is a pass; None: the best possible score, if it is known.
        transfer: the episodes after the last learning episode.
    """

    name: str
    env: tuple[str, ...]
    episodes: int
    max_score: float | None = None
    success: float | None = None
    transfer: tuple[TransferSplit, ...] = ()


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """One way to act and learn.

    Args:
        name: its name in results.
        kind: a key of `seasoned.lab.arms.registry.ARMS`.
        settings: of the kind.
        budget_of: the arm whose tokens per run are the budget of this one, which runs after it.
        episodes: a smaller number of episodes than the task's, for an expensive arm; None: the task's.
        tasks: the tasks of the arm; empty: all.
    """

    name: str
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget_of: str | None = None
    episodes: int | None = None
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExperimentBudget:
    """The limits of an experiment, exceeded at most by the episodes in flight; None: no limit.

    Args:
        calls, tokens, usd: new model usage; answers from the cache cost nothing.
        seconds: wall-clock time of one call of `run` or `resume`.
        episode_seconds: wall-clock time of one episode including learning. An episode that takes longer fails its run;
            the other runs continue.
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
        about: its question, in a sentence.
        model: the model's specification; see `seasoned.build.make_reader`.
        reader: the method by which the model's policy is read.
        calibrate: divide out letter preference.
        menu: the form of the candidates in the prompt of a model that is read by `exact`.
        encoder: the state encoder of every run's memory: a name, or an encoder's identity; see
            `seasoned.states.encoder_names.named_encoder`.
        seeds: of the learning runs; equal for every arm, so that runs are paired.
        tasks, arms: every arm plays every task, unless it lists its tasks.
        fill_episodes: number of episodes of random actions that each run's memory is filled with first, equal for every
            arm: stored and learned from, and in no score. For tasks at which the model alone never succeeds.
        reference: the arm that the others are compared with.
        budget: the limits.
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
        """Return the task with this name."""
        return next(task for task in self.tasks if task.name == name)

    def arm(self, name: str) -> ArmSpec:
        """Return the arm with this name."""
        return next(arm for arm in self.arms if arm.name == name)

    def episodes(self, run: RunKey) -> int:
        """Return the number of learning episodes of a run."""
        own = self.arm(run.arm).episodes
        return self.task(run.task).episodes if own is None else min(own, self.task(run.task).episodes)

    def runs(self) -> list[RunKey]:
        """Return every learning run, seed by seed, with each arm after the arm of its `budget_of`."""
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
