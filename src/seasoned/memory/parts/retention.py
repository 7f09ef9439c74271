"""Quarantine, pruning, erasure, and the register of copies: a part of `Memory`."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from seasoned.checks import check_instance, check_one_of, check_text
from seasoned.errors import NotFoundError, StoreError, excerpt
from seasoned.memory.parts.switch_log import SwitchLog
from seasoned.memory.retention.compaction_mark import mark_compaction_due, rewrite
from seasoned.memory.retention.copies import (
    Copy,
    call_folders,
    partial_copies,
    read_copies,
    record_copies,
    session_files,
)
from seasoned.memory.retention.deletion import EpisodeRemover
from seasoned.memory.retention.erasure_plan import Erasure, plan_erasure
from seasoned.memory.retention.pruning_plan import Budget, Pruning, plan_pruning
from seasoned.memory.session import Session
from seasoned.memory.stores.base import Rewriting
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.corruption import decode_texts
from seasoned.memory.values.selection import Quarantine, Selection
from seasoned.memory.writing.live_steps import LiveSteps
from seasoned.memory.writing.quarantine import QuarantineWriter

__all__ = ["Retention"]


class Retention:
    """Quarantines, prunes and erases the content of one namespace; nothing of it runs by itself."""

    def __init__(self, session: Session, switches: SwitchLog) -> None:
        self._session = session
        self._switches = switches
        self._store = session.store
        self._ns = session.namespace_id

    # ------------------------------------------------------------------------------------------ quarantine

    def quarantine(self, selection: Selection, reason: str, *, source: str = "human", author: str | None = None) -> str:
        """Exclude episodes or feedback, reversibly, and return the quarantine's id.

        Selected content stays stored, but is not retrieved, and has no effect on returns and evidence. The same holds
        for content that is stored later, until the quarantine is lifted.

        Args:
            selection: what is excluded.
            reason: why.
            source, author: who; with an author, the log of switches (`switches`) has an entry.

        Raises:
            InputError: the reason is blank.
            NotFoundError: the selection names an unknown episode.

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
        check_instance("selection", selection, Selection, next_step="Build it with Selection(...).")
        quarantine = self._session.redaction.quarantine(Quarantine(uuid.uuid4().hex, selection, reason, time.time()))
        selection = quarantine.selection

        def change() -> None:
            writer = QuarantineWriter(self._store, self._ns)
            if selection.episode is not None and writer.count_selected(selection) == (0, 0):
                raise NotFoundError(
                    f"episode {excerpt(selection.episode)}", "it is not in this namespace", "See: memory.episodes()"
                )
            writer.impose(quarantine)

        self._session.write(change)
        if author is not None:
            self._switches.log("quarantine", quarantine.id, reason, source=source, author=author)
        return quarantine.id

    def release(
        self, quarantine_id: str, reason: str = "released", *, source: str = "human", author: str | None = None
    ) -> None:
        """Lift a quarantine: its episodes and feedback count again, unless another one selects them; again is a no-op.

        With an author, the log of switches has an entry with the reason.

        Raises:
            NotFoundError: no such quarantine.
        """
        check_text("quarantine id", quarantine_id)
        check_text("reason", reason)
        at = time.time()
        self._session.write(lambda: QuarantineWriter(self._store, self._ns).release(quarantine_id, at=at))
        if author is not None:
            self._switches.log("release", quarantine_id, reason, source=source, author=author)

    def quarantines(self) -> list[Quarantine]:
        """Return all quarantines, the oldest first, lifted ones included."""
        return self._session.read(lambda: [quarantine for _, quarantine in self._session.reader.quarantines()])

    def excluded_ids(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the ids of the excluded episodes and of the excluded feedback events.

        They are quarantined, or an episode is an answer of revoked or superseded feedback. An episode that awaits
        feedback is listed only if it is quarantined too. An event of silence is listed while another verdict counts.
        """

        def ask() -> tuple[frozenset[str], frozenset[str]]:
            episodes = self._store.execute(
                "SELECT id FROM episode WHERE namespace_id = ? AND ending <> 'aborted' AND NOT awaiting "
                "AND EXISTS (SELECT 1 FROM step "
                f"WHERE step.namespace_id = episode.namespace_id AND visit = ordinal << {STEP_BITS} AND NOT live)",
                (self._ns,),
            ).fetchall()
            waiting = LiveSteps(self._store, self._ns).excluded("awaiting")
            events = self._store.execute(
                "SELECT id FROM feedback WHERE namespace_id = ? AND revoked_at IS NULL AND NOT live", (self._ns,)
            ).fetchall()
            path = self._store.path
            return (
                frozenset(decode_texts(path, "episode id", episodes)) | waiting,
                frozenset(decode_texts(path, "feedback id", events)),
            )

        return self._session.read(ask)

    def selected(self, selection: Selection) -> tuple[int, int]:
        """Return the numbers of selected episodes and of selected feedback events."""
        check_instance("selection", selection, Selection, next_step="Build it with Selection(...).")
        selection = self._session.redaction.selection(selection)
        return self._session.read(lambda: QuarantineWriter(self._store, self._ns).count_selected(selection))

    # ------------------------------------------------------------------------------------------ pruning

    def prune(self, budget: Budget, *, dry_run: bool = False) -> Pruning:
        """Remove the least valuable episodes for good until the namespace fits a budget.

        `seasoned.memory.retention.pruning_plan` defines the order. `compact` gives the space back.

        Returns:
            The pruned episodes, or those of a dry run.
        """
        check_instance("budget", budget, Budget, next_step="Build it with Budget(...).")
        now = time.time()

        def plan() -> Pruning:
            return plan_pruning(self._store, self._ns, budget, now=now)

        tried: list[Pruning] = []

        def change() -> Pruning:
            planned = plan()
            if tried and not planned.ordinals:
                return replace(tried[0], done=True)  # it was committed, and its result lost
            tried.append(planned)
            EpisodeRemover(self._store, self._ns).remove(planned.ordinals)
            return replace(planned, done=True)

        return self._session.read(plan) if dry_run else self._session.write(change)

    # ------------------------------------------------------------------------------------------ erasure

    def erase(self, subject: str, *, dry_run: bool = False) -> Erasure:
        """Erase a subject for good: the episodes about it, its notes and feedback, and their texts.

        The answers of its feedback are erased too, and so are the answers of all feedback on these episodes, because
        nobody could revoke them later. Texts that other episodes share are kept. A quarantine is erased if it names the
        subject, one of its episodes, or a task that no other episode has. Free text of others is not searched for the
        subject's name.

        In an SQLite file the erased bytes are overwritten, also in the log and in free pages. On PostgreSQL old row
        versions stay on the server's disk until it vacuums, and in archived logs as long as these exist; `rewriting` of
        the result tells. Unfinished copies of killed processes are removed.

        An erasure that was killed is finished by a second one: it erases the records, if the first one did not come to
        that, and overwrites the bytes.

        Returns:
            The erased content (or that of a dry run), and what may still hold it: exports, backups, and folders beside
            the file in which a service has left calls or decisions.

        Raises:
            NotFoundError: nothing is stored about this subject, and no erasure is unfinished; nothing was changed.
            StoreError: it was erased, but the file could not be rewritten (a full disk, a reader with an old snapshot):
                its bytes may still be in free pages or in the log. Erase again, or call `compact`, later; `copies`
                lists the copies that may hold it.
        """
        check_text("subject", subject)
        if dry_run:
            planned = self._session.read(lambda: plan_erasure(self._store, self._ns, subject, derived_only=False))
            return self._with_other_copies(planned, remove=False)

        tried: list[Erasure] = []
        if self._store.pending is not None:
            self._store.pending.rescan(self._ns)  # every pending episode is derived first

        def change() -> Erasure:
            try:
                planned = plan_erasure(self._store, self._ns, subject, derived_only=True)
            except NotFoundError:
                if not tried:
                    raise
                return replace(tried[0], done=True)  # it was committed, and its result lost
            tried.append(planned)
            mark_compaction_due(self._store, self._ns)
            remover = EpisodeRemover(self._store, self._ns)
            remover.forget_author(subject)
            remover.remove(planned.ordinals)
            remover.forget_quarantines(planned.quarantines)
            return replace(planned, done=True)

        erased = self._with_other_copies(self._session.write(change), remove=True)
        try:
            return replace(erased, rewriting=rewrite(self._store))
        except StoreError as error:
            raise type(error)(
                error.seen,
                f"{subject!r} is erased from the store, but its bytes may still be in free pages or in the log",
                "Mend this, then erase again, or call compact.",
            ) from error

    def _with_other_copies(self, erasure: Erasure, *, remove: bool) -> Erasure:
        """Add unfinished copies, a service's calls and a chat's files to what may hold the subject.

        Args:
            erasure: with the recorded copies.
            remove: remove unfinished copies whose owner is dead.
        """
        path = self._store.path
        left = partial_copies(path, erasure.copies, remove=remove)
        sessions = session_files(path, self._session.namespace, erasure.subject)
        return replace(erasure, copies=(*erasure.copies, *left, *call_folders(path), *sessions))

    def compact(self) -> Rewriting:
        """Give free space back, and rewrite the store without the bytes of removed content.

        Returns:
            Whether it was rewritten: on PostgreSQL only the tables' owner can do that.

        Raises:
            StoreBusyError: another process is in the way; nothing was lost.
        """
        return rewrite(self._store)

    # ------------------------------------------------------------------------------------------ copies

    def record_copy(self, kind: str, path: str) -> None:
        """Record an `export` or a `backup`, so that an erasure can name it."""
        copy = Copy(check_one_of("kind", kind, ("export", "backup")), check_text("path", path), time.time())
        self._session.write(lambda: record_copies(self._store, self._ns, [copy]))

    def copies(self) -> list[Copy]:
        """Return the recorded exports and backups, the oldest first."""
        return self._session.read(lambda: read_copies(self._store, self._ns))
