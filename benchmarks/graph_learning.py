"""Learning with values through the graph, compared with learning from observed returns.

Run: python benchmarks/graph_learning.py [--runs 12] [--episodes 30]

Grids with slips, walls and a trap, a uniform prior, the preset `means`; each run plays its episodes with its own
memory, once with Monte-Carlo evidence and once with a backup through the graph, on the same seeds of slips and
choices. The comparison is of the mean score of an episode over the whole run, and over its last third. A run is one
number; the interval is over the paired differences. Also `same experience`: both estimates from the same uniform play,
and the distance of the resulting policy from optimal, by exact evaluation. The settings were fixed before
the first run. Writes `benchmarks/results/graph_learning.json`.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any

import numpy as np
from workload import write_result

from seasoned import Episode, JitRL, Memory, Step
from seasoned.core import mean_interval
from seasoned.envs import Grid
from seasoned.sync import Sync
from seasoned.types import Backup, EvidenceQuery

GAMMA, BACKUP_BETA = 0.95, 4.0
GRIDS: dict[str, dict[str, Any]] = {
    "open, 5 x 5": {"rows": ["S....", ".#.#.", ".....", ".#T#.", "....G"], "slip": 0.1, "step_cost": 0.01},
    "two rooms": {"rows": ["S..#...", "...#...", ".......", "...#..T", "...#..G"], "slip": 0.1, "step_cost": 0.01},
}
MAX_STEPS = 60


def learn(options: dict[str, Any], backup: float | None, n_episodes: int, seed: int) -> list[float]:
    """Play, learn, and return the scores."""
    scores = []
    with Memory.open(":memory:", gamma=GAMMA) as memory, Sync(Grid(**options, max_steps=MAX_STEPS, seed=seed)) as env:
        policy = JitRL.preset("means", memory, backup=backup, gamma=GAMMA, k=1, threshold=1.0)
        for number in range(n_episodes):
            seen, steps = env.reset(seed=1000 * seed + number), []
            while not (seen.terminated or seen.truncated):
                prior = dict.fromkeys(seen.admissible, -float(np.log(len(seen.admissible))))
                choice = policy.decide(seen.state, prior, step=len(steps), seed=1000 * seed + number)
                state, seen = seen.state, env.step(choice.action)
                steps.append(Step(state, choice.action, seen.reward, prior))
            ending = "terminated" if seen.terminated else "truncated"
            memory.add(Episode("grid", steps, final_state=seen.state, ending=ending))
            scores.append(seen.score)
    return scores


def regret(options: dict[str, Any], n_episodes: int, seed: int) -> dict[str, float]:
    """From one uniform play: the mean over states of V* less Q* of the action that each estimate prefers."""
    rng = np.random.default_rng(seed)
    grid = Grid(**options, max_steps=MAX_STEPS, seed=seed)
    exact = grid.exact_values(GAMMA)
    lost: dict[str, list[float]] = {"returns": [], "graph": []}
    with Memory.open(":memory:", gamma=GAMMA) as memory, Sync(grid) as env:
        for _ in range(n_episodes):
            seen, steps = env.reset(), []
            while not (seen.terminated or seen.truncated):
                state, action = seen.state, seen.admissible[rng.integers(len(seen.admissible))]
                seen = env.step(action)
                steps.append(Step(state, action, seen.reward))
            ending = "terminated" if seen.terminated else "truncated"
            memory.add(Episode("grid", steps, final_state=seen.state, ending=ending))
        for state, v in exact.v.items():
            for name, beta in (("returns", None), ("graph", BACKUP_BETA)):
                found = memory.evidence(
                    EvidenceQuery(
                        state, k=1, unit="states", threshold=1.0, backup=None if beta is None else Backup(beta)
                    )
                )
                if found.n_steps:
                    best = found.actions[int(np.argmax(found.totals / found.weights))]
                    lost[name].append(v - exact.q[state][best])
    return {name: float(np.mean(values)) for name, values in lost.items()}


def main() -> None:
    """Play, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=12, help="at least 10 for a published number")
    parser.add_argument("--episodes", type=int, default=30)
    options = parser.parse_args()
    result: dict[str, Any] = {}
    for name, grid in GRIDS.items():
        arms = {
            arm: np.array([learn(grid, beta, options.episodes, seed) for seed in range(options.runs)])
            for arm, beta in (("returns", None), ("graph", BACKUP_BETA))
        }
        last = options.episodes - options.episodes // 3
        lost = [regret(grid, 20, seed) for seed in range(options.runs)]
        found = {
            "returns": float(arms["returns"].mean()),
            "graph": float(arms["graph"].mean()),
            "returns, last third": float(arms["returns"][:, last:].mean()),
            "graph, last third": float(arms["graph"][:, last:].mean()),
        }
        differences = {
            "graph - returns, all episodes": (arms["graph"] - arms["returns"]).mean(axis=1),
            "graph - returns, last third": (arms["graph"] - arms["returns"])[:, last:].mean(axis=1),
            "regret of the preferred action on the same 20 uniform episodes, graph - returns": np.array(
                [one["graph"] - one["returns"] for one in lost]
            ),
        }
        found |= {f"same experience: regret, {arm}": float(np.mean([one[arm] for one in lost])) for arm in lost[0]}
        print(f"{name}\n" + "\n".join(f"  {key}: {value:+.3f}" for key, value in found.items()))
        for what, values in differences.items():
            interval = mean_interval(values)
            print(f"  {what}: {interval}")
            found[what] = dataclasses.asdict(interval)
        result[name] = found
    write_result(
        "graph_learning",
        {
            "command": " ".join(["python benchmarks/graph_learning.py", *sys.argv[1:]]),
            "runs": options.runs,
            "episodes": options.episodes,
            "gamma": GAMMA,
            "backup_beta": BACKUP_BETA,
            "grids": GRIDS,
            **result,
        },
    )


if __name__ == "__main__":
    main()
