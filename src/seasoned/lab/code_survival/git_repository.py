"""Asking git, without a shell and without trusting what a repository's names or settings say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from seasoned.errors import ConfigError, InputError, NotFoundError, excerpt

__all__ = ["Repository"]

_TIMEOUT_S = 120.0
# A repository's own settings must not start programs, ask questions or fetch what is missing.
_SETTINGS = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.quotePath=true",
    "-c",
    "log.showSignature=false",
    "-c",
    "blame.ignoreRevsFile=",
    "-c",
    "blame.markIgnoredLines=false",
    "--no-pager",
    "--literal-pathspecs",
)


class Repository:
    """A git repository with its whole history.

    Args:
        path: a folder in it, or a bare one.
        timeout_s: for one question, in seconds.

    Raises:
        NotFoundError: there is no such folder, or it is in no repository.
        ConfigError: git is not installed.
        InputError: it is a shallow clone, whose history is cut off.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout_s: float = _TIMEOUT_S) -> None:
        if not isinstance(path, str | os.PathLike) or "\0" in str(path):
            raise InputError(f"repo = {excerpt(path)}", "a repository is named by its folder", "Pass its path.")
        self.path = Path(path)
        self._timeout_s = timeout_s
        if not self.path.is_dir():
            raise NotFoundError(f"{excerpt(str(path))}", "this folder does not exist", "Check the path.")
        found = self._run("rev-parse", "--git-dir", "--is-shallow-repository")
        if found.returncode:
            raise NotFoundError(
                f"{excerpt(str(path))}: {_said(found)}", "it is in a git repository", "Clone it here, or name another."
            )
        if found.stdout.split()[-1] == b"true":
            raise InputError(
                f"{excerpt(str(path))} is a shallow clone",
                "who wrote a line is told by the whole history",
                "Run: git fetch --unshallow",
            )

    def commit(self, revision: str) -> str:
        """Return the full id of the commit that a revision names.

        Raises:
            InputError: it is no text that could name one.
            NotFoundError: no commit has this name.
        """
        if not isinstance(revision, str) or not revision or revision.startswith("-") or "\0" in revision:
            raise InputError(
                f"revision = {excerpt(revision)}", "a revision is a name or an id, without a leading dash", "Name one."
            )
        found = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if found.returncode:
            raise NotFoundError(
                f"revision {excerpt(revision)}", f"no commit of {self.path} has this name", "See: git log --all"
            )
        return found.stdout.decode("ascii").strip()

    def ask(self, *arguments: str) -> bytes:
        """Return what git prints.

        Raises:
            InputError: git refuses.
        """
        found = self._run(*arguments)
        if found.returncode:
            raise InputError(f"git {arguments[0]}: {_said(found)}", "git can answer this", "See `git fsck`.")
        return found.stdout

    def holds(self, *arguments: str) -> bool:
        """Whether git answers yes (exit code 0)."""
        return self._run(*arguments).returncode == 0

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
        try:
            return subprocess.run(  # noqa: S603 - a list, no shell
                ["git", *_SETTINGS, *arguments],  # noqa: S607 - the git of the caller's PATH
                cwd=self.path,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=self._timeout_s,
            )
        except FileNotFoundError as error:
            raise ConfigError("git is not installed", "a history is read by git", "Install git.") from error
        except subprocess.TimeoutExpired as error:
            raise InputError(
                f"git {arguments[0]} took longer than {self._timeout_s:g} s",
                "one question is answered in that time",
                "Give more time (timeout_s).",
            ) from error


def _said(found: subprocess.CompletedProcess[bytes]) -> str:
    return excerpt(found.stderr.decode("utf-8", "replace").strip(), 200)
