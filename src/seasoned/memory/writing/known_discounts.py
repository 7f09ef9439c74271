"""At which discounts a memory has gathered its returns."""

from __future__ import annotations

from seasoned.memory.memory import Memory

__all__ = ["known_gammas"]


def known_gammas(memory: Memory) -> tuple[float, ...]:
    """Return the discounts at which `search` has its returns, upwards; another one is gathered by writing, to stay.

    Example:
        >>> with Memory.open(":memory:", gamma=0.5) as memory:
        ...     _ = memory.search("cart", gamma=1.0)
        ...     known_gammas(memory)
        (0.5, 1.0)
    """

    def ask() -> tuple[float, ...]:
        rows = memory._store.execute(
            "SELECT DISTINCT gamma FROM view WHERE namespace_id = ? AND decay = 1.0 ORDER BY gamma", (memory._id,)
        )
        return tuple(float(row[0]) for row in rows.fetchall())

    return memory._read(ask)
