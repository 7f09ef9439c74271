"""Whether code that was written is still there: how much of what a change added lives on in a repository's history."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seasoned.errors import InputError
from seasoned.lab.code_survival.git_repository import Repository
from seasoned.lab.code_survival.unified_diff import Addition, read_patch, same_line
from seasoned.types import Score

__all__ = ["FilePersistence", "Persistence", "persistence"]

_BLAMED = re.compile(rb"([0-9a-f]{40,64}) \d+ \d+(?: \d+)?$")

Renames = Sequence[tuple[bytes, bytes]]
"""Old and new names."""


@dataclass(frozen=True, slots=True)
class FilePersistence:
    """What became of the lines added to one file. `path`: when it was written; `now`: where it is, None if gone."""

    path: str
    now: str | None
    added: int
    alive: int


@dataclass(frozen=True, slots=True)
class Persistence:
    """How much of what was written is still there.

    Args:
        at: the commit that was looked at.
        added: lines that were added, blank ones left out.
        alive: those of them that are there.
        files: the same, file by file.
        binary: changed files without lines, which are not counted.

    Example:
        >>> half = Persistence("HEAD", 4, 2, (), ())
        >>> half.share, half.feedback().value
        (0.5, 0.5)
    """

    at: str
    added: int
    alive: int
    files: tuple[FilePersistence, ...]
    binary: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share of the added lines that are alive, in [0, 1]."""
        return self.alive / self.added

    def feedback(self) -> Score:
        """Return it as feedback, for `memory.feedback(..., source="persistence")`: all alive is +1, none is -1."""
        return Score(self.share, low=0.0, high=1.0, comment=f"{self.alive} of {self.added} lines at {self.at[:12]}")


def persistence(
    repo: str | os.PathLike[str],
    commit: str | None = None,
    *,
    patch: str | bytes | None = None,
    at: str = "HEAD",
    timeout_s: float = 120.0,
) -> Persistence:
    r"""Return how many of the lines that a change added are alive at a later commit.

    Of a commit: its lines are those that `git blame -w` gives to it, in its files, followed through renames; a line is
    lost when its words were changed, not when its blanks were. Lost, too, is what was taken out and brought back (git
    gives it to the commit that did, such as a revert), and what went into another file other than by a rename. Of a
    patch, which no commit holds as it is (squashed, rebased, never committed): its lines are looked up by their text,
    less blanks, in the same files; a line that was written again by somebody else, or by a revert, counts as alive
    there. Blank lines count nowhere.

    Args:
        repo: a folder in the repository.
        commit: what was written, a commit before `at`.
        patch: what was written, as a unified diff; instead of `commit`.
        at: the commit to look at.
        timeout_s: for one question to git, in seconds.

    Raises:
        InputError: not just one of `commit` and `patch` is given; the commit is no ancestor of `at`, or a merge; no
            line of text was added (binary files have none); the clone is shallow; or the patch is damaged.
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
        >>> persistence(folder.name, "written").share
        0.5
        >>> folder.cleanup()
    """
    if (commit is None) == (patch is None):
        raise InputError(
            f"commit = {commit!r} and {'a' if patch is not None else 'no'} patch",
            "what was written is a commit or a patch",
            "Give one of them.",
        )
    repository = Repository(repo, timeout_s=timeout_s)
    later = repository.commit(at)
    if commit is not None:
        written = repository.commit(commit)
        additions = _of_commit(repository, written, later)
        renames = _renames(repository, f"{written}..{later}")
        files = [_blamed(repository, one, written, later, renames) for one in additions if not one.binary]
    else:
        additions = read_patch(patch if patch is not None else b"")
        renames = _renames(repository, later)
        files = [_looked_up(repository, one, later, renames) for one in additions if not one.binary]
    binary = tuple(_shown(one.path) for one in additions if one.binary)
    files = [one for one in files if one.added]
    if not files:
        also = f" (binary: {', '.join(binary[:5])})" if binary else ""
        raise InputError(f"no line of text was added{also}", "persistence counts added lines", "Name another change.")
    return Persistence(later, sum(one.added for one in files), sum(one.alive for one in files), tuple(files), binary)


def _of_commit(repository: Repository, written: str, later: str) -> tuple[Addition, ...]:
    if not repository.holds("merge-base", "--is-ancestor", written, later):
        raise InputError(
            f"commit {written[:12]} is not in the history of {later[:12]}",
            "what was written comes before what is looked at",
            "If it was squashed or rebased, pass its patch.",
        )
    if len(repository.ask("rev-list", "--parents", "--max-count=1", written).split()) > 2:
        raise InputError(f"commit {written[:12]} is a merge", "a merge writes no lines", "Name the commits it merged.")
    diff = repository.ask(
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


def _blamed(repository: Repository, addition: Addition, written: str, later: str, renames: Renames) -> FilePersistence:
    """Count the lines that git gives to the commit, wherever its file went."""
    alive, now = 0, None
    for path in _followed(repository, addition.path, later, renames):
        told = repository.ask(
            "blame", "-w", "--line-porcelain", "--no-textconv", "--no-progress", later, "--", os.fsdecode(path)
        )
        by = b""
        for line in told.split(b"\n"):
            if header := _BLAMED.match(line):
                by = header[1]
            elif line.startswith(b"\t"):
                alive += by == written.encode() and bool(same_line(line))
        now = path
    return FilePersistence(
        _shown(addition.path),
        None if now is None else _shown(now),
        len(addition.lines),
        min(alive, len(addition.lines)),
    )


def _looked_up(repository: Repository, addition: Addition, later: str, renames: Renames) -> FilePersistence:
    """Count the lines that are there by their text, each as often as it was added at most."""
    there: Counter[bytes] = Counter()
    now = None
    for path in _followed(repository, addition.path, later, renames):
        there.update(same_line(line) for line in repository.ask("cat-file", "blob", _blob(later, path)).split(b"\n"))
        now = path
    added = Counter(same_line(line) for line in addition.lines)
    return FilePersistence(
        _shown(addition.path), None if now is None else _shown(now), added.total(), (added & there).total()
    )


def _renames(repository: Repository, commits: str) -> Renames:
    """Return which files these commits renamed, in order."""
    told = repository.ask(
        "log", "--reverse", "--topo-order", "--format=", "--name-status", "--diff-filter=R", "-M", "-z", commits
    )
    fields = iter(told.split(b"\0"))
    return [(next(fields, b""), next(fields, b"")) for status in fields if status.lstrip(b"\n").startswith(b"R")]


def _followed(repository: Repository, path: bytes, later: str, renames: Renames) -> Iterable[bytes]:
    """Return where the file is now: under its name, and under those that it was renamed to."""
    names = [path]
    for old, new in renames:
        if old in names and new not in names:
            names.append(new)
    return [name for name in names if repository.holds("cat-file", "-e", _blob(later, name))]


def _blob(commit: str, path: bytes) -> str:
    return f"{commit}:{os.fsdecode(path)}"


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
