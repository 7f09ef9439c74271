"""The files below a directory as plain values: the input of goals and states."""

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
    """The content of a directory; paths are relative to it, separated by `/`.

    Args:
        files: the content of every regular file with one name only and at most 1 MiB.
        folders: every folder below.
        special: paths that no goal counts: links, hard links, pipes, devices, and files too long or unreadable.
        truncated: whether the directory has more entries than were read.

    Example:
        >>> FileTree({"a.txt": b"1"}, frozenset({"old"})).listing()
        ('a.txt', 'old/')
    """

    files: dict[str, bytes] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    special: frozenset[str] = frozenset()
    truncated: bool = False

    def listing(self) -> tuple[str, ...]:
        """Return every path, sorted; folders end with `/`, special paths with `@`.

        A folder that is not empty is not listed: the paths of its content name it.
        """
        leaves = [*self.files, *(f"{path}@" for path in self.special)]
        full = {str(parent) for path in (*leaves, *self.folders) for parent in Path(path).parents}
        return tuple(sorted([*leaves, *(f"{folder}/" for folder in self.folders - full)]))

    def within(self, folder: str, suffix: str = "") -> tuple[str, ...]:
        """Return the files directly in `folder` (`""` for the top) whose name ends with `suffix`, sorted."""
        return tuple(sorted(path for path in self.files if path.rpartition("/")[0] == folder and path.endswith(suffix)))


def read_tree(root: str | Path, max_entries: int = 1_000) -> FileTree:
    """Return the content of `root`. No link is followed, not even `root` itself; a link is listed by its name.

    Example:
        >>> read_tree("/no/such/directory").listing()
        ()
    """
    files: dict[str, bytes] = {}
    folders: set[str] = set()
    special: set[str] = set()
    pending = [""] if not Path(root).is_symlink() else []
    while pending:
        folder = pending.pop()
        with contextlib.suppress(OSError), os.scandir(Path(root) / folder) as entries:
            for entry in entries:
                if len(files) + len(folders) + len(special) >= max_entries:
                    return FileTree(files, frozenset(folders), frozenset(special), truncated=True)
                path = _printable(f"{folder}/{entry.name}".lstrip("/"))
                if entry.is_dir(follow_symlinks=False):
                    folders.add(path)
                    pending.append(f"{folder}/{entry.name}".lstrip("/"))
                elif (content := _content(entry.path)) is None:
                    special.add(path)
                else:
                    files[path] = content
    return FileTree(files, frozenset(folders), frozenset(special))


def write_tree(root: Path, files: dict[str, str], folders: tuple[str, ...] = ()) -> None:
    """Write files and empty folders below `root`, all with one old date, so that listings with dates are equal."""
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for path, text in sorted(files.items()):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
        os.utime(root / path, (1_704_164_645, 1_704_164_645))  # 2024-01-02 03:04:05 UTC


def _content(path: str) -> bytes | None:
    """Return the content of a regular file with one name, or None."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a pipe would wait
            return None
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(opened, "rb") as file:  # noqa: PTH123
            status = os.fstat(opened)
            regular = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size <= _MAX_FILE_BYTES
            return file.read(_MAX_FILE_BYTES) if regular else None
    except OSError:
        return None


def _printable(path: str) -> str:
    """Return the path for a state: one line, without control characters and undecodable bytes."""
    return "".join(c if c.isprintable() and not c.isspace() else "?" for c in path)
