"""The choice of the development suite's text games, by scores of random play before any model plays.

    python benchmarks/games.py

For each challenge, the suite takes the level at which random play earns 10 % to 30 % of the points in 20 steps
and reaches the most situations.
"""

from __future__ import annotations

import asyncio
import random
import statistics

from seasoned.envs import open_env

EXCLUDE = "&exclude=close,drop,examine,insert,inventory,look,put"
GAMES = (
    *(f"textworld:coin_collector?level={level}&seed=31&max_steps=20" for level in (3, 5, 8, 105, 110)),
    *(f"textworld:treasure_hunter?level={level}&seed=31&max_steps=20{EXCLUDE}" for level in (3, 6, 10, 14, 21)),
    f"textworld:cooking?take=1&open=1&cut=1&seed=31&max_steps=20{EXCLUDE}",
)
EPISODES = 40
LOW, HIGH = 0.1, 0.3


async def play(spec):
    """Scores of random play as shares of the maximum, and the distinct situations that it reached."""
    game, rng, situations, scores = open_env(spec), random.Random(0), set(), []
    for episode in range(EPISODES):
        seen = await game.reset(seed=episode)
        while not (seen.terminated or seen.truncated):
            situations.add((seen.state, seen.admissible))
            seen = await game.step(rng.choice(seen.admissible))
        scores.append(seen.score / game.max_score)
    await game.aclose()
    return scores, situations


def main():
    print(f"random play, {EPISODES} episodes of 20 steps\n{'share of points':>16} {'situations':>10}  game")
    for spec in GAMES:
        scores, situations = asyncio.run(play(spec))
        share = statistics.mean(scores)
        mark = "*" if LOW <= share <= HIGH else " "
        print(f"{share:>15.3f}{mark} {len(situations):>10}  {spec}")
    print("* between 10 % and 30 %")


if __name__ == "__main__":
    main()
