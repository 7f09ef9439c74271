"""The memory of an agent: a facade over one session and its parts."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, overload

from seasoned.checks import check_flag, check_function, check_text, check_whole, suggest
from seasoned.core import check_gamma
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.memory.namespace import list_namespaces
from seasoned.memory.parts.assignments import Assignments
from seasoned.memory.parts.awaited_feedback import AwaitedFeedback
from seasoned.memory.parts.delivery import Delivery
from seasoned.memory.parts.feedback_log import FeedbackLog
from seasoned.memory.parts.rated_decisions import RatedDecisions
from seasoned.memory.parts.recall import MomentRecall
from seasoned.memory.parts.retention import Retention
from seasoned.memory.parts.source_weights import SourceWeights
from seasoned.memory.parts.switch_log import SwitchLog
from seasoned.memory.parts.transfer import Transfer
from seasoned.memory.reading.episode_sizes import episodes_within
from seasoned.memory.retrieval.retriever import Retriever
from seasoned.memory.session import Session
from seasoned.memory.session_factory import SessionOptions, open_bounded_session
from seasoned.memory.stats import MemoryStats, gather_stats
from seasoned.memory.values.corruption import decode
from seasoned.memory.values.redacted import Redact, RedactedNote
from seasoned.memory.values.text_limits import check_max_text_bytes
from seasoned.memory.verify import Verification, verify
from seasoned.memory.writing.recorder import EpisodeRecorder
from seasoned.protocols import StateEncoder
from seasoned.types import Episode, Evidence, EvidenceQuery, Experience, Neighbor
from seasoned.types.lift_records import Lift
from seasoned.types.queries import Similarity

__all__ = ["Memory"]

MAX_TEXT_BYTES = 1024 * 1024
SPOOL_MAX_BYTES = 256 * 1024 * 1024
_PAGE = 64

if TYPE_CHECKING:
    from seasoned.memory.outage.spool import SpoolStats

P = ParamSpec("P")
Answer = TypeVar("Answer")


def _part(name: str, method: Callable[Concatenate[Any, P], Answer]) -> Callable[Concatenate[Any, P], Answer]:
    """Return a method of `Memory` that calls `method` of one of its parts; signature and docstring are the part's."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return method(getattr(self, name), *args, **kwargs)

    return call


class _Discount(NamedTuple):
    gamma: float


