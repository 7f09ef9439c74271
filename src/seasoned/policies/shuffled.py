"""The placebo: the same memory, with the stored returns shuffled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

from seasoned.core import discounted_returns, robust_spread
from seasoned.protocols import StateEncoder
from seasoned.types import Episode, Evidence, Neighbor, normalize_action

__all__ = ["ShuffledReturns"]


class _Searchable(Protocol):
    """What the placebo reads of a memory."""

    gamma: float
    encoder: StateEncoder

    def search(
        self, state: str, k: int, threshold: float, *, gamma: float | None, exclude_task: str | None
    ) -> list[Neighbor]: ...

    def episodes(self) -> Sequence[Episode]: ...

    def __len__(self) -> int: ...


class ShuffledReturns:
    """Gives a policy evidence from a memory whose returns are permuted among all its stored steps.

    Retrieval, counts, spread and cost stay as they are; only the link between an action and what followed is cut. What
    a policy gains with this cannot come from having learned. Reshuffled after every commit, from the seed; reads the
    whole memory, so it is for comparisons only. Weights other than 1 are not supported.

    Args:
        memory: a `seasoned.Memory`.
        seed: of the permutation.
    """

    def __init__(self, memory: _Searchable, seed: int) -> None:
        self._memory = memory
        self._seed = seed
        self._n = -1
        self._gamma: float | None = None
        self._returns: dict[tuple[str, int], float] = {}

    def evidence(
        self,
        state: str,
        *,
        k: int,
        unit: Literal["steps", "states"],
        threshold: float,
        gamma: float | None,
        similarity_power: float = 0.0,
        decay: float = 1.0,
        exclude_task: str | None = None,
    ) -> Evidence:
        """Return evidence in which every neighbour carries another step's return; see `Memory.evidence`."""
        gamma = self._memory.gamma if gamma is None else gamma
        self._shuffle(gamma)
        limit = k if unit == "steps" else max(1, len(self._memory))
        neighbors = self._memory.search(state, limit, threshold, gamma=gamma, exclude_task=exclude_task)
        distinct: dict[frozenset[str], None] = {}
        sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        spelling: dict[str, str] = {}
        kept = []
        for neighbor in neighbors:
            features = self._memory.encoder.features(neighbor.experience.state)
            if unit == "states" and features not in distinct and len(distinct) == k:
                continue
            distinct[features] = None
            kept.append(neighbor)
            seen = neighbor.experience
            return_ = self._returns[seen.episode_id, seen.step]
            key = normalize_action(seen.action)
            spelling.setdefault(key, seen.action)
            for i, amount in enumerate((1.0, return_, return_**2)):
                sums[key][i] += amount
        table = np.array(list(sums.values()), dtype=np.float64).reshape(-1, 3)
        values = list(self._returns.values())
        return Evidence(
            actions=tuple(spelling[key] for key in sums),
            counts=table[:, 0],
            weights=table[:, 0],
            totals=table[:, 1],
            squares=table[:, 2],
            spread=robust_spread(values, np.ones(len(values))),
            gamma=gamma,
            n_states=len(distinct),
            neighbors=tuple(kept[:50]),
        )

    def _shuffle(self, gamma: float) -> None:
        if (len(self._memory), gamma) == (self._n, self._gamma):
            return
        self._n, self._gamma = len(self._memory), gamma
        keys, returns = [], []
        for episode in self._memory.episodes():
            if episode.ending != "aborted" and episode.id is not None:
                keys += [(episode.id, index) for index in range(len(episode.steps))]
                returns += discounted_returns([step.reward for step in episode.steps], gamma).tolist()
        order = np.random.default_rng([self._seed, self._n]).permutation(len(returns))
        self._returns = {key: returns[i] for key, i in zip(keys, order.tolist(), strict=True)}
