"""Size, time and cost of a store: the arithmetic of `scale.py`, without measurements."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

__all__ = ["KINDS", "PRICES", "Growth", "Price", "Shape", "bill", "predict_bytes", "predict_write_s"]

KINDS = {
    "step": ("step", "value"),
    "state": ("state", "feature_set"),
    "token": ("token",),
    "episode": ("episode",),
    "evidence": ("evidence",),
    "namespace": ("namespace", "view", "action", "prior", "distribution"),
}
"""What is counted, and the tables, with their indexes, that grow with it. The first table's rows are the count."""

STEPS_AN_EPISODE = 10
HOURS_A_MONTH = 730


@dataclass(frozen=True, slots=True)
class Growth:
    """How many distinct states `n` steps of one namespace meet: `min(n, c n^h)`, as Heaps' law counts words."""

    c: float
    h: float

    def states(self, n: float) -> float:
        """Return the expected number of distinct states after n steps."""
        return min(n, self.c * math.pow(n, self.h))


@dataclass(frozen=True, slots=True)
class Shape:
    """The content of a store, as counts over all of its namespaces."""

    namespace: float
    episode: float
    step: float
    state: float
    token: float
    evidence: float

    @classmethod
    def of(
        cls, n_steps: float, n_namespaces: float, growth: Growth, n_actions: int, vocabulary: dict[int, int]
    ) -> Shape:
        """Return the shape after so many steps, spread evenly over the namespaces.

        Visits to a state are taken as Poisson, so a state that was visited m times on average has
        `actions * (1 - exp(-m / actions))` rows of evidence. The vocabulary, a namespace's tokens by its number of
        states, is read off between measured points on a log-log scale, and stays where it was after the last.
        """
        each = n_steps / n_namespaces
        states = growth.states(each)
        evidence = states * n_actions * -math.expm1(-each / states / n_actions)
        return cls(
            n_namespaces,
            n_steps / STEPS_AN_EPISODE,
            n_steps,
            n_namespaces * states,
            n_namespaces * _read_off(vocabulary, states),
            n_namespaces * evidence,
        )


def _read_off(points: dict[int, int], x: float) -> float:
    known = sorted(points.items())
    if x <= known[0][0]:
        return known[0][1] * x / known[0][0]
    for (x0, y0), (x1, y1) in itertools.pairwise(known):
        if x <= x1:
            share = math.log(x / x0) / math.log(x1 / x0)
            return math.exp(math.log(y0) + share * math.log(y1 / y0))
    return known[-1][1]


def predict_bytes(shape: Shape, bytes_each: dict[str, float]) -> float:
    """Return the bytes on disk: a sum over the counts."""
    return math.fsum(getattr(shape, kind) * each for kind, each in bytes_each.items())


def predict_write_s(shape: Shape, core_seconds_each: dict[str, float]) -> float:
    """Return the core seconds that writing it takes, in batches."""
    return math.fsum(getattr(shape, kind) * each for kind, each in core_seconds_each.items())


@dataclass(frozen=True, slots=True)
class Price:
    """An assumption, not a fact: look your own up."""

    usd: float
    unit: str
    source: str
    date: str


PRICES = {
    "storage": Price(0.115, "GB-month", "Amazon RDS gp3 storage, us-east-1, as usage.ai lists it", "2026-06"),
    "memory": Price(3.72, "GB-month", "m7g.large, us-east-1, 0.0816 USD/h by 8 GiB, half for memory", "2026-06"),
    "core": Price(0.0204, "core-hour", "the same machine, the other half by 2 cores", "2026-06"),
}


def bill(
    disk_bytes: float, index_bytes: float, write_s: float, hot_share: float, usd: dict[str, float]
) -> dict[str, float]:
    """Return dollars: a month of disk, a month of memory for the namespaces in use, and the writing, once."""
    return {
        "storage_usd_a_month": disk_bytes / 1e9 * usd["storage"],
        "memory_usd_a_month": hot_share * index_bytes / 1e9 * usd["memory"],
        "write_usd": write_s / 3600 * usd["core"],
    }
