"""The effect of examples in the prompt on a small model, by selection of the examples and by reading method.

Run: python benchmarks/following.py [--games 35 37 39 41 43] [--episodes 60] [--cache PATH]

For each of some TextWorld games a memory is filled with episodes of random actions. The observed transitions determine
the best action at a state (the shortest way to the reward, discount 0.95). Then the model's own policy is read at the
states of the shortest way, and at up to four more: with nothing before the state, with plain retrieval of past
successes (`top-k`), and with examples chosen by value (`prompt`), at the same window of tokens. The figure is the
probability of a best action, averaged over a game's states; games are the sample: t intervals, paired by game. The
model is read by label (a letter of a menu), and by the probability of each action's own words, with the actions listed
in a line, or not at all.

The form of the examples and of the question was chosen on other games (29, 31 and 33).
Writes `benchmarks/results/following.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import sys
from pathlib import Path
from typing import Any, cast

from workload import write_result

from seasoned import Episode, Memory, Step
from seasoned.build import close_reader, make_reader, open_env
from seasoned.core import mean_interval
from seasoned.lab.arms.registry import build_arm
from seasoned.lab.suites.suite import ArmSpec
from seasoned.protocols import PriorReader

GAME = "textworld:treasure_hunter?level=21&seed={}&max_steps=12&exclude=close,drop,examine,insert,inventory,look,put"
WAYS: dict[str, dict[str, Any]] = {
    "label": {"method": "label"},
    "words, in a line": {"method": "exact", "menu": "line", "prefix_cache": True},
    "words, not shown": {"method": "exact", "menu": "none", "prefix_cache": True},
}
GAMMA, WINDOW_TOKENS, MORE_STATES = 0.95, 300, 4


async def played(spec: str, n_episodes: int, seed: int) -> tuple[list[Episode], dict[str, tuple[str, ...]]]:
    """Return episodes of random actions, and which actions are possible at each state that was seen."""
    environment, rng, possible = open_env(spec), random.Random(seed), {}
    episodes = []
    for number in range(n_episodes):
        seen, steps = await environment.reset(seed=number), []
        while not (seen.terminated or seen.truncated):
            possible[seen.state] = tuple(seen.admissible or ())
            action = rng.choice(possible[seen.state])
            then = await environment.step(action)
            steps.append(Step(seen.state, action, then.reward))
            seen = then
        episodes.append(
            Episode(environment.task, steps, f"e{number}", seen.state, "terminated" if seen.terminated else "truncated")
        )
    await environment.aclose()
    return episodes, possible


def best_actions(episodes: list[Episode]) -> tuple[dict[str, frozenset[str]], list[str]]:
    """Return the best actions by state, from the observed transitions, and the states of the shortest way in order.

    A text identifies a state. The successor of a state and an action is the last observed one.
    """
    leads: dict[tuple[str, str], tuple[str | None, float]] = {}
    for episode in episodes:
        states = [step.state for step in episode.steps]
        for step, after in zip(episode.steps, [*states[1:], None], strict=True):
            leads[step.state, step.action] = (None if step.reward > 0.0 else after, step.reward)
    worth: dict[str, float] = {}
    value = dict.fromkeys(leads, 0.0)
    for _ in range(100):
        for place, (after, reward) in leads.items():
            value[place] = reward + GAMMA * worth.get(after or "", 0.0)
        for (state, _), of_action in value.items():
            worth[state] = max(of_action, 0.0) if state not in worth else max(worth[state], of_action)
    best = {
        state: frozenset(a for (s, a), v in value.items() if s == state and v >= top - 1e-9)
        for state, top in worth.items()
        if top > 0.0
    }
    way: list[str] = []
    at: str | None = episodes[0].steps[0].state
    while at in best and at not in way:
        way.append(at)
        at = leads[at, min(best[at])][0]
    return best, way


async def measure(spec: str, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return by way of reading and arm the mean probability of a best action at a game's states."""
    episodes, possible = await played(spec, options.episodes, options.seed)
    best, way = best_actions(episodes)
    asked = [state for state in [*way, *(s for s in best if s not in way)] if len(possible[state]) > 1]
    asked = asked[: sum(state in way for state in asked) + MORE_STATES]
    found: dict[str, dict[str, float]] = {}
    with Memory.open(":memory:", gamma=GAMMA) as memory:
        for episode in episodes:
            memory.add(episode)
        for name, settings in WAYS.items():
            reader = make_reader("local", cache=options.cache, threads=options.threads, **settings)
            chances: dict[str, list[float]] = {"alone": [], "top-k": [], "prompt": []}
            for kind, of_states in chances.items():
                given = {} if kind == "alone" else {"window_tokens": WINDOW_TOKENS}
                arm = build_arm(
                    ArmSpec(kind, kind, given), memory=memory, llm=getattr(reader, "llm", None), reader=reader, seed=0
                )
                for episode in episodes:
                    if arm.learn is not None:
                        await arm.learn(episode)
                for state in asked:
                    prior = (await cast(PriorReader, arm.reader).read(state, episodes[0].task, possible[state])).prior
                    of_states.append(sum(math.exp(prior[action]) for action in best[state]))
            found[name] = {kind: sum(of_states) / len(of_states) for kind, of_states in chances.items()}
            await close_reader(reader)
    won = sum(sum(step.reward for step in episode.steps) > 0.0 for episode in episodes)
    print(f"{spec}: {won} of {len(episodes)} random episodes won, {len(asked)} states, {len(way)} of them on the way")
    return found


def main() -> None:
    """Measure, print the table and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--games", type=int, nargs="+", default=[35, 37, 39, 41, 43], help="Seeds of the games.")
    parser.add_argument("--episodes", type=int, default=60, help="Random episodes that fill a memory.")
    parser.add_argument("--cache", type=Path, help="File of the model's answers.")
    parser.add_argument("--threads", type=int, default=2, help="Of the model.")
    parser.add_argument("--seed", type=int, default=0, help="Of the random actions.")
    options = parser.parse_args()
    games = {seed: asyncio.run(measure(GAME.format(seed), options)) for seed in options.games}
    rows = []
    for name in WAYS:
        of_way = [game[name] for game in games.values()]
        compared = {
            f"{more} - {less}": mean_interval([one[more] - one[less] for one in of_way])
            for more, less in (("prompt", "alone"), ("prompt", "top-k"), ("top-k", "alone"))
        }
        means = {kind: sum(one[kind] for one in of_way) / len(of_way) for kind in of_way[0]}
        rows.append({"read by": name, **means, **{pair: vars_of(interval) for pair, interval in compared.items()}})
        print(
            f"{name:18}",
            *(f"{kind} {mean:.2f}" for kind, mean in means.items()),
            *(f"{pair} {i.mean:+.2f} [{i.low:+.2f}, {i.high:+.2f}]" for pair, i in compared.items()),
            sep="  ",
        )
    write_result(
        "following",
        {
            "command": " ".join(["python benchmarks/following.py", *sys.argv[1:]]),
            "n_games": len(games),
            "window_tokens": WINDOW_TOKENS,
            "rows": rows,
            "games": {str(seed): found for seed, found in games.items()},
        },
    )


def vars_of(interval: Any) -> dict[str, float]:
    """Return an interval's figures."""
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


if __name__ == "__main__":
    main()
