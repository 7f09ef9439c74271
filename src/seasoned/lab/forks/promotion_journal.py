"""The record of promotions: one JSON object a line, written and synced before a promotion takes place."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from seasoned.errors import InputError, NotFoundError, StoreBusyError, StoreError
from seasoned.lab.forks.snapshot_diff import Base, contains
from seasoned.memory.stores.base import is_url, shown

__all__ = ["Journal"]


class Journal:
    """Promotions of one memory, in order. An entry says what was intended: whether it took place, the memory shows."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, live: str, path: str | os.PathLike[str] | None) -> Journal:
        """Return the journal of a memory: the one named, or for a file the one beside it.

        Raises:
            InputError: none is named for a server's.
        """
        if path is not None:
            return cls(Path(path))
        if is_url(live):
            raise InputError("journal = None", "promotions are recorded in a file", "Name it: journal=... (--journal).")
        return cls(Path(f"{live}.promotions.jsonl"))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Let nobody else promote here meanwhile.

        Raises:
            StoreBusyError: somebody does.
        """
        with self.path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise StoreBusyError(f"{self.path} is locked", "one promotes at a time", "Wait for it.") from error
            yield

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append an entry; on disk when this returns."""
        with self.path.open("ab") as file:
            if self.path.stat().st_size and not self.path.read_bytes().endswith(b"\n"):
                file.write(b"\n")  # a killed process wrote half a line
            file.write(json.dumps(entry, sort_keys=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries; half a line, which a killed process left, is none."""
        found: list[Any] = []
        for line in self.path.read_bytes().split(b"\n") if self.path.exists() else ():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [entry for entry in found if isinstance(entry, dict)]

    def pending(self, live: str) -> list[dict[str, Any]]:
        """Return the promotions of a server's memories that may have been left half done: none says that it ended."""
        entries = [entry for entry in self.entries() if entry.get("live") == live]
        ended = {entry["finished"] for entry in entries if "finished" in entry}
        return [entry for entry in entries if entry.get("pending") and entry["id"] not in ended]

    def namespace(self, live: str) -> str:
        """Return the namespace of a memory that was promoted, where there is no other.

        Raises:
            NotFoundError: nothing was promoted.
            InputError: several were.
        """
        known = {entry["namespace"] for entry in self.entries() if "retired_path" in entry and entry["live"] == live}
        if not known:
            raise self.nothing_promoted(live)
        if len(known) > 1:
            raise InputError(
                f"{len(known)} namespaces of {shown(live)} in {self.path}",
                f"one must be rolled back at a time: {', '.join(sorted(known))}",
                "Name it: --namespace NAME.",
            )
        return str(known.pop())

    def last_promotion(self, live: str, namespace: str, holds: Callable[[Any], bool]) -> dict[str, Any]:
        """Return the last promotion that took place, and was not rolled back.

        Args:
            live, namespace: of which memory.
            holds: whether the memory holds, beside newer things, what is given.

        Raises:
            NotFoundError: there is none.
            StoreError: the memory is neither as the last promotion left it nor as it found it.
        """
        mine: list[dict[str, Any]] = [
            one
            for one in self.entries()
            if "retired_path" in one and (one["live"], one["namespace"]) == (live, namespace)
        ]
        undone: set[str] = set()
        for entry in reversed(mine):
            if entry["id"] in undone:
                continue
            before, after = entry["before"], entry["after"]
            if not holds(after) or (holds(before) and _covers(before, after) and not _covers(after, before)):
                if holds(before):
                    continue  # it was intended, and did not take place
                raise StoreError(
                    f"{shown(live)} is not as promotion {entry['id']} left it, nor as it found it",
                    "what is rolled back may have grown, and is otherwise as it was promoted",
                    _by_hand(entry),
                )
            if "rolled_back" in entry:
                undone.add(entry["rolled_back"])
                continue
            return dict(entry)
        raise self.nothing_promoted(live)

    def nothing_promoted(self, live: str) -> NotFoundError:
        """Return the error that says that there is no promotion to take back."""
        return NotFoundError(f"{shown(live)}: no promotion", "what is rolled back was promoted", f"See {self.path}.")


def _by_hand(entry: Mapping[str, Any]) -> str:
    """What is left to do: what was replaced is as it was, with whatever was erased from the live memory since."""
    path = entry["retired_path"]
    if is_url(entry["live"]):
        name = entry["retired_namespace"]
        return (
            f"Namespace {name!r} still holds what was erased or taken back since: erase there first "
            f"(seasoned memory erase --namespace {name} --subject NAME), then go on with that namespace."
        )
    return (
        f"{path} still holds what was erased or taken back since: erase there first (seasoned memory erase {path} "
        f"--subject NAME), then put it back: seasoned memory restore {path} {entry['live']} --overwrite."
    )


def _covers(whole: Mapping[str, Base], part: Mapping[str, Base]) -> bool:
    return all(name in whole and contains(whole[name], base) for name, base in part.items())
