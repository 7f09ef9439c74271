"""The latest steps at some distinct states, with what each earned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.values.task_filter import Outside

__all__ = ["latest_at"]

_COLUMNS = {"key_id": "key_id", "id": "episode.id"}
_JOINS = {
    "key_id": "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id ",
    "id": f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} ",
}


def latest_at(
    store: Store,
    namespace_id: int,
    view_id: int,
    n_at: Mapping[int, int],
    what: Literal["key_id", "id"],
    *,
    outside: Outside,
    most: int,
) -> dict[int, list[tuple[int, Any, float]]]:
    """Return by distinct state the latest steps there, the latest first: visit, `what`, return.

    Args:
        store: inside a snapshot of it.
        namespace_id: which namespace.
        view_id: by which view the returns are.
        n_at: of each distinct state, at least how many steps there are; states of few are asked for all at once.
        what: the key of the action, or the id of the episode.
        outside: what is left out.
        most: at most so many steps of one state.
    """
    joins = "".join(join for name, join in _JOINS.items() if name == what or (name == "id" and outside))
    select = (
        f"SELECT set_id, step.visit, {_COLUMNS[what]}, return_ FROM step INDEXED BY step_by_set "
        f"{joins}JOIN value ON value.namespace_id = step.namespace_id AND view_id = ? AND value.visit = step.visit "
        f"WHERE step.namespace_id = ? AND live{outside.condition} AND set_id IN {{values}} ORDER BY step.visit DESC"
    )
    values = (view_id, namespace_id, *outside.values)
    rows = store.execute_in(select, values, [set_id for set_id, n in n_at.items() if n <= most])
    for set_id, n in n_at.items():
        if n > most:
            rows += store.execute_in(f"{select} LIMIT {int(most)}", values, [set_id])
    found: dict[int, list[tuple[int, Any, float]]] = {set_id: [] for set_id in n_at}
    for set_id, *step in rows:
        found[set_id].append(tuple(step))
    return found
