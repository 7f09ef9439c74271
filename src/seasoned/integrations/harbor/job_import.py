"""Importer of finished Harbor jobs: each trial's trajectory as an episode, with its verifier's reward."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seasoned.checks import check_reward
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.integrations.harbor.trajectory_notes import TrajectoryNotes, trajectory_notes
from seasoned.integrations.harnesses.atif import read_atif
from seasoned.integrations.json_input import MAX_LINE_BYTES, Document, parse_strict_json, reason
from seasoned.integrations.json_shapes import optional_list, optional_record, optional_text, record, unix_time
from seasoned.memory import Memory
from seasoned.types import Episode

__all__ = ["EXAMPLES_MARK", "TEST_MODE", "JobImport", "Trial", "import_job", "read_job"]

EXAMPLES_MARK = "===== Steps from earlier tasks, as examples; they are not part of this task ====="
"""Mark before the examples in an instruction; the text from it on is not stored."""

TEST_MODE = "test"
_TRAJECTORY = Path("agent", "trajectory.json")
# Failures whose reward is valid, as in Harbor's own table: the agent used up its limits, or refused the task.
_OWN_FAULTS = (
    "AgentSafetyRefusalError",
    "AgentTimeoutError",
    "ContentPolicyViolationError",
    "ContextLengthExceededError",
    "ContextWindowExceededError",
    "OutputLengthExceededError",
    "OutputTokenExceededError",
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial of a job, or one step of a trial of several.

    Args:
        name: of the trial; followed by a slash and the step's name, if it has several steps.
        episode: with its reward; None if it was refused.
        created_at: time of its end, in Unix seconds; None if the job has none.
        refusal: reason why there is no episode; None otherwise.
        notes: its plan, its reasoning and its examples, if the trajectory has them.
    """

    name: str
    episode: Episode | None
    created_at: float | None = None
    refusal: str | None = None
    notes: TrajectoryNotes = field(default_factory=TrajectoryNotes)


@dataclass(frozen=True, slots=True)
class JobImport:
    """Result of an import: `new` of `read` episodes were not stored before; `refused` maps trials to reasons."""

    read: int
    new: int
    refused: Mapping[str, str]


def import_job(
    memory: Memory, job: str | os.PathLike[str], *, reward_key: str | None = None, dry_run: bool = False
) -> JobImport:
    """Store the trials of a Harbor job that allow learning; all or none. A second import changes nothing.

    Plans and reasoning are stored as notes, which are keys of the retrieval of examples. The examples in the prompts
    are stored as notes, which determine the value of examples. Notes are written after the episodes; if that was
    interrupted, a second import adds the missing ones.

    Trials in test mode, trials without a reward or a trajectory, and trials that failed for reasons other than the
    agent are refused, each with its reason.

    Args:
        memory: stores the episodes.
        job: the job's folder, or one trial's.
        reward_key: name of the reward, if there are several; None: `reward`, or the only one.
        dry_run: count, and store nothing.

    Raises:
        NotFoundError: the folder does not exist, or contains no trial.
        InputError, StoreError: as for `Memory.import_episodes`; nothing was stored.
    """
    trials = list(read_job(job, reward_key=reward_key))
    episodes = [(trial.episode, trial.created_at) for trial in trials if trial.episode is not None]
    new = memory.import_episodes(episodes, dry_run=dry_run) if episodes else 0
    known = set() if dry_run else {note.id for note in memory.notes(quarantined=True)}
    for trial in [] if dry_run else trials:
        for name, kind, body, step in trial.notes.items():
            if (id_ := f"{_id(trial)}:{name}") not in known:
                memory.note(_id(trial), kind, body, step=step, source="harbor", id=id_)
    return JobImport(len(episodes), new, {trial.name: trial.refusal for trial in trials if trial.refusal is not None})


def read_job(job: str | os.PathLike[str], *, reward_key: str | None = None) -> Iterator[Trial]:
    """Yield the trials of a job, in the order of their names.

    An episode has the trial's id, and the verifier's reward on its last step; its other fields are those of
    `seasoned.integrations.harnesses.atif.read_atif`, for the trajectory of any agent. A trial that reached its time
    limit is truncated.

    Raises:
        NotFoundError: the folder does not exist, or contains no trial.
    """
    folder = Path(job)
    if not folder.is_dir():
        raise NotFoundError(f"{excerpt(str(job))}", "a job must be a folder", "See Harbor's `jobs` folder.")
    folders = [folder] if _is_trial(folder) else sorted(one for one in folder.iterdir() if _is_trial(one))
    if not folders:
        raise NotFoundError(
            f"{excerpt(str(job))}", "a job's folder holds trials, each with a result.json", "Name the job, or a trial."
        )
    for one in folders:
        yield from _read_trial(one, reward_key)


def _is_trial(folder: Path) -> bool:
    """Return whether a folder is a trial's. A job's folder has a result.json too, but no log of a trial."""
    if folder.is_symlink() or not (folder / "result.json").is_file():
        return False
    return any((folder / name).exists() for name in ("agent", "steps", "trial.log"))


