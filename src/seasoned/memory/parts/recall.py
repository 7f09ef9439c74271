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
    """Recalls moments of one namespace, and the outcomes of prompts that showed them."""

    def __init__(self, session: Session, retriever: Retriever) -> None:
        self._session = session
        self._retriever = retriever
        self._lazy_engine: RecallEngine | None = None

    @property
    def _engine(self) -> RecallEngine:
        session = self._session
        if self._lazy_engine is None:
            with session.store.lock:
                self._lazy_engine = RecallEngine(
                    session.store, session.namespace_id, self._retriever, session.encoder, session.gamma
                )
        return self._lazy_engine

    def recall(self, query: RecallQuery) -> Recall:
        """Return the moments that fit a query of several keys, each with its exact similarity under every key.

        The candidates are, for each key of the query:

        - observation: steps at the most similar distinct states, by the index of `search`. Of each action at a state
          the step with the highest and the step with the lowest return, 8 steps a state, `pool` in all.
        - reasoning: the `pool` steps with the most similar reasonings.
        - goal and plan: one step each of the `pool / 4` episodes with the most similar tasks, and of as many with the
          most similar plans: the step with the state most similar to the observation, among 256 steps in all. Without
          an observation, or with `whole`, the first step of each of `pool` episodes.

        Among the episodes of one task, answers that were not executed (the alternatives of feedback) take at most every
        other place, or one place if no episode was executed, as long as there are other episodes.

        Goals, plans and reasonings are compared by the memory's own encoder, in indexes in RAM that are built at the
        first query and follow every commit. Of several plans or reasonings on one step the latest counts. Erased,
        aborted and excluded episodes and those of `exclude_task` are not recalled, and take no place from others.
        Pending episodes that this memory cannot derive (a read-only reader of PostgreSQL) are not recalled, and take no
        place from others, until another process derives them.

        Example:
            >>> from seasoned import Episode, Memory, RecallQuery, Step
            >>> with Memory.open(":memory:") as memory:
            ...     _ = memory.add(Episode("buy a lamp", [Step("page:cart", "click(pay)", 1.0)], "e1"))
            ...     query = RecallQuery({"goal": "buy a red lamp", "observation": "page:cart"})
            ...     [moment] = memory.recall(query).moments
            >>> moment.place, {key: round(near, 2) for key, near in moment.similarities.items()}
            (('e1', 0), {'goal': 0.72, 'observation': 1.0})
        """
        session = self._session
        if session.redaction.rewrites:
            redacted = session.redaction.query
            query = dataclasses.replace(
                query,
                texts={key: redacted(text) for key, text in query.texts.items()},
                exclude_task=redacted(query.exclude_task),
            )
        gamma = session.gamma if query.gamma is None else query.gamma
        return session.store.retrying(lambda: self._engine.recall(query, gamma=gamma))

    def redacted(self, text: str) -> str:
        """Return a text as the memory stores and compares it: rewritten by its `redact`."""
        return self._session.redaction.query(check_text("text", text))

    def experiences(self, places: Collection[StepRef], *, gamma: float | None = None) -> dict[StepRef, Experience]:
        """Return stored steps by episode id and index, without unknown and excluded steps.

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
        """Return the impressions of stored steps: the steps with a prompt that showed them.

        They come from unrevoked notes of the kind "shown". Such a note is on a step, and lists the `examples` (episode
        id and step) in its prompt; a note on an episode is about its first step. If the notes of a step list j
        examples, each has the share 1/j.

        Args:
            places: (episode id, step) of the shown steps; None: all shown steps.
            alike: include impressions of other steps with the same distinct state and action.
            gamma: discount of the returns; None: the memory's own.
            exclude_task: leave out impressions in episodes of this task.
            most: at most so many of the latest impressions of each step; None: all.

        Returns:
            The impressions, step by step, with the present returns; without removed and excluded steps.

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
        task = None if exclude_task is None else self._session.redaction.query(check_text("task", exclude_task))

        def read() -> list[Impression]:
            with self._engine.snapshot_with_indexes(self._session.gamma if gamma is None else gamma) as view_id:
                index = self._engine.impressions
                wanted = index.shown_steps if places is None else places
                return index.impressions(view_id, wanted, alike=alike, task=task, most=most)

        return self._session.store.retrying(read)

    def peer_comparisons(
        self, places: Collection[StepRef], *, gamma: float | None = None, exclude_task: str | None = None
    ) -> dict[StepRef, PeerComparison]:
        """Return the returns of stored steps, and the mean returns of the other steps at their distinct states.

        Unknown and excluded steps are left out, and so are other steps in episodes of `exclude_task`.
        """
        task = None if exclude_task is None else self._session.redaction.query(check_text("task", exclude_task))

        def read() -> dict[StepRef, PeerComparison]:
            with self._engine.snapshot_with_indexes(self._session.gamma if gamma is None else gamma) as view_id:
                return self._engine.impressions.peer_comparisons(view_id, places, task)

        return self._session.store.retrying(read)

    def peer_returns(
        self,
        places: Collection[StepRef],
        *,
        gamma: float | None = None,
        exclude_task: str | None = None,
        most: int = MAX_VISITS,
    ) -> dict[StepRef, list[tuple[str, float]]]:
        """Return for stored steps the (episode id, return) of the latest other steps at their distinct states."""
        task = None if exclude_task is None else self._session.redaction.query(check_text("task", exclude_task))

        def read() -> dict[StepRef, list[tuple[str, float]]]:
            with self._engine.snapshot_with_indexes(self._session.gamma if gamma is None else gamma) as view_id:
                return self._engine.impressions.peer_returns(view_id, places, task, most)

        return self._session.store.retrying(read)

    def feedback_totals(self, episode_ids: Collection[str]) -> dict[str, dict[str, float]]:
        """Return the sum of unrevoked feedback by episode and source, without unknown episodes."""

        def read() -> dict[str, dict[str, float]]:
            with self._engine.snapshot_with_ids(self._session.gamma):
                return self._engine.feedback_totals.by_source(episode_ids)

        return self._session.store.retrying(read)

    def step_feedback(
        self, episode_ids: Collection[str], *, but_sources: Collection[str] = ()
    ) -> dict[str, dict[int, list[float]]]:
        """Return the amounts of unrevoked feedback by episode and step, without unknown episodes.

        An amount is reward times weight, in reward units. Feedback of quarantined sources is left out.

        Args:
            episode_ids: the episodes.
            but_sources: leave out feedback of these sources.

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
            with self._engine.snapshot_with_ids(self._session.gamma):
                return self._engine.feedback_totals.by_step(episode_ids, but_sources)

        return self._session.store.retrying(read)

    def median_return(self, *, gamma: float | None = None) -> float | None:
        """Return the median of the mean returns of all (distinct state, action) pairs; None if there are none."""
        gamma = self._session.gamma if gamma is None else gamma
        return self._session.store.retrying(lambda: self._engine.median_return(gamma=gamma))
