"""One store from several: the target gets what it lacks. Also the way from a file to PostgreSQL and back."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from seasoned.checks import check_text
from seasoned.errors import (
    EncoderMismatchError,
    EpisodeConflictError,
    InputError,
    NotFoundError,
    StoreBusyError,
    excerpt,
)
from seasoned.memory.stores.atomic_file import check_path, whole_file
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.registry import display_path, is_file, open_store
from seasoned.memory.transfer.manifest import Contents, Entry, list_entries, read_contents
from seasoned.memory.transfer.namespace_merge import Absorber, Merged
from seasoned.memory.values.encoder_mismatch import told_apart
from seasoned.memory.writing.episode_writer import Writer
from seasoned.protocols import StateEncoder

__all__ = ["Merge", "Merged", "encoder_of", "merge", "merge_stores"]

_LISTED = 10


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge did."""

    target: str
    namespaces: tuple[Merged, ...]


@dataclass(slots=True)
class _Plan:
    """What one namespace of the target is, or will be, and where its content comes from."""

    name: str
    encoder: StateEncoder
    gamma: float
    sources: list[tuple[Store, int]] = field(default_factory=list)


def merge(
    target: str | os.PathLike[str],
    *sources: str | os.PathLike[str],
    namespace: str | None = None,
    encoder: StateEncoder | None = None,
) -> Merge:
    """Store in `target` what it lacks of the sources: episodes, feedback, quarantines, notes, namespace by namespace.

    What the target holds keeps its order; what is new follows in the order of its source, with its times. A namespace
    that the target lacks gets its source's encoder and gamma; a target file that does not exist appears when it is
    whole. What either store knows to be revoked, superseded or lifted is so afterwards (`reconcile`). Merging again
    changes nothing; merging two stores into each other gives both the same content. What the target erased or pruned
    comes back if a source still has it.

    Everything is checked before anything is written. Each namespace is written in one transaction: after a crash it is
    as before or whole. On an SQLite target other writers wait meanwhile.

    Args:
        target: a file or `postgresql://...`; made if it does not exist.
        sources: the same; nothing is written to them.
        namespace: merge this one only.
        encoder: for namespaces of an encoder that is not built in.

    Raises:
        InputError: no source is named, or one is the target; or the gammas of a namespace differ.
        NotFoundError: a source, or the namespace in all of them, does not exist.
        EncoderMismatchError: a namespace was encoded by different encoders.
        UnknownNameError: its encoder is not built in, and was not passed.
        EpisodeConflictError: an id has different contents; the message lists the first ten.
        StoreError: a store is busy, full, foreign or broken.

    Example:
        >>> import tempfile
        >>> from seasoned import Episode, Memory, Step
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Memory.open(f"{folder.name}/a.db") as memory:
        ...     _ = memory.add(Episode("shop", [Step("cart", "pay", 1.0)]))
        >>> merge(f"{folder.name}/b.db", f"{folder.name}/a.db").namespaces[0].episodes
        1
        >>> folder.cleanup()
    """
    if not sources:
        raise InputError("no sources", "a merge must have one or more", "Name the stores to merge into the target.")
    if namespace is not None:
        check_text("namespace", namespace)
    for path in (target, *sources):
        check_path(path)
    for source in sources:
        if _same(source, target):
            raise InputError(display_path(source), "a store must not be merged into itself", "Name another source.")
    with contextlib.ExitStack() as open_:
        opened = [
            open_.enter_context(contextlib.closing(open_store(source, create=False, read_only=True)))
            for source in sources
        ]
        if not is_file(target) or Path(target).exists():
            return merge_stores(target, opened, namespace, encoder)
        # Refused, if at all, before a file is begun.
        _check(_plans(None, opened, namespace, encoder), None)
        with whole_file(target) as partial:
            return replace(merge_stores(partial, opened, namespace, encoder), target=str(target))


def merge_stores(
    path: str | os.PathLike[str], sources: Sequence[Store], namespace: str | None, encoder: StateEncoder | None
) -> Merge:
    """Merge open stores into the one at `path`; see `merge`."""
    with contextlib.closing(open_store(path, create=True, read_only=False)) as target:
        plans = _plans(target, sources, namespace, encoder)
        _check(plans, target)
        done = [target.retrying(lambda plan=plan: _write(target, plan)) for plan in plans]  # type: ignore[misc]
        return Merge(target.path, tuple(done))


