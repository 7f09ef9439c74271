"""A comparison of settings of the estimator on development games, for which no result is reported.

Run: python benchmarks/development.py [--game 1 --game 3] [--episodes 40] [--seeds 8]

TextWorld cooking games like the demo's, of other seeds, with a uniform prior in place of a model, so that only memory
distinguishes actions. All settings play the same seeds; the table gives the mean score over all episodes, and its
paired difference from the preset `means` with a 95 % interval. Writes `benchmarks/results/development.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import sys
from typing import Any

import numpy as np
from workload import write_result

from seasoned import JitRL, Memory
from seasoned.agents import UniformReader, play_run
from seasoned.build import open_env
from seasoned.core import mean_interval

GAME = "textworld:cooking?take=1&open=1&cut=1&seed={}&max_steps=20&exclude=close,drop,examine,insert,inventory,look,put"
SETTINGS: dict[str, dict[str, Any]] = {"means": {}, "kappa=None": {"kappa": None}, "levels=own": {"levels": "own"}}
FIRST_SEED = 100


async def scores(game: int, settings: dict[str, Any], seed: int, episodes: int) -> list[float]:
    """Return the score of each episode of one run."""
    environment = open_env(GAME.format(game))
    try:
        with Memory.open(":memory:") as memory:
            results = await play_run(
                environment,
                JitRL.preset("means", memory, **settings),
                UniformReader(),
                memory=memory,
                episodes=episodes,
                seed=seed,
            )
    finally:
        await environment.aclose()
    return [result.score for result in results]


def main() -> None:
    """Play, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--game", type=int, action="append", help="seed of a game; may be given again")
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"{'game':<6}{'settings':<14}{'mean score':>11}   minus means")
    for game in options.game or [1, 3]:
        means: dict[str, np.ndarray[Any, Any]] = {}
        for name, settings in SETTINGS.items():
            seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
            runs = [asyncio.run(scores(game, settings, seed, options.episodes)) for seed in seeds]
            means[name] = np.mean(runs, axis=1)
            difference = None if name == "means" else mean_interval(means[name] - means["means"])
            row = {"game": game, "settings": name, "mean": float(means[name].mean())}
            rows.append(row | ({} if difference is None else {"minus_means": dataclasses.asdict(difference)}))
            print(f"{game:<6}{name:<14}{row['mean']:>11.3f}   {difference or ''}", flush=True)
    write_result(
        "development",
        {
            "command": " ".join(["python benchmarks/development.py", *sys.argv[1:]]),
            "episodes": options.episodes,
            "seeds": options.seeds,
            "first_seed": FIRST_SEED,
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main()
