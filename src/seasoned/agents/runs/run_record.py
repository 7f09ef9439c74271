"""Record of a run: settings, seeds, versions, git revision, and the result of every episode."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import math
import os
import platform
import re
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


@functools.cache
def _versions() -> Mapping[str, str]:
    """Return the versions of this package and of its installed dependencies, those of extras included."""
    versions = {}
    with contextlib.suppress(metadata.PackageNotFoundError):  # it runs from a folder, not installed
        for requirement in ["seasoned", *(metadata.requires("seasoned") or [])]:
            package = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            with contextlib.suppress(metadata.PackageNotFoundError):  # an extra that is not installed
                versions[package] = metadata.version(package)
    return versions


def provenance() -> dict[str, Any]:
    """Return the context of a result besides its settings: versions, machine, and git revision, if there is one."""
    return {
        "versions": dict(_versions()),
        "python": sys.version.split()[0],
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "revision": _git_revision(),
    }


def _git_revision() -> str | None:
    """Return the commit of the working copy of this package, with `+` if it was changed; None outside one."""
    file = Path(__file__)

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(file.parent), *arguments]
        process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
        return process.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", file.name)  # fails if the package is installed inside another repository
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def new_run_id() -> str:
    """Return a new id: 12 random hexadecimal digits."""
    return uuid.uuid4().hex[:12]


class RunRecord:
    """A folder with `run.json` (settings) and `episodes.jsonl` (results, one line per episode).

    Opening an existing folder resumes its run, which must have the same settings. `run_id` is drawn when the record is
    made; it is unique, and it is the prefix of the episodes' ids in memory.

    Args:
        folder: made if it does not exist.
        settings: all settings that affect the scores.
        code: hashes, by name, of code files that affect the scores. They are stored for each part of the run, and not
            compared: a run may resume after a correction of its code.

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
            raise InputError(f"{folder}: {error}", "a record needs a folder", "Choose another folder.") from error
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
                "a run resumes with its own settings",
                "Choose another folder, or the same settings.",
            )
        if cut_off:
            os.truncate(self._episodes_file, self._episodes_file.stat().st_size - cut_off)

    def _write(self, **fields: Any) -> None:
        self._run = {"settings": self.settings, **getattr(self, "_run", {}), **fields}
        _replace(self._run_file, json.dumps(self._run, indent=2).encode())

    def begin(self) -> None:
        """Record the time and the versions of a resumed part of the run; a new record has them already."""
        if self._resumed:
            session = {"at": time.time(), **self._code, **provenance()}
            first = {} if self.results else self._code  # no result of other code is left
            self._write(sessions=[*self._run.get("sessions", []), session], **first)
        self._resumed = True

    def prepare(self, episode: int, result: EpisodeResult) -> None:
        """Store a result before its episode is committed to a memory, for the case that the process is killed between.

        The file is not flushed to the disk, which would take as long as the commit: a power cut in between loses the
        usage of the episode, not the episode.
        """
        temporary = self._prepared_file.with_name(f"{self._prepared_file.name}.tmp")
        temporary.write_text(_line(episode, result))
        temporary.replace(self._prepared_file)

    def prepared(self, episode: int) -> EpisodeResult | None:
        """Return the prepared result, if it is of this episode.

        It is None also if the file cannot be read: a power cut may leave it empty or torn, as it is not flushed. The
        usage of the episode is then unknown.
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

    def add_lost(self, episode: int, usage: Usage) -> None:
        """Add the usage of an episode that raised an error; it is played again, and its new usage counts too."""
        with (self.folder / _LOST).open("a") as file:
            file.write(json.dumps({"episode": episode, "at": time.time(), "usage": dataclasses.asdict(usage)}) + "\n")

    def finish(self) -> None:
        """Write the totals."""
        self._write(finished_at=time.time(), usage=dataclasses.asdict(self.usage), scores=self.scores)

    @property
    def usage(self) -> Usage:
        """Usage of the model over all episodes, including those that raised an error."""
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
    """Return the results of a run, in order, up to the first missing one; the folder is not changed.

    Raises:
        InputError: the folder's record is damaged.
        NewerStoreError: a newer seasoned wrote it.
    """
    results, _ = _read_episodes(folder)
    return tuple(results[number] for number in itertools.takewhile(results.__contains__, itertools.count()))


def read_code(folder: Path) -> frozenset[tuple[str, str]]:
    """Return the code of a run as (name, hash) pairs; several of one name if the code changed.

    The result is empty if the record cannot be read: `read_results` raises the error.
    """
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        parts = [record, *record.get("sessions", [])]
        return frozenset((str(k), str(v)) for part in parts for k, v in part.get("code", {}).items())
    except _UNREADABLE:
        return frozenset()


def read_lost_usage(folder: Path) -> Usage:
    """Return the usage of a run's episodes that raised an error; that of a killed process is not known.

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
    """Return the results by episode, and the length in bytes of an incomplete last line, which is played again."""
    try:
        *lines, incomplete = (folder / _EPISODES).read_bytes().split(b"\n")
        return dict(_read_line(line) for line in lines), len(incomplete)
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
    """Refuse unknown fields, which a newer version wrote; fields that were added later have defaults."""
    if not isinstance(record, Mapping):
        raise TypeError(f"{excerpt(record)} is no table")
    known = {*more, *(field.name for field in dataclasses.fields(kind))}
    if unknown := sorted(set(record) - known):
        raise NewerStoreError(
            f"a run's record has {excerpt(unknown[0])}",
            "a newer seasoned wrote this field, which this one does not know",
            "Read it with the version that wrote it.",
        )


def _damaged(folder: Path, error: Exception) -> InputError:
    return InputError(
        f"{folder}: {error}",
        "a run's folder must hold an intact record",
        "Choose another folder, or remove this one to play that run again.",
    )


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
