"""What unrevoked feedback on some episodes adds up to, by source and by step."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from seasoned.memory.reading.episode_ids import EpisodeIds
from seasoned.memory.reading.follower import CommitFollower
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import MAX_STEPS, STEP_BITS

__all__ = ["FeedbackTotals"]


class FeedbackTotals:
    """Reads the feedback of one namespace. Every method runs inside a snapshot, after `EpisodeIds.catch_up`."""

    def __init__(self, store: Store, namespace_id: int, episode_ids: EpisodeIds, follower: CommitFollower) -> None:
        self._store = store
        self._ns = namespace_id
        self._episode_ids = episode_ids
        self._follower = follower

    def by_source(self, episode_ids: Collection[str]) -> dict[str, dict[str, float]]:
        """Return what came from whom; see `Memory.feedback_totals`."""
        credited: dict[str, dict[str, float]] = {id_: {} for id_ in self._episode_ids.of(episode_ids)}
        for id_, _, source, counts in self._said(list(credited), ()):
            credited[id_][source] = credited[id_].get(source, 0.0) + counts
        return credited

    def by_step(self, episode_ids: Collection[str], but_sources: Collection[str]) -> dict[str, dict[int, list[float]]]:
        """Return what was said of which step; see `Memory.step_feedback`."""
        credited: dict[str, dict[int, list[float]]] = {id_: {} for id_ in self._episode_ids.of(episode_ids)}
        for id_, step, _, counts in self._said(list(credited), but_sources):
            credited[id_].setdefault(step, []).append(counts)
        return credited

    def _said(self, ids: list[str], but_sources: Collection[str]) -> Iterator[tuple[str, int, str, float]]:
        """Yield (episode id, step, source, what it counts) of each event, step by step, the earlier ones first."""
        if not self._follower.n_events:
            return
        episodes = self._episode_ids.of(ids)
        id_of = {numbered.ordinal: id_ for id_, numbered in episodes.items()}
        others = f"AND source NOT IN ({', '.join('?' * len(but_sources))}) " if but_sources else ""
        # By single visits: PostgreSQL looks up no range that a join computes, where rows are secured.
        visits = [n.ordinal << STEP_BITS | step for n in episodes.values() for step in range(n.steps)]
        for visit, source, counts in self._store.execute_in(
            "SELECT visit, source, reward * weight FROM feedback INDEXED BY feedback_by_visit WHERE namespace_id = ? "
            f"AND live {others}AND visit IN {{values}} ORDER BY visit, seq",
            (self._ns, *but_sources),
            visits,
        ):
            yield id_of[visit >> STEP_BITS], visit & MAX_STEPS - 1, source, counts
