"""Selection among whole memories: fork one, change the fork, show that it is better, and promote it or roll back.

An example alone may look good and still be bad company; only the whole memory is what an agent acts with (ICRL, arXiv
2505.00234, selects among databases). So a fork is evaluated as a whole, paired with the memory that it came from, and
takes its place only where an interval for the difference lies above zero, or where somebody says why anyway. What the
live memory learned since the fork is carried along, and what was replaced is kept.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seasoned.checks import check_number, check_text
from seasoned.core import Interval, mean_interval
from seasoned.errors import InputError, excerpt
from seasoned.lab.forks import Base, base_of, contains, file_forks, lines_of, namespace_forks
from seasoned.lab.forks.fork_access import identity_of, open_branch
from seasoned.lab.forks.handover import Exchange
from seasoned.lab.forks.promotion_journal import Journal
from seasoned.memory import Memory
from seasoned.memory.stores.atomic_file import check_path
from seasoned.memory.stores.base import is_url
from seasoned.protocols import StateEncoder

__all__ = ["Comparison", "Fork", "Promotion", "compared", "evaluate", "fork", "promote", "roll_back"]

Score = Callable[[Memory], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Fork:
    """A copy of a memory that may be changed at will.

    Args:
        live: the memory that it came from: a file, or `postgresql://...`.
        candidate: the copy: a file; on PostgreSQL, where both share a database, the same address.
        namespace: the one that is evaluated, by its name in `live`.
        candidate_namespace: its name in `candidate`.
        base: what was there when it was forked, as hashes.
    """

    live: str
    candidate: str
    namespace: str
    candidate_namespace: str
    base: Mapping[str, Base]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A fork held against the memory that it came from.

    Args:
        interval: for the mean of the candidate's scores less the live memory's, pair by pair.
        live, candidate: the scores, in the order in which `score` gave them.
        content: the hash of what was evaluated; a candidate that changed since is not promoted on it.
    """

    interval: Interval
    live: tuple[float, ...]
    candidate: tuple[float, ...]
    content: str


@dataclass(frozen=True, slots=True)
class Promotion:
    """What took place. `retired`: where the replaced memory is kept. `carried`: episodes learned since the fork."""

    live: str
    retired: str
    carried: int
    forced: str | None


def fork(
    live: str | os.PathLike[str],
    candidate: str | os.PathLike[str] | None = None,
    *,
    namespace: str = "default",
    encoder: StateEncoder | None = None,
) -> Fork:
    """Copy a memory as of one instant, while others read and write it.

    A file is copied into the file `candidate`, with all its namespaces. On PostgreSQL the namespace is copied into one
    of the same database, named after it; `candidate` is None.

    Args:
        live: what is copied.
        candidate: the copy's file; it does not exist yet.
        namespace: the one that will be evaluated.
        encoder: for a namespace of an encoder that is not built in.

    Raises:
        InputError: the candidate exists, or is not of the live memory's kind.
        NotFoundError, StoreError: as for `seasoned.memory.maintenance.backup`.
    """
    check_path(live)
    check_text("namespace", namespace)
    if is_url(live):
        if candidate is not None:
            raise InputError(f"candidate = {excerpt(str(candidate))}", "a server keeps its forks", "Leave it out.")
        name = f"{namespace}~fork-{uuid.uuid4().hex[:8]}"
        with open_branch(str(live), namespace, encoder) as memory:
            base = namespace_forks.copy(memory, str(live), name)
        return Fork(str(live), str(live), namespace, name, {namespace: base})
    if candidate is None or is_url(candidate):
        raise InputError(f"candidate = {candidate!r}", "a file is forked into a file", "Name one.")
    identity_of(live, namespace)  # refused before a file is made
    base_of_all = file_forks.copy(live, candidate, encoder)
    return Fork(os.path.realpath(live), os.path.realpath(candidate), namespace, namespace, base_of_all)


