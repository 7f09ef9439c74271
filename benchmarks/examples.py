"""Every worked example at its whole size: the curves it prints, and a picture of the four about agents and people.

Run: python benchmarks/examples.py [--only NAME ...] [--plot docs/how-to/worked-examples.png]

Each runs as a user runs it, in a process of its own; what is kept is what it prints: the mean of each arm in four
blocks of the run, over independent seeds, and the gain of the last arm over the first, paired by seed, with its 95 %
interval.
Writes `benchmarks/results/examples.json`, of all of them only, and the picture if asked.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from workload import write_result

EXAMPLES = Path(__file__).parents[1] / "examples"
PICTURED = {
    "filing_agent": "File-system agent: jobs done",
    "coding_agent": "Coding agent: patches merged",
    "human_choices": "Support triage: right first draws",
    "edits": "Replies: share of a draft that could stay",
}
ROW = re.compile(r"^(\d+)-(\d+) +([\d. ]+?) +([-+]\d\.\d+) \[([-+]\d\.\d+), ([-+]\d\.\d+)\] \(n=(\d+),", re.MULTILINE)
HEAD = re.compile(r"^([a-z]+)   +((?:[a-z]+ +)+)([a-z]+) - ([a-z]+), paired by run$", re.MULTILINE)


def measured(name: str) -> dict[str, Any]:
    """Run one example; return its arms, its blocks, and how long it took."""
    began = time.perf_counter()
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    head = HEAD.search(done.stdout)
    if done.returncode or head is None:
        sys.exit(f"{name}: {done.stderr or done.stdout}")
    blocks = [
        {
            "first": int(first), "last": int(last), "means": [float(mean) for mean in means.split()],
            "gain": float(gain), "low": float(low), "high": float(high), "n": int(n),
        }
        for first, last, means, gain, low, high, n in ROW.findall(done.stdout)
    ]  # fmt: skip
    return {"unit": head[1], "arms": head[2].split(), "blocks": blocks, "elapsed_s": time.perf_counter() - began}


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw the arms of the four by block, each with its gain at the end."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
    for axis, (name, title) in zip(axes.flat, PICTURED.items(), strict=True):
        blocks, arms = results[name]["blocks"], results[name]["arms"]
        middles = [(block["first"] + block["last"]) / 2 for block in blocks]
        for place, arm in enumerate(arms):
            style = {0: ("#8c8c8c", "--", "s"), len(arms) - 1: ("#0b4f8a", "-", "o")}.get(place, ("#d55e00", ":", "^"))
            means = [block["means"][place] for block in blocks]
            axis.plot(middles, means, color=style[0], linestyle=style[1], marker=style[2], label=arm)
        end = blocks[-1]
        gain = f"{arms[-1]} - {arms[0]} at the end: {end['gain']:+.2f} [{end['low']:+.2f}, {end['high']:+.2f}]"
        axis.set_title(f"{title}\n{gain}", fontsize=10)
        axis.set(xlabel=f"{results[name]['unit']} seen", ylim=(0.0, 1.0), xlim=(0.0, end["last"]))
        axis.legend(frameon=False, loc="best", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    known = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    parser.add_argument("--only", nargs="+", choices=known, default=known, metavar="NAME")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    if options.plot and not set(PICTURED) <= set(options.only):
        parser.error(f"the picture shows {', '.join(PICTURED)}: run them all")
    results: dict[str, Any] = {}
    print(f"{'example':<15}{'blocks, last arm - first':<40}at the end")
    for name in options.only:
        results[name] = measured(name)
        *_, end = blocks = results[name]["blocks"]
        gains = " ".join(f"{block['gain']:+.2f}" for block in blocks)
        interval = f"{end['gain']:+.3f} [{end['low']:+.3f}, {end['high']:+.3f}] (n={end['n']})"
        print(f"{name:<15}{gains:<40}{interval}, {results[name]['elapsed_s']:.0f} s")
    if options.plot:
        draw(results, options.plot)
    if options.only == known:
        command = " ".join(["python benchmarks/examples.py", *sys.argv[1:]])
        write_result("examples", {"command": command, "examples": results})


if __name__ == "__main__":
    main()
