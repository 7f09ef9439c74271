"""Guard of tool calls on scripted sessions with repeated failures: doomed calls that it stops, and false stops.

Run: python benchmarks/guard.py [--runs 10] [--requests 240]

A run has a repository of its own with 12 chores, drawn by its seed. A request is one chore: with probability 0.6 the
agent first calls the command that fails in this repository, and then the one that works; it learns nothing. Of the
twelve wrong commands eight always fail, two fail by chance (0.3), and two fail until the middle of the run and work
from then on (they were repaired). Before its chore a request runs the tests, which are red with probability 0.5 and say
so with exit code 1, and `git status`, which works.

The sessions pass through the documents of hooks, as from Claude Code, into `CommandGuard(answer="deny")`, with its
holdout. A stopped call has no outcome. Counted are, over the second half of the requests too: `doomed`: of the calls of
commands that always fail, the share stopped, and `flagged`, with those that the control group let pass; `repaired`: of
the calls of repaired commands that would work, the share stopped; `chance`: of the calls by chance that would work;
`red`: of the red test runs; `working`: of all other calls that would work. Intervals: 95 %, bootstrap over runs
(`seasoned.core.mean_interval`). Writes `benchmarks/results/guard.json`.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path

from workload import write_result

from seasoned import Memory
from seasoned.chat.wrapped.command_guard import CommandGuard
from seasoned.core import mean_interval

ROOT = Path("/repo")
ERROR = "Exit code 1\nerror: no such target"
RED = "Exit code 1\n2 failed, 3 passed in 0.1s"
KINDS = ("doomed", "chance", "repaired", "red", "working")


def played(guard: CommandGuard, command: str, error: str | None) -> tuple[bool, bool]:
    """Make a call that would end with the error; return whether it was stopped, and whether it was flagged."""
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t", "cwd": str(ROOT)}
    withheld = guard.tally.n_withheld
    stopped = guard.handle({**call, "hook_event_name": "PreToolUse"}) is not None
    if not stopped and error is None:
        guard.handle({**call, "hook_event_name": "PostToolUse", "tool_response": {"stdout": "fine", "stderr": ""}})
    elif not stopped:
        guard.handle({**call, "hook_event_name": "PostToolUseFailure", "error": error})
    return stopped, stopped or guard.tally.n_withheld > withheld


def run(seed: int, n_requests: int) -> dict[str, float]:
    """Return the shares of one run."""
    draw, made = random.Random(seed), Counter[str]()
    wrong = [*["doomed"] * 8, *["chance"] * 2, *["repaired"] * 2]
    with Memory.open(":memory:", gamma=0.0) as memory:
        guard = CommandGuard(memory, ROOT, "deny")

        def call(kind: str, command: str, error: str | None, half: str) -> None:
            stopped, flagged = played(guard, command, error)
            for name in (kind, f"{kind} {half}"):
                made[f"{name}, calls"] += 1
                made[f"{name}, stopped"] += stopped
                made[f"{name}, flagged"] += flagged

        for number in range(n_requests):
            half = "first half" if 2 * number < n_requests else "second half"
            chore = draw.randrange(len(wrong))
            guard.handle({"hook_event_name": "UserPromptSubmit", "prompt": f"chore {chore}"})
            is_red = draw.random() < 0.5
            call("red" if is_red else "working", "make test", RED if is_red else None, half)
            call("working", "git status", None, half)
            if draw.random() < 0.6:
                kind = wrong[chore]
                fails = {"doomed": True, "chance": draw.random() < 0.3, "repaired": 2 * number < n_requests}[kind]
                counted = kind if fails == (kind == "doomed") else "failing for now"
                call(counted, f"tool-{chore} build part-{chore}", ERROR if fails else None, half)
            call("working", f"make part-{chore}", None, half)
            guard.handle({"hook_event_name": "Stop"})
    shares = {}
    for kind in (*KINDS, *(f"{kind} second half" for kind in KINDS)):
        for what in ("stopped", "flagged"):
            if n := made[f"{kind}, calls"]:
                shares[f"{kind}, {what}"] = made[f"{kind}, {what}"] / n
    return {**shares, **{f"n {kind}": float(made[f"{kind}, calls"]) for kind in KINDS}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--requests", type=int, default=240)
    options = parser.parse_args()
    runs = [run(seed, options.requests) for seed in range(options.runs)]
    figures = {}
    for name in sorted({name for each in runs for name in each}):
        values = [each[name] for each in runs if name in each]
        interval = mean_interval(values)
        figures[name] = {"mean": interval.mean, "low": interval.low, "high": interval.high, "n_runs": len(values)}
        print(f"{name:<36}{interval.mean:>8.3f}  {interval.low:.3f} to {interval.high:.3f}  n={len(values)}")
    command = f"python benchmarks/guard.py --runs {options.runs} --requests {options.requests}"
    write_result("guard", {"command": command, "seeds": list(range(options.runs)), "figures": figures})


if __name__ == "__main__":
    main()