def evaluate(fork: Fork, score: Score, *, level: float = 0.95, encoder: StateEncoder | None = None) -> Comparison:
    """Score both memories, and return an interval for how much better the fork is.

    `score` gets a copy in RAM, which it may write to, and returns one number for each task, in the same order and under
    the same seeds for both: differences are taken pair by pair (`seasoned.core.mean_interval`).

    Raises:
        InputError: the scores are not finite, fewer than two, or not as many for one as for the other.

    Example:
        >>> import tempfile
        >>> from seasoned import Episode, Selection, Step
        >>> folder = tempfile.TemporaryDirectory()
        >>> live, candidate = f"{folder.name}/agent.db", f"{folder.name}/fork.db"
        >>> with Memory.open(live) as memory:
        ...     _ = memory.add(Episode("t", [Step("cart", "pay", 1.0)], "good"))
        ...     _ = memory.add(Episode("t", [Step("cart", "leave", -1.0)], "bad"))
        >>> made = fork(live, candidate)
        >>> with Memory.open(candidate) as memory:
        ...     _ = memory.quarantine(Selection(episode="bad"), "it taught nothing")
        >>> def score(memory):  # of four tasks; here, what was learned at one state
        ...     returns = [near.experience.return_ for near in memory.search("cart")]
        ...     return [sum(returns) / len(returns)] * 4
        >>> better = evaluate(made, score)
        >>> better.interval.mean, promote(made, better).carried
        (1.0, 0)
        >>> with Memory.open(live) as memory:
        ...     len(memory.search("cart"))
        1
        >>> promotion = roll_back(live)
        >>> with Memory.open(live) as memory:
        ...     len(memory.search("cart"))
        2
        >>> folder.cleanup()
    """
    scores = []
    for path, name in ((fork.live, fork.namespace), (fork.candidate, fork.candidate_namespace)):
        with open_branch(path, name, encoder) as memory, _in_ram(memory) as copy:
            scores.append(score(copy))
    return compared(fork, *scores, level=level, encoder=encoder)


def compared(
    fork: Fork,
    live: Sequence[float],
    candidate: Sequence[float],
    *,
    content: str | None = None,
    level: float = 0.95,
    encoder: StateEncoder | None = None,
) -> Comparison:
    """Return the comparison that scores give which were found elsewhere, such as by the lab: paired, task by task.

    Args:
        fork: as `fork` made it.
        live, candidate: the scores, one a task.
        content: the hash of the candidate that was scored, its `verify().hash` then: a fork that changed since is not
            promoted. None: they are those of the fork as it is now.
        level: of confidence.
        encoder: for a namespace of an encoder that is not built in.

    Raises:
        InputError: as for `evaluate`.
    """
    if content is not None:
        check_text("content", content)
    pairs = []
    for name, scores in (("live", live), ("candidate", candidate)):
        if isinstance(scores, str | bytes) or not hasattr(scores, "__iter__"):
            raise InputError(f"{name} = {excerpt(scores)}", "scores are a list of numbers", "Pass one a task.")
        pairs.append(tuple(check_number("score", one) for one in scores))
    if len(pairs[0]) != len(pairs[1]):
        raise InputError(
            f"{len(pairs[0])} and {len(pairs[1])} scores",
            "each task is scored with both memories",
            "Use the same tasks.",
        )
    if content is None:
        with open_branch(fork.candidate, fork.candidate_namespace, encoder) as memory:
            content = memory.verify().hash
    differences = [new - old for old, new in zip(*pairs, strict=True)]
    return Comparison(mean_interval(differences, level=level), pairs[0], pairs[1], content)


def promote(
    fork: Fork,
    comparison: Comparison | None,
    *,
    force: str | None = None,
    journal: str | os.PathLike[str] | None = None,
    encoder: StateEncoder | None = None,
) -> Promotion:
    """Put a fork in the place of the memory that it came from, in one step: after a crash it is the one or the other.

    Episodes, feedback and quarantines that the live memory got since the fork are carried along. The replaced memory is
    kept beside it, for `roll_back`; an erasure names it, and whatever copies either of the two knew of. A file must not
    be open anywhere meanwhile. On PostgreSQL whoever has the memory open goes on with the replaced one until it is
    opened again; what such a writer has added by the end of this call is carried too: where this process is killed
    before, by the next promotion or roll-back with this journal.

    Args:
        fork: as `fork` made it.
        comparison: as `evaluate` made it; None only with `force`.
        force: why it is promoted though no interval above zero says so; recorded.
        journal: where promotions are recorded; None: beside the live file. A server's needs one.
        encoder: for namespaces of an encoder that is not built in.

    Raises:
        InputError: the interval is not above zero, and nothing is forced; or the candidate changed since it was
            evaluated.
        StoreBusyError: a process has the live file open.
        StoreError: the live memory lost or changed something since the fork, which no fork can follow.
    """
    if force is not None:
        check_text("force", force)
    _check_evidence(fork, comparison, force, encoder)
    kept = Journal.of(fork.live, journal)
    verdict = None if comparison is None else _interval_record(comparison.interval)
    with kept.lock():
        _finish_pending(fork.live, kept, encoder)
        return Promotion(fork.live, *_switch(fork, kept, {"verdict": verdict, "forced": force}, encoder), force)