def _read_trial(folder: Path, reward_key: str | None) -> Iterator[Trial]:
    try:
        result = record("result.json", _json(folder, Path("result.json")))
        id_ = optional_text("id", result.get("id"))
        if id_ is None:
            raise InputError("a result without an id", "a trial needs an id", "Check the version of Harbor.")
        steps = [record("a step", step) for step in optional_list("step_results", result.get("step_results"))]
    except (ValueError, OSError) as error:
        yield Trial(folder.name, None, refusal=_why(error))
        return
    parts = [(folder.name, Path(), id_, result)]
    if steps:
        parts = []
        for step in steps:
            name = str(step.get("step_name"))
            parts.append(
                (
                    f"{folder.name}/{name}",
                    Path("steps", name),
                    f"{id_}/{name}",
                    {**step, "config": result.get("config")},
                )
            )
    for name, inside, episode_id, part in parts:
        try:
            episode, notes = _episode(folder, inside, episode_id, part, reward_key)
            ended = part.get("finished_at") or optional_record("verifier", part.get("verifier")).get("finished_at")
            yield Trial(name, episode, None if ended is None else unix_time("finished_at", ended), notes=notes)
        except (ValueError, OSError, RecursionError) as error:
            yield Trial(name, None, refusal=_why(error))


def _id(trial: Trial) -> str:
    return str(trial.episode.id) if trial.episode is not None else trial.name


def _episode(
    folder: Path, inside: Path, id_: str, result: Mapping[str, Any], reward_key: str | None
) -> tuple[Episode, TrajectoryNotes]:
    _check_not_a_test(result)
    reward = _reward(result, reward_key)
    failed = optional_record("exception_info", result.get("exception_info")).get("exception_type")
    if failed is not None and failed not in _OWN_FAULTS:
        raise InputError(
            f"it failed: {excerpt(failed)}", "a reward must depend on the agent alone", "Run the trial again."
        )
    trajectory = record("the trajectory", _json(folder, inside / _TRAJECTORY))
    extra = optional_record("extra", trajectory.get("extra"))
    if extra.get("mode") == TEST_MODE:
        raise InputError("a test", "an agent must not learn from its tests", "Run it with mode=train.")
    if trajectory.get("continued_trajectory_ref") is not None:
        raise InputError(
            "it continues in another file", "a trajectory must be one document", "Run it without summaries."
        )
    extra = {key: value for key, value in extra.items() if key not in ("reward", "score")} | {"reward": reward}
    if failed is not None:
        extra |= {"truncated": True}
    steps = [_without_examples(step) for step in optional_list("steps", trajectory.get("steps"))]
    document = Document(1, {**trajectory, "trajectory_id": id_, "extra": extra, "steps": steps})
    episode = next(read_atif(document)).episode
    return episode, trajectory_notes(steps, len(episode.steps))


def _check_not_a_test(result: Mapping[str, Any]) -> None:
    """Refuse a test, by the options of the trial, or else by the metadata of the agent."""
    agent = optional_record("agent", optional_record("config", result.get("config")).get("agent"))
    metadata = optional_record("agent_result", result.get("agent_result"))
    for name, held in (("kwargs", agent), ("metadata", metadata)):
        if optional_record(name, held.get(name)).get("mode") == TEST_MODE:
            raise InputError("a test", "an agent must not learn from its tests", "Run it with mode=train.")


def _without_examples(step: Any) -> Any:
    """Return a step without its examples, so that retrieved text is not stored again."""
    message = step.get("message") if isinstance(step, dict) else None
    if isinstance(message, str) and EXAMPLES_MARK in message:
        return {**step, "message": message.partition(EXAMPLES_MARK)[0].rstrip()}
    return step


def _reward(result: Mapping[str, Any], key: str | None) -> float:
    rewards = optional_record(
        "rewards", optional_record("verifier_result", result.get("verifier_result")).get("rewards")
    )
    if not rewards:
        raise InputError("no reward", "a trial needs a reward of its verifier", "See the trial's log.")
    if key is None:
        key = "reward" if "reward" in rewards else next(iter(rewards)) if len(rewards) == 1 else None
    if key not in rewards:
        raise InputError(
            f"rewards {excerpt(sorted(rewards))}",
            "only one reward can be the episode's" if key is None else f"{excerpt(key)} must be one of them",
            "Name it: reward_key.",
        )
    return check_reward("reward", rewards[key])


def _json(folder: Path, inside: Path) -> object:
    """Return the value of a JSON file inside a trial's folder: a regular file, without links, of bounded size."""
    path = folder / inside
    if path.resolve() != folder.resolve() / inside:
        raise InputError(
            f"{inside} is outside the trial's folder", "a trial's files must be inside", "Remove the link."
        )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise InputError(f"no {inside}", "the agent must write its trajectory in ATIF", "Use one that does.") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_LINE_BYTES:
            raise InputError(f"{inside}, {status.st_size} bytes", "a file may have at most 256 MiB", "Leave it out.")
        return parse_strict_json(file.read(MAX_LINE_BYTES + 1))


def _why(error: Exception) -> str:
    return reason(error) if not isinstance(error, OSError) else f"not readable: {error.strerror}"
