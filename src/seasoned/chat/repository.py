"""The folder that a chat works in: its root, paths within it, and its files."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from seasoned.checks import check_text
from seasoned.errors import InputError, NotFoundError, excerpt

__all__ = [
    "FileText",
    "Repository",
    "default_memory_path",
    "git_folders",
    "repository_namespace",
    "repository_root",
    "sessions_folder",
]

MAX_FILE_BYTES = 2 << 20
_SKIPPED = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache"}
_MAX_SEARCHED_FILES, _MAX_SEARCHED_BYTES = 20_000, 200 << 20
_MAX_LINE_CHARS = 300


def repository_root(folder: str | os.PathLike[str] = ".") -> Path:
    """Return the root of the git repository that the folder is in; the folder itself, if it is in none.

    Raises:
        NotFoundError: there is no such folder.

    Example:
        >>> repository_root(".").is_absolute()
        True
    """
    start = Path(os.path.realpath(folder))
    if not start.is_dir():
        raise NotFoundError(f"{excerpt(str(folder))}", "this folder does not exist", "Check the path.")
    return next((each for each in (start, *start.parents) if (each / ".git").exists()), start)


def git_folders(root: Path) -> tuple[Path, ...]:
    """Return the folders outside of a repository that git itself writes in: those of a linked worktree or a submodule.

    Of a worktree these are its own git folder, and the objects, references and logs of the repository that it belongs
    to; not the hooks and the configuration of that one. Of a submodule it is its git folder. A `.git` file that names a
    folder which does not name this repository in return opens nothing.

    Args:
        root: of the repository.

    Example:
        >>> git_folders(Path("/repo"))
        ()
    """
    try:
        named = (root / ".git").read_text("utf-8")[:4096]
        if not named.startswith("gitdir: "):
            return ()
        folder = Path(os.path.realpath(root / named.removeprefix("gitdir: ").rstrip("\n")))
        if folder.parent.name == "worktrees":
            if Path(os.path.realpath((folder / "gitdir").read_text("utf-8").rstrip("\n"))) != root / ".git":
                return ()
            return (folder, *(folder.parents[1] / name for name in ("objects", "refs", "logs")))
        found = re.search(r"^[ \t]*+worktree = (.+)$", (folder / "config").read_text("utf-8"), re.MULTILINE)
        if "modules" in folder.parts and found and Path(os.path.realpath(folder / found[1])) == root:
            return (folder,)
    except (OSError, ValueError):  # an ordinary repository, or none
        pass
    return ()


def repository_namespace(root: Path) -> str:
    """Return the namespace of a repository's memory: its name, and a digest of its path.

    Example:
        >>> repository_namespace(Path("/home/ada/shop"))
        'shop-ff0a01d53d83'
    """
    name = re.sub(r"[^\w.-]", "_", root.name)[:60] or "root"
    return f"{name}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}"


def default_memory_path() -> Path:
    """Return the file of all chats: `$XDG_STATE_HOME/seasoned/chat.db`, or below `~/.local/state`.

    Example:
        >>> default_memory_path().name
        'chat.db'
    """
    state = os.environ.get("XDG_STATE_HOME")
    return Path(state if state else "~/.local/state").expanduser() / "seasoned" / "chat.db"


def sessions_folder(memory_path: str | os.PathLike[str], root: Path) -> Path:
    """Return the folder of a repository's sessions: beside the memory's file, or beside the default one for a URL.

    Example:
        >>> sessions_folder("chat.db", Path("/home/ada/shop")).as_posix()
        'chat.db.sessions/shop-ff0a01d53d83'
    """
    path = default_memory_path() if "://" in os.fspath(memory_path) else Path(memory_path)
    return path.with_name(f"{path.name}.sessions") / repository_namespace(root)


class FileText(str):
    """The text of a file as it was read; `digest` tells whether it has changed since."""

    @property
    def digest(self) -> str:
        """The sha256 of the text."""
        return hashlib.sha256(self.encode("utf-8", "surrogateescape")).hexdigest()


class Repository:
    r"""The files below one root. No method reads or writes outside of it, also not through a link.

    Args:
        root: an existing folder.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> repository = Repository(Path(folder.name))
        >>> repository.replace("a.txt", None, "one\ntwo\n")
        >>> repository.search("tw")
        ['a.txt:2: two']
        >>> repository.read("../x")
        Traceback (most recent call last):
        ...
        seasoned.errors.InputError: path '../x': it is outside the repository. Name a path in the repository.
        >>> folder.cleanup()
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def path(self, name: object) -> Path:
        """Return the absolute path, with links resolved, of a path in the repository.

        Raises:
            InputError: it is no text, or leads outside.
        """
        text = check_text("path", name)
        next_step = "Name a path in the repository."
        if "\0" in text or len(text) > 4096:
            raise InputError(f"path {excerpt(text)}", "it is no path", next_step)
        try:
            found = Path(os.path.realpath(self.root / text))
        except (OSError, ValueError) as error:
            raise InputError(f"path {excerpt(text)} ({error})", "it cannot be resolved", next_step) from None
        if not found.is_relative_to(self.root):
            raise InputError(f"path {excerpt(text)}", "it is outside the repository", next_step)
        return found

    def name(self, path: Path) -> str:
        """Return a path as it is shown: relative to the root."""
        return path.relative_to(self.root).as_posix()

    def is_of_git(self, name: object) -> bool:
        """Return whether a path leads into `.git`, where hooks, and a configuration with keys, are.

        Raises:
            InputError: it is no text, or leads outside.
        """
        return ".git" in map(str.lower, self.path(name).relative_to(self.root).parts)

    def read(self, name: object) -> FileText:
        """Return the text of a file.

        Raises:
            InputError: it leads outside, is no ordinary file, is not UTF-8, or is larger than 2 MiB.
            NotFoundError: there is no such file.
        """
        path = self.path(name)
        try:
            opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NotFoundError(f"path {excerpt(name)}", "there is no such file", "Search for it.") from None
        except OSError as error:
            raise InputError(f"path {excerpt(name)} ({error.strerror})", "it cannot be read", "Name a file.") from None
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise InputError(f"path {excerpt(name)}", "it is no ordinary file", "Name a file; `run` lists folders.")
        with os.fdopen(opened, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise InputError(
                f"path {excerpt(name)}", "a file of more than 2 MiB is not read", "Search in it, or run a command."
            )
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise InputError(f"path {excerpt(name)}", "it is a binary file", "Read text files only.")
        return FileText(text)

    def read_or_none(self, name: object) -> FileText | None:
        """Return the text of a file; None if there is none. Errors are those of `read`."""
        try:
            return self.read(name)
        except NotFoundError:
            return None

    def replace(self, name: object, before: str | None, after: str | None) -> None:
        """Write a file, whole or not at all, if it is still as it was read.

        Args:
            name: its path.
            before: the text that it has now; None: there is no such file.
            after: the new text; None: the file is removed.

        Raises:
            InputError: it leads outside, into `.git`, or to what is no file; or it has changed.
        """
        path = self.path(name)
        if self.is_of_git(name):
            raise InputError(f"path {excerpt(name)}", "git's own files are not written", "Run a git command.")
        if path == self.root or path.is_dir():
            raise InputError(f"path {excerpt(name)}", "it is a folder", "Name a file.")
        with self._turn():
            if self.read_or_none(name) != before:
                raise InputError(f"path {excerpt(name)}", "the file has changed since it was read", "Read it again.")
            try:
                if after is None:
                    path.unlink()
                else:
                    _write(path, after)
            except OSError as error:
                raise InputError(f"path {excerpt(name)} ({error.strerror})", "it cannot be written", "Ask.") from error

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Let the chats in this repository write one after the other."""
        opened = os.open(self.root, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX)
            yield
        finally:
            os.close(opened)

    def files(self, below: str = ".") -> Iterator[Path]:
        """Yield the ordinary files below a folder, sorted; without those of git, caches and environments.

        Raises:
            InputError: the folder is outside.
        """
        start = self.path(below)
        if start.is_file():
            yield start
            return
        n_files = 0
        for folder, folders, names in os.walk(start):
            folders[:] = sorted(each for each in folders if each not in _SKIPPED)
            for name in sorted(names):
                path = Path(folder, name)
                n_files += 1
                if n_files > _MAX_SEARCHED_FILES:
                    return
                with contextlib.suppress(OSError):
                    if stat.S_ISREG(path.lstat().st_mode):
                        yield path

    def search(self, pattern: str, below: str = ".", limit: int = 100) -> list[str]:
        """Return the lines in which a pattern occurs, as `path:line: text`, and the paths in which it does.

        Args:
            pattern: a `BoundedPattern`; a text that is none is searched for as it is.
            below: a folder or a file.
            limit: the largest number of lines.

        Raises:
            InputError: the folder is outside, or the pattern is blank.
        """
        from seasoned.integrations.rewards.bounded_pattern import BoundedPattern  # the prompt comes before it is loaded

        check_text("pattern", pattern)
        try:
            wanted = BoundedPattern(pattern)
        except InputError:
            wanted = BoundedPattern(re.escape(pattern))
        found: list[str] = []
        n_bytes = 0
        for path in self.files(below):
            name = self.name(path)
            if wanted.finds(name):
                found.append(name)
            try:
                n_bytes += path.stat().st_size
                text = self.read(name) if n_bytes <= _MAX_SEARCHED_BYTES else ""
            except (OSError, InputError, NotFoundError):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if wanted.finds(line[: 1 << 14]):
                    found.append(f"{name}:{number}: {line[:_MAX_LINE_CHARS].strip()}")
                if len(found) >= limit:
                    return found
        return found


def _write(path: Path, text: str) -> None:
    """Replace a file by a new one with the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
    descriptor, made = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        Path(made).chmod(mode)
        os.replace(made, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            Path(made).unlink()
        raise
