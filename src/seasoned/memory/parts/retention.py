"""Quarantine, pruning, erasure, and the register of copies: a part of `Memory`."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field, replace

from seasoned.checks import check_text
from seasoned.errors import NotFoundError, StoreError, excerpt
from seasoned.memory.retention.copies import Copy, read_copies, record_copies
from seasoned.memory.retention.deletion import EpisodeRemover
from seasoned.memory.retention.pruning import Budget, Pruning, plan_pruning
from seasoned.memory.session import Session
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import decoding
from seasoned.memory.values.derived_ids import feedback_of_answer, feedback_of_event
from seasoned.memory.values.selection import Quarantine, Selection
from seasoned.memory.writing.exclusions import answers_on
from seasoned.memory.writing.quarantine import QuarantineWriter
from seasoned.types import ALTERNATIVE

__all__ = ["Erasure", "Retention"]


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased, or would be.

    `episodes` are those about the subject, those that its feedback has made, and those that feedback on these has made.
    `feedback` counts the events that it gave as an author, and those on these episodes; `notes` likewise. `quarantines`
    are ids of those that named it. `copies` are exports and backups that were made since it was there, and may still
    hold it.
    """

    subject: str
    episodes: tuple[str, ...]
    steps: int
    feedback: int
    quarantines: tuple[str, ...]
    copies: tuple[Copy, ...]
    done: bool
    ordinals: tuple[int, ...] = field(repr=False, default=())
    notes: int = 0


