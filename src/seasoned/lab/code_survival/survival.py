"""Code survival: the share of the lines added by a change that a later commit still has."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seasoned.errors import InputError
from seasoned.lab.code_survival.git_repository import GitRepository
from seasoned.lab.code_survival.unified_diff import Addition, read_patch, same_line
from seasoned.types import Score

__all__ = ["CodeSurvival", "FileSurvival", "code_survival"]

_BLAMED = re.compile(rb"([0-9a-f]{40,64}) \d+ \d+(?: \d+)?$")

Renames = Sequence[tuple[bytes, bytes]]
"""Pairs of old and new paths."""


@dataclass(frozen=True, slots=True)
class FileSurvival:
    """The survival of the lines added to one file.

    Args:
        path: the path of the file in the change.
        now: its path at the later commit; None if it was deleted.
        added, alive: numbers of added lines, and of those that survive.
    """

    path: str
    now: str | None
    added: int
    alive: int


@dataclass(frozen=True, slots=True)
class CodeSurvival:
    """The survival of the lines added by a change.

    Args:
        at: the later commit.
        added: number of added lines, without blank ones.
        alive: number of those that survive.
        files: the numbers of each file.
        binary: changed binary files, which are not counted.

    Example:
        >>> half = CodeSurvival("HEAD", 4, 2, (), ())
        >>> half.share, half.feedback().value
        (0.5, 0.5)
    """

    at: str
    added: int
    alive: int
    files: tuple[FileSurvival, ...]
    binary: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share of the added lines that survive, in [0, 1]."""
        return self.alive / self.added

    def feedback(self) -> Score:
        """Return the share as feedback, for `memory.feedback(..., source="code-survival")`: 1 is +1, 0 is -1."""
        return Score(self.share, low=0.0, high=1.0, comment=f"{self.alive} of {self.added} lines at {self.at[:12]}")


def code_survival(
    repo: str | os.PathLike[str],
    commit: str | None = None,
    *,
    patch: str | bytes | None = None,
    at: str = "HEAD",
    timeout_s: float = 120.0,
) -> CodeSurvival:
    r"""Return the number of lines added by a change that a later commit still has.

    For a commit, its surviving lines are those that `git blame -w` attributes to it, in its files, followed through
    renames. A line is lost if its words change, but not if its blanks do. A line is also lost if it is removed and
    restored (git attributes it to the restoring commit, such as a revert), or moved to another file without a rename.
    A patch is for a change without a commit of its own (squashed, rebased, never committed): its lines are searched by
    their text without blanks, in the same files, so a line that somebody wrote again counts as alive. Blank lines are
    not counted.

    Args:
        repo: a folder in the repository.
        commit: the change, a commit before `at`.
        patch: the change as a unified diff, instead of `commit`.
        at: the later commit.
        timeout_s: for one git command, in seconds.

    Raises:
        InputError: both or none of `commit` and `patch` are given; the commit is not an ancestor of `at`, or is a
            merge; no line of text was added (binary files have none); the clone is shallow; or the patch is damaged.
        NotFoundError: there is no such repository or commit.
        ConfigError: git is not installed.

    Example:
        >>> import subprocess, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> def git(*arguments):
        ...     _ = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        ...                        cwd=folder.name, check=True, capture_output=True)
        >>> git("init"); _ = open(f"{folder.name}/x.py", "w").write("a = 1\nb = 2\n")
        >>> git("add", "."); git("commit", "-m", "one"); git("tag", "written")
        >>> _ = open(f"{folder.name}/x.py", "w").write("a  =  1\nb = 3\n")
        >>> git("commit", "-a", "-m", "two")
        >>> code_survival(folder.name, "written").share
        0.5
        >>> folder.cleanup()
    """
    if (commit is None) == (patch is None):
        raise InputError(
            f"commit = {commit!r} and {'a' if patch is not None else 'no'} patch",
            "the change is a commit or a patch",
            "Give one of them.",
        )
    repository = GitRepository(repo, timeout_s=timeout_s)
    later = repository.commit(at)
    if commit is not None:
        written = repository.commit(commit)
        additions = _additions_of(repository, written, later)
        renames = _renames(repository, f"{written}..{later}")
        files = [_survival_by_blame(repository, each, written, later, renames) for each in additions if not each.binary]
    else:
        additions = read_patch(patch if patch is not None else b"")
        renames = _renames(repository, later)
        files = [_survival_by_text(repository, each, later, renames) for each in additions if not each.binary]
    binary = tuple(_readable(each.path) for each in additions if each.binary)
    files = [file for file in files if file.added]
    if not files:
        also = f" (binary: {', '.join(binary[:5])})" if binary else ""
        raise InputError(f"no line of text was added{also}", "survival counts added lines", "Name another change.")
    return CodeSurvival(
        later, sum(file.added for file in files), sum(file.alive for file in files), tuple(files), binary
    )


