"""The cost of exact search at 100,000 states, compared with a plain scan over Python sets.

Run: python benchmarks/search.py [--states 100000] [--queries 1000] [--scans 20]

A store on disk holds 100,000 distinct states. `Memory.search(state, k=10, threshold=0.8)` is called for states similar
to stored ones (new members of stored families) and for states of no stored family. The peer computes the Jaccard
similarity to every stored set in a list, in Python, and sorts. Both answer the same first queries, and the benchmark
stops if their similarities differ. Writes `benchmarks/results/search.json`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from workload import HEADER, StateMaker, percentiles, row, timed_s, write_result

from seasoned import Episode, Memory, Step

K = 10
THRESHOLD = 0.8
EPISODE_STEPS = 20
BATCH_EPISODES = 500


def build(memory: Memory, states: list[str]) -> None:
    """Store every state once, in episodes of 20 steps, 500 episodes a transaction."""
    width = EPISODE_STEPS * BATCH_EPISODES
    for first in range(0, len(states), width):
        batch = states[first : first + width]
        parts = [batch[i : i + EPISODE_STEPS] for i in range(0, len(batch), EPISODE_STEPS)]
        memory.add_many(Episode("task", [Step(state, "go", 0.0) for state in part]) for part in parts)


def scan(stored: list[frozenset[str]], state: str) -> list[float]:
    """Return the similarities of the K nearest sets at or above the threshold, by comparing with every one."""
    query = frozenset(state.split())
    found = []
    for features in stored:
        shared = len(query & features)
        similarity = shared / (len(query) + len(features) - shared)
        if similarity >= THRESHOLD:
            found.append(similarity)
    return sorted(found, reverse=True)[:K]


def measure(folder: Path, options: argparse.Namespace) -> dict[str, object]:
    """Build, then measure; print and return the figures."""
    maker = StateMaker(options.seed)
    states, families = maker.distinct(options.states)
    with Memory.open(folder / "memory.db") as memory:
        build_s, _ = timed_s(build, memory, states)
    with Memory.open(folder / "memory.db") as memory:
        first_s, _ = timed_s(memory.search, states[0], K, THRESHOLD)
        stats = memory.stats()
        print(f"{stats.distinct_states} distinct states, {(stats.size_bytes or 0) / 1e6:.0f} MB on disk")
        print(f"built in {build_s:.1f} s; first query after opening (reads the index) {first_s:.2f} s\n")
        queries = {
            "like stored states": [
                maker.member(families[int(i)]) for i in maker.rng.integers(len(families), size=options.queries)
            ],
            "of no stored family": [maker.member(maker.family()) for _ in range(options.queries)],
        }
        stored = [frozenset(state.split()) for state in states]
        figures: dict[str, dict[str, float]] = {}
        found: dict[str, float] = {}
        print(HEADER)
        for name, of_kind in queries.items():
            answers = [timed_s(memory.search, state, K, THRESHOLD) for state in of_kind]
            scans = [timed_s(scan, stored, state) for state in of_kind[: options.scans]]
            for state, (_, ours), (_, theirs) in zip(of_kind, answers, scans, strict=False):
                if [neighbor.similarity for neighbor in ours] != theirs:
                    sys.exit(f"search and scan disagree on {state!r}: {ours} and {theirs}")
            figures[f"search, {name}"] = percentiles([seconds for seconds, _ in answers])
            figures[f"scan, {name}"] = percentiles([seconds for seconds, _ in scans])
            found[name] = float(np.mean([len(neighbors) for _, neighbors in answers]))
        for name, of_case in figures.items():
            print(row(name, of_case))
        print()
        for name, mean in found.items():
            faster = figures[f"scan, {name}"]["p50_s"] / figures[f"search, {name}"]["p50_s"]
            print(f"{name}: {faster:.0f} times faster than the scan (p50), {mean:.1f} neighbours found on average")
    return {
        "states": stats.distinct_states,
        "file_bytes": stats.size_bytes,
        "k": K,
        "threshold": THRESHOLD,
        "build_s": build_s,
        "first_query_s": first_s,
        "mean_found": found,
        "query": figures,
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--states", type=int, default=100_000, help="distinct states")
    parser.add_argument("--queries", type=int, default=1000, help="queries of each kind")
    parser.add_argument("--scans", type=int, default=20, help="how many of them the scan answers too")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), options)
    write_result(
        "search", {"command": " ".join(["python benchmarks/search.py", *sys.argv[1:]]), "seed": options.seed, **figures}
    )


if __name__ == "__main__":
    main()
