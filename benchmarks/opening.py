"""Time and memory of opening a store until the first answer, and the time of a query after another process's commit.

Run: python benchmarks/opening.py [--states 10000 100000 1000000] [--rounds 3] [--commits 30] [--folder DIR]

A store of N distinct states (48 to 60 distinct words each, ten steps an episode) is built once and kept in `--folder`
for the next run. Then, in a fresh process each round: everything is imported and a small memory in RAM is searched
once, so that neither imports nor compilation count; the store is opened and queried for the 10 nearest steps at 0.8.
The resident memory (RSS) is read before and after. The texts of the states stay on disk, so the whole growth is
"beyond the text". On a copy of the store, a second process then commits one episode at a time. The next query of the
first process, which has to read the episode, is timed, and also a query without a new episode. Writes
`benchmarks/results/opening.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from commits import spread
from episodes import EPISODE_STEPS, EpisodeMaker
from workload import timed_s, write_result

from seasoned import Memory
from seasoned.memory.stores.sqlite_schema import SCHEMA_VERSION

BATCH_EPISODES = 1_000
MAX_OPENING_S = 3.0
MAX_BYTES_A_TOKEN = 10.0  # 600 bytes at 60 tokens
MAX_GROWTH = 3.0


def make_store(folder: Path, n: int, seed: int) -> tuple[Path, dict[str, Any]]:
    """Build the store, or find an earlier one; return its path and the build time."""
    path = folder / f"opening-{n}-{seed}-v{SCHEMA_VERSION}.db"
    notes = path.with_suffix(".json")
    if not notes.exists():
        for left in folder.glob(f"{path.name}*"):
            left.unlink()
        print(f"making {path}")
        made_s = stored_s = 0.0
        maker = EpisodeMaker(seed)
        with Memory.open(path) as memory:
            for first in range(0, n // EPISODE_STEPS, BATCH_EPISODES):
                took_s, episodes = timed_s(maker.episodes, min(BATCH_EPISODES, n // EPISODE_STEPS - first))
                made_s += took_s
                stored_s += timed_s(memory.add_many, episodes)[0]
        tokens = sum(len(set(step.state.split())) for episode in episodes for step in episode.steps)
        figures = {
            "stored_s": stored_s,
            "states_made_s": made_s,
            "steps_per_s": n / stored_s,
            "tokens_a_state": tokens / (len(episodes) * EPISODE_STEPS),
        }
        notes.write_text(json.dumps(figures))
    return path, json.loads(notes.read_text())


def rss_bytes() -> int:
    """Return this process's resident memory. Linux only."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """Return the most that it ever was."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def child(path: Path, seed: int, commits: int) -> dict[str, Any]:
    """Open and ask, in this process; then ask again after each of another's commits, if any."""
    maker = EpisodeMaker(seed + 1)
    with Memory.open(":memory:") as small:
        small.add_many(maker.episodes(10))
        small.search("warm up", k=10, threshold=0.8)
    queries = maker.states(2 * commits + 1)
    before = rss_bytes()
    opened_s, memory = timed_s(Memory.open, path)
    asked_s, _ = timed_s(memory.search, queries.pop(), k=10, threshold=0.8)
    found: dict[str, Any] = {
        "opened_s": opened_s,
        "first_query_s": asked_s,
        "bytes": rss_bytes() - before,
        "peak_bytes": peak_bytes() - before,
    }
    if not commits:
        return found
    command = [sys.executable, __file__, "--write", str(path), "--seed", str(seed)]
    fresh_s, known_s = [], []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        for _ in range(commits):
            print("commit", file=writer.stdin, flush=True)
            state = json.loads(next(iter(writer.stdout or ())))
            took_s, near = timed_s(memory.search, state, k=1, threshold=1.0)
            if len(near) != 1:
                sys.exit(f"{path}: the episode that another process committed was not found")
            fresh_s.append(took_s)
            known_s.append(timed_s(memory.search, queries.pop(), k=10, threshold=0.8)[0])
    return {**found, "after_commit_s": fresh_s, "nothing_new_s": known_s}


