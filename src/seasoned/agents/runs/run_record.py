"""A run leaves a record: configuration, seeds, versions, git revision, and every score."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import platform
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.errors import ConfigError, InputError, NewerStoreError, excerpt
from seasoned.protocols import Usage

__all__ = ["RunRecord", "new_run_id", "provenance", "read_code", "read_lost_usage", "read_results"]

_EPISODES = "episodes.jsonl"
_LOST = "lost.jsonl"
_UNREADABLE = (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
_PACKAGES = ("seasoned", "numpy", "openai", "textworld", "xllamacpp")


def provenance() -> dict[str, Any]:
    """Return what a number depends on besides its settings: versions, machine, git revision where there is one."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "python": sys.version.split()[0],
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "revision": _git_revision(),
    }


def _git_revision() -> str | None:
    """The commit of the working copy this package runs from, `+` if it was changed; None outside one."""
    here = Path(__file__)

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here.parent), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)  # installed inside somebody else's repository, it is not ours
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def new_run_id() -> str:
    """Return an id that no other run has: 12 random hexadecimal digits."""
    return uuid.uuid4().hex[:12]


class RunRecord:
    """A folder with `run.json` (what was asked) and `episodes.jsonl` (what came out, a line an episode).

    Opening an existing folder resumes it; it must have been made with the same settings. `run_id` is drawn when the
    record is made, and names the run's episodes in memory: two records never share one.

    Args:
        folder: made if it does not exist.
        settings: everything that the scores depend on.
        code: what files hold that the scores depend on too, as a hash by name; kept for each part of the run, and not
            compared: a run may go on after its code was mended.

    Raises:
        ConfigError: the folder holds a run with other settings.
        InputError: the folder's record is damaged, or the folder is a file.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], code: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.settings = dict(settings)
        self._code = {"code": dict(code)} if code else {}
        self.results: dict[int, EpisodeResult] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: {error}", "a run is recorded in a folder", "Choose another folder.") from error
        self._run_file = folder / "run.json"
        self._episodes_file = folder / _EPISODES
        self._prepared_file = folder / "prepared.json"
        self._resumed = self.is_in(folder)
        if self._resumed:
            self._resume()
        else:
            self.run_id = new_run_id()
            self._write(run_id=self.run_id, started_at=time.time(), **self._code, **provenance())

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Return whether a folder holds a record, so that opening it resumes a run."""
        return (folder / "run.json").exists()

    def _resume(self) -> None:
        self.results, cut_off = _read_episodes(self.folder)
        try:
            self._run = json.loads(self._run_file.read_text())
            settings, self.run_id = self._run["settings"], _run_id(self._run["run_id"])
        except _UNREADABLE as error:
            raise _damaged(self.folder, error) from error
        if settings != json.loads(json.dumps(self.settings)):
            raise ConfigError(
                f"{self.folder} holds another run: {settings}",
                "a run is resumed with the settings that it began with",
                "Choose another folder, or the same settings.",
            )
        if cut_off:
            os.truncate(self._episodes_file, self._episodes_file.stat().st_size - cut_off)

    def _write(self, **fields: Any) -> None:
        self._run = {"settings": self.settings, **getattr(self, "_run", {}), **fields}
        _replace(self._run_file, json.dumps(self._run, indent=2).encode())

    def begin(self) -> None:
        """Note that the run goes on: when, and with which versions. A new record says so already."""
        if self._resumed:
            session = {"at": time.time(), **self._code, **provenance()}
            first = {} if self.results else self._code  # nothing is left of what was played by other code
            self._write(sessions=[*self._run.get("sessions", []), session], **first)
        self._resumed = True

    def prepare(self, episode: int, result: EpisodeResult) -> None:
        """Note how an episode went before it is committed to a memory: killed in between, the run still knows it.

        Not flushed to the disk, which would cost as much as the commit: a power cut in between loses what the episode
        cost, not the episode.
        """
        draft = self._prepared_file.with_name(f"{self._prepared_file.name}.tmp")
        draft.write_text(_line(episode, result))
        draft.replace(self._prepared_file)

    def prepared(self, episode: int) -> EpisodeResult | None:
        """Return what was noted of an episode, if it is the last that was noted.

        None also where the note cannot be read: it is not flushed, so a power cut may leave it empty or torn, and then
        what playing the episode cost is not known, which is all that it would have said.
        """
        try:
            number, result = _read_line(self._prepared_file.read_bytes())
        except (*_UNREADABLE, NewerStoreError):
            return None
        return result if number == episode else None

    def add(self, episode: int, result: EpisodeResult) -> None:
        """Append one episode's result; on disk when this returns."""
        line = _line(episode, result)
        with self._episodes_file.open("a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.results[episode] = result

    def lose(self, episode: int, usage: Usage) -> None:
        """Note what an episode that broke off has cost; it is played again, and counted again then."""
        with (self.folder / _LOST).open("a") as file:
            file.write(json.dumps({"episode": episode, "at": time.time(), "usage": dataclasses.asdict(usage)}) + "\n")

    def finish(self) -> None:
        """Write the totals."""
        self._write(finished_at=time.time(), usage=dataclasses.asdict(self.usage), scores=self.scores)

    @property
    def usage(self) -> Usage:
        """What the model's calls cost, over all episodes, those that broke off included."""
        return sum((result.usage for result in self.results.values()), read_lost_usage(self.folder))

    @property
    def scores(self) -> list[float]:
        """Every episode's score, in order."""
        return [self.results[episode].score for episode in sorted(self.results)]


def _run_id(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"run_id = {value!r}")
    return value


def read_results(folder: Path) -> tuple[EpisodeResult, ...]:
    """Return how a run's episodes went, in order, up to the first that is missing; nothing is changed.

    Raises:
        InputError: the folder's record is damaged.
        NewerStoreError: a newer seasoned wrote it.
    """
    results, _ = _read_episodes(folder)
    return tuple(results[number] for number in itertools.takewhile(results.__contains__, itertools.count()))


def read_code(folder: Path) -> frozenset[tuple[str, str]]:
    """Return by what code a run's episodes were played: names with their hashes; more than one of a name if it changed.

    A record that cannot be read has none: reading its episodes says so.
    """
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        parts = [record, *record.get("sessions", [])]
        return frozenset((str(k), str(v)) for part in parts for k, v in part.get("code", {}).items())
    except _UNREADABLE:
        return frozenset()


def read_lost_usage(folder: Path) -> Usage:
    """Return what a run's episodes that broke off have cost; a killed process has noted nothing.

    Raises:
        InputError: the folder's record is damaged.
        NewerStoreError: a newer seasoned wrote it.
    """
    usage = Usage()
    try:
        for line in (folder / _LOST).read_bytes().split(b"\n")[:-1]:
            record = json.loads(line)["usage"]
            _check_fields(Usage, record)
            usage += Usage(**record)
    except FileNotFoundError:
        pass
    except _UNREADABLE as error:
        raise _damaged(folder, error) from error
    return usage


def _read_episodes(folder: Path) -> tuple[dict[int, EpisodeResult], int]:
    """The results by episode, and how many bytes of a line that a kill cut off: that episode is played again."""
    try:
        *lines, rest = (folder / _EPISODES).read_bytes().split(b"\n")
        return dict(_read_line(line) for line in lines), len(rest)
    except FileNotFoundError:
        return {}, 0
    except _UNREADABLE as error:
        raise _damaged(folder, error) from error


def _line(episode: int, result: EpisodeResult) -> str:
    return json.dumps({"episode": episode, **dataclasses.asdict(result)})


def _read_line(line: bytes) -> tuple[int, EpisodeResult]:
    record = json.loads(line)
    _check_fields(EpisodeResult, record, "episode")
    _check_fields(Usage, record["usage"])
    if not math.isfinite(record["score"]):
        raise ValueError(f"score = {record['score']}")
    episode, usage = record.pop("episode"), Usage(**record.pop("usage"))
    late = tuple((step, reward) for step, reward in record.pop("late_rewards", ()))
    return episode, EpisodeResult(**record, usage=usage, late_rewards=late)


def _check_fields(kind: type, record: object, *more: str) -> None:
    """What was added later has a default; what is not known comes from a version to come."""
    if not isinstance(record, Mapping):
        raise TypeError(f"{excerpt(record)} is no table")
    known = {*more, *(field.name for field in dataclasses.fields(kind))}
    if unknown := sorted(set(record) - known):
        raise NewerStoreError(
            f"a run's record has {excerpt(unknown[0])}",
            "this seasoned does not know it: a newer one wrote it",
            "Read it with the version that wrote it.",
        )


def _damaged(folder: Path, error: Exception) -> InputError:
    return InputError(
        f"{folder}: {error}",
        "a run's folder holds its own record",
        "Choose another folder, or remove this one to play that run anew.",
    )


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
