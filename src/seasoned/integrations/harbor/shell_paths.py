"""Resolution of the paths in a shell command, as far as its text determines them."""

from __future__ import annotations

from fnmatch import fnmatchcase

__all__ = ["ANY", "HERE", "UNKNOWN_NAME", "UP", "ShellPath", "may_match", "resolve_path", "shell_path"]

ShellPath = tuple[str, ...]
"""The names from the root on; or one of `HERE`, `ANY`, `UP`, and the names below it."""

HERE, ANY, UP = "\0here", "\0any", "\0up"
"""The unknown working folder; a folder that only the shell knows; a folder above one of these."""

UNKNOWN_NAME = "\0"
"""Replaces a value in a text that only the shell knows."""

_MARKS = (HERE, ANY, UP)


def shell_path(folder: str | None) -> ShellPath:
    """Return the path of a folder; None if it is unknown.

    Example:
        >>> shell_path("/app//src/.."), shell_path(None) == (HERE,)
        (('app',), True)
    """
    return (HERE,) if folder is None else resolve_path((HERE,), folder)


def resolve_path(place: ShellPath, path: str) -> ShellPath:
    """Resolve a path from a folder; `/proc/N/root` is the root.

    Example:
        >>> resolve_path(("app",), "../proc/self/root/tests"), resolve_path(("app",), "~/x") == (ANY, "x")
        (('tests',), True)
    """
    names = path.split("/")
    here = list(place)
    if path.startswith("/"):
        here = []
    elif names[0].startswith(("~", UNKNOWN_NAME)) and not names[0].startswith("~+"):
        here = [ANY]
        rest = "" if names[0].startswith("~") else names[0].strip(UNKNOWN_NAME)
        names[0] = "*" + names[0].lstrip(UNKNOWN_NAME) if rest else ""
    elif names[0] == "~+":
        names[0] = ""
    for name in names:
        if name in ("", "."):
            continue
        if name == "..":
            here = here[:-1] if here and here[-1] not in _MARKS else [UP] if here else []
        elif len(here) in (2, 4) and fnmatchcase("proc", here[0]) and fnmatchcase("root", name):
            here = []
        elif len(here) in (2, 4) and fnmatchcase("proc", here[0]) and fnmatchcase("cwd", name):
            here = [ANY]
        else:
            here.append(name.replace(UNKNOWN_NAME, "*"))
    return tuple(here)


def may_match(place: ShellPath, folder: ShellPath, *, walks: bool) -> bool:
    """Return whether a path may be a folder or below it; with `walks`, also above it.

    A relative name in an unknown working folder is assumed to be one of the task's own files.
    """
    mark = place[0] if place and place[0] in _MARKS else None
    if mark == HERE:
        return False
    names = place[1:] if mark else place
    if mark and names and not any(name.strip("*") for name in names[: len(folder)]):
        return False  # any name in any folder matches everything
    if len(names) < len(folder):
        return walks and (bool(names) or mark != ANY) and all(map(fnmatchcase, folder, names))
    return all(map(fnmatchcase, folder, names))
