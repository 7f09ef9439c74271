"""The time of a decision, compared with the model call before it.

Run: python benchmarks/decision.py [--states 10000] [--visits 100000] [--rounds 20]

A store on disk holds 10,000 distinct states, one of them visited 100,000 times. Each round makes one call to the local
model (the prior over 8 candidates, read by label, about 150 prompt tokens, never the same prompt), one decision right
after it, when the processor's caches hold the model's data, and a block of decisions for each case, so that all are
measured under the same load. A decision is `JitRL.decide`: encode, retrieve, estimate, modulate, choose.

The ratio of a round is the median decision of its block divided by its model call; the table gives its mean over rounds
with a 95 % interval, and the worst round. A busy machine slows the call, which uses several threads, more than the
decision, which uses one. So the last column divides the 99th percentile of all decisions by the fastest call of all.
Writes `benchmarks/results/decision.json`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from workload import HEADER, StateMaker, percentiles, row, timed_s, write_result

from seasoned import Episode, JitRL, Memory, Step
from seasoned.core import mean_interval
from seasoned.llms import LabelReader, LocalLLM
from seasoned.sync import Sync

ACTIONS = tuple(f"click {name}" for name in ("save", "back", "next", "submit", "edit", "search", "close", "help"))
PRIOR = dict(zip(ACTIONS, np.linspace(-1.0, -4.0, len(ACTIONS)).tolist(), strict=True))
PROMPT_WORDS = 22  # with the task and the menu about 150 tokens
EPISODE_STEPS = 20
BATCH_EPISODES = 500
PRESETS = ("default", "means", "seed")


def episodes(maker: StateMaker, states: list[str], label: str) -> Iterator[list[Episode]]:
    """Yield the states, in order, as episodes with a random action at each and a reward at the end; in batches."""
    batch: list[Episode] = []
    for first in range(0, len(states), EPISODE_STEPS):
        part = states[first : first + EPISODE_STEPS]
        chosen = maker.rng.integers(len(ACTIONS), size=len(part)).tolist()
        final = float(maker.rng.random() < 0.5)
        rewards = [0.0] * (len(part) - 1) + [final]
        steps = [Step(state, ACTIONS[i], reward) for state, i, reward in zip(part, chosen, rewards, strict=True)]
        batch.append(Episode(f"task {first % 50}", steps, id=f"{label}-{first:07d}"))
        if len(batch) == BATCH_EPISODES:
            yield batch
            batch = []
    if batch:
        yield batch


def build(memory: Memory, maker: StateMaker, states: list[str], hot: str, visits: int) -> None:
    """Store every state once, and the hot one `visits` times in all."""
    for label, visited in (("state", states), ("hot", [hot] * (visits - 1))):
        for batch in episodes(maker, visited, label):
            memory.add_many(batch)


def measure(memory: Memory, maker: StateMaker, options: argparse.Namespace) -> dict[str, object]:
    """Build, then measure; print and return the figures."""
    states, families = maker.distinct(options.states)
    hot = states[len(states) // 2]
    build_s, _ = timed_s(build, memory, maker, states, hot, options.visits)
    stats = memory.stats()
    print(f"{stats.distinct_states} distinct states, {stats.steps} steps, {options.visits} of them at one state")
    print(f"{(stats.size_bytes or 0) / 1e6:.0f} MB on disk, built in {build_s:.1f} s")
    policies = {name: JitRL.preset(name, memory) for name in PRESETS}
    first_s, _ = timed_s(policies["default"].decide, states[0], PRIOR, seed=0)
    print(f"first decision after opening (reads the index): {1e3 * first_s:.0f} ms\n")

    def near() -> str:
        return maker.member(families[int(maker.rng.integers(len(families)))])

    queries: dict[str, Callable[[], str]] = {"a state like stored ones": near, "the hot state": lambda: hot}
    decisions_s: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}
    calls_s: list[float] = []
    tokens: list[int] = []
    modes: dict[str, int] = {}

    def note(case: str, block_s: list[float], call_s: float) -> None:
        decisions_s.setdefault(case, []).extend(block_s)
        ratios.setdefault(case, []).append(float(np.median(block_s)) / call_s)

    llm = LocalLLM()
    with Sync(llm), Sync(LabelReader(llm)) as reader:
        reader.read("Warm up.", "Do the task.", ACTIONS)
        for number in range(options.rounds):
            prompt = " ".join(near().split()[:PROMPT_WORDS])
            call_s, reading = timed_s(reader.read, prompt, "Do the task.", ACTIONS)
            calls_s.append(call_s)
            tokens.append(reading.usage.prompt_tokens)
            seconds, _ = timed_s(policies["default"].decide, near(), PRIOR, seed=number)
            note("default: right after the call", [seconds], call_s)
            for preset, policy in policies.items():
                for name, make in queries.items():
                    case, block_s = f"{preset}: {name}", []
                    for draw in range(options.block):
                        state = make()
                        seconds, decision = timed_s(policy.decide, state, PRIOR, step=draw, seed=number)
                        block_s.append(seconds)
                        modes[case] = modes.get(case, 0) + (decision.mode == "memory")
                    note(case, block_s, call_s)
            memory.add(Episode("fresh", [Step(near(), ACTIONS[0], 1.0)], id=f"fresh-{number}"))
            seconds, _ = timed_s(policies["default"].decide, near(), PRIOR, seed=number)
            note("default: the first after a new episode", [seconds], call_s)
    call = percentiles(calls_s)
    print(HEADER)
    print(row(f"model call ({min(tokens)} to {max(tokens)} prompt tokens)", call))
    cases = {case: percentiles(seconds) for case, seconds in decisions_s.items()}
    for case, figures in cases.items():
        print(row(case, figures))
    print(f"\n{'decision / model call':<44}{'mean over rounds, 95 % interval':<46}{'worst':>9}{'p99/min':>10}")
    table = {}
    for case, values in ratios.items():
        mean = mean_interval(values)
        tail = cases[case]["p99_s"] / call["min_s"]
        between = f"{mean.mean:.3%} [{mean.low:.3%}, {mean.high:.3%}] (n={mean.n})"
        print(f"{case:<44}{between:<46}{max(values):>9.2%}{tail:>10.2%}")
        table[case] = {
            "mean": mean.mean,
            "low": mean.low,
            "high": mean.high,
            "n": mean.n,
            "method": mean.method,
            "worst_round": max(values),
            "p99_decision_over_fastest_call": tail,
        }
        if case in modes:
            table[case]["shifted_by_memory"] = modes[case] / len(decisions_s[case])
    return {
        "states": stats.distinct_states,
        "steps": stats.steps,
        "visits_of_hot_state": options.visits,
        "file_bytes": stats.size_bytes,
        "build_s": build_s,
        "first_decision_s": first_s,
        "model": reading.prior.model,
        "prompt_tokens": [min(tokens), max(tokens)],
        "model_call": call,
        "decision": cases,
        "ratio": table,
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--states", type=int, default=10_000, help="distinct states")
    parser.add_argument("--visits", type=int, default=100_000, help="visits of one of them")
    parser.add_argument("--rounds", type=int, default=20, help="model calls, at least 10 for a published number")
    parser.add_argument("--block", type=int, default=100, help="decisions a case and round")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "memory.db", gamma=0.95) as memory:
        figures = measure(memory, StateMaker(options.seed), options)
    write_result(
        "decision",
        {"command": " ".join(["python benchmarks/decision.py", *sys.argv[1:]]), "seed": options.seed, **figures},
    )


if __name__ == "__main__":
    main()
