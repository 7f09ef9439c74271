"""A git repository, read without a shell and without trust in its file names or settings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from seasoned.errors import ConfigError, InputError, NotFoundError, excerpt

__all__ = ["GitRepository"]

_TIMEOUT_S = 120.0
# The settings of a repository must not start programs, prompt the user or fetch missing objects.
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


class GitRepository:
    """A git repository with its whole history.

    Args:
        path: a folder in it, or a bare repository.
        timeout_s: for one git command, in seconds.

    Raises:
        NotFoundError: the folder does not exist, or is not in a repository.
        ConfigError: git is not installed.
        InputError: it is a shallow clone.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout_s: float = _TIMEOUT_S) -> None:
        if not isinstance(path, str | os.PathLike) or "\0" in str(path):
            raise InputError(f"repo = {excerpt(path)}", "a repository is given by its folder", "Pass its path.")
        self.path = Path(path)
        self._timeout_s = timeout_s
        if not self.path.is_dir():
            raise NotFoundError(f"{excerpt(str(path))}", "this folder does not exist", "Check the path.")
        result = self._run("rev-parse", "--git-dir", "--is-shallow-repository")
        if result.returncode:
            raise NotFoundError(
                f"{excerpt(str(path))}: {_message(result)}",
                "the folder is in a git repository",
                "Clone it here, or name another.",
            )
        if result.stdout.split()[-1] == b"true":
            raise InputError(
                f"{excerpt(str(path))} is a shallow clone",
                "the author of a line is known from the whole history only",
                "Run: git fetch --unshallow",
            )

    def commit(self, revision: str) -> str:
        """Return the full id of the commit of a revision.

        Raises:
            InputError: the text cannot be a revision.
            NotFoundError: no commit has this name.
        """
        if not isinstance(revision, str) or not revision or revision.startswith("-") or "\0" in revision:
            raise InputError(
                f"revision = {excerpt(revision)}", "a revision is a name or an id, without a leading dash", "Name one."
            )
        result = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if result.returncode:
            raise NotFoundError(
                f"revision {excerpt(revision)}", f"no commit of {self.path} has this name", "See: git log --all"
            )
        return result.stdout.decode("ascii").strip()

    def output(self, *arguments: str) -> bytes:
        """Return the output of a git command.

        Raises:
            InputError: the command fails.
        """
        result = self._run(*arguments)
        if result.returncode:
            raise InputError(f"git {arguments[0]}: {_message(result)}", "the git command succeeds", "See `git fsck`.")
        return result.stdout

    def succeeds(self, *arguments: str) -> bool:
        """Return whether a git command has exit code 0."""
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
            raise ConfigError("git is not installed", "the history is read with git", "Install git.") from error
        except subprocess.TimeoutExpired as error:
            raise InputError(
                f"git {arguments[0]} took longer than {self._timeout_s:g} s",
                "a git command ends within the time limit",
                "Increase timeout_s.",
            ) from error


def _message(result: subprocess.CompletedProcess[bytes]) -> str:
    return excerpt(result.stderr.decode("utf-8", "replace").strip(), 200)