def _same(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> bool:
    if not is_file(a) or not is_file(b):
        return str(a) == str(b)
    return os.path.realpath(a) == os.path.realpath(b)


# -------------------------------------------------------------------------------------- before anything is written


def _entries(store: Store) -> dict[str, Entry]:
    def attempt() -> dict[str, Entry]:
        with store.snapshot():
            return list_entries(store)

    return store.retrying(attempt)


def _contents(store: Store, namespace_id: int) -> Contents:
    def attempt() -> Contents:
        with store.snapshot():
            return read_contents(store, namespace_id)

    return store.retrying(attempt)


def _plans(
    target: Store | None, sources: Sequence[Store], only: str | None, encoder: StateEncoder | None
) -> list[_Plan]:
    """Return what is to be written, with every setting checked."""
    settings: dict[str, tuple[str, Entry]] = {}
    plans: dict[str, _Plan] = {}
    if target is not None:
        settings = {name: (target.path, entry) for name, entry in _entries(target).items()}
    for source in sources:
        for name, entry in _entries(source).items():
            if only is not None and name != only:
                continue
            where, expected = settings.setdefault(name, (source.path, entry))
            _check_settings(name, source.path, entry, where, expected)
            if name not in plans:
                plans[name] = _Plan(name, encoder_of(entry.encoder, encoder), entry.gamma)
            plans[name].sources.append((source, entry.id))
    if only is not None and only not in plans:
        known = sorted({name for source in sources for name in _entries(source)})
        raise NotFoundError(
            f"namespace {excerpt(only)}",
            f"the sources have {', '.join(map(repr, known[:_LISTED])) or 'none'}",
            "Choose one.",
        )
    return list(plans.values())


def encoder_of(identity: str, given: StateEncoder | None) -> StateEncoder:
    """Return the encoder with this identity: the given one, or a built-in one.

    Raises:
        UnknownNameError: it is neither.
    """
    if given is not None and given.identity == identity:
        return given
    from seasoned.states import encoder_from_identity  # slow to import

    return encoder_from_identity(identity)


def _check_settings(name: str, path: str, entry: Entry, other_path: str, other: Entry) -> None:
    where = f"namespace {name!r} of {path}"
    if entry.encoder != other.encoder:
        ours, theirs = told_apart(entry.encoder, other.encoder)
        raise EncoderMismatchError(
            f"{where} was encoded by {ours}",
            f"in {other_path} it was encoded by {theirs}; features of two encoders are never mixed",
            "Open one of them with the other's encoder and reindex=True, then merge.",
        )
    if entry.gamma != other.gamma:
        raise InputError(
            f"{where} has gamma {entry.gamma}",
            f"in {other_path} it has gamma {other.gamma}, and one namespace has one",
            "Export it, and import it into a namespace with that gamma.",
        )


def _check(plans: Sequence[_Plan], target: Store | None) -> None:
    """Refuse the whole merge if an id means two things."""
    conflicts: list[str] = []
    known = {} if target is None else _entries(target)
    for plan in plans:
        stores = [(target, known[plan.name].id)] if target is not None and plan.name in known else []
        conflicts += _conflicts(plan.name, [*stores, *plan.sources])
    if conflicts:
        more = f", and {len(conflicts) - _LISTED} more" if len(conflicts) > _LISTED else ""
        raise EpisodeConflictError(
            f"{len(conflicts)} conflicts: {', '.join(conflicts[:_LISTED])}{more}",
            "an id has one content in all stores that are merged; nothing was written",
            "See what differs: seasoned memory diff.",
        )


def _conflicts(name: str, stores: Sequence[tuple[Store, int]]) -> Iterator[str]:
    known: dict[tuple[str, str], bytes] = {}
    for store, namespace_id in stores:
        contents = _contents(store, namespace_id)
        for kind, digests in (
            ("episode", {id_: one.digest for id_, one in contents.episodes.items()}),
            ("event", {id_: digest for id_, (digest, _) in contents.events.items()}),
            ("quarantine", {id_: digest for id_, (digest, _) in contents.quarantines.items()}),
            ("note", {id_: one.digest for id_, one in contents.notes.items()}),
        ):
            for id_, digest in digests.items():
                if known.setdefault((kind, id_), digest) != digest:
                    yield f"{kind} {excerpt(id_)} of namespace {excerpt(name)} ({store.path})"


# ---------------------------------------------------------------------------------------------- writing


def _write(target: Store, plan: _Plan) -> Merged:
    """Write one namespace, all or nothing."""
    with target.snapshot():
        known = list_entries(target).get(plan.name)
    with target.transaction(None if known is None else known.id):
        namespace_id = _make(target, plan) if known is None else known.id
        merging = Absorber(target, namespace_id, plan.encoder)
        done = Merged(plan.name, made=known is None)
        for source, source_id in plan.sources:
            with source.snapshot():
                done = merging.add(source, source_id, done)
        return done


def _make(target: Store, plan: _Plan) -> int:
    made = target.execute(
        "INSERT INTO namespace (name, encoder, gamma, created_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING RETURNING id",
        (plan.name, plan.encoder.identity, plan.gamma, time.time()),
    ).fetchone()
    if not made:
        raise StoreBusyError(
            f"namespace {excerpt(plan.name)} of {target.path}", "another process made it just now", "Merge again."
        )
    namespace_id = int(made[0])
    Writer(target, namespace_id, plan.encoder).ensure_view(plan.gamma, 1.0)
    return namespace_id
