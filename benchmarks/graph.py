"""The cost of a new episode in the value graph, and the size of a distinct transition.

Run: python benchmarks/graph.py [--steps 100000] [--episodes 200]

Episodes of 50 steps on a random process: 8 actions a state, each with two possible next states (9 to 1), 2 % of the
pairs with reward 1. `dense` has about 30,000 distinct transitions in 100,000 steps; `sparse` has so many states that
nearly every step is distinct; both have cycles. Core: `ValueGraph.add` of one more episode plus `settle(budget)` with
the memory's budget. Memory: the first `evidence(..., backup=Backup(4))` after `Memory.add` of one more episode, and the
same query without the graph; the store is a file. `error` is the largest difference to the fully settled values, after
all episodes, divided by the largest value. Processor time excludes the time of other processes.
Writes `benchmarks/results/graph.json`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from workload import HEADER, percentiles, row, timed_s, write_result

from seasoned import Episode, Memory, Step
from seasoned.core import TERMINAL, ValueGraph
from seasoned.memory.retrieval.graph_cache import SETTLE_BUDGET
from seasoned.types import Backup, EvidenceQuery

GAMMA, BETA = 0.95, 4.0
EPISODE_STEPS = 50
TOLERANCE = 1e-3
WORLDS = {"dense": 4_000, "sparse": 1_000_000}


class World:
    """Random episodes on a fixed random process; states are numbered as they are met."""

    def __init__(self, n_states: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._after = self._rng.integers(n_states, size=(n_states, 8, 2), dtype=np.int32)
        self._reward = np.where(self._rng.random((n_states, 8)) < 0.02, 1.0, 0.0)
        self._number: dict[int, int] = {}

    def episodes(self, n: int) -> Iterator[list[list[Any]]]:
        """Yield columns: states, actions, rewards, next states."""
        for _ in range(n):
            s, columns = int(self._rng.integers(100)), [[], [], [], []]
            for t, (a, rare) in enumerate(
                zip(
                    self._rng.integers(8, size=EPISODE_STEPS).tolist(),
                    self._rng.random(EPISODE_STEPS) < 0.1,
                    strict=True,
                )
            ):
                x = int(self._after[s, a, int(rare)])
                follows = TERMINAL if t == EPISODE_STEPS - 1 else self._number_of(x)
                row_ = (self._number_of(s), a, float(self._reward[s, a]), follows)
                for column, value in zip(columns, row_, strict=True):
                    column.append(value)
                s = x
            yield columns

    def _number_of(self, state: int) -> int:
        return self._number.setdefault(state, len(self._number))


def in_core(name: str, n_states: int, options: argparse.Namespace) -> dict[str, Any]:
    world = World(n_states, options.seed)
    stored = list(world.episodes(options.steps // EPISODE_STEPS))
    graph = ValueGraph(GAMMA, BETA, tolerance=TOLERANCE)
    together = [[value for columns in stored for value in columns[i]] for i in range(4)]
    load_s, _ = timed_s(graph.add, *together)
    settle_s, _ = timed_s(graph.converge)
    n_distinct, n_bytes = graph.n_edges, graph.nbytes
    seconds, cpu = [], []
    for columns in world.episodes(options.episodes):
        began, cpu_began = time.perf_counter(), time.process_time()
        graph.add(*columns)
        bound = graph.converge(SETTLE_BUDGET)
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_began)
    states = range(len(world._number))
    early = graph.v(states)
    graph.converge()
    late = graph.v(states)
    error = float(np.nanmax(np.abs(early - late)) / np.nanmax(np.abs(late)))
    figures = percentiles(seconds)
    print(row(f"{name}: add one episode and settle", figures))
    print(row(f"{name}: the same, processor time", percentiles(cpu)))
    return {
        "distinct": n_distinct,
        "pairs": graph.n_pairs,
        "bytes_per_distinct": n_bytes / n_distinct,
        "load_s": load_s,
        "first_settle_s": settle_s,
        "bound": bound,
        "error": error,
        "episode": figures,
        "episode_processor": percentiles(cpu),
    }


def in_memory(name: str, n_states: int, options: argparse.Namespace) -> dict[str, Any]:
    def episode(columns: list[list[Any]], label: str) -> Episode:
        steps = [Step(f"state {s}", f"act {a}", r) for s, a, r, _ in zip(*columns, strict=True)]
        return Episode("t", steps, id=label)

    world = World(n_states, options.seed)
    asked = {"k": 10, "unit": "states", "threshold": 0.8}
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "m.db", gamma=GAMMA) as memory:
        stored = [episode(columns, f"e{i}") for i, columns in enumerate(world.episodes(options.steps // EPISODE_STEPS))]
        memory.add_many(stored)
        memory.evidence(EvidenceQuery("state 0", **asked))
        first_s, _ = timed_s(memory.evidence, "state 0", **asked, backup=Backup(BETA))
        cases: dict[str, list[float]] = {"first question after a commit": [], "next question": [], "without": []}
        for i, columns in enumerate(world.episodes(options.episodes)):
            memory.add(episode(columns, f"more{i}"))
            memory.search("state 0", k=1)  # the index's own share is not the graph's
            state = f"state {columns[0][0]}"
            for case, settings in (
                ("first question after a commit", {"backup": Backup(BETA)}),
                ("next question", {"backup": Backup(BETA)}),
                ("without", {}),
            ):
                cases[case].append(timed_s(memory.evidence, state, **asked, **settings)[0])
        found = {case: percentiles(seconds) for case, seconds in cases.items()}
    for case, figures in found.items():
        print(row(f"{name}: memory, {case}", figures))
    return {"first_question_s": first_s, **found}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=100_000, help="stored before measuring")
    parser.add_argument("--episodes", type=int, default=200, help="added one by one")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(HEADER)
    result: dict[str, Any] = {}
    for name, n_states in WORLDS.items():
        result[name] = {"core": in_core(name, n_states, options), "memory": in_memory(name, n_states, options)}
    for name, found in result.items():
        core = found["core"]
        print(
            f"{name}: {core['distinct']} distinct transitions, {core['bytes_per_distinct']:.0f} bytes each; "
            f"read in {core['load_s']:.2f} s, settled in {core['first_settle_s']:.2f} s; "
            f"error {core['error']:.2e} of the largest value; "
            f"memory's first question {found['memory']['first_question_s']:.2f} s"
        )
    write_result(
        "graph",
        {
            "command": " ".join(["python benchmarks/graph.py", *sys.argv[1:]]),
            "seed": options.seed,
            "steps": options.steps,
            "gamma": GAMMA,
            "beta": BETA,
            "budget": SETTLE_BUDGET,
            "tolerance": TOLERANCE,
            **result,
        },
    )


if __name__ == "__main__":
    main()
