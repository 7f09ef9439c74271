"""Journal of promotions: one JSON object a line, written and synced before the promotion."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from seasoned.checks import check_file_name
from seasoned.errors import InputError, NotFoundError, StoreBusyError, StoreError
from seasoned.lab.forks.snapshots import Snapshot, contains
from seasoned.memory.stores.registry import display_path, is_file

__all__ = ["PromotionJournal"]


class PromotionJournal:
    """Promotions of one memory, in order. An entry is an intention; the memory's content shows if it took place."""

    def __init__(self, path: Path) -> None:
        check_file_name(path)
        self.path = path

    @classmethod
    def of(cls, live: str, path: str | os.PathLike[str] | None) -> PromotionJournal:
        """Return the journal at `path`; None: the file next to the live file.

        Raises:
            InputError: `path` is None and the memory is on a server; or the system does not take the name.
        """
        if path is not None:
            return cls(Path(path))
        if not is_file(live):
            raise InputError("journal = None", "promotions are recorded in a file", "Name it: journal=... (--journal).")
        return cls(Path(f"{live}.promotions.jsonl"))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the journal against other promotions.

        Raises:
            StoreBusyError: another promotion holds the lock.
        """
        with self.path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise StoreBusyError(
                    f"{self.path} is locked", "one promotion runs at a time", "Wait for it."
                ) from error
            yield

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append an entry, and sync it to disk."""
        with self.path.open("ab") as file:
            if self.path.stat().st_size and not self.path.read_bytes().endswith(b"\n"):
                file.write(b"\n")  # half a line of a killed process
            file.write(json.dumps(entry, sort_keys=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries; half a line that a killed process left is skipped."""
        entries: list[Any] = []
        for line in self.path.read_bytes().split(b"\n") if self.path.exists() else ():
            with contextlib.suppress(ValueError):
                entries.append(json.loads(line))
        return [entry for entry in entries if isinstance(entry, dict)]

    def pending(self, live: str) -> list[dict[str, Any]]:
        """Return the promotions on a server that have no record of their end; a kill may have cut them off."""
        entries = [entry for entry in self.entries() if entry.get("live") == live]
        ended = {entry["finished"] for entry in entries if "finished" in entry}
        return [entry for entry in entries if entry.get("pending") and entry["id"] not in ended]

    def namespace(self, live: str) -> str:
        """Return the only namespace of a memory that was promoted.

        Raises:
            NotFoundError: none was promoted.
            InputError: several were promoted.
        """
        known = {entry["namespace"] for entry in self.entries() if "retired_path" in entry and entry["live"] == live}
        if not known:
            raise self.no_promotion(live)
        if len(known) > 1:
            raise InputError(
                f"{len(known)} namespaces of {display_path(live)} in {self.path}",
                f"one namespace is rolled back at a time: {', '.join(sorted(known))}",
                "Name it: --namespace NAME.",
            )
        return str(known.pop())

    def last_promotion(self, live: str, namespace: str, has: Callable[[Any], bool]) -> dict[str, Any]:
        """Return the last promotion that took place and was not rolled back.

        Args:
            live, namespace: the memory.
            has: returns whether the memory contains the given snapshots, and perhaps more.

        Raises:
            NotFoundError: there is none.
            StoreError: the memory lacks content both of before and of after the last promotion.
        """
        own_entries: list[dict[str, Any]] = [
            one
            for one in self.entries()
            if "retired_path" in one and (one["live"], one["namespace"]) == (live, namespace)
        ]
        undone: set[str] = set()
        for entry in reversed(own_entries):
            if entry["id"] in undone:
                continue
            before, after = entry["before"], entry["after"]
            if not has(after) or (has(before) and _covers(before, after) and not _covers(after, before)):
                if has(before):
                    continue  # intended only
                raise StoreError(
                    f"{display_path(live)} is not as promotion {entry['id']} left it, nor as it found it",
                    "a memory that is rolled back may have grown, and must otherwise be as it was promoted",
                    _by_hand(entry),
                )
            if "rolled_back" in entry:
                undone.add(entry["rolled_back"])
                continue
            return dict(entry)
        raise self.no_promotion(live)

    def no_promotion(self, live: str) -> NotFoundError:
        """Return the error for a memory without a promotion to roll back."""
        return NotFoundError(
            f"{display_path(live)}: no promotion", "a roll-back needs a memory that was promoted", f"See {self.path}."
        )


def _by_hand(entry: Mapping[str, Any]) -> str:
    """Return the next step: erase from the replaced memory, which still has the erased content, then restore it."""
    path = entry["retired_path"]
    if not is_file(entry["live"]):
        name = entry["retired_namespace"]
        return (
            f"Namespace {name!r} still has content that was erased or revoked since: erase there first "
            f"(seasoned memory erase --namespace {name} --subject NAME), then go on with that namespace."
        )
    return (
        f"{path} still has content that was erased or revoked since: erase there first (seasoned memory erase {path} "
        f"--subject NAME), then put it back: seasoned memory restore {path} {entry['live']} --overwrite."
    )


def _covers(whole: Mapping[str, Snapshot], part: Mapping[str, Snapshot]) -> bool:
    return all(name in whole and contains(whole[name], base) for name, base in part.items())
