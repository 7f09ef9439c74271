"""What a Harbor job leaves behind, read as episodes: each trial's trajectory with the reward that its verifier gave."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seasoned.checks import check_reward
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.integrations.atif import read_atif
from seasoned.integrations.harbor.trajectory_notes import TrajectoryNotes, trajectory_notes
from seasoned.integrations.json_input import MAX_LINE_BYTES, Document, parse_strict_json, reason
from seasoned.integrations.json_shapes import optional_list, optional_record, optional_text, record, unix_time
from seasoned.memory import Memory
from seasoned.types import Episode

__all__ = ["EXAMPLES_MARK", "TEST_MODE", "JobImport", "Trial", "import_job", "read_job"]

EXAMPLES_MARK = "===== Steps from earlier tasks, as examples; they are not part of this task ====="
"""Stands before the examples that an instruction was given; from it on, nothing is learned."""

TEST_MODE = "test"
_TRAJECTORY = Path("agent", "trajectory.json")
# The verifier's word counts where the agent ended by itself, used up what it was given, or refused the task: what
# Harbor's own table calls a valid reward.
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
        name: the trial's; with a slash and the step's name where it has several.
        episode: what was experienced, rewarded; None where it was refused.
        created_at: when it ended, in Unix seconds, where the job says so.
        refusal: why it is no episode; None where it is one.
        notes: its plan, its reasoning and what it was shown, as far as the trajectory tells.
    """

    name: str
    episode: Episode | None
    created_at: float | None = None
    refusal: str | None = None
    notes: TrajectoryNotes = field(default_factory=TrajectoryNotes)


@dataclass(frozen=True, slots=True)
class JobImport:
    """What was imported: `new` of `read` episodes were not stored before; `refused` maps trials to the reasons."""

    read: int
    new: int
    refused: Mapping[str, str]


def import_job(
    memory: Memory, job: str | os.PathLike[str], *, reward_key: str | None = None, dry_run: bool = False
) -> JobImport:
    """Store the trials of a Harbor job that may be learned from; all or none. Importing twice changes nothing.

    Plans and reasoning are kept as notes, by which examples are found too, and which stored steps the prompts showed,
    by which examples are valued. They follow the episodes; where that was interrupted, importing again adds what is
    missing.

    Refused, each with its reason, are trials that ran in test mode, that have no verdict or no trajectory, and those
    that broke off for reasons that are not the agent's.

    Args:
        memory: where they go.
        job: the job's folder, or one trial's.
        reward_key: which of several rewards counts; None: `reward`, or the only one.
        dry_run: count, and store nothing.

    Raises:
        NotFoundError: there is no such folder, or no trial in it.
        InputError, StoreError: as for `Memory.import_episodes`; nothing was stored.
    """
    trials = list(read_job(job, reward_key=reward_key))
    found = [(one.episode, one.created_at) for one in trials if one.episode is not None]
    new = memory.import_episodes(found, dry_run=dry_run) if found else 0
    known = set() if dry_run else {note.id for note in memory.notes(quarantined=True)}
    for one in [] if dry_run else trials:
        for name, kind, body, step in one.notes.items():
            if (id_ := f"{_id(one)}:{name}") not in known:
                memory.note(_id(one), kind, body, step=step, source="harbor", id=id_)
    return JobImport(len(found), new, {one.name: one.refusal for one in trials if one.refusal is not None})


def read_job(job: str | os.PathLike[str], *, reward_key: str | None = None) -> Iterator[Trial]:
    """Yield the trials of a job, in the order of their names.

    An episode's id is the trial's own, its reward the verifier's, on its last step; the rest is as
    `seasoned.integrations.atif.read_atif` says, whichever agent wrote the trajectory. A trial that ran out of time is
    truncated.

    Raises:
        NotFoundError: there is no such folder, or no trial in it.
    """
    folder = Path(job)
    if not folder.is_dir():
        raise NotFoundError(f"{excerpt(str(job))}", "a job is a folder", "See Harbor's `jobs` folder.")
    folders = [folder] if _is_trial(folder) else sorted(one for one in folder.iterdir() if _is_trial(one))
    if not folders:
        raise NotFoundError(
            f"{excerpt(str(job))}", "a job's folder holds trials, each with a result.json", "Name the job, or a trial."
        )
    for one in folders:
        yield from _read_trial(one, reward_key)


