"""What choices of people among N options teach, one click at a time, against a Bradley-Terry model of the same clicks.

Run: python benchmarks/choices.py [--runs 200]

Four tables. Every policy decides with an even prior, at the state at which people chose, and with `min_neighbors=1`:

- `one click`: the log-odds of the chosen option to another after one choice among N options.
- `no preference`: clicks at random; the largest probability after 10, 30 and 100 of them. Even is 1 / N.
- `who met whom`: choices between two of four options with the true utilities 2, 1.5, 0 and -1 nats; 45 % of the pairs
  are the first two, 45 % the last two, 10 % the first and the third. The share of runs that rank the first above the
  third.
- `all together`: choices among three options with the true utilities 0, 0.5 and 1; the probability of the best.

Each arm is a preset, with choices as comparisons, and as rewards of N steps (`choices="rewards"`, the rule before
choices were comparisons). Beside them `seasoned.judges.bradley_terry` on the table of wins, the chosen option winning
against each other one. Means over runs with 95 % intervals (bootstrap; Wilson for shares). Writes
`benchmarks/results/choices.json`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from workload import write_result

from seasoned import JitRL, Memory
from seasoned.core import mean_interval, softmax
from seasoned.judges import bradley_terry
from seasoned.types import Choice, Decision

STATE = "which reply would you send"
PRESETS = ("default", "means")
ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    f"{preset}, {choices}": (preset, {"choices": choices, "min_neighbors": 1})
    for preset in PRESETS
    for choices in ("comparisons", "rewards")
}
PEER = "bradley_terry"
MEETINGS, MEETING_SHARES = ((0, 1), (2, 3), (0, 2)), (0.45, 0.45, 0.1)
Click = tuple[tuple[int, ...], int]


def option(number: int) -> str:
    """Return the text of an option."""
    return f"reply number {'abcdefgh'[number]}"


def draw_choice(options: Sequence[int], utilities: Sequence[float], rng: np.random.Generator) -> Click:
    """Return a choice by a person with these utilities."""
    probs = softmax([utilities[number] for number in options])
    return tuple(options), int(rng.choice(len(options), p=probs))


def play(clicks: Sequence[Click], n_options: int, after: Sequence[int]) -> dict[str, dict[int, np.ndarray[Any, Any]]]:
    """Return each arm's probabilities of the options after so many clicks."""
    even = dict.fromkeys(map(option, range(n_options)), 0.0)
    probs: dict[str, dict[int, np.ndarray[Any, Any]]] = {arm: {} for arm in (*ARMS, PEER)}
    wins = np.zeros((n_options, n_options))
    with Memory.open(":memory:") as memory:
        policies = {arm: JitRL.preset(preset, memory, **settings) for arm, (preset, settings) in ARMS.items()}
        for count, (options, chosen) in enumerate(clicks, 1):
            choice = Choice(tuple(map(option, options)), chosen)
            memory.feedback(feedback=choice, task="support", state=STATE, author=f"person {count}")
            wins[options[chosen], [number for number in options if number != options[chosen]]] += 1.0
            if count in after:
                for arm, policy in policies.items():
                    decision: Decision = policy.decide(STATE, even, seed=0)
                    probs[arm][count] = np.array(list(decision.probs.values()))
                probs[PEER][count] = softmax(bradley_terry(wins))
    return probs


def repeated(
    draw: Callable[[np.random.Generator], Click], n_options: int, after: Sequence[int], runs: int
) -> dict[str, dict[int, np.ndarray[Any, Any]]]:
    """Return each arm's probabilities after so many clicks, shape (runs, options)."""
    played = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        played.append(play([draw(rng) for _ in range(max(after))], n_options, after))
    return {arm: {n: np.array([run[arm][n] for run in played]) for n in after} for arm in (*ARMS, PEER)}


def wilson(n_true: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927)."""
    z = 1.959963984540054
    centre, spread = n_true + z * z / 2, z * math.sqrt(n_true * (n - n_true) / n + z * z / 4)
    return (centre - spread) / (n + z * z), (centre + spread) / (n + z * z)


def mean(values: np.ndarray[Any, Any]) -> dict[str, float]:
    """Return a mean with its interval."""
    found = mean_interval(values)
    return {"mean": found.mean, "low": found.low, "high": found.high}


def share(values: np.ndarray[Any, Any]) -> dict[str, float]:
    """Return a share with its interval."""
    low, high = wilson(int(values.sum()), len(values))
    return {"mean": float(values.mean()), "low": low, "high": high}


def show(title: str, columns: Sequence[object], rows: dict[str, list[dict[str, float]]]) -> None:
    """Print a table."""
    print(f"\n{title:<34}" + "".join(f"{column!s:>22}" for column in columns))
    for arm, cells in rows.items():
        texts = [f"{cell['mean']:.2f} [{cell['low']:.2f}, {cell['high']:.2f}]" for cell in cells]
        print(f"{arm:<34}" + "".join(f"{text:>22}" for text in texts))


def main() -> None:
    """Click, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    tables: dict[str, Any] = {}

    sizes = (2, 3, 4, 5, 8)
    single = {n: play([(tuple(range(n)), 0)], n, [1]) for n in sizes}
    rows = {arm: [float(np.log(single[n][arm][1][0] / single[n][arm][1][1])) for n in sizes] for arm in (*ARMS, PEER)}
    print(f"{'one click among N, nats':<34}" + "".join(f"{n:>8}" for n in sizes))
    for arm, shifts in rows.items():
        print(f"{arm:<34}" + "".join(f"{shift:>8.2f}" for shift in shifts))
    tables["one click"] = {"N": sizes, "nats": rows}

    for n in (2, 3):
        after = (10, 30, 100)
        found = repeated(lambda rng, n=n: draw_choice(range(n), [0.0] * n, rng), n, after, runs)
        largest = {arm: [mean(found[arm][count].max(axis=1)) for count in after] for arm in found}
        show(f"no preference, N = {n}: P(max)", after, largest)
        tables[f"no preference, N = {n}"] = {"clicks": after, "largest probability": largest}

    after = (20, 60, 200)
    true = (2.0, 1.5, 0.0, -1.0)
    found = repeated(lambda rng: draw_choice(MEETINGS[rng.choice(3, p=MEETING_SHARES)], true, rng), 4, after, runs)
    ranked = {arm: [share(found[arm][count][:, 0] > found[arm][count][:, 2]) for count in after] for arm in found}
    show("who met whom: A above C", after, ranked)
    tables["who met whom"] = {"clicks": after, "share of runs with A above C": ranked}

    after = (3, 10, 30, 100)
    found = repeated(lambda rng: draw_choice((0, 1, 2), (0.0, 0.5, 1.0), rng), 3, after, runs)
    best = {arm: [mean(found[arm][count][:, 2]) for count in after] for arm in found}
    show("all together: P(best)", after, best)
    tables["all together"] = {"clicks": after, "probability of the best": best}

    print(f"\n{runs} runs, seeds 0 to {runs - 1}")
    command = " ".join(["python benchmarks/choices.py", *sys.argv[1:]])
    write_result("choices", {"command": command, "runs": runs, "tables": tables})


if __name__ == "__main__":
    main()
