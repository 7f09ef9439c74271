"""Outcomes of written code: what the user edited or reverted, and what later commits still have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from seasoned.chat.change_ledger import ChangeLedger
from seasoned.chat.file_change import FileChange, text_reward
from seasoned.chat.repository import Repository
from seasoned.errors import ConfigError, InputError, NotFoundError
from seasoned.types import Feedback, Score, Thumbs

__all__ = ["CodeOutcome", "committed_outcomes", "head_commit", "kept_share", "user_outcomes"]

_MOST_JUDGED = 50  # of the latest changes


@dataclass(frozen=True, slots=True)
class CodeOutcome:
    """Feedback on a step that wrote code."""

    episode: str
    step: int
    feedback: Feedback
    source: str


def kept_share(change: FileChange, now: str | None) -> float:
    r"""Return the share of the lines that a change added which a later text still has; of texts, if it added none.

    Example:
        >>> kept_share(FileChange("a.py", "a\n", "a\nb\nc\n"), "a\nb\nd\n")
        0.5
    """

    def lines(text: str | None) -> Counter[str]:
        return Counter(line.strip() for line in (text or "").splitlines() if line.strip())

    added = lines(change.after) - lines(change.before)
    if not added:
        return (1.0 + text_reward(change.after or "", now or "")) / 2.0
    return (added & lines(now)).total() / added.total()


def user_outcomes(repository: Repository, ledger: ChangeLedger) -> list[CodeOutcome]:
    """Return the outcomes of changes whose files the user has changed since; each state of a file is judged once.

    A file that is again as it was before the chat's change was reverted: a thumb down. Else the reward follows from the
    share of the added lines that are left.
    """
    found = []
    for entry in ledger.latest():
        path = entry.change.path
        try:
            now: str | None = repository.read_or_none(path)
        except InputError:
            continue
        if now == entry.change.after or ledger.is_own(path, now):
            continue
        ledger.see(path, now)
        if now == entry.change.before:
            feedback: Feedback = Thumbs(False, comment=f"the user reverted {path}")
            found.append(CodeOutcome(entry.episode, entry.step, feedback, "user:revert"))
        else:
            share = kept_share(entry.change, now)
            feedback = Score(
                share, 0.0, 1.0, comment=f"the user edited {path}: {share:.0%} of the added lines are left"
            )
            found.append(CodeOutcome(entry.episode, entry.step, feedback, "user:edit"))
    return found


def head_commit(repository: Repository) -> str | None:
    """Return the present commit; None without git, or before the first one."""
    if not (repository.root / ".git").exists():
        return None
    from seasoned.lab.code_survival.git_repository import GitRepository

    try:
        return GitRepository(repository.root, timeout_s=10.0).commit("HEAD")
    except (ConfigError, InputError, NotFoundError):
        return None


def committed_outcomes(repository: Repository, ledger: ChangeLedger, head: str) -> Iterator[CodeOutcome]:
    """Yield the share of the lines of each change that the present commit has, for files committed since the change.

    Args:
        repository: with git.
        ledger: of the changes.
        head: the present commit.
    """
    from seasoned.lab.code_survival.git_repository import GitRepository
    from seasoned.lab.code_survival.survival import code_survival

    git = GitRepository(repository.root, timeout_s=10.0)
    for entry in ledger.entries(last=_MOST_JUDGED):
        if entry.head in (None, head) or entry.change.after is None:
            continue
        try:
            commits = git.output("rev-list", "--max-count=1", f"{entry.head}..{head}", "--", entry.change.path)
            if commits.strip():
                survival = code_survival(repository.root, patch=entry.change.diff(), at=head, timeout_s=10.0)
                yield CodeOutcome(entry.episode, entry.step, survival.feedback(), "git:survival")
        except (ConfigError, InputError, NotFoundError):  # a rewritten history, or a change without added lines
            continue
