"""The goals of file tasks, drawn by seed: initial files, subgoals, a menu of commands and a solution."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from seasoned.checks import suggest
from seasoned.envs.files.file_tree import FileTree
from seasoned.errors import InputError, excerpt

__all__ = ["FILE_GOALS", "FileGoal", "TreeCheck", "draw_goal"]

TreeCheck = Callable[[FileTree], bool]
"""A condition on a file tree."""

CommandMenu = Callable[[FileTree], list[str]]


@dataclass(frozen=True, slots=True)
class FileGoal:
    """The goal of one file task: its text, its initial files and its conditions.

    Args:
        text: the goal as the agent reads it.
        files: the initial files, path to content.
        folders: the folders that are empty at the start.
        subgoals: conditions to reach; none holds at the start.
        invariants: conditions to preserve; all hold at the start.
        menu: the admissible commands on a tree, including wrong ones.
        solution: commands of the menu that reach every subgoal, in order.
    """

    text: str
    files: Mapping[str, str]
    folders: tuple[str, ...]
    subgoals: tuple[TreeCheck, ...]
    invariants: tuple[TreeCheck, ...]
    menu: CommandMenu
    solution: tuple[str, ...]

    def score(self, tree: FileTree) -> float:
        """Return the share of `subgoals` that hold, minus the share of `invariants` that do not: from -1 to 1.

        Example:
            >>> draw_goal("count", level=1, seed=0).score(FileTree())
            -1.0
        """
        reached = sum(check(tree) for check in self.subgoals) / len(self.subgoals)
        broken = sum(not check(tree) for check in self.invariants) / len(self.invariants)
        return reached - broken


def draw_goal(kind: str, *, level: int, seed: int) -> FileGoal:
    """Return the goal of this kind, level (1 to 3) and seed.

    Raises:
        InputError: no file task has this name.

    Example:
        >>> draw_goal("largest-log", level=1, seed=3).text
        'Move the largest log of logs/ into archive/.'
    """
    if kind not in FILE_GOALS:
        raise InputError(f"file task {excerpt(kind)}", "no file task has this name", suggest(kind, FILE_GOALS))
    rng = random.Random(f"{kind}/{level}/{seed}")  # noqa: S311 - randomness of a game, no secret
    return FILE_GOALS[kind](rng, level)


def _has_content(path: str, text: str) -> TreeCheck:
    return lambda tree: tree.files.get(path) == text.encode()


def _is_moved(old: str, new: str, text: str) -> TreeCheck:
    return lambda tree: tree.files.get(new) == text.encode() and old not in tree.files


def _is_deleted(path: str) -> TreeCheck:
    return lambda tree: path not in tree.files


def _unchanged(files: Mapping[str, str], *but: str) -> tuple[TreeCheck, ...]:
    return tuple(_has_content(path, text) for path, text in files.items() if path not in but)


def _move_commands(tree: FileTree, *folders: str) -> list[str]:
    """Return every move of a file from one of the folders to another that exists."""
    there = [folder for folder in folders if folder in tree.folders]
    return [f"mv {path} {to}/" for at in there for path in tree.within(at) for to in there if to != at]


def _remove_commands(tree: FileTree, folder: str) -> list[str]:
    return [f"rm {path}" for path in tree.within(folder)]


def _log(rng: random.Random, lines: int) -> str:
    words = [rng.choice(("INFO", "INFO", "WARN", "ERROR")) for _ in range(lines)]
    return "".join(f"2023-05-{1 + i % 28:02d} {word} request {rng.randint(100, 999)}\n" for i, word in enumerate(words))


def _largest_log(rng: random.Random, level: int) -> FileGoal:
    names = rng.sample(("api", "auth", "cache", "db", "jobs", "mail", "proxy", "queue", "search", "web"), 2 + level)
    sizes = rng.sample(range(4, 30), len(names))
    files = {f"logs/{name}.log": _log(rng, size) for name, size in zip(names, sizes, strict=True)}
    old = f"logs/{names[sizes.index(max(sizes))]}.log"
    new = old.replace("logs/", "archive/")
    make, empty = level >= 2, f"logs/{names[sizes.index(min(sizes))]}.log"
    subgoals: list[TreeCheck] = [lambda tree: "archive" in tree.folders] if make else []
    subgoals.append(_is_moved(old, new, files[old]))
    if level == 3:
        files[empty] = ""
        subgoals.append(_is_deleted(empty))
    return FileGoal(
        "Move the largest log of logs/ into archive/"
        + (", a folder to be made" if make else "")
        + (", and delete the log that is empty." if level == 3 else "."),
        files,
        () if make else ("archive",),
        tuple(subgoals),
        _unchanged(files, old, *([empty] if level == 3 else [])),
        lambda tree: [
            "wc -c logs/*",
            *([] if "archive" in tree.folders else ["mkdir archive"]),
            *_move_commands(tree, "logs", "archive"),
            *_remove_commands(tree, "logs"),
        ],
        (*(["mkdir archive"] if make else []), f"mv {old} archive/", *([f"rm {empty}"] if level == 3 else [])),
    )


def _rename(rng: random.Random, level: int) -> FileGoal:
    old, new, wrong = rng.choice((("jpeg", "jpg", "png"), ("txt", "md", "rst"), ("htm", "html", "xml")))
    stems = rng.sample(("beach", "boat", "cat", "garden", "harbour", "hill", "lake", "market", "train", "yard"), 6)
    targets = stems[: (1, 2, 4)[level - 1]]
    files = {f"album/{stem}.{old if stem in targets else rng.choice((new, wrong))}": f"{stem}\n" for stem in stems}

    def menu(tree: FileTree) -> list[str]:
        here = [(stem, end) for stem in targets for end in (old, new, wrong) if f"album/{stem}.{end}" in tree.files]
        single = [
            f"mv album/{stem}.{end} album/{stem}.{to}" for stem, end in here for to in (old, new, wrong) if to != end
        ]
        loops = [f"for f in album/*.{old}; do mv $f ${{f%.{old}}}.{to}; done" for to in (new, wrong)]
        return ["ls album", *single, *(loops if any(end == old for _, end in here) else [])]

    return FileGoal(
        f"Rename every .{old} file of album/ so that it ends in .{new}; leave the others.",
        files,
        (),
        tuple(_is_moved(f"album/{s}.{old}", f"album/{s}.{new}", f"{s}\n") for s in targets),
        _unchanged(files, *(f"album/{stem}.{old}" for stem in targets)),
        menu,
        tuple(f"mv album/{stem}.{old} album/{stem}.{new}" for stem in targets),
    )


def _count(rng: random.Random, level: int) -> FileGoal:
    right, other = (f"logs/{name}.log" for name in rng.sample(("app", "batch", "shop", "site", "sync", "worker"), 2))
    files = {right: _log(rng, rng.randint(12, 30)), other: _log(rng, rng.randint(12, 30))}
    words = rng.sample(("ERROR", "INFO", "WARN"), level)

    def counted(word: str) -> TreeCheck:
        number = str(sum(word in line for line in files[right].splitlines()))
        return lambda tree: tree.files.get(f"counts/{word.lower()}.txt", b"").strip() == number.encode()

    return FileGoal(
        f"Count the lines with {', with '.join(words)} in {right}; write each number alone into its file, such as "
        f"counts/{words[0].lower()}.txt.",
        files,
        ("counts",),
        tuple(counted(word) for word in words),
        _unchanged(files),
        lambda tree: [
            f"head -n 3 {right}",
            *(
                f"{how} {word} {log} > counts/{word.lower()}.txt"
                for how in ("grep", "grep -c")
                for word in words
                for log in (right, other)
            ),
            *(f"cat {path}" for path in tree.within("counts")),
            *_remove_commands(tree, "counts"),
        ],
        tuple(f"grep -c {word} {right} > counts/{word.lower()}.txt" for word in words),
    )


def _config(rng: random.Random, level: int) -> FileGoal:
    values = {key: str(rng.randint(2, 99)) for key in rng.sample(("port", "workers", "retries", "timeout", "cache"), 4)}
    changed = {key: str(rng.randint(100, 999)) for key in list(values)[:level]}
    wrong = str(rng.randint(1000, 9999))
    file, noted = "conf/app.ini", list(changed)[-1] if level == 3 else ""
    files = {file: "".join(f"{key}={value}\n" for key, value in sorted(values.items()))}
    files["docs/notes.txt"] = f"Agreed on Monday: {noted} is {changed[noted]}.\n" if noted else "Nothing agreed.\n"

    def lines(tree: FileTree) -> list[str]:
        return tree.files.get(file, b"").decode("utf-8", "replace").splitlines()

    def is_set(key: str) -> TreeCheck:
        return lambda tree: [x for x in lines(tree) if x.startswith(f"{key}=")] == [f"{key}={changed[key]}"]

    def others(tree: FileTree) -> bool:
        rest = [line for line in lines(tree) if line.partition("=")[0] not in changed]
        return rest == [f"{key}={value}" for key, value in sorted(values.items()) if key not in changed]

    def sed(key: str, value: str) -> str:
        return f"sed -i 's/^{key}=.*/{key}={value}/' {file}"

    wishes = [f"{key} to {'what docs/notes.txt says' if key == noted else changed[key]}" for key in changed]
    offered = [
        *(sed(key, value) for key in changed for value in (changed[key], wrong)),
        *(f"echo {key}={value} >> {file}" for key, value in changed.items()),
        sed(list(values)[-1], wrong),
    ]
    return FileGoal(
        f"In {file}, set {', '.join(wishes)}; leave the other lines.",
        files,
        (),
        tuple(is_set(key) for key in changed),
        (others, _has_content("docs/notes.txt", files["docs/notes.txt"])),
        lambda tree: (
            [*(f"cat {path}" for path in (file, "docs/notes.txt")), f"sort -u -t= -k1,1 -o {file} {file}", *offered]
        ),
        tuple(sed(key, value) for key, value in changed.items()),
    )


def _archive_old(rng: random.Random, level: int) -> FileGoal:
    year = rng.randint(2016, 2023)
    days = [(m, rng.randint(1, 28)) for m in rng.sample(range(1, 13), 1 + 2 * level)]
    old = sorted(f"{year}-{m:02d}-{d:02d}" for m, d in days[:level])
    new = sorted(f"{year + 1}-{m:02d}-{d:02d}" for m, d in days[level:])
    files = {f"reports/{day}.csv": f"day,total\n{day},{rng.randint(10, 99)}\n" for day in (*old, *new)}
    paths, make = [f"reports/{day}.csv" for day in old], level >= 2
    made: tuple[TreeCheck, ...] = (lambda tree: "old" in tree.folders,) if make else ()
    return FileGoal(
        f"Move the reports dated before {year + 1}-01-01 into old/" + (", a folder to be made." if make else "."),
        files,
        () if make else ("old",),
        made + tuple(_is_moved(path, path.replace("reports/", "old/"), files[path]) for path in paths),
        _unchanged(files, *paths),
        lambda tree: [
            "ls reports",
            *([] if "old" in tree.folders else ["mkdir old"]),
            *_move_commands(tree, "reports", "old"),
            *_remove_commands(tree, "reports"),
        ],
        (*(["mkdir old"] if make else []), *(f"mv {path} old/" for path in paths)),
    )


def _dedupe(rng: random.Random, level: int) -> FileGoal:
    names = sorted(
        rng.sample(("bill", "card", "draft", "form", "lease", "memo", "offer", "plan", "quote"), 2 * level + 1)
    )
    rng.shuffle(names)
    files = {f"inbox/{name}.txt": f"from {name}, number {rng.randint(1000, 9999)}\n" for name in names}
    doubles = []
    for first, second in zip(names[:level], names[level : 2 * level], strict=True):
        kept, double = sorted((f"inbox/{first}.txt", f"inbox/{second}.txt"))
        files[double] = files[kept]
        doubles.append(double)
    return FileGoal(
        "Some files of inbox/ have the same content. Of each such pair delete the one whose name comes later.",
        files,
        (),
        tuple(_is_deleted(path) for path in doubles),
        _unchanged(files, *doubles),
        lambda tree: ["ls inbox", "cksum inbox/*", *_remove_commands(tree, "inbox")],
        tuple(f"rm {path}" for path in doubles),
    )


def _todos(rng: random.Random, level: int) -> FileGoal:
    names = rng.sample(("cart", "login", "mail", "menu", "order", "search", "stock", "user"), level + 2)
    jobs, listed = ("add tests", "check the type", "log this", "remove", "rename", "split"), "notes/todo.txt"
    files, todo = {}, {}
    for name in sorted(names):
        lines = [f"# {mark}: {rng.choice(jobs)} in {name}\n" for mark in ("TODO", "FIXME")]
        todo[f"src/{name}.py"] = lines[0] if name in names[: level + 1] else ""
        files[f"src/{name}.py"] = "".join(["import os\n", *(lines if todo[f"src/{name}.py"] else lines[1:])])

    def collected(line: str) -> TreeCheck:
        def check(tree: FileTree) -> bool:
            found = tree.files.get(listed, b"").splitlines(keepends=True)
            foreign = set(found) - {text.encode() for text in todo.values()}
            return not foreign and found.count(line.encode()) == 1

        return check

    return FileGoal(
        f"Collect the lines with TODO in src/, as they stand and each once, in {listed}.",
        files,
        ("notes",),
        tuple(collected(line) for line in todo.values() if line),
        _unchanged(files),
        lambda tree: [
            f"cat src/*.py > {listed}",
            *(f"grep {flag}{mark} src/*.py > {listed}" for mark in ("TODO", "FIXME") for flag in ("", "-h ")),
            *(f"grep {mark} {path} >> {listed}" for path in files for mark in ("TODO", "FIXME")),
            *(f"{verb} {path}" for path in tree.within("notes") for verb in ("cat", "rm")),
        ],
        (f"grep -h TODO src/*.py > {listed}",),
    )


def _sort_types(rng: random.Random, level: int) -> FileGoal:
    places = {"jpg": "pictures", "png": "pictures", "pdf": "papers", "doc": "papers", "mp3": "music", "wav": "music"}
    names = rng.sample(("alpha", "birds", "coast", "delta", "east", "fern", "gold", "iris"), 2 * level)
    chosen = {name: rng.choice(list(places)) for name in names}
    files = {f"downloads/{name}.{end}": f"{name}\n" for name, end in chosen.items()}
    folders = ("music", "papers", "pictures")
    files["readme.txt"] = "Keep this.\n"
    return FileGoal(
        "Empty downloads/: jpg and png files go to pictures/, pdf and doc to papers/, mp3 and wav to music/.",
        files,
        folders,
        tuple(_is_moved(f"downloads/{n}.{e}", f"{places[e]}/{n}.{e}", f"{n}\n") for n, e in chosen.items()),
        (_has_content("readme.txt", "Keep this.\n"),),
        lambda tree: [
            "rm readme.txt",
            *(c for c in _move_commands(tree, "downloads", *folders) if not c.endswith("nloads/")),
        ],
        tuple(f"mv downloads/{name}.{end} {places[end]}/" for name, end in chosen.items()),
    )


FILE_GOALS: Mapping[str, Callable[[random.Random, int], FileGoal]] = {
    "archive-old": _archive_old,
    "config": _config,
    "count": _count,
    "dedupe": _dedupe,
    "largest-log": _largest_log,
    "rename": _rename,
    "sort-types": _sort_types,
    "todos": _todos,
}
"""The drawing functions of all goals, by name."""
