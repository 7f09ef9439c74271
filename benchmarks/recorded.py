"""The cost of exact search among states recorded from real play: TextWorld cooking games, played at random.

Run: python benchmarks/recorded.py [--games 6] [--episodes 40]

Each game is generated from its seed. The states of all episodes but the last of each game are stored; the last
episodes' states are the queries. Every kernel of the index answers `search(k=10)` at thresholds 0.5 to 0.95,
alternating with a scan over Python sets, and must give the same answers. Writes `benchmarks/results/recorded.json`.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import statistics
import sys
from typing import Any

from workload import HEADER, percentiles, row, timed_s, write_result

from seasoned.core import jaccard
from seasoned.envs import open_env
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.states import TokenEncoder
from seasoned.sync import Sync

K = 10
THRESHOLDS = (0.95, 0.8, 0.65, 0.5)
GAME = "textworld:cooking?recipe=3&take=2&open=1&cut=1&cook=1&go=6&seed={}"

Features = frozenset[str]


def play(game: int, episodes: int, chosen: random.Random) -> list[list[str]]:
    """Return the states of each episode."""
    played = []
    with Sync(open_env(GAME.format(game))) as env:
        for _ in range(episodes):
            seen, states = env.reset(seed=0), []
            while not (seen.terminated or seen.truncated):
                states.append(seen.state)
                seen = env.step(chosen.choice(seen.admissible))
            played.append(states)
    return played


def scan(stored: list[Features], asked: Features, threshold: float) -> list[tuple[int, float]]:
    """Return the K nearest by comparing all, ties by the later."""
    near = ((jaccard(asked, one), number) for number, one in enumerate(stored))
    best = sorted((pair for pair in near if pair[0] >= threshold), reverse=True)[:K]
    return [(number, similarity) for similarity, number in best]


def main() -> None:
    """Play, ask, print the table, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=6)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    chosen, encoder = random.Random(0), TokenEncoder()
    games = [play(game, options.episodes, chosen) for game in range(1, options.games + 1)]
    stored = list(
        dict.fromkeys(encoder.features(state) for game in games for episode in game[:-1] for state in episode)
    )
    late = list(dict.fromkeys(encoder.features(state) for game in games for state in game[-1]))
    asked = chosen.sample(late, min(options.queries, len(late)))
    token_of = {token: number for number, token in enumerate(sorted(frozenset().union(*stored)))}
    sets = [(i, sorted(token_of[token] for token in one), i) for i, one in enumerate(stored)]
    steps = sum(len(episode) for game in games for episode in game)
    sizes = [len(one) for one in stored]
    print(
        f"{steps:,} steps, {len(stored):,} distinct states of {min(sizes)} to {max(sizes)} tokens stored, "
        f"{sum(one in set(stored) for one in asked)} of {len(asked)} queries met before\n\n{HEADER}"
    )
    figures: dict[str, Any] = {}
    kernels = ["numpy", *(["numba"] if importlib.util.find_spec("numba") else [])]
    indexes = {}
    for kernel in kernels:
        indexes[kernel] = JaccardIndex(kernel=kernel)  # type: ignore[arg-type]
        indexes[kernel].add(sets)
    for threshold in THRESHOLDS:
        seconds: dict[str, list[float]] = {name: [] for name in (*kernels, "scan")}
        for one in asked:
            known = [token_of[token] for token in one if token in token_of]
            took, expected = timed_s(scan, stored, one, threshold)
            seconds["scan"].append(took)
            for kernel, index in indexes.items():
                took, found = timed_s(index.search, known, n_features=len(one), k=K, threshold=threshold)
                seconds[kernel].append(took)
                if found != expected:
                    sys.exit(f"{kernel} answers {found}, a scan {expected}")
        for name, values in seconds.items():
            figures[f"{name}, {threshold}"] = found = percentiles(values)
            print(row(f"{name}, threshold {threshold}", found))
        figures[f"ratio, {threshold}"] = {
            kernel: statistics.median(seconds["scan"]) / statistics.median(seconds[kernel]) for kernel in kernels
        }
    write_result(
        "recorded",
        {
            "command": " ".join(["python benchmarks/recorded.py", *sys.argv[1:]]),
            "k": K,
            "steps": steps,
            "states": len(stored),
            "figures": figures,
        },
    )


if __name__ == "__main__":
    main()
