"""Moments by several keys, and the outcomes of prompts that showed them: a part of `Memory`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from seasoned.checks import check_text
from seasoned.errors import InputError
from seasoned.memory.recall.engine import MAX_VISITS, RecallEngine
from seasoned.memory.retrieval.retriever import Retriever
from seasoned.memory.session import Session
from seasoned.types import Experience, RecallQuery, StepRef
from seasoned.types.impression import Impression, PeerComparison
from seasoned.types.recall import Recall

__all__ = ["MomentRecall"]


class MomentRecall:
    """Recalls moments from one namespace."""

    def __init__(self, session: Session, retriever: Retriever) -> None:
        self._session = session
        self._retriever = retriever
        self._made: RecallEngine | None = None

    @property
    def _engine(self) -> RecallEngine:
        session = self._session
        if self._made is None:
            with session.store.lock:
                self._made = RecallEngine(
                    session.store, session.namespace_id, self._retriever, session.encoder, session.gamma
                )
        return self._made

    def recall(self, query: RecallQuery) -> Recall:
        """Return the moments that fit a query under several keys, each with its exact similarity under every one.

        The pool: steps at the distinct states most like the observation, by the same index as `search`, of each action
        the one that earned most and the one that earned least, 8 at one state, `pool` in all; the `pool` steps with the
        most similar reasonings; and one step each of `pool / 4` episodes whose tasks are most like the goal, and of as
        many whose plans are most like the plan: the step whose state is most like the observation, of 256 steps in all.
        Without an observation, or with `whole`, an episode's first step stands for it, and there are `pool` episodes.
        Of the episodes with one task, answers that were not executed (the alternatives of feedback) take every other
        place at most, or one where nothing was executed, as long as there are other episodes.

        Goals, plans and reasonings are compared by the memory's own encoder, in indexes that are made when first asked
        for, kept in RAM, and follow every commit. Of several plans or reasonings at one place the latest counts. What
        is erased, aborted or set aside is not recalled, nor what happened in `exclude_task`; neither takes a place in
        the pool, which is of the most similar ones among all others. Pending episodes that this memory cannot derive
        (a read-only reader of PostgreSQL) are not recalled until another process derives them.

        Example:
            >>> from seasoned import Episode, Memory, RecallQuery, Step
            >>> with Memory.open(":memory:") as memory:
            ...     _ = memory.add(Episode("buy a lamp", [Step("page:cart", "click(pay)", 1.0)], "e1"))
            ...     query = RecallQuery({"goal": "buy a red lamp", "observation": "page:cart"})
            ...     [moment] = memory.recall(query).moments
            >>> moment.place, dict(moment.similarities)
            (('e1', 0), {'goal': 0.75, 'observation': 1.0})
        """
        session = self._session
        if session.redacts:
            query = dataclasses.replace(
                query,
                texts={key: session.redacted(text) for key, text in query.texts.items()},
                exclude_task=session.redacted(query.exclude_task),
            )
        gamma = session.gamma if query.gamma is None else query.gamma
        return session.store.retrying(lambda: self._engine.recall(query, gamma=gamma))

    def redacted(self, text: str) -> str:
        """Return a text as it is stored, and looked up: by the `redact` that the memory was opened with."""
        return self._session.redacted(check_text("text", text))

    def experiences(self, places: Collection[StepRef], *, gamma: float | None = None) -> dict[StepRef, Experience]:
        """Return stored steps by episode id and index; what is not stored, or set aside, is left out.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> with Memory.open(":memory:") as memory:
            ...     _ = memory.add(Episode("buy a lamp", [Step("page:cart", "click(pay)", 1.0)], "e1"))
            ...     [(place, seen)] = memory.experiences([("e1", 0), ("e1", 1)]).items()
            >>> place, seen.return_
            (('e1', 0), 1.0)
        """
        gamma = self._session.gamma if gamma is None else gamma
        return self._session.store.retrying(lambda: self._engine.experiences(places, gamma=gamma))

    def impressions(
        self,
        places: Collection[StepRef] | None,
        *,
        alike: bool = False,
        gamma: float | None = None,
        exclude_task: str | None = None,
        most: int | None = None,
    ) -> list[Impression]:
        """Return at which steps some were shown, as notes of the kind "shown" that nobody took back say now.

        Such a note stands at a step, and names the `examples` (episode id and step each) that stood in its prompt; one
        on an episode is about its first step. Where j were shown, by all of a step's notes, each has the share 1/j.

        Args:
            places: episode id and step each; None: all that were shown.
            alike: what is the same distinct state and action as a place was shown stands for it.
            gamma: discount of the returns; None: the memory's own.
            exclude_task: nothing of what happened in episodes with this task.
            most: of each place, at most so many of the latest steps; None: all.

        Returns:
            Them, place by place; the returns of the steps are those of now. A step that is gone or set aside is not
            listed.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> with Memory.open(":memory:") as memory:
            ...     _ = memory.add(Episode("buy a lamp", [Step("page:cart", "click(pay)", 1.0)], "e1"))
            ...     _ = memory.add(Episode("buy a bed", [Step("page:cart", "click(pay)", 0.0)], "e2"))
            ...     _ = memory.note("e2", "shown", {"examples": [["e1", 0]]}, step=0)
            ...     [one] = memory.impressions([("e1", 0)])
            >>> one.place, one.share, one.peers
            (('e2', 0), 1.0, PeerComparison(return_=0.0, n_others=1, others_mean=1.0))
        """
        about = None if exclude_task is None else self._session.redacted(check_text("task", exclude_task))

        def read() -> list[Impression]:
            with self._engine.caught_up_view(self._session.gamma if gamma is None else gamma) as view_id:
                index = self._engine.impressions
                wanted = index.shown_steps if places is None else places
                return index.impressions(view_id, wanted, alike=alike, task=about, most=most)

        return self._session.store.retrying(read)

    def peer_comparisons(
        self, places: Collection[StepRef], *, gamma: float | None = None, exclude_task: str | None = None
    ) -> dict[StepRef, PeerComparison]:
        """Return of stored steps their returns, beside those of all others at their distinct states.

        What is not stored, or set aside, is left out; so is, of the others, what happened in `exclude_task`.
        """
        about = None if exclude_task is None else self._session.redacted(check_text("task", exclude_task))

        def read() -> dict[StepRef, PeerComparison]:
            with self._engine.caught_up_view(self._session.gamma if gamma is None else gamma) as view_id:
                return self._engine.impressions.peer_comparisons(view_id, places, about)

        return self._session.store.retrying(read)

    def peer_returns(
        self,
        places: Collection[StepRef],
        *,
        gamma: float | None = None,
        exclude_task: str | None = None,
        most: int = MAX_VISITS,
    ) -> dict[StepRef, list[tuple[str, float]]]:
        """Return of stored steps the latest others at their distinct states: whose each is, and its return."""
        about = None if exclude_task is None else self._session.redacted(check_text("task", exclude_task))

        def read() -> dict[StepRef, list[tuple[str, float]]]:
            with self._engine.caught_up_view(self._session.gamma if gamma is None else gamma) as view_id:
                return self._engine.impressions.peer_returns(view_id, places, about, most)

        return self._session.store.retrying(read)

    def feedback_totals(self, episode_ids: Collection[str]) -> dict[str, dict[str, float]]:
        """Return by episode and source what unrevoked feedback adds up to; what is not stored is left out."""

        def read() -> dict[str, dict[str, float]]:
            with self._engine.view_with_ids(self._session.gamma):
                return self._engine.feedback_totals.by_source(episode_ids)

        return self._session.store.retrying(read)

    def step_feedback(
        self, episode_ids: Collection[str], *, but_sources: Collection[str] = ()
    ) -> dict[str, dict[int, list[float]]]:
        """Return by episode and step what each unrevoked feedback counts; what is not stored is left out.

        A feedback counts its reward times its weight, in reward units. One whose source is in quarantine is left out.

        Args:
            episode_ids: of the episodes asked about.
            but_sources: what came from these is left out.

        Raises:
            InputError: `but_sources` is one text.

        Example:
            >>> from seasoned import Episode, Memory, Step
            >>> with Memory.open(":memory:") as memory:
            ...     _ = memory.add(Episode("buy a lamp", [Step("page:cart", "click(pay)", 1.0)], "e1"))
            ...     _ = memory.feedback("e1", -1.0, source="ann", weight=0.5)
            ...     _ = memory.feedback("e1", 2.0, source="tests")
            ...     memory.step_feedback(["e1", "e2"]), memory.step_feedback(["e1"], but_sources=["ann"])
            ({'e1': {0: [-0.5, 2.0]}}, {'e1': {0: [2.0]}})
        """
        if isinstance(but_sources, str):
            raise InputError(f"but_sources = {but_sources!r}", "it is a collection of sources", "Pass {'human'}, say.")

        def read() -> dict[str, dict[int, list[float]]]:
            with self._engine.view_with_ids(self._session.gamma):
                return self._engine.feedback_totals.by_step(episode_ids, but_sources)

        return self._session.store.retrying(read)

    def median_return(self, *, gamma: float | None = None) -> float | None:
        """Return the median of the mean returns of all (distinct state, action) pairs; None if there are none."""
        gamma = self._session.gamma if gamma is None else gamma
        return self._session.store.retrying(lambda: self._engine.median_return(gamma=gamma))
