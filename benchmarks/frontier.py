"""How soon the first point of a maze is found, by rule of exploration: what a frontier through the graph brings.

Run: python benchmarks/frontier.py [--worlds 40] [--episodes 60]

Until the first point all returns are 0, and memory leaves every decision to the model's own policy, here an even one.
Generated games of 20 rooms, of which the last one pays; 60 steps an episode. Three rules, which are prototypes, and the
setting of `JitRL`:

- `even`: the model's own policy.
- `counts`: the odds of an action are divided by 1 + n, n the times that it was taken at this state (Strehl and Littman
  2008).
- `frontier`: `exp(20 U)`, with `U(s, a) = 1` for an untried action and else `0.8 mean max_b U(s', b)` over the stored
  transitions, 0 after a death: the way back to the nearest untried action (Ecoffet et al. 2021).
- `jitrl`: `JitRL(memory, frontier=True)`, which limits the nats.

Writes `benchmarks/results/frontier.json`.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from workload import write_result

from seasoned import Episode, JitRL, Memory, Step
from seasoned.core import mean_interval

N_ROOMS = 20
N_STEPS = 60
NEAR = 0.8  # the discount of a frontier one step away
NATS = 20.0
RULES = ("even", "counts", "frontier", "jitrl")
State = tuple[Any, ...]
KINDS: dict[str, dict[str, Any]] = {
    "chain": {"chain": True},
    "tree": {"chain": False},
    "deadly chain": {"chain": True, "n_deaths": 8},
    "tree, four things": {"chain": False, "n_things": 4},
}


class World:
    """Rooms with exits both ways; some have an action that ends the game, and things can be taken and dropped."""

    def __init__(self, seed: int, *, chain: bool, n_deaths: int = 0, n_things: int = 0) -> None:
        rng = random.Random(seed)
        self.exits: list[list[int]] = [[] for _ in range(N_ROOMS)]
        for room in range(1, N_ROOMS):
            before = room - 1 if chain else rng.randrange(max(0, room - 4), room)
            self.join(room, before)
        for _ in range(N_ROOMS // 4):  # ways back, and for a tree any
            room, other = rng.sample(range(N_ROOMS), 2)
            self.exits[max(room, other)].append(min(room, other))
        self.deadly = set(rng.sample(range(N_ROOMS - 1), n_deaths))
        self.first_places = tuple(rng.randrange(N_ROOMS) for _ in range(n_things))
        self.room, self.places = 0, list(self.first_places)

    def join(self, room: int, other: int) -> None:
        """Make exits between two rooms."""
        self.exits[room].append(other)
        self.exits[other].append(room)

    def reset(self) -> State:
        """Begin an episode; a thing at place -1 is held."""
        self.room, self.places = 0, list(self.first_places)
        return self.state()

    def state(self) -> State:
        """Return what is seen: the room, what lies there, what is held."""
        seen = [(thing, place < 0) for thing, place in enumerate(self.places) if place in (self.room, -1)]
        return self.room, *seen

    def actions(self) -> list[tuple[str, int]]:
        """Return the possible actions."""
        doors = [("go", door) for door in range(len(self.exits[self.room]))]
        things = [("drop" if held else "take", thing) for thing, held in self.state()[1:]]
        return [*doors, *things, *([("jump", 0)] if self.room in self.deadly else [])]

    def step(self, action: tuple[str, int]) -> State | None:
        """Act; return the next state, None after a death."""
        verb, which = action
        if verb == "jump":
            return None
        if verb == "go":
            self.room = self.exits[self.room][which]
        else:
            self.places[which] = -1 if verb == "take" else self.room
        return self.state()


class Explorer:
    """A policy before the first point, and the transitions that it stored."""

    def __init__(self, rule: str) -> None:
        self.rule = rule
        self.after: defaultdict[State, dict[tuple[str, int], Counter[State | None]]] = defaultdict(dict)
        self.n_actions: dict[State, int] = {}
        self.best: dict[State | None, float] = {}

    def value(self, state: State, action: tuple[str, int]) -> float:
        """Return U: 1 for an untried action."""
        after = self.after[state].get(action) if state in self.after else None
        if after is None:
            return 1.0
        return NEAR * sum(n * self.best.get(each, 1.0) for each, n in after.items()) / after.total()

    def learn(self, steps: list[tuple[State, tuple[str, int], State | None]]) -> None:
        """Store an episode, and back the frontier up until nothing moves by a thousandth."""
        for state, action, after in steps:
            self.after[state].setdefault(action, Counter())[after] += 1
        if self.rule != "frontier":
            return
        self.best = {None: 0.0} | {
            state: float(len(tried) < self.n_actions[state]) for state, tried in self.after.items()
        }
        moved = 1.0
        while moved > 1e-3:
            moved = 0.0
            for state, tried in self.after.items():
                best = max(self.best[state], *(self.value(state, action) for action in tried))
                moved, self.best[state] = max(moved, best - self.best[state]), best

    def choose(self, state: State, actions: list[tuple[str, int]], rng: np.random.Generator) -> tuple[str, int]:
        """Draw an action."""
        self.n_actions[state] = len(actions)
        weights = np.ones(len(actions))
        if self.rule == "counts" and state in self.after:
            tried = self.after[state]
            weights = np.array([1.0 / (1.0 + tried[a].total()) if a in tried else 1.0 for a in actions])
        if self.rule == "frontier":
            values = np.array([self.value(state, action) for action in actions])
            weights = np.exp(NATS * (values - values.max()))
        return actions[int(rng.choice(len(actions), p=weights / weights.sum()))]


class PolicyExplorer:
    """The policy itself, over a memory of its own."""

    def __init__(self) -> None:
        self._memory = Memory.open(":memory:")
        self._policy = JitRL(self._memory, frontier=True)
        self._priors: list[dict[str, float]] = []

    def choose(self, state: State, actions: list[tuple[str, int]], rng: np.random.Generator) -> tuple[str, int]:
        """Draw an action."""
        by_name = {f"{verb} {which}": (verb, which) for verb, which in actions}
        self._priors.append(dict.fromkeys(by_name, -float(np.log(len(by_name)))))
        draw = int(rng.integers(2**31))
        return by_name[self._policy.decide(_text(state), self._priors[-1], task="find it", seed=draw).action]

    def learn(self, steps: list[tuple[State, tuple[str, int], State | None]]) -> None:
        """Store an episode."""
        stored = [
            Step(_text(state), f"{action[0]} {action[1]}", prior=prior)
            for (state, action, _), prior in zip(steps, self._priors, strict=True)
        ]
        last = steps[-1][2]
        ending = {"ending": "terminated"} if last is None else {"ending": "truncated", "final_state": _text(last)}
        self._memory.add(Episode("find it", stored, **ending))
        self._priors = []


def _text(state: State) -> str:
    return f"room{state[0]} " + " ".join(f"thing{thing}{'held' if held else 'here'}" for thing, held in state[1:])


def episodes_before_first_point(world: World, rule: str, seed: int, most: int) -> int:
    """Return how many episodes earned nothing; `most` if all of them."""
    explorer: Explorer | PolicyExplorer = PolicyExplorer() if rule == "jitrl" else Explorer(rule)
    rng = np.random.default_rng(seed)
    for episode in range(most):
        state: State | None = world.reset()
        steps = []
        for _ in range(N_STEPS):
            assert state is not None
            before, action = state, explorer.choose(state, world.actions(), rng)
            state = world.step(action)
            if world.room == N_ROOMS - 1:
                return episode
            steps.append((before, action, state))
            if state is None:
                break
        explorer.learn(steps)
    return most


def main() -> None:
    """Play, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--first", type=int, default=3000, help="the seed of the first world")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"{'game':<20}{'rule':<10}{'episodes':>9}{'never':>7}   ln((1 + episodes) / (1 + those of even))")
    for kind, settings in KINDS.items():
        even = np.zeros(0)
        for rule in RULES:
            found = np.array(
                [
                    episodes_before_first_point(World(options.first + seed, **settings), rule, seed, options.episodes)
                    for seed in range(options.worlds)
                ]
            )
            even = found if rule == "even" else even
            ratio = None if rule == "even" else mean_interval(np.log((1.0 + found) / (1.0 + even)))
            never = float(np.mean(found == options.episodes))
            row = {"game": kind, "rule": rule, "episodes": float(found.mean()), "never": never}
            rows.append(row | ({} if ratio is None else {"log_ratio": dataclasses.asdict(ratio)}))
            print(f"{kind:<20}{rule:<10}{row['episodes']:>9.1f}{never:>7.2f}   {ratio or ''}", flush=True)
    write_result(
        "frontier",
        {"command": " ".join(["python benchmarks/frontier.py", *sys.argv[1:]]), "worlds": options.worlds, "rows": rows},
    )


if __name__ == "__main__":
    main()
