"""Where a path of a shell command may lead, as far as that can be read off the command."""

from __future__ import annotations

from fnmatch import fnmatchcase

__all__ = ["ANY", "HERE", "UNKNOWN_NAME", "UP", "ShellPath", "may_match", "resolve", "shell_path"]

ShellPath = tuple[str, ...]
"""The names from the root on; or one of `HERE`, `ANY`, `UP`, and the names from there on."""

HERE, ANY, UP = "\0here", "\0any", "\0up"
"""Where the command runs, which nobody said; a folder that only the shell knows; a folder above one of those."""

UNKNOWN_NAME = "\0"
"""Stands in a text for what only the shell knows."""

_MARKS = (HERE, ANY, UP)


def shell_path(folder: str | None) -> ShellPath:
    """Return the place of a folder; None: it is not known.

    Example:
        >>> shell_path("/app//src/.."), shell_path(None) == (HERE,)
        (('app',), True)
    """
    return (HERE,) if folder is None else resolve((HERE,), folder)


def resolve(place: ShellPath, path: str) -> ShellPath:
    """Return where a path leads from a place; `/proc/N/root` leads to the root.

    Example:
        >>> resolve(("app",), "../proc/self/root/tests"), resolve(("app",), "~/x") == (ANY, "x")
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
    """Return whether a place may be a folder, or below it; one that is walked through may be above it too.

    A relative name is taken to be of the task's own files where nobody said where the command runs.
    """
    mark = place[0] if place and place[0] in _MARKS else None
    if mark == HERE:
        return False
    names = place[1:] if mark else place
    if mark and names and not any(name.strip("*") for name in names[: len(folder)]):
        return False  # any name in any folder: that says nothing
    if len(names) < len(folder):
        return walks and (bool(names) or mark != ANY) and all(map(fnmatchcase, folder, names))
    return all(map(fnmatchcase, folder, names))