def write(path: Path, seed: int) -> None:
    """Commit an episode whenever a line comes in, and answer with one of its states."""
    maker = EpisodeMaker(seed + 2)
    with Memory.open(path) as memory:
        for number, _ in enumerate(sys.stdin):
            (episode,) = maker.episodes(1)
            steps = episode.steps
            memory.add(type(episode)(f"fresh {number}", steps, id=f"fresh-{number}"))
            time.sleep(0.01)  # exclude the disk's remaining work for the commit
            print(json.dumps(steps[-1].state), flush=True)


def in_child(path: Path, seed: int, commits: int) -> dict[str, Any]:
    """Run `child` in a fresh process."""
    command = [sys.executable, __file__, "--open", str(path), "--seed", str(seed), "--commits", str(commits)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def measure(n: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure at one size; print and return the figures."""
    path, made = make_store(options.folder, n, options.seed)
    rounds = [in_child(path, options.seed, 0) for _ in range(options.rounds)]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        copied = shutil.copy(path, folder)
        fresh = in_child(Path(copied), options.seed, options.commits)
    result = {
        **made,
        "states": n,
        "file_bytes": path.stat().st_size,
        "open_and_first_query_s": spread([one["opened_s"] + one["first_query_s"] for one in rounds]),
        "bytes_a_state": spread([one["bytes"] / n for one in rounds]),
        "peak_bytes_a_state": spread([one["peak_bytes"] / n for one in rounds]),
        "after_commit_s": spread(fresh["after_commit_s"]),
        "nothing_new_s": spread(fresh["nothing_new_s"]),
    }
    opened, size = result["open_and_first_query_s"], result["bytes_a_state"]
    print(
        f"\n{n} states of {made['tokens_a_state']:.1f} tokens, {result['file_bytes'] / n:.0f} bytes each on disk; "
        f"written in {made['stored_s']:.0f} s ({made['steps_per_s']:.0f} steps/s)\n"
        f"open and first query: {opened['median']:.2f} s [{opened['min']:.2f} to {opened['max']:.2f}, "
        f"n = {opened['n']}]; {size['median']:.0f} bytes a state beyond the text (at the peak "
        f"{result['peak_bytes_a_state']['median']:.0f})"
    )
    for name in ("after_commit_s", "nothing_new_s"):
        f = result[name]
        print(
            f"query, {name[:-2].replace('_', ' ')}: {1e3 * f['median']:.2f} ms "
            f"[{1e3 * f['min']:.2f} to {1e3 * f['max']:.2f}, n = {f['n']}]"
        )
    return result


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--states", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="distinct states")
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes that open each store")
    parser.add_argument("--commits", type=int, default=30, help="episodes that another process commits")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "seasoned-opening")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.open is not None:
        print(json.dumps(child(options.open, options.seed, options.commits)))
        return
    if options.write is not None:
        write(options.write, options.seed)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    sizes = {str(n): measure(n, options) for n in options.states}
    most = sizes[str(max(options.states))]
    least = sizes[str(min(options.states))]
    # The additional time of the first query after a commit.
    growth = most["after_commit_s"]["median"] / least["after_commit_s"]["median"]
    bytes_a_token = most["bytes_a_state"]["median"] / most["tokens_a_state"]
    reached = {
        "open and first query under 3 s": most["open_and_first_query_s"]["median"] < MAX_OPENING_S,
        "at most 10 bytes a token (600 at 60)": bytes_a_token <= MAX_BYTES_A_TOKEN,
        "a query after a commit does not grow with N": growth < MAX_GROWTH,
    }
    print(
        f"\n{max(options.states) / min(options.states):.0f} times as many states: a query after a commit takes "
        f"{growth:.1f} times as long"
    )
    for what, so in reached.items():
        print(f"{what}: {'reached' if so else 'NOT reached'}")
    write_result(
        "opening",
        {
            "command": " ".join(["python benchmarks/opening.py", *sys.argv[1:]]),
            "seed": options.seed,
            "sizes": sizes,
            "after_commit_growth": growth,
            "targets": reached,
        },
    )


if __name__ == "__main__":
    main()