class Memory:
    """Stored episodes of one namespace, with exact retrieval.

    Open one with `Memory.open`. It is safe to share between threads, and between processes on one file: each sees the
    others' committed episodes at its next query. An episode is on disk when `add` returns.

    Attributes:
        session: the open store with its reads and writes, for this package's own modules.
        namespace, gamma, encoder: of the namespace.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> with Memory.open(":memory:", namespace="shop", gamma=0.5) as memory:
        ...     episode_id = memory.add(Episode(task="checkout", steps=[
        ...         Step("page:cart total:12", "click(checkout)", 0.0), Step("page:pay", "click(confirm)", 1.0)]))
        ...     [neighbor] = memory.search("page:cart total:12", k=10, threshold=0.8)
        ...     neighbor.experience.return_
        0.5
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.namespace = session.namespace
        self.gamma = session.gamma
        self.encoder = session.encoder
        self._retriever = Retriever(
            session.store,
            session.namespace_id,
            session.reader,
            session.writer,
            session.inbox,
            session.store_encoder,
            session.max_text_bytes,
        )
        self._feedback_log = FeedbackLog(session)
        self._delivery = Delivery(session, self._feedback_log)
        self._source_weights = SourceWeights(session)
        self._awaited = AwaitedFeedback(session)
        self._transfer = Transfer(session)
        self._switches = SwitchLog(session, self._feedback_log.callers_note)
        self._retention = Retention(session, self._switches)
        self._assignments = Assignments(session, self, self._add, self._feedback_log.callers_note, self._switches)
        self._rated = RatedDecisions(session)
        self._recall = MomentRecall(session, self._retriever)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        namespace: str = "default",
        gamma: float | None = None,
        encoder: StateEncoder | None = None,
        create: bool = True,
        read_only: bool = False,
        reindex: bool = False,
        max_text_bytes: int = MAX_TEXT_BYTES,
        redact: Redact | None = None,
        timeout_s: float | None = None,
        spool: str | os.PathLike[str] | bool = False,
        spool_max_bytes: int = SPOOL_MAX_BYTES,
    ) -> Memory:
        """Open a memory, or make it if it does not exist.

        Args:
            path: a file, ":memory:" for a temporary store, or `postgresql://...` for a shared one.
            namespace: the caller's key (a site, an agent); nothing is read across namespaces.
            gamma: the discount of `search().return_`, in [0, 1]. None: the namespace's own, 0.95 for a new one.
            encoder: turns a state into the features that similarity compares. None: the namespace's own, the default
                token encoder for a new one.
            create: make the file and the namespace if they do not exist.
            read_only: refuse every write.
            reindex: if the namespace was encoded by another encoder, encode it again with this one (None: the default).
            max_text_bytes: the largest state or action that is accepted, as UTF-8.
            redact: rewrites states, actions, tasks, reasons, and the texts of notes and feedback before they are stored
                or looked up, such as `seasoned.states.Redactor`. Ids, subjects, sources, authors and names are stored
                unchanged: erasure needs them. Evidence about an action is evidence about its redacted text. None: the
                namespace's own, which it records when it is made, or while it has no episodes.
            timeout_s: the longest that a call waits for the store, in seconds; the opening waits for 5 s at least.
                None: as long as the store does (30 s for a lock or a lost connection). A call that is not answered in
                time raises StoreTimeoutError; later calls then fail at once until the store answers again.
                Verifications, imports and exports are calls too, and take long: open a memory without a limit for them.
                Native code that holds Python's lock is not bounded.
            spool: a folder on this host for episodes, feedback and notes that are written while the store is down, and
                delivered later by whoever opens this memory with this spool (True: `$XDG_STATE_HOME/seasoned/spool`).
                Such a call returns as usual. After the first opening, a memory can be opened while its store is down.
                False: the error is raised.
            spool_max_bytes: the largest size of what waits; what does not fit is lost, and named in the log.

        Raises:
            InputError: gamma, the namespace or the size limit breaks a rule.
            NotFoundError: there is no such file or namespace, and `create` is False.
            ForeignStoreError, NewerStoreError: the file is not a store, or of a newer version. It is left unchanged.
            EncoderMismatchError: the namespace was encoded by another encoder, and `reindex` is False; or by one that
                is not built in, and none is passed.
            RedactionMismatchError: its texts went through another redactor. One with a key or patterns, or a function,
                must be passed by whoever adds or looks up a text; without it these calls raise this error.
        """
        check_text("namespace", namespace)
        max_text_bytes = check_max_text_bytes(max_text_bytes)
        if gamma is not None:
            check_gamma(gamma)
        if encoder is not None and not isinstance(encoder, StateEncoder):
            raise InputError(
                f"encoder = {excerpt(encoder)}", "an encoder has an identity and features()", "See seasoned.states."
            )
        if redact is not None:
            check_function("redact", redact, "takes a text, and returns a text")
        options = SessionOptions(path, namespace, gamma, encoder, redact, create, read_only, reindex, max_text_bytes)
        return cls(open_bounded_session(options, timeout_s, spool, spool_max_bytes))

    @staticmethod
    def namespaces(path: str | os.PathLike[str], *, read_only: bool = True) -> dict[str, str]:
        """Return the namespaces of a store, each with the identity of its encoder.

        With `read_only=False` an older store is migrated, and an empty file becomes a store.

        Raises:
            NotFoundError, ForeignStoreError, NewerStoreError: as for `open`.
        """
        return list_namespaces(path, read_only=read_only)

    # ------------------------------------------------------------------------------------------ writing

    def add(self, episode: Episode) -> str:
        """Store a finished episode, whole or not at all, and return its id. It is on disk when this returns.

        With an explicit id it is idempotent: the same content again is a no-op. On PostgreSQL the episode is committed
        as a pending one, and waits only for a reindexing of the namespace; the next reader or writer derives its
        evidence.

        Raises:
            InputError: it breaks a rule; nothing was written.
            EpisodeConflictError: its id is stored with other content.
            StoreError: the disk is full, busy (for 30 s: StoreBusyError) or broken; nothing was written.
        """
        return self._add(episode)

    def _add(self, episode: Episode, notes: Sequence[RedactedNote] = ()) -> str:
        """Store an episode with the notes of its recorder."""
        return self._delivery.add(self.session.redaction.episode(episode), notes)

    def add_many(self, episodes: Iterable[Episode]) -> list[str]:
        """Store several episodes in one transaction, all or none, and return their ids."""
        if not isinstance(episodes, Iterable):
            raise InputError(f"episodes = {excerpt(episodes)}", "episodes come in an iterable", "Pass a list of them.")
        return self._delivery.add_many([self.session.redaction.episode(episode) for episode in episodes])

    def episode(
        self,
        task: str,
        *,
        id: str | None = None,  # noqa: A002  (the contract's name)
        model: str | None = None,
        policy: str | None = None,
        arm: str | None = None,
        subject: str | None = None,
        awaits_feedback: bool | None = None,
    ) -> EpisodeRecorder:
        """Return a recorder of a new episode, which commits on exit; `get` reads a stored episode.

        An exception inside the context commits the episode as aborted. With `awaits_feedback=True` its steps count only
        once feedback has judged it (see `Episode`).
        """
        check_text("task", task)
        if awaits_feedback is not None:
            check_flag("awaits_feedback", awaits_feedback)
        self.session.store.check_open()
        fields = {"id": id, "model": model, "policy": policy, "arm": arm, "subject": subject}

        def commit(episode: Episode, notes: Sequence[RedactedNote], is_new: bool) -> str:
            if is_new:
                return self._delivery.add(self.session.redaction.episode(episode), notes, is_new=True)
            return self._add(episode, notes) if notes else self.add(episode)

        return EpisodeRecorder(commit, task, fields, self._feedback_log.callers_note, awaits_feedback, self)

    # ------------------------------------------------------------------------------------------ retrieval

    def search(
        self,
        state: str,
        k: int = 10,
        threshold: float = 0.0,
        *,
        gamma: float | None = None,
        exclude_task: str | None = None,
        similarity: Similarity = "jaccard",
        start: int = 0,
        max_chars: int | None = None,
    ) -> list[Neighbor]:
        """Return the k stored steps whose states are most similar to `state`, best first; the search is exact.

        The similarity, in [0, 1], is at least `threshold`: the share of common features (`"jaccard"`), or the cosine of
        feature sets by their words and character 4-grams, of which rare ones weigh more (`"rarity"`, by which the
        preset `default` compares states; see `evidence`). The later of two equally similar steps comes first. Steps of
        aborted, running and excluded episodes are not returned, nor are steps of `exclude_task`.

        Of the k steps the first `start` are left out. The list ends soon after its states and actions have more than
        `max_chars` characters: the rest is a search from where it ended.

        Raises:
            InputError: the state is blank or too large, k is below 1, the threshold is outside [0, 1], or there is no
                such similarity.
        """
        gamma = self.gamma if gamma is None else gamma
        redacted = self.session.redaction.query
        state, exclude_task = redacted(state), redacted(exclude_task)
        return self.session.store.retrying(
            lambda: self._retriever.search(
                state,
                k,
                threshold,
                gamma=gamma,
                exclude_task=exclude_task,
                similarity=similarity,
                start=start,
                max_chars=max_chars,
            )
        )

    def evidence(self, query: EvidenceQuery) -> Evidence:
        """Return the evidence about the actions at the states most similar to `query.state`.

        `unit="steps"`: the k most similar stored steps. `unit="states"`: all steps at the k most similar distinct
        states, read from aggregates, so that the cost does not grow with the number of visits to a state (with
        `exclude_task` all steps there are summed again). A step's weight is
        `similarity^similarity_power * decay^age_in_episodes`.

        With `backup`, `totals` and `squares` are not sums of the returns, but of values backed up through the graph of
        all stored steps (`seasoned.core.ValueGraph`), which combines episodes. Counts, weights and spread do not
        change; `squares` still holds the scatter of the returns around their means.

        With `propensity_floor`, a step's weight is multiplied by `1 / max(propensity, floor)`, and `weights` are
        effective numbers of steps; all steps at the states are summed again (see `seasoned.policies.JitRLSettings`).

        With `similarity="rarity"` two states are compared by the cosine of their feature sets, by the terms of the
        features: words and character 4-grams (`seasoned.states.subwords.subword_terms`), or with a `SubwordEncoder` the
        features themselves. Rare terms weigh more (`seasoned.memory.index.rarity.RarityIndex`). States that share no
        term are no neighbours. `state_similarities` then compares the states with each other, and `recent` holds the
        mean and the spread of the latest 256 returns: of `current_task`, if 16 or more of them are.

        With `compare_choices`, `choices` holds the choices of people and judges at the states, each as one observation.
        Counts, sums and moments of returns are then those of a memory in which nobody had chosen: answers that are
        stored for a choice alone are no steps, and a choice adds nothing to the return of an executed step.

        With `shown_steps`, `unshown` is the number of each action's steps that are not among them: steps that the model
        has read in its prompt stay in the sums, and add no weight to a shift. Steps that are not stored, or are no
        neighbours, are ignored.

        Raises:
            InputError: the state is larger than a text may be; or with `backup`, gamma = 1.

        Example:
            >>> from seasoned import Episode, EvidenceQuery, Memory, Step
            >>> with Memory.open(":memory:") as memory:
            ...     _ = memory.add(Episode("buy a lamp", [Step("page:cart", "click(pay)", 1.0)]))
            ...     found = memory.evidence(EvidenceQuery("page:cart", k=1, unit="states", threshold=0.8))
            >>> found.actions, found.totals.tolist()
            (('click(pay)',), [1.0])
        """
        session = self.session
        if session.redaction.rewrites:
            redacted = session.redaction.query
            query = dataclasses.replace(
                query,
                state=redacted(query.state),
                exclude_task=redacted(query.exclude_task),
                current_task=redacted(query.current_task),
            )

        def attempt() -> Evidence:
            return self._retriever.evidence(query, gamma=self.gamma)

        session.probe = attempt  # after an outage, what a query loads is loaded before the next one is asked
        return session.store.retrying(attempt)

    # ------------------------------------------------------------------------------------------ feedback and notes

    feedback = _part("_feedback_log", FeedbackLog.feedback)
    feedback_batch = _part("_feedback_log", FeedbackLog.feedback_batch)
    feedback_records = _part("_feedback_log", FeedbackLog.feedback_records)
    events = _part("_feedback_log", FeedbackLog.events)
    revoke = _part("_feedback_log", FeedbackLog.revoke)
    note = _part("_feedback_log", FeedbackLog.note)
    notes = _part("_feedback_log", FeedbackLog.notes)
    response_step = _part("_feedback_log", FeedbackLog.response_step)
    next_response_note_id = _part("_feedback_log", FeedbackLog.next_response_note_id)
    reweight_source = _part("_source_weights", SourceWeights.reweight_source)
    sources = _part("_source_weights", SourceWeights.sources)
    feedback_limits = _part("_source_weights", SourceWeights.feedback_limits)
    set_feedback_limits = _part("_source_weights", SourceWeights.set_feedback_limits)
    awaiting = _part("_awaited", AwaitedFeedback.awaiting)
    feedback_rule = _part("_awaited", AwaitedFeedback.feedback_rule)
    set_feedback_policy = _part("_awaited", AwaitedFeedback.set_feedback_policy)
    settle_overdue = _part("_awaited", AwaitedFeedback.settle_overdue)

    # ------------------------------------------------------------------------------------------ holdout and lift

    assign = _part("_assignments", Assignments.assign)
    lift_history = _part("_assignments", Assignments.lift_history)
    pause = _part("_switches", SwitchLog.pause)
    resume = _part("_switches", SwitchLog.resume)
    pauses = _part("_switches", SwitchLog.pauses)
    pause_of = _part("_switches", SwitchLog.pause_of)
    switches = _part("_switches", SwitchLog.switches)

    @overload
    def lift(self, family: None = None, *, alpha: float = 0.05) -> dict[str, Lift]: ...
    @overload
    def lift(self, family: str, *, alpha: float = 0.05) -> Lift: ...
    def lift(self, family: str | None = None, *, alpha: float = 0.05) -> dict[str, Lift] | Lift:
        """Return the lift of memory, of one family, or of each by its name: the proof whether memory helps here.

        It compares the episodes that a `seasoned.Holdout` assigned, in the latest epoch of each family. Verdicts and
        intervals are controlled over all families of the namespace, and hold at every look
        (`seasoned.core.lift.families.family_lifts`).

        Args:
            family: its name, by default the task; None: all.
            alpha: the expected share of false verdicts among the verdicts, at most; in (0, 1).

        Raises:
            NotFoundError: the family has no assigned episode.
            InputError: alpha is not in (0, 1).

        Example:
            >>> from seasoned import Holdout, JitRL, Memory
            >>> with Memory.open(":memory:") as memory:
            ...     policy = Holdout(JitRL(memory), memory)
            ...     with memory.episode(task="checkout") as episode:
            ...         decision = policy.decide("page:cart", {"click(pay)": -0.3, "click(back)": -1.4})
            ...         episode.record("page:cart", decision, reward=1.0)
            ...     found = memory.lift("checkout")
            >>> found.state, found.n_treated + found.n_control, found.low, found.high
            ('learning', 1, -1.0, 1.0)
        """
        found = self._assignments.lift(alpha=alpha)
        if family is None:
            return found
        name = self.session.redaction.query(check_text("family", family))
        if name not in found:
            raise NotFoundError(
                f"family {excerpt(family)}", "no episode of it was assigned by a Holdout", suggest(name, found)
            )
        return found[name]

    rated_options = _part("_rated", RatedDecisions.rated_options)

    # ------------------------------------------------------------------------------------------ recall for prompts

    recall = _part("_recall", MomentRecall.recall)
    experiences = _part("_recall", MomentRecall.experiences)
    impressions = _part("_recall", MomentRecall.impressions)
    peer_comparisons = _part("_recall", MomentRecall.peer_comparisons)
    peer_returns = _part("_recall", MomentRecall.peer_returns)
    feedback_totals = _part("_recall", MomentRecall.feedback_totals)
    step_feedback = _part("_recall", MomentRecall.step_feedback)
    median_return = _part("_recall", MomentRecall.median_return)
    redacted = _part("_recall", MomentRecall.redacted)

    # ------------------------------------------------------------------------------------------ retention and transfer

    quarantine = _part("_retention", Retention.quarantine)
    release = _part("_retention", Retention.release)
    quarantines = _part("_retention", Retention.quarantines)
    excluded_ids = _part("_retention", Retention.excluded_ids)
    selected = _part("_retention", Retention.selected)
    prune = _part("_retention", Retention.prune)
    erase = _part("_retention", Retention.erase)
    compact = _part("_retention", Retention.compact)
    record_copy = _part("_retention", Retention.record_copy)
    copies = _part("_retention", Retention.copies)
    export = _part("_transfer", Transfer.export)
    import_lines = _part("_transfer", Transfer.import_lines)
    import_episodes = _part("_transfer", Transfer.import_episodes)

    # ------------------------------------------------------------------------------------------ stored content

    def __len__(self) -> int:
        """Return the number of stored steps, aborted episodes included."""
        return self.session.read(self.session.reader.step_count)

    def get(self, episode_id: str) -> Episode:
        """Return a stored episode with the environment's rewards, also one that a wrapped client is storing now.

        Raises:
            NotFoundError: no such episode.
        """
        check_text("episode id", episode_id)
        for attempt in range(2):
            for _, _, _, episode in self.session.read(lambda: list(self.session.reader.episodes(id_=episode_id))):
                return episode
            if attempt == 0:  # a wrapped client may be storing it
                for recorder in self.session.recorders:
                    recorder.settle()
        raise NotFoundError(
            f"episode {excerpt(episode_id)}", "it is not in this namespace", "List the stored ones: memory.episodes()."
        )

    def episodes(
        self, *, task: str | None = None, last: int | None = None, max_bytes: int | None = None
    ) -> list[Episode]:
        """Return stored episodes in commit order: all, those of one task, or the last few.

        With `max_bytes` these are the latest whose texts together take at most so many bytes; one that takes more than
        an eighth of them is left out, unread.
        """
        if task is not None:
            check_text("task", task)
        if last is not None:
            last = check_whole("last", last, at_least=1, next_step="Leave it out to list all.")
        task, session, reader = self.session.redaction.query(task), self.session, self.session.reader
        if max_bytes is None:
            return [episode for *_, episode in session.read(lambda: list(reader.episodes(task=task, last=last)))]
        most = check_whole("max_bytes", max_bytes, at_least=1, next_step="Leave it out to read all.")
        return session.read(lambda: episodes_within(session.store, reader, task, last, most))

    def iter_episodes(self) -> Iterator[Episode]:
        """Yield stored episodes in commit order, page by page: other threads use the memory between two pages.

        Episodes that are committed after the first one was yielded are left out.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> with Memory.open(":memory:") as memory:
            ...     _ = memory.add_many([Episode("shop", [Step("cart", action)]) for action in ("pay", "back")])
            ...     [episode.steps[0].action for episode in memory.iter_episodes()]
            ['pay', 'back']
        """
        session, reader = self.session, self.session.reader
        last, pending = session.read(lambda: (reader.last_ordinal(), reader.pending_episodes()))
        for first in range(1, last + 1, _PAGE):
            ordinals = range(first, min(first + _PAGE, last + 1))
            page = session.read(lambda ordinals=ordinals: list(reader.episodes(ordinals=ordinals)))  # type: ignore[misc]
            yield from (episode for *_, episode in page)
        yield from (episode for _, episode in pending)

    def steps(self, *, gamma: float | None = None) -> list[Experience]:
        """Return every stored step that is not excluded, the latest first, with its feedback and its return.

        Args:
            gamma: discount of the returns; None: the memory's own.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> with Memory.open(":memory:", gamma=0.5) as memory:
            ...     _ = memory.add(Episode("shop", [Step("cart", "pay"), Step("paid", "leave", 1.0)]))
            ...     [(step.action, step.return_) for step in memory.steps()]
            [('leave', 1.0), ('pay', 0.5)]
        """
        gamma = self.gamma if gamma is None else gamma
        return self.session.store.retrying(lambda: self._retriever.steps(gamma))

    def verify(self) -> Verification:
        """Verify the store: hash all raw content again, and derive all derived data again.

        Returns:
            A summary; its `hash` covers the raw content: equal content has an equal hash in any store.

        Raises:
            IntegrityError: at the first disagreement; the message names it.
        """
        session = self.session

        def attempt() -> Verification:
            session.inbox.try_derive()
            with session.store.snapshot():
                return verify(session.store, session.namespace_id, session.namespace, session.encoder.features)

        return session.store.retrying(attempt)

    def stats(self) -> MemoryStats:
        """Return the statistics of this namespace."""
        session = self.session

        def attempt() -> MemoryStats:
            with self._retriever.fresh_snapshot(session.gamma, 1.0) as view_id:
                return gather_stats(
                    session.store,
                    session.namespace_id,
                    session.namespace,
                    session.encoder.identity,
                    session.gamma,
                    self._retriever.spread(view_id),
                    self._awaited.due_before(),
                )

        return session.store.retrying(attempt)

    def spool_stats(self) -> SpoolStats | None:
        """Return what lies in the spool, of all processes of this host; None without a spool. Asks no store."""
        outbox = self.session.outbox
        return None if outbox is None else outbox.spool.stats()

    def deliver_spool(self) -> bool:
        """Deliver the spool now, with no time limit; return whether nothing is left. Without a spool it is a no-op.

        A memory delivers by itself when the store is back. Entries of processes that are alive are theirs to deliver.

        Raises:
            StoreError: the store does not take them now.
        """
        outbox = self.session.outbox
        return outbox is None or outbox.deliver()

    def known_gammas(self) -> tuple[float, ...]:
        """Return the discounts at which returns are stored, in ascending order.

        A search at another discount computes its returns and stores them, and every later write keeps them up.

        Example:
            >>> with Memory.open(":memory:", gamma=0.5) as memory:
            ...     _ = memory.search("cart", gamma=1.0)
            ...     memory.known_gammas()
            (0.5, 1.0)
        """
        sql = "SELECT DISTINCT gamma FROM view WHERE namespace_id = ? AND decay = 1.0 ORDER BY gamma"
        store, namespace_id = self.session.store, self.session.namespace_id
        rows = self.session.read(lambda: store.execute(sql, (namespace_id,)).fetchall())
        return tuple(float(row.gamma) for row in decode(store.path, rows, _Discount))

    def close(self) -> None:
        """Close the store; episodes that this memory left pending are derived first, if that can be done at once."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
