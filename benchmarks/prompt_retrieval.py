"""The cost of retrieving examples for a prompt by four keys at once, compared with the memory's plain search.

Run: python benchmarks/prompt_retrieval.py [--steps 10000 100000] [--queries 300]

A store on disk holds N steps at N distinct states (48 to 60 distinct words each), in episodes of 20 steps: one of
50 goals and a noted plan of 12 words an episode, a noted reasoning of 20 words a step, rewards of 0 or 1 at the end.
Every step from the second episode on has a note of the 3 examples that its prompt showed, drawn from the steps of the
first 200 episodes. `Examples.retrieve` is called with new members of stored families, for observations, plans and
reasonings: it searches each key, judges and values the steps, chooses 3 of them, reads their windows of 3 steps and
fits them into 800 tokens. Further cases: states whose steps were shown, which have the most to value; a rule of trust;
and the first query after each of some new episodes, all of whose steps have notes. No model is called. The targets:
below 5 ms (p50) at 100,000 steps, 10 ms after a new episode, and 0.2 s the first time at 10,000 steps, beyond the time
of the indexes of plans and reasonings. Writes `benchmarks/results/prompt_retrieval.json`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from workload import HEADER, StateMaker, percentiles, row, timed_s, write_result

from seasoned import Memory
from seasoned.policies.examples import ExampleQuery, Examples, render
from seasoned.types import JSON

EPISODE_STEPS = 20
GOALS = 50
PLAN_WORDS, REASONING_WORDS = 12, 20
ACTIONS = tuple(f"click {name}" for name in ("save", "back", "next", "submit", "edit", "search", "close", "help"))
SHOWN_EPISODES = 200
MAX_P50_S, MAX_P50_AFTER_S = 5e-3, 10e-3
AFTER = "all four keys, the first after a new episode"


class World:
    """States, plans and reasonings, each in families of near-duplicates; goals of a few words."""

    def __init__(self, seed: int, n_steps: int) -> None:
        self.maker = StateMaker(seed)
        self.rng = self.maker.rng
        self.states, self._families = self.maker.distinct(n_steps)
        self._plans = [self.maker.family()[:PLAN_WORDS] for _ in range(max(10, n_steps // 200))]
        self._reasonings = [self.maker.family()[:REASONING_WORDS] for _ in range(max(10, n_steps // 20))]
        self.goals = [" ".join(self.maker.member(self.maker.family()).split()[:6]) for _ in range(GOALS)]

    def _one(self, families: list[list[int]]) -> str:
        return self.maker.member(families[int(self.rng.integers(len(families)))])

    def plan(self) -> str:
        """Return a plan like others."""
        return self._one(self._plans)

    def reasoning(self) -> str:
        """Return a reasoning like others."""
        return self._one(self._reasonings)

    def goal(self) -> str:
        """Return one of the goals."""
        return self.goals[int(self.rng.integers(GOALS))]

    def query(self, *, full: bool) -> ExampleQuery:
        """Return a query similar to the stored texts."""
        observation = self._one(self._families)
        if not full:
            return ExampleQuery(self.goal(), observation=observation)
        return ExampleQuery(self.goal(), self.plan(), observation, self.reasoning())


def play(memory: Memory, world: World, states: list[str], shown: list[JSON]) -> str:
    """Store one episode with its notes; return its id."""
    with memory.episode(world.goal()) as episode:
        episode.note("plan", {"text": world.plan()})
        for index, state in enumerate(states):
            episode.note("reasoning", {"text": world.reasoning()}, step=index)
            if shown:
                drawn = world.rng.choice(len(shown), size=3, replace=False)
                episode.note("shown", {"examples": [shown[int(i)] for i in drawn]}, step=index)
            last = index == len(states) - 1
            episode.record(state, ACTIONS[int(world.rng.integers(8))], float(last and world.rng.random() < 0.5))
    return str(episode.id)


def measure(folder: Path, n_steps: int, options: argparse.Namespace) -> dict[str, object]:
    """Build, then measure; print and return the figures."""
    world = World(options.seed, n_steps)
    path = folder / f"memory-{n_steps}.db"
    n_episodes = n_steps // EPISODE_STEPS

    shown: list[JSON] = []

    def build(memory: Memory) -> None:
        for number in range(n_episodes):
            of_episode = world.states[number * EPISODE_STEPS : (number + 1) * EPISODE_STEPS]
            id_ = play(memory, world, of_episode, shown)
            if number < SHOWN_EPISODES:
                shown.extend([id_, index] for index in range(EPISODE_STEPS))

    with Memory.open(path) as memory:
        build_s, _ = timed_s(build, memory)
    with Memory.open(path) as memory:
        examples = Examples(memory)
        search_first_s, _ = timed_s(memory.search, world.states[0])
        query = world.query(full=False)
        showings_first_s, _ = timed_s(examples.retrieve, ExampleQuery(query.goal, observation=query.observation))
        first_s, _ = timed_s(examples.retrieve, world.query(full=True))
        print(f"\n{len(memory)} steps, {n_episodes} episodes, stored in {build_s:.0f} s")
        print(
            f"first search after opening {search_first_s:.2f} s; first retrieval after it, which reads what was "
            f"shown where, {showings_first_s:.2f} s; the first by all keys, which indexes plans and reasonings, "
            f"{first_s:.2f} s\n"
        )
        figures: dict[str, dict[str, float]] = {}
        sizes: list[int] = []
        queries = [(world.query(full=False), world.query(full=True)) for _ in range(options.queries)]
        hot = [world.states[int(n)] for n in world.rng.integers(len(shown), size=options.queries)]
        at_hot = dict(zip((id(full) for _, full in queries), hot, strict=True))
        trusting = Examples(memory, trusted=lambda episode: episode.ending != "aborted")
        calls: dict[str, Callable[[ExampleQuery, ExampleQuery], object]] = {
            "search of 10 (the observation alone)": lambda some, full: memory.search(some.observation or ""),
            "examples: goal, observation": lambda some, full: examples.retrieve(some),
            "examples: all four keys": lambda some, full: examples.retrieve(full),
            "examples: at states that were shown": lambda some, full: examples.retrieve(
                ExampleQuery(full.goal, full.plan, at_hot[id(full)], full.reasoning)
            ),
            "examples: all four keys, only trusted ones": lambda some, full: trusting.retrieve(full),
            "examples: for a plan": lambda some, full: examples.retrieve(full, purpose="plan"),
        }
        for name, call in calls.items():
            began_s = time.process_time()
            taken = [timed_s(call, some, full) for some, full in queries]
            figures[name] = percentiles([seconds for seconds, _ in taken])
            figures[name]["cpu_mean_s"] = (time.process_time() - began_s) / len(queries)
            if name == "examples: all four keys":
                sizes = [len(found) for _, found in taken]
                tokens = [examples.count(render(found)) for _, found in taken]
        fresh = []
        for number in range(options.commits):
            play(memory, world, [world.query(full=False).observation or "" for _ in range(EPISODE_STEPS)], shown)
            fresh.append(timed_s(examples.retrieve, queries[number % len(queries)][1])[0])
        figures[AFTER] = percentiles(fresh)
        values_s, standings = timed_s(examples.values)
    print(HEADER)
    for name, of_case in figures.items():
        print(row(name, of_case))
    spent = {name: of_case["cpu_mean_s"] for name, of_case in figures.items() if "cpu_mean_s" in of_case}
    print("\nprocessor time, mean: " + ", ".join(f"{name} {1e3 * s:.2f} ms" for name, s in spent.items()))
    print(f"examples found: {np.mean(sizes):.2f} on average, {np.mean(tokens):.0f} tokens")
    print(f"values() of {len(standings)} examples that were shown: {values_s:.2f} s")
    return {
        "steps": n_steps,
        "build_s": build_s,
        "first_search_s": search_first_s,
        "first_retrieval_s": showings_first_s,
        "first_retrieval_by_all_keys_s": first_s,
        "retrieval": figures,
        "mean_examples": float(np.mean(sizes)),
        "mean_tokens": float(np.mean(tokens)),
        "values_s": values_s,
        "n_shown_examples": len(standings),
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--commits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sizes = [measure(Path(folder), n_steps, options) for n_steps in options.steps]
    write_result(
        "prompt_retrieval",
        {
            "command": " ".join(["python benchmarks/prompt_retrieval.py", *sys.argv[1:]]),
            "seed": options.seed,
            "sizes": sizes,
        },
    )
    goals = {"examples: all four keys": MAX_P50_S, AFTER: MAX_P50_AFTER_S}
    slow = [
        f"{name} at {size['steps']} steps"
        for size in sizes
        for name, goal in goals.items()
        if size["retrieval"][name]["p50_s"] > goal
    ]  # type: ignore[index]
    if slow:
        sys.exit(f"above the goal (p50): {', '.join(slow)}")


if __name__ == "__main__":
    main()
