"""A change of one file: its diff, and the reward of a user's edit of it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from seasoned.errors import InputError
from seasoned.types import edit_reward

__all__ = ["FileChange", "text_reward"]

_MAX_DIFF_CHARS, _MAX_DIFF_LINES = 400_000, 20_000


@dataclass(frozen=True, slots=True)
class FileChange:
    r"""A file before and after a change.

    Args:
        path: relative to the repository's root.
        before: its text; None: there was no such file.
        after: its text; None: it was removed.

    Example:
        >>> print(FileChange("a.txt", "one\n", "two\n").diff())
        --- a/a.txt
        +++ b/a.txt
        @@ -1 +1 @@
        -one
        +two
        <BLANKLINE>
    """

    path: str
    before: str | None
    after: str | None

    def diff(self) -> str:
        """Return the unified diff; of a huge one a sentence."""
        before, after = self.before or "", self.after or ""
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
        if len(before) + len(after) > _MAX_DIFF_CHARS or len(old) + len(new) > _MAX_DIFF_LINES:
            sizes = f"(a change of {len(old)} lines to {len(new)}, too large to show)"
            return f"--- a/{self.path}\n+++ b/{self.path}\n{sizes}\n"
        source = "/dev/null" if self.before is None else f"a/{self.path}"
        target = "/dev/null" if self.after is None else f"b/{self.path}"
        lines = difflib.unified_diff(old, new, source, target)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    @property
    def counts(self) -> str:
        """The numbers of added and removed lines, as `+3 -1`."""
        lines = self.diff().splitlines()[2:]
        return f"+{sum(line[:1] == '+' for line in lines)} -{sum(line[:1] == '-' for line in lines)}"


def text_reward(written: str, kept: str) -> float:
    """Return the reward of a text that somebody edited: `1 - 2 d`, d the share that differs.

    d is the normalised edit distance, or, of texts that differ in more than 50,000 characters, the share of lines.

    Example:
        >>> text_reward("a = 1", "a = 1"), text_reward("abcd", "wxyz")
        (1.0, -1.0)
    """
    try:
        return edit_reward(written, kept)
    except InputError:
        old, new = set(written.splitlines()), set(kept.splitlines())
        return 2.0 * len(old & new) / max(1, len(old | new)) - 1.0
