"""Times of decision, search, add and opening in two checkouts, paired.

Run: python benchmarks/revisions.py BEFORE AFTER [ROUNDS] [--cpu]

Each round starts one process for each checkout, in random order, on the same data. The table shows the median over
rounds of the ratio after / before with a 95 % bootstrap interval; above 1 is slower. `--cpu` measures the CPU time of
the process, for a machine that does other work: waits, such as those of `add` for the disk, are not in it.

The decision of the policy `default` is compared with that of `default` before, and so is that of `means`, which
`default` was in a checkout that has no preset of this name.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STATES, EPISODES, STEPS, QUERIES, OPENINGS = 4_000, 400, 20, 300, 15


def texts(rng):
    words = [f"word{n}" for n in range(2_000)]
    return [" ".join(rng.sample(words, 30)) for _ in range(STATES)]


def work(folder, clock):
    """Time each operation in this process; print seconds by name."""
    from seasoned import Episode, JitRL, Memory, Step
    from seasoned.errors import UnknownNameError

    rng = random.Random(0)
    states = texts(rng)

    def episode(number):
        rows = [(rng.choice(states), f"action {rng.randrange(5)}", rng.random()) for _ in range(STEPS)]
        return Episode("task", [Step(*row) for row in rows], id=f"e{number}")

    path, found = Path(folder) / "agent.db", {}
    with Memory.open(path) as memory:
        memory.add_many([episode(number) for number in range(EPISODES)])
        singles = [episode(EPISODES + number) for number in range(100)]
        memory.search(states[0])
        began = clock()
        for one in singles:
            memory.add(one)
        found["add"] = (clock() - began) / len(singles)
    openings = []
    for _ in range(OPENINGS):
        began = clock()
        memory = Memory.open(path)
        memory.search(states[0], k=10, threshold=0.5)
        openings.append(clock() - began)
        memory.close()
    found["opening and first query"] = statistics.median(openings)
    memory = Memory.open(path)
    policies = {"default": JitRL(memory)}
    try:
        policies["means"] = JitRL.preset("means", memory)
    except UnknownNameError:
        policies["means"] = JitRL(memory)
    prior = {f"action {n}": -1.6 for n in range(5)}
    asked = [rng.choice(states) for _ in range(QUERIES)]
    began = clock()
    for state in asked:
        memory.search(state, k=10, threshold=0.5)
    found["search"] = (clock() - began) / QUERIES
    for name, policy in policies.items():
        policy.decide(states[0], prior, seed=0)
        began = clock()
        for state in asked:
            policy.decide(state, prior, seed=0)
        found[f"decision of {name}"] = (clock() - began) / QUERIES
    memory.close()
    print(json.dumps(found))


def timed(checkout, clock):
    """Run the work in a process of its own on one checkout."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        command = [sys.executable, __file__, "--work", folder, clock]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def interval(values, rng, n_resamples=2_000):
    """Return the 95 % percentile bootstrap interval of the median."""
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(n_resamples))
    return medians[int(0.025 * n_resamples)], medians[int(0.975 * n_resamples) - 1]


def main():
    if sys.argv[1] == "--work":
        work(sys.argv[2], getattr(time, sys.argv[3]))
        return
    before, after, *more = (argument for argument in sys.argv[1:] if argument != "--cpu")
    before, after, rounds = Path(before), Path(after), int(more[0]) if more else 15
    clock = "process_time" if "--cpu" in sys.argv else "perf_counter"
    rng, found = random.Random(1), []
    for _ in range(rounds):
        pair = {}
        for checkout in rng.sample([before, after], 2):
            pair[checkout] = timed(checkout, clock)
        found.append((pair[before], pair[after]))
    print(f"{'n = ' + str(rounds):<26}{'before, ms':>12}{'after, ms':>12}{'after / before':>26}")
    for name in found[0][0]:
        old, new = ([one[side][name] for one in found] for side in (0, 1))
        ratios = [b / a for a, b in zip(old, new, strict=True)]
        low, high = interval(ratios, rng)
        shown = f"{statistics.median(ratios):.2f} [{low:.2f}, {high:.2f}]"
        print(f"{name:<26}{statistics.median(old) * 1e3:>12.3f}{statistics.median(new) * 1e3:>12.3f}{shown:>26}")


if __name__ == "__main__":
    main()