def _additions_of(repository: GitRepository, written: str, later: str) -> tuple[Addition, ...]:
    if not repository.succeeds("merge-base", "--is-ancestor", written, later):
        raise InputError(
            f"commit {written[:12]} is not in the history of {later[:12]}",
            "the change is in the history of the later commit",
            "If it was squashed or rebased, pass its patch.",
        )
    if len(repository.output("rev-list", "--parents", "--max-count=1", written).split()) > 2:
        raise InputError(
            f"commit {written[:12]} is a merge", "a merge adds no lines of its own", "Name the commits it merged."
        )
    diff = repository.output(
        "diff-tree",
        "--root",
        "--no-commit-id",
        "-r",
        "-p",
        "-M",
        "--unified=0",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        written,
    )
    return read_patch(diff) if diff.strip() else ()


def _survival_by_blame(
    repository: GitRepository, addition: Addition, written: str, later: str, renames: Renames
) -> FileSurvival:
    """Count the lines that git blame attributes to the commit, in the file and its renames."""
    alive, now = 0, None
    for path in _current_paths(repository, addition.path, later, renames):
        blame = repository.output(
            "blame", "-w", "--line-porcelain", "--no-textconv", "--no-progress", later, "--", os.fsdecode(path)
        )
        author = b""
        for line in blame.split(b"\n"):
            if header := _BLAMED.match(line):
                author = header[1]
            elif line.startswith(b"\t"):
                alive += author == written.encode() and bool(same_line(line))
        now = path
    return FileSurvival(
        _readable(addition.path),
        None if now is None else _readable(now),
        len(addition.lines),
        min(alive, len(addition.lines)),
    )


def _survival_by_text(repository: GitRepository, addition: Addition, later: str, renames: Renames) -> FileSurvival:
    """Count the lines with equal text, each at most as often as it was added."""
    present: Counter[bytes] = Counter()
    now = None
    for path in _current_paths(repository, addition.path, later, renames):
        present.update(
            same_line(line) for line in repository.output("cat-file", "blob", _blob(later, path)).split(b"\n")
        )
        now = path
    added = Counter(same_line(line) for line in addition.lines)
    return FileSurvival(
        _readable(addition.path), None if now is None else _readable(now), added.total(), (added & present).total()
    )


def _renames(repository: GitRepository, commits: str) -> Renames:
    """Return the renames of these commits, in order."""
    log = repository.output(
        "log", "--reverse", "--topo-order", "--format=", "--name-status", "--diff-filter=R", "-M", "-z", commits
    )
    fields = iter(log.split(b"\0"))
    return [(next(fields, b""), next(fields, b"")) for status in fields if status.lstrip(b"\n").startswith(b"R")]


def _current_paths(repository: GitRepository, path: bytes, later: str, renames: Renames) -> Iterable[bytes]:
    """Return the existing paths of a file at the later commit: its own, and those of its renames."""
    names = [path]
    for old, new in renames:
        if old in names and new not in names:
            names.append(new)
    return [name for name in names if repository.succeeds("cat-file", "-e", _blob(later, name))]


def _blob(commit: str, path: bytes) -> str:
    return f"{commit}:{os.fsdecode(path)}"


def _readable(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
