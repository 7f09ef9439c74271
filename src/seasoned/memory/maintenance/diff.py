"""Difference of two memories by ids and hashes; only texts with different hashes are read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from seasoned.errors import NotFoundError, excerpt
from seasoned.memory.memory import Memory
from seasoned.memory.namespace import NamespaceEntry, find_entry, list_entries
from seasoned.memory.reading.reader import Reader
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.registry import open_store
from seasoned.memory.transfer.manifest import EpisodeDigest, read_manifest
from seasoned.memory.values.content_hash import episode_record
from seasoned.memory.values.events import Event
from seasoned.memory.values.selection import Quarantine
from seasoned.memory.writing.note_records import note_record, read_notes

__all__ = ["ChangedRecord", "KindDifference", "MemoryDifference", "StoreDifference", "diff", "diff_stores"]

_T = TypeVar("_T")
_Record = dict[str, Any]
_ABSENT = "(absent)"
_LAST = ("created_at", "revoked_at", "superseded_by", "lifted_at", "hash")  # compared after the content


@dataclass(frozen=True, slots=True)
class ChangedRecord:
    """A record that both memories have under one id, with different content.

    `field` is the first different field (`steps[3].reward`, `created_at`, `superseded_by`, ...); `a` and `b` are
    excerpts.
    """

    id: str
    field: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class KindDifference:
    """Difference in one kind of record. `reordered`: the shared records are in another order."""

    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()
    changed: tuple[ChangedRecord, ...] = ()
    reordered: bool = False

    @property
    def equal(self) -> bool:
        """Whether both have the same records in the same order."""
        return not (self.only_in_a or self.only_in_b or self.changed or self.reordered)


@dataclass(frozen=True, slots=True)
class MemoryDifference:
    """Difference of memory a from memory b; settings are pairs (a's, b's)."""

    episodes: KindDifference
    feedback: KindDifference
    quarantines: KindDifference
    encoders: tuple[str, str]
    gammas: tuple[float, float]
    notes: KindDifference = KindDifference()

    @property
    def equal(self) -> bool:
        """Whether the raw content is the same, as by the hashes of `verify`; settings do not count."""
        return all(one.equal for one in (self.episodes, self.feedback, self.quarantines, self.notes))

    @property
    def same_settings(self) -> bool:
        """Whether both have the same encoder and the same gamma."""
        return self.encoders[0] == self.encoders[1] and self.gammas[0] == self.gammas[1]


@dataclass(frozen=True, slots=True)
class StoreDifference:
    """Difference of two stores: namespaces of one only, and the differences of the others, by their names in a."""

    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    namespaces: Mapping[str, MemoryDifference]

    @property
    def equal(self) -> bool:
        """Whether both have the same namespaces with the same content."""
        return not self.only_in_a and not self.only_in_b and all(one.equal for one in self.namespaces.values())


def diff(a: Memory, b: Memory) -> MemoryDifference:
    """Return the difference of two open memories, each as of one instant. Their namespaces may differ in name.

    For undamaged memories, `MemoryDifference.equal` if and only if `a.verify().hash == b.verify().hash`. The stored
    hashes are not checked; `verify` checks them.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> with Memory.open(":memory:") as a, Memory.open(":memory:") as b:
        ...     _ = a.add(Episode("shop", [Step("cart", "pay", 1.0)], "e1"))
        ...     _ = b.add(Episode("shop", [Step("cart", "pay", 0.0)], "e1"))
        ...     diff(a, b).episodes.changed[0]
        ChangedRecord(id='e1', field='steps[0].reward', a='1.0', b='0.0')
    """

    def compare() -> MemoryDifference:
        names = a.namespace, b.namespace
        entries = find_entry(a.session.store, names[0]), find_entry(b.session.store, names[1])
        return _compare(a.session.store, entries[0], b.session.store, entries[1])

    return _in_snapshots(a.session.store, b.session.store, compare)


def diff_stores(
    a: str | os.PathLike[str], b: str | os.PathLike[str], *, namespace: str | None = None, other: str | None = None
) -> StoreDifference:
    """Return the difference of two stores, namespace by namespace.

    Args:
        a, b: files or `postgresql://...`; they are only read.
        namespace: compare this namespace only.
        other: its name in b; None: the same.

    Raises:
        NotFoundError: a store does not exist, or neither has the namespace.
        StoreError: as for `Memory.open`.
    """
    with (
        contextlib.closing(open_store(a, create=False, read_only=True)) as first,
        contextlib.closing(open_store(b, create=False, read_only=True)) as second,
    ):
        return _in_snapshots(first, second, lambda: _compare_stores(first, second, namespace, other))


def _in_snapshots(a: Store, b: Store, compare: Callable[[], _T]) -> _T:
    """Run a comparison in a snapshot of each store."""
    first, second = sorted((a, b), key=id)  # one lock order for all threads, against deadlocks

    def attempt() -> _T:
        with first.snapshot(), second.snapshot():
            return compare()

    return first.retrying(lambda: second.retrying(attempt))


def _compare_stores(a: Store, b: Store, namespace: str | None, other: str | None) -> StoreDifference:
    in_a, in_b = list_entries(a), list_entries(b)
    if namespace is None:
        shared = {name: name for name in in_a if name in in_b}
        only_in_a, only_in_b = (tuple(x for x in one if x not in two) for one, two in ((in_a, in_b), (in_b, in_a)))
    else:
        there = namespace if other is None else other
        if namespace not in in_a and there not in in_b:
            raise NotFoundError(
                f"namespace {excerpt(namespace)}",
                f"{a.path} has {', '.join(map(repr, list(in_a)[:10])) or 'none'}",
                "Choose one.",
            )
        shared = {namespace: there} if namespace in in_a and there in in_b else {}
        only_in_a = (namespace,) if there not in in_b else ()
        only_in_b = (there,) if namespace not in in_a else ()
    differences = {name: _compare(a, in_a[name], b, in_b[there]) for name, there in shared.items()}
    return StoreDifference(only_in_a, only_in_b, differences)


def _compare(store_a: Store, of_a: NamespaceEntry, store_b: Store, of_b: NamespaceEntry) -> MemoryDifference:
    a, b = read_manifest(store_a, of_a.id), read_manifest(store_b, of_b.id)
    readers = Reader(store_a, of_a.id), Reader(store_b, of_b.id)

    def episodes(id_: str) -> tuple[_Record, _Record]:
        in_a, in_b = a.episodes[id_], b.episodes[id_]
        same_text = in_a.digest == in_b.digest
        return _episode(readers[0], id_, in_a, same_text), _episode(readers[1], id_, in_b, same_text)

    def events(id_: str) -> tuple[_Record, _Record]:
        return _event(*a.events[id_]), _event(*b.events[id_])

    def quarantines(id_: str) -> tuple[_Record, _Record]:
        return _quarantine(*a.quarantines[id_]), _quarantine(*b.quarantines[id_])

    def notes(id_: str) -> tuple[_Record, _Record]:
        return _note(store_a, of_a.id, id_), _note(store_b, of_b.id, id_)

    prints_a, prints_b = a.fingerprints(), b.fingerprints()
    return MemoryDifference(
        _kind(prints_a[0], prints_b[0], episodes),
        _kind(prints_a[1], prints_b[1], events),
        _kind(prints_a[2], prints_b[2], quarantines),
        (of_a.encoder, of_b.encoder),
        (of_a.gamma, of_b.gamma),
        _kind(prints_a[3], prints_b[3], notes),
    )


def _episode(reader: Reader, id_: str, stored: EpisodeDigest, same_text: bool) -> _Record:
    text = {} if same_text else next(episode_record(episode) for _, _, _, episode in reader.episodes(id_=id_))
    return {**text, "created_at": stored.created_at, "hash": stored.digest.hex()}


def _event(content: bytes, event: Event) -> _Record:
    later = {"revoked_at": event.revoked_at, "superseded_by": event.superseded_by}
    return {**event.record(), **later, "hash": content.hex()}


def _quarantine(content: bytes, quarantine: Quarantine) -> _Record:
    return {**quarantine.record(), "lifted_at": quarantine.lifted_at, "hash": content.hex()}


def _note(store: Store, namespace_id: int, id_: str) -> _Record:
    [(content, note)] = read_notes(store, namespace_id, ids=[id_])
    return {**note_record(note), "revoked_at": note.revoked_at, "hash": content.hex()}


def _kind(
    a: Mapping[str, bytes], b: Mapping[str, bytes], records: Callable[[str], tuple[_Record, _Record]]
) -> KindDifference:
    shared = [id_ for id_ in a if id_ in b]
    return KindDifference(
        tuple(id_ for id_ in a if id_ not in b),
        tuple(id_ for id_ in b if id_ not in a),
        tuple(_change(id_, *records(id_)) for id_ in shared if a[id_] != b[id_]),
        shared != [id_ for id_ in b if id_ in a],
    )


def _change(id_: str, a: _Record, b: _Record) -> ChangedRecord:
    field, in_a, in_b = next(_differences(a, b, ""))
    return ChangedRecord(id_, field, in_a, in_b)


def _differences(a: Any, b: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield (field, excerpt of a, excerpt of b) of each difference, outermost fields in order."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted(dict.fromkeys([*a, *b]), key=lambda name: name in _LAST):
            inner = f"{path}.{name}" if path else name
            if name not in a or name not in b:
                yield inner, _shown(a, name), _shown(b, name)
            else:
                yield from _differences(a[name], b[name], inner)
    elif isinstance(a, list) and isinstance(b, list):
        for number, (one, two) in enumerate(zip(a, b, strict=False)):
            yield from _differences(one, two, f"{path}[{number}]")
        if len(a) != len(b):
            yield f"{path}.length", str(len(a)), str(len(b))
    elif repr(a) != repr(b):  # as in the hashes: 0.0 is not -0.0
        yield path, excerpt(a), excerpt(b)


def _shown(record: dict[str, Any], name: str) -> str:
    return excerpt(record[name]) if name in record else _ABSENT
