"""What a namespace holds, counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seasoned.memory.database import Database
from seasoned.memory.schema import STEP_BITS

__all__ = ["MemoryStats", "gather_stats"]


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """What a namespace holds. `spread` is the robust spread of its mean returns at `gamma`, in reward units."""

    path: str
    namespace: str
    encoder: str
    gamma: float
    episodes: int
    aborted: int
    steps: int
    states: int
    distinct_states: int
    actions: int
    tasks: int
    feedback: int
    mean_episode_reward: float | None
    spread: float
    file_bytes: int | None


def gather_stats(
    database: Database, namespace_id: int, namespace: str, encoder: str, gamma: float, spread: float
) -> MemoryStats:
    """Count what one namespace holds, inside the caller's snapshot."""

    def row(sql: str) -> Any:
        return database.execute(sql, (namespace_id,)).fetchone()

    episodes, aborted, steps, tasks = row(
        "SELECT count(*), coalesce(sum(ending = 'aborted'), 0), coalesce(sum(steps), 0), count(DISTINCT task) "
        "FROM episode WHERE namespace_id = ?"
    )
    states, distinct_states, actions, events = row(
        "SELECT states, feature_sets, actions, events FROM namespace WHERE id = ?"
    )
    reward, finished = row(
        f"SELECT sum(reward + feedback), count(DISTINCT visit >> {STEP_BITS}) FROM step WHERE namespace_id = ? AND live"
    )
    pages = database.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
    return MemoryStats(
        path=database.path,
        namespace=namespace,
        encoder=encoder,
        gamma=gamma,
        episodes=episodes,
        aborted=aborted,
        steps=steps,
        states=states,
        distinct_states=distinct_states,
        actions=actions,
        tasks=tasks,
        feedback=events,
        mean_episode_reward=reward / finished if finished else None,
        spread=spread,
        file_bytes=pages[0],
    )
