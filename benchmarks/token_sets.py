"""Token sets like those of `workload.StateMaker`, a million at a time: the same law, with numbers as words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from workload import FAMILY_STATES, VOCABULARY_WORDS

Ints = npt.NDArray[np.int64]
Sets = list[npt.NDArray[np.uint32]]

_CHUNK = 2_000


class TokenSetMaker:
    """Families of 48 to 60 distinct tokens by Zipf's law (`p ~ 1/rank`); a member has 1 to 3 of them replaced."""

    def __init__(self, seed: int, sizes: tuple[int, int] = (48, 60), family_states: int = FAMILY_STATES) -> None:
        self._sizes, self._family_states = sizes, family_states
        self.rng = np.random.default_rng(seed)
        self._cumulative = np.cumsum(1 / np.arange(1, VOCABULARY_WORDS + 1))
        # A token's number is the order of its first visit in a store, which is not its rank.
        self._number = self.rng.permutation(VOCABULARY_WORDS).astype(np.uint32)

    def _draw(self, rows: int, columns: int) -> Ints:
        at = self.rng.random((rows, columns)) * self._cumulative[-1]
        return np.searchsorted(self._cumulative, at)

    def _distinct(self, taken: Ints, wanted: Ints, columns: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Draw for each row; return the draws and which are the first `wanted` new ones, different from `taken`."""
        while True:
            drawn = np.hstack([taken, self._draw(len(taken), columns)])
            order = np.argsort(drawn, axis=1, kind="stable")
            ordered = np.take_along_axis(drawn, order, axis=1)
            first = np.ones(drawn.shape, dtype=bool)
            first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
            fresh = np.empty_like(first)
            np.put_along_axis(fresh, order, first, axis=1)
            fresh[:, : taken.shape[1]] = False
            rank = np.cumsum(fresh, axis=1)
            if (rank[:, -1] >= wanted).all():
                return drawn, fresh & (rank <= wanted[:, None])
            columns *= 2

    def families(self, n: int) -> list[Ints]:
        """Return `n` new families, as ranks."""
        found: list[Ints] = []
        for first in range(0, n, _CHUNK):
            sizes = self.rng.integers(self._sizes[0], self._sizes[1] + 1, size=min(_CHUNK, n - first))
            drawn, kept = self._distinct(np.empty((len(sizes), 0), dtype=np.int64), sizes, 256)
            found += np.split(drawn[kept], np.cumsum(sizes)[:-1])
        return found

    def members(self, families: list[Ints]) -> Sets:
        """Return one member of each of these families, as token numbers in ascending order."""
        found: Sets = []
        for first in range(0, len(families), _CHUNK):
            chunk = families[first : first + _CHUNK]
            sizes = np.array([len(family) for family in chunk])
            changed = self.rng.integers(1, 4, size=len(chunk))
            columns = np.arange(sizes.max())
            inside = columns < sizes[:, None]
            taken = np.where(inside, 0, np.array([family[0] for family in chunk])[:, None])
            taken[inside] = np.concatenate(chunk)
            drawn, fresh = self._distinct(taken, changed, 32)
            lot = np.where(inside, self.rng.random(inside.shape), -1.0)
            gone = np.argsort(np.argsort(-lot, axis=1), axis=1) < changed[:, None]
            taken[gone] = drawn[fresh]
            numbers = np.where(inside, self._number[taken], np.iinfo(np.uint32).max)
            numbers.sort(axis=1)
            found += [row[:size].copy() for row, size in zip(numbers.astype(np.uint32), sizes.tolist(), strict=True)]
        return found

    def distinct(self, n: int) -> tuple[Sets, list[Ints]]:
        """Return `n` sets, no two alike, and the families they are of."""
        families = self.families(-(-n // self._family_states))
        sets: dict[bytes, npt.NDArray[np.uint32]] = {}
        at = np.arange(n)
        while len(at):
            for tokens in self.members([families[i // self._family_states] for i in at]):
                sets.setdefault(tokens.tobytes(), tokens)
            at = at[: n - len(sets)]
        return list(sets.values()), families