def _is_trial(folder: Path) -> bool:
    """Whether a folder is a trial's. A job has a result.json too, but no log of a trial beside it."""
    if folder.is_symlink() or not (folder / "result.json").is_file():
        return False
    return any((folder / name).exists() for name in ("agent", "steps", "trial.log"))


def _read_trial(folder: Path, reward_key: str | None) -> Iterator[Trial]:
    try:
        result = record("result.json", _json(folder, Path("result.json")))
        id_ = optional_text("id", result.get("id"))
        if id_ is None:
            raise InputError("a result without an id", "a trial has one", "See which Harbor wrote it.")
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
    for name, inside, episode_id, told in parts:
        try:
            episode, beside = _episode(folder, inside, episode_id, told, reward_key)
            ended = told.get("finished_at") or optional_record("verifier", told.get("verifier")).get("finished_at")
            yield Trial(name, episode, None if ended is None else unix_time("finished_at", ended), notes=beside)
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
        raise InputError(f"it failed: {excerpt(failed)}", "a reward is of what the agent did", "Run the trial again.")
    trajectory = record("the trajectory", _json(folder, inside / _TRAJECTORY))
    extra = optional_record("extra", trajectory.get("extra"))
    if extra.get("mode") == TEST_MODE:
        raise InputError("a test", "what an agent is tested on is not learned from", "Run it with mode=train.")
    if trajectory.get("continued_trajectory_ref") is not None:
        raise InputError("it goes on in another file", "a trajectory is one document", "Run it without summaries.")
    extra = {key: value for key, value in extra.items() if key not in ("reward", "score")} | {"reward": reward}
    if failed is not None:
        extra |= {"truncated": True}
    steps = [_without_examples(step) for step in optional_list("steps", trajectory.get("steps"))]
    document = Document(1, {**trajectory, "trajectory_id": id_, "extra": extra, "steps": steps})
    episode = next(read_atif(document)).episode
    return episode, trajectory_notes(steps, len(episode.steps))


def _check_not_a_test(result: Mapping[str, Any]) -> None:
    """Refuse a test: by what was typed, or, where nothing was, by what the agent says that it ran in."""
    agent = optional_record("agent", optional_record("config", result.get("config")).get("agent"))
    told = optional_record("agent_result", result.get("agent_result"))
    for name, held in (("kwargs", agent), ("metadata", told)):
        if optional_record(name, held.get(name)).get("mode") == TEST_MODE:
            raise InputError("a test", "what an agent is tested on is not learned from", "Run it with mode=train.")


def _without_examples(step: Any) -> Any:
    """Return a step without the examples that were put into it: what was recalled is not stored again."""
    message = step.get("message") if isinstance(step, dict) else None
    if isinstance(message, str) and EXAMPLES_MARK in message:
        return {**step, "message": message.partition(EXAMPLES_MARK)[0].rstrip()}
    return step


def _reward(result: Mapping[str, Any], key: str | None) -> float:
    rewards = optional_record(
        "rewards", optional_record("verifier_result", result.get("verifier_result")).get("rewards")
    )
    if not rewards:
        raise InputError("no reward", "a trial teaches by what its verifier said", "See the trial's log.")
    if key is None:
        key = "reward" if "reward" in rewards else next(iter(rewards)) if len(rewards) == 1 else None
    if key not in rewards:
        raise InputError(
            f"rewards {excerpt(sorted(rewards))}",
            "one of them is the episode's" if key is None else f"{excerpt(key)} is one of them",
            "Name it: reward_key.",
        )
    return check_reward("reward", rewards[key])


def _json(folder: Path, inside: Path) -> object:
    """Return the value of a file inside a trial's folder: a regular one, reached through no link, of bounded size."""
    path = folder / inside
    if path.resolve() != folder.resolve() / inside:
        raise InputError(f"{inside} is outside the trial's folder", "a trial keeps its files", "Remove the link.")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise InputError(f"no {inside}", "the agent leaves its trajectory in ATIF", "Use one that does.") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_LINE_BYTES:
            raise InputError(f"{inside}, {status.st_size} bytes", "it is a file of at most 256 MiB", "Leave it out.")
        return parse_strict_json(file.read(MAX_LINE_BYTES + 1))


def _why(error: Exception) -> str:
    return reason(error) if not isinstance(error, OSError) else f"not readable: {error.strerror}"