class Retention:
    """Quarantines, prunes and erases the content of one namespace. Nothing of it ever runs unasked."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._store = session.store
        self._ns = session.namespace_id

    # ------------------------------------------------------------------------------------------ quarantine

    def quarantine(self, selection: Selection, reason: str) -> str:
        """Set episodes or feedback aside, reversibly, and return the quarantine's id.

        What is selected stays stored, but is not found, and enters no return and no evidence. That holds for what comes
        in later, too, until the quarantine is lifted.

        Raises:
            InputError: the reason is blank.
            NotFoundError: nothing that is stored is selected, nor can be later (an unknown episode).

        Example:
            >>> from seasoned import Episode, Memory, Selection, Step
            >>> with Memory.open(":memory:") as memory:
            ...     _ = memory.add(Episode("shop", [Step("cart", "pay", 1.0)], "e1"))
            ...     id_ = memory.quarantine(Selection(episode="e1"), "the shop was down")
            ...     hidden = len(memory.search("cart"))
            ...     memory.release(id_)
            ...     hidden, len(memory.search("cart"))
            (0, 1)
        """
        check_text("reason", reason)
        quarantine = self._session.checked_quarantine(Quarantine(uuid.uuid4().hex, selection, reason, time.time()))
        selection = quarantine.selection

        def change() -> None:
            writer = QuarantineWriter(self._store, self._ns)
            if selection.episode is not None and writer.covered(selection) == (0, 0):
                raise NotFoundError(
                    f"episode {excerpt(selection.episode)}", "it is not in this namespace", "See: memory.episodes()"
                )
            writer.impose(quarantine)

        self._session.write(change)
        return quarantine.id

    def release(self, quarantine_id: str) -> None:
        """End a quarantine: what it held counts again, unless another one holds it. Lifting twice changes nothing.

        Raises:
            NotFoundError: no such quarantine.
        """
        check_text("quarantine id", quarantine_id)
        at = time.time()
        self._session.write(lambda: QuarantineWriter(self._store, self._ns).release(quarantine_id, at=at))

    def quarantines(self) -> list[Quarantine]:
        """Return all quarantines in the order in which they were imposed, lifted ones included."""
        return self._session.read(lambda: [quarantine for _, quarantine in self._session.reader.quarantines()])

    def excluded_ids(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the ids of the episodes and of the feedback events that do not count now.

        A quarantine holds them; or an episode is an answer whose feedback was taken back or superseded.
        """

        def ask() -> tuple[frozenset[str], frozenset[str]]:
            episodes = self._store.execute(
                "SELECT id FROM episode WHERE namespace_id = ? AND ending <> 'aborted' AND EXISTS (SELECT 1 FROM step "
                f"WHERE step.namespace_id = episode.namespace_id AND visit = ordinal << {STEP_BITS} AND NOT live)",
                (self._ns,),
            ).fetchall()
            events = self._store.execute(
                "SELECT id FROM feedback WHERE namespace_id = ? AND revoked_at IS NULL AND NOT live", (self._ns,)
            ).fetchall()
            return frozenset(row[0] for row in episodes), frozenset(row[0] for row in events)

        return self._session.read(ask)

    def selected(self, selection: Selection) -> tuple[int, int]:
        """Return how many stored episodes and how many feedback events are selected."""
        selection = self._session.checked_selection(selection)
        return self._session.read(lambda: QuarantineWriter(self._store, self._ns).covered(selection))

    # ------------------------------------------------------------------------------------------ pruning

    def prune(self, budget: Budget, *, dry_run: bool = False) -> Pruning:
        """Take the least valuable episodes away until the namespace fits a budget; for good, unless it is a dry run.

        `seasoned.memory.retention.pruning` gives the order. Space is given back when the store is compacted.

        Returns:
            What went, or would go.
        """
        now = time.time()

        def plan() -> Pruning:
            with decoding(self._store.path):
                return plan_pruning(self._store, self._ns, budget, now=now)

        tried: list[Pruning] = []

        def change() -> Pruning:
            planned = plan()
            if tried and not planned.ordinals:
                return replace(tried[0], done=True)  # it was committed, and the answer lost
            tried.append(planned)
            EpisodeRemover(self._store, self._ns).remove(planned.ordinals)
            return replace(planned, done=True)

        return self._session.read(plan) if dry_run else self._session.write(change)

    # ------------------------------------------------------------------------------------------ erasure

    def erase(self, subject: str, *, dry_run: bool = False) -> Erasure:
        """Erase a subject for good: the episodes about it, what it noted and gave as feedback, and their texts.

        The answers that it wrote or chose among go, too: they are episodes that its feedback has made; and so do the
        answers that feedback on all these has made, for nobody could take them back. What other episodes share stays. A
        quarantine goes with them if it names the subject, one of its episodes, or a task that nobody else had. Free
        text that others wrote is not searched for the subject's name.

        In an SQLite file what was erased is overwritten, also in the log and in free pages. On PostgreSQL old row
        versions stay on the server's disk until it vacuums, and in its archived logs as long as those are kept.

        Returns:
            What was erased, or would be if it is a dry run, and which exports and backups may still hold it.

        Raises:
            NotFoundError: nothing is stored about this subject; nothing was changed.
            StoreError: it was erased, but the file could not be written anew (a full disk, a reader that holds an old
                snapshot): its bytes may still be in free pages or in the log. Call `compact` later; `copies` lists what
                else may hold it.
        """
        check_text("subject", subject)
        if dry_run:
            return self._session.read(lambda: self._plan_erasure(subject, "TRUE"))

        tried: list[Erasure] = []
        if self._store.pending is not None:
            self._store.pending.rescan(self._ns)  # every pending episode is derived first

        def change() -> Erasure:
            try:
                planned = self._plan_erasure(subject, "ordinal >= 0")  # the rest arrived just now
            except NotFoundError:
                if not tried:
                    raise
                return replace(tried[0], done=True)  # it was committed, and the answer lost
            tried.append(planned)
            remover = EpisodeRemover(self._store, self._ns)
            remover.forget_author(subject)
            remover.remove(planned.ordinals)
            remover.forget_quarantines(planned.quarantines)
            return replace(planned, done=True)

        erased = self._session.write(change)
        try:
            self._store.compact()
        except StoreError as error:
            raise type(error)(
                error.seen,
                f"{subject!r} is erased from the store, but its bytes may still be in free pages or in the log",
                "Mend this, then call compact.",
            ) from error
        return erased

    def _plan_erasure(self, subject: str, which: str) -> Erasure:
        about = self._store.execute(
            f"SELECT ordinal, id, task, steps FROM episode WHERE namespace_id = ? AND subject = ? AND {which} "
            "ORDER BY ordinal",
            (self._ns, subject),
        ).fetchall()
        about += self._answers_of(subject, {row[1] for row in about}, which)
        about += self._answers_on({row[1] for row in about}, which)
        about.sort()
        ids = {row[1] for row in about}
        gone = {row[0] for row in about}
        said = self._store.execute(
            f"SELECT visit >> {STEP_BITS}, author FROM feedback WHERE namespace_id = ?", (self._ns,)
        ).fetchall()
        said = [row for row in said if row[0] in gone or row[1] == subject]
        noted = self._store.execute(
            "SELECT episode_id, author FROM note WHERE namespace_id = ?", (self._ns,)
        ).fetchall()
        noted = [row for row in noted if row[0] in ids or row[1] == subject]
        others = self._store.execute(
            "SELECT DISTINCT id, task FROM episode WHERE namespace_id = ?", (self._ns,)
        ).fetchall()
        tasks = {row[2] for row in about} - {task for id_, task in others if id_ not in ids}
        naming = [
            quarantine
            for _, quarantine in self._session.reader.quarantines()
            if quarantine.selection.subject == subject
            or quarantine.selection.episode in ids
            or quarantine.selection.task in tasks
        ]
        if not (about or said or noted or naming):
            raise NotFoundError(
                f"subject {excerpt(subject)}", "nothing is stored about it in this namespace", "Check the spelling."
            )
        return Erasure(
            subject,
            tuple(row[1] for row in about),
            sum(row[3] for row in about),
            len(said),
            tuple(quarantine.id for quarantine in naming),
            tuple(read_copies(self._store, self._ns)),
            done=False,
            ordinals=tuple(row[0] for row in about),
            notes=len(noted),
        )

    def _answers_of(self, author: str, known: set[str], which: str) -> list[tuple[int, str, str, int]]:
        """Return (ordinal, id, task, steps) of the other episodes that an author's feedback has made.

        Each has an event of that feedback, also where the feedback was taken back, or its note is gone.
        """
        rows = self._store.execute(
            "SELECT DISTINCT feedback.id, ordinal, episode.id, task, steps FROM feedback "
            "JOIN episode ON episode.namespace_id = feedback.namespace_id "
            f"AND ordinal = visit >> {STEP_BITS} "
            f"WHERE feedback.namespace_id = ? AND author = ? AND arm = ? AND {which}",
            (self._ns, author, ALTERNATIVE),
        ).fetchall()
        made = {row[1:] for row in rows if feedback_of_event(row[0]) == feedback_of_answer(row[2])}
        return [row for row in made if row[1] not in known]

    def _answers_on(self, ids: set[str], which: str) -> list[tuple[int, str, str, int]]:
        """Return (ordinal, id, task, steps) of the other episodes that feedback on these has made, and on those."""
        made = answers_on(self._store, self._ns) if ids else {}
        waiting, others = list(ids), set[str]()
        while waiting:
            new = set(made.get(waiting.pop(), ())) - ids - others
            others |= new
            waiting += new
        return self._store.execute_in(
            f"SELECT ordinal, id, task, steps FROM episode INDEXED BY episode_by_id WHERE namespace_id = ? AND {which} "
            "AND id IN {values}",
            (self._ns,),
            sorted(others),
        )

    def compact(self) -> None:
        """Give free space back, and write the store anew without a trace of what was taken away.

        Raises:
            StoreBusyError: another process is in the way; nothing was lost.
        """
        self._store.compact()

    # ------------------------------------------------------------------------------------------ copies

    def record_copy(self, kind: str, path: str) -> None:
        """Record an `export` or a `backup`, so that an erasure can name it."""
        copy = Copy(kind, check_text("path", path), time.time())
        self._session.write(lambda: record_copies(self._store, self._ns, [copy]))

    def copies(self) -> list[Copy]:
        """Return the recorded exports and backups, the oldest first."""
        return self._session.read(lambda: read_copies(self._store, self._ns))