def roll_back(
    live: str | os.PathLike[str],
    *,
    namespace: str = "default",
    journal: str | os.PathLike[str] | None = None,
    encoder: StateEncoder | None = None,
) -> Promotion:
    """Put back what the last promotion replaced, with what was learned since; what it replaces now is kept in turn.

    Raises:
        NotFoundError: nothing was promoted, or it was rolled back already.
        StoreBusyError, StoreError: as for `promote`.
    """
    check_path(live)
    path = str(live) if is_url(live) else os.path.realpath(live)
    kept = Journal.of(path, journal)
    if not kept.path.exists():
        raise kept.nothing_promoted(path)  # before the lock makes a file
    with kept.lock():
        _finish_pending(path, kept, encoder)
        entry = kept.last_promotion(path, namespace, _holding(path, encoder))
        back = Fork(path, entry["retired_path"], namespace, entry["retired_namespace"], entry["after"])
        told = {"rolled_back": entry["id"]}
        return Promotion(path, *_switch(back, kept, told, encoder), None)


# ----------------------------------------------------------------------------------------------------------- inside


def _switch(fork: Fork, kept: Journal, told: Mapping[str, object], encoder: StateEncoder | None) -> tuple[str, int]:
    id_ = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:8]}"

    def intend(retired: tuple[str, str], before: Mapping[str, Base], after: Mapping[str, Base]) -> None:
        kept.write(
            {
                "id": id_,
                "at": time.time(),
                "live": fork.live,
                "namespace": fork.namespace,
                "retired_path": retired[0],
                "retired_namespace": retired[1],
                "candidate_namespace": fork.candidate_namespace,
                "before": before,
                "after": after,
                "pending": is_url(fork.live),
                **told,
            }
        )

    exchange = Exchange(
        fork.live,
        fork.namespace,
        fork.candidate,
        fork.candidate_namespace,
        fork.base,
        id_,
        intend,
        _ending(kept, fork.live, id_),
        encoder,
    )
    return namespace_forks.switch(exchange) if is_url(fork.live) else file_forks.switch(exchange)


def _ending(kept: Journal, live: str, id_: str) -> Callable[[], None]:
    """Return what records that nothing of a promotion is left to be done."""
    return lambda: kept.write({"live": live, "finished": id_, "at": time.time()}) if is_url(live) else None


def _finish_pending(live: str, kept: Journal, encoder: StateEncoder | None) -> None:
    """Carry what a killed promotion left in the namespace that it had replaced."""
    for entry in kept.pending(live):
        name, retired = entry["namespace"], entry["retired_namespace"]
        if retired in Memory.namespaces(live):  # else it did not take place
            former, before = entry["candidate_namespace"], entry["before"][name]
            namespace_forks.finish(live, name, retired, former, before, _ending(kept, live, entry["id"]), encoder)


def _check_evidence(fork: Fork, comparison: Comparison | None, force: str | None, encoder: StateEncoder | None) -> None:
    if comparison is None:
        if force is None:
            raise InputError(
                "no comparison", "a fork must be shown to be better", "Call evaluate(), or force with a reason."
            )
        return
    if not comparison.interval.low > 0.0 and force is None:
        raise InputError(
            f"the difference is {comparison.interval}",
            "a fork is promoted where the interval lies above zero",
            "Evaluate on more tasks, or force it with a reason.",
        )
    with open_branch(fork.candidate, fork.candidate_namespace, encoder) as memory:
        if memory.verify().hash != comparison.content:
            raise InputError(
                "the candidate changed since it was evaluated", "what is promoted is what was evaluated", "Evaluate it."
            )


def _holding(path: str, encoder: StateEncoder | None) -> Callable[[Mapping[str, Base]], bool]:
    """Return whether a memory holds what was recorded, and perhaps more."""

    @functools.cache
    def now(name: str) -> Base | None:
        if name not in Memory.namespaces(path):
            return None
        with open_branch(path, name, encoder) as memory:
            return base_of(lines_of(memory))

    def holds(bases: Mapping[str, Base]) -> bool:
        return all((held := now(name)) is not None and contains(held, base) for name, base in bases.items())

    return holds


@contextlib.contextmanager
def _in_ram(memory: Memory) -> Iterator[Memory]:
    with Memory.open(":memory:", namespace=memory.namespace, gamma=memory.gamma, encoder=memory.encoder) as copy:
        copy.import_lines(memory.export())
        yield copy


def _interval_record(interval: Interval) -> dict[str, object]:
    return {
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "n": interval.n,
        "level": interval.level,
        "method": interval.method,
    }
