"""The files below a directory, as plain values: what a goal is checked on and a state is told from."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["FileTree", "read_tree", "write_tree"]

_MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileTree:
    """A directory's content; paths are relative to it, parted by `/`.

    Args:
        files: the content of every regular file that has one name only and at most 1 MiB.
        folders: every folder below.
        others: what counts for no goal: links, hard links, pipes, devices, and files too long or unreadable.
        more: whether there was more than was read; then what was read is some of it.

    Example:
        >>> FileTree({"a.txt": b"1"}, frozenset({"old"})).listing()
        ('a.txt', 'old/')
    """

    files: dict[str, bytes] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    more: bool = False

    def listing(self) -> tuple[str, ...]:
        """Return every path, sorted; folders end with `/`, what counts for no goal with `@`.

        A folder that holds something is not listed: its content's paths name it.
        """
        leaves = [*self.files, *(f"{path}@" for path in self.others)]
        full = {str(parent) for path in (*leaves, *self.folders) for parent in Path(path).parents}
        return tuple(sorted([*leaves, *(f"{folder}/" for folder in self.folders - full)]))

    def within(self, folder: str, suffix: str = "") -> tuple[str, ...]:
        """Return the files directly in `folder` (`""` for the top) whose name ends with `suffix`, sorted."""
        return tuple(sorted(path for path in self.files if path.rpartition("/")[0] == folder and path.endswith(suffix)))


def read_tree(root: str | Path, max_entries: int = 1_000) -> FileTree:
    """Return what lies below `root`. No link is followed, not even `root` itself: a link shows nothing but its name.

    Example:
        >>> read_tree("/no/such/directory").listing()
        ()
    """
    files: dict[str, bytes] = {}
    folders: set[str] = set()
    others: set[str] = set()
    waiting = [""] if not Path(root).is_symlink() else []
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(Path(root) / place) as entries:
            for entry in entries:
                if len(files) + len(folders) + len(others) >= max_entries:
                    return FileTree(files, frozenset(folders), frozenset(others), more=True)
                path = _printable(f"{place}/{entry.name}".lstrip("/"))
                if entry.is_dir(follow_symlinks=False):
                    folders.add(path)
                    waiting.append(f"{place}/{entry.name}".lstrip("/"))
                elif (content := _content(entry.path)) is None:
                    others.add(path)
                else:
                    files[path] = content
    return FileTree(files, frozenset(folders), frozenset(others))


def write_tree(root: Path, files: dict[str, str], folders: tuple[str, ...] = ()) -> None:
    """Write files and empty folders below `root`, all of one old date, so that what lists dates lists these alike."""
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for path, text in sorted(files.items()):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
        os.utime(root / path, (1_704_164_645, 1_704_164_645))  # 2024-01-02 03:04:05 UTC


def _content(path: str) -> bytes | None:
    """The content of a regular file of one name, or None."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a pipe would wait
            return None
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(opened, "rb") as file:  # noqa: PTH123
            found = os.fstat(opened)
            regular = stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size <= _MAX_FILE_BYTES
            return file.read(_MAX_FILE_BYTES) if regular else None
    except OSError:
        return None


def _printable(path: str) -> str:
    """The path as a state can show it: one line, no control characters, no bytes that are no text."""
    return "".join(c if c.isprintable() and not c.isspace() else "?" for c in path)
