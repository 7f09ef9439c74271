"""A run leaves a record: configuration, seeds, versions, git revision, and every score."""

from __future__ import annotations

import dataclasses
import json
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

from seasoned.agents.episode import EpisodeResult
from seasoned.errors import ConfigError, InputError
from seasoned.protocols import Usage

__all__ = ["RunRecord", "new_run_id", "provenance"]

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

    Raises:
        ConfigError: the folder holds a run with other settings.
        InputError: the folder's record is damaged, or the folder is a file.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        self.settings = dict(settings)
        self.results: dict[int, EpisodeResult] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: {error}", "a run is recorded in a folder", "Choose another folder.") from error
        self._run_file = folder / "run.json"
        self._episodes_file = folder / "episodes.jsonl"
        self._resumed = self.is_in(folder)
        if self._resumed:
            self._resume()
        else:
            self.run_id = new_run_id()
            self._write(run_id=self.run_id, started_at=time.time(), **provenance())

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Return whether a folder holds a record, so that opening it resumes a run."""
        return (folder / "run.json").exists()

    def _resume(self) -> None:
        try:
            self._run = json.loads(self._run_file.read_text())
            lines = self._episodes_file.read_bytes().split(b"\n") if self._episodes_file.exists() else []
            # A line without its newline was cut off by a kill: that episode is played again.
            for line in lines[:-1]:
                record = json.loads(line)
                episode, usage = record.pop("episode"), Usage(**record.pop("usage"))
                self.results[episode] = EpisodeResult(**record, usage=usage)
            settings, self.run_id = self._run["settings"], _run_id(self._run["run_id"])
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise InputError(
                f"{self.folder}: {error}", "a run's folder holds its own record", "Choose another folder."
            ) from error
        if settings != json.loads(json.dumps(self.settings)):
            raise ConfigError(
                f"{self.folder} holds another run: {settings}",
                "a run is resumed with the settings that it began with",
                "Choose another folder, or the same settings.",
            )
        if lines and lines[-1]:
            kept = b"".join(line + b"\n" for line in lines[:-1])
            _replace(self._episodes_file, kept)

    def _write(self, **fields: Any) -> None:
        self._run = {"settings": self.settings, **getattr(self, "_run", {}), **fields}
        _replace(self._run_file, json.dumps(self._run, indent=2).encode())

    def begin(self) -> None:
        """Note that the run goes on: when, and with which versions. A new record says so already."""
        if self._resumed:
            self._write(sessions=[*self._run.get("sessions", []), {"at": time.time(), **provenance()}])
        self._resumed = True

    def add(self, episode: int, result: EpisodeResult) -> None:
        """Append one episode's result; on disk when this returns."""
        line = json.dumps({"episode": episode, **dataclasses.asdict(result)})
        with self._episodes_file.open("a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.results[episode] = result

    def finish(self) -> None:
        """Write the totals."""
        self._write(finished_at=time.time(), usage=dataclasses.asdict(self.usage), scores=self.scores)

    @property
    def usage(self) -> Usage:
        """What the model's calls cost, over all episodes."""
        return sum((result.usage for result in self.results.values()), Usage())

    @property
    def scores(self) -> list[float]:
        """Every episode's score, in order."""
        return [self.results[episode].score for episode in sorted(self.results)]


def _run_id(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"run_id = {value!r}")
    return value


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
