"""The model of scale: bytes, seconds and dollars for 10^7 to 10^10 experiences, compared with measurements.

Run: python benchmarks/scale.py [--postgres] [--write | --check] [--simulate STEPS:NAMESPACES ...] [--textworld 40]

1. Constants are measured: bytes on disk by table and row (SQLite's `dbstat`; PostgreSQL's relation sizes), core
   seconds of batch writing by step, new state and namespace, bytes of index by namespace and state, seconds of loading
   and querying by size.
2. The model predicts stores of other sizes (`scale_model.py`), which are then built and measured; the error of each
   prediction is reported. Each namespace visits new states by Heaps' law, `c n^h` after n steps.
3. The model's figures for 10^7 to 10^10 experiences over 10^5 namespaces are printed, and with `--write` put into
   `docs/explanation/scale.md` between its markers; `--check` fails if the page and
   `benchmarks/results/scale.json` disagree. `--textworld` measures the growth on random TextWorld play (a minute for
   40).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from episodes import ACTIONS, EPISODE_STEPS, EpisodeMaker
from scale_model import KINDS, PRICES, Growth, Shape, bill, predict_bytes, predict_write_s
from scale_page import check_page, write_page
from token_sets import TokenSetMaker
from workload import timed_s, write_result

from seasoned import Episode, Memory
from seasoned.memory.index.jaccard import JaccardIndex

GROWTH = Growth(1.3, 0.8)
SIZES = (10**7, 10**8, 10**9, 10**10)
NAMESPACES = 10**5
HOT_SHARE = 0.1
SIMULATED = ("10000:100", "100000:300", "1000000:1000")
VOCABULARY_AT = (10, 100, 1_000, 10_000, 100_000)
LOADED_AT = (100, 1_000, 10_000, 50_000)
INDEXED_AT = (1_000, 50_000)
MEASURED_NAMESPACES, MEASURED_STEPS = 100, 500


class GrowingMaker(EpisodeMaker):
    """Episodes of one namespace; step n visits a new state with the probability by Heaps' law."""

    def __init__(self, seed: int, growth: Growth) -> None:
        super().__init__(seed, 0.5)  # any repetition: `again` decides
        self._growth = growth
        self._steps = 0

    def again(self, n_steps: int) -> Any:
        """Return for each of the next steps whether its state was met before."""
        at = np.arange(self._steps, self._steps + n_steps + 1)
        self._steps += n_steps
        met = np.array([self._growth.states(float(n)) for n in at])
        return self._sets.rng.random(n_steps) >= np.diff(met)


# ---------------------------------------------------------------------------------------------- constants


def sqlite_tables(path: Path) -> dict[str, tuple[int, int]]:
    """Return each table's rows and bytes, indexes included."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        sizes = connection.execute(
            "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_master ON sqlite_master.name = dbstat.name GROUP BY 1"
        ).fetchall()
        return {
            table: (connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0], size) for table, size in sizes
        }


def postgres_tables(url: str) -> dict[str, tuple[int, int]]:
    """Return each table's rows and bytes, indexes included, after a VACUUM."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM")
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'seasoned'").fetchall()
        return {
            name: connection.execute(  # type: ignore[misc]
                f"SELECT (SELECT count(*) FROM seasoned.{name}), pg_total_relation_size('seasoned.{name}')"
            ).fetchone()
            for (name,) in names
        }


def bytes_each(tables: dict[str, tuple[int, int]]) -> dict[str, float]:
    """Return the bytes by one of each kind."""
    return {kind: sum(tables[name][1] for name in names) / tables[names[0]][0] for kind, names in KINDS.items()}


def write_namespaces(
    path: str | Path, n_namespaces: int, n_steps: int, growth: Growth, seed: int
) -> tuple[float, float]:
    """Write so many steps into each namespace, one batch each; return the seconds and the core seconds it took."""
    seconds = core_s = 0.0
    for number in range(n_namespaces):
        episodes = GrowingMaker(seed * 1_000_003 + number, growth).episodes(n_steps // EPISODE_STEPS)
        began, core_began = time.perf_counter(), time.process_time()
        with Memory.open(path, namespace=f"namespace {number}") as memory:
            memory.add_many(episodes)
        seconds += time.perf_counter() - began
        core_s += time.process_time() - core_began
    return seconds, core_s


def core_seconds_each(folder: Path, rounds: int, seed: int) -> dict[str, float]:
    """Return the core seconds by namespace, step and new state: medians over rounds.

    A batch of new states, one of the same states again, and namespaces with one episode each; a difference of two
    gives each constant. Time of this process, not of the clock: waiting for the disk does not count.
    """
    n = 300
    n_steps = n * EPISODE_STEPS
    names, steps, states = [], [], []

    def core_s(memory: Memory, episodes: list[Episode]) -> float:
        began = time.process_time()
        memory.add_many(episodes)
        return (time.process_time() - began) / n_steps

    for number in range(rounds):
        path = folder / f"seconds{number}.db"
        names.append(write_namespaces(path, n, EPISODE_STEPS, Growth(1.0, 0.0), seed)[1] / n)
        maker = EpisodeMaker(seed + number)
        with Memory.open(path) as memory:
            first = maker.episodes(n)
            states.append(core_s(memory, first))
            steps.append(core_s(memory, [Episode(one.task, one.steps, id=f"again {one.id}") for one in first]))
    step = statistics.median(steps)
    return {
        "step": step,
        "state": statistics.median(states) - step,
        "namespace": statistics.median(names) - EPISODE_STEPS * step,
    }


def vocabulary(seed: int) -> dict[int, int]:
    """Return how many tokens so many states have between them."""
    sets = TokenSetMaker(seed).distinct(max(VOCABULARY_AT))[0]
    return {n: len(np.unique(np.concatenate(sets[:n]))) for n in VOCABULARY_AT}


def reading(folder: Path, seed: int) -> dict[str, Any]:
    """Return, by the states of a namespace, the seconds of loading it and of asking it; and the index's bytes."""
    load_s, query_s = {}, {}
    for n in LOADED_AT:
        path = folder / f"reading{n}.db"
        maker = EpisodeMaker(seed)
        with Memory.open(path) as memory:
            memory.add_many(maker.episodes(n // EPISODE_STEPS))
        queries = maker.states(101)
        loads, asked = [], []
        for _ in range(3):
            with Memory.open(path) as memory:
                loads.append(timed_s(memory.search, queries[0], k=10, threshold=0.8)[0])
                asked += [timed_s(memory.search, query, k=10, threshold=0.8)[0] for query in queries[1:]]
        load_s[n], query_s[n] = min(loads), statistics.median(asked)
    return {"load_s": load_s, "query_s": query_s}


def index_bytes(seed: int) -> dict[str, float]:
    """Return the bytes of an index by namespace, however small, and by state: a line through two sizes."""
    few, many = INDEXED_AT
    sizes = []
    for n in (few, many):
        index = JaccardIndex()
        index.add((i, tokens, i) for i, tokens in enumerate(TokenSetMaker(seed).distinct(n)[0]))
        sizes.append(index.n_bytes)
    state = (sizes[1] - sizes[0]) / (many - few)
    return {"namespace": sizes[0] - few * state, "state": state}


def textworld_growth(episodes: int) -> dict[str, Any]:
    """Return the growth of states in random play of a cooking game: a law fitted by least squares of the logarithms."""
    from seasoned.envs import open_env
    from seasoned.sync import Sync

    spec = "textworld:cooking?recipe=3&take=2&open=1&cut=1&cook=1&go=6&seed=1"
    chosen, met, curve = random.Random(0), set(), []
    with Sync(open_env(spec)) as env:
        for _ in range(episodes):
            seen = env.reset(seed=0)
            while not (seen.terminated or seen.truncated):
                met.add(frozenset(seen.state.lower().split()))
                curve.append(len(met))
                seen = env.step(chosen.choice(seen.admissible))
    n = np.arange(1, len(curve) + 1)
    late = n > 50
    h, log_c = np.polyfit(np.log(n[late]), np.log(np.array(curve)[late]), 1).tolist()
    return {"environment": spec, "steps": len(curve), "states": curve[-1], "c": float(np.exp(log_c)), "h": h}


# ---------------------------------------------------------------------------------------------- model and check


def simulate(folder: Path, wanted: Iterable[str], constants: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Build stores, and compare predictions with measurements."""
    rows = []
    print(f"\n{'steps':>9}{'namespaces':>12}{'':>17}{'predicted':>14}{'measured':>14}{'error':>8}")
    for one in wanted:
        n_steps, n_namespaces = map(int, one.split(":"))
        shape = Shape.of(n_steps, n_namespaces, GROWTH, len(ACTIONS), constants["vocabulary"])
        path = folder / f"simulated{n_steps}.db"
        seconds, core_s = write_namespaces(path, n_namespaces, n_steps // n_namespaces, GROWTH, seed + 1)
        tables = sqlite_tables(path)
        pairs = {
            "bytes": (predict_bytes(shape, constants["sqlite_bytes"]), sum(size for _, size in tables.values())),
            "writing, core s": (predict_write_s(shape, constants["core_seconds"]), core_s),
            "states": (shape.state, tables["feature_set"][0]),
            "evidence": (shape.evidence, tables["evidence"][0]),
            "tokens": (shape.token, tables["token"][0]),
        }
        row: dict[str, Any] = {"steps": n_steps, "namespaces": n_namespaces, "writing_s": seconds, "compared": {}}
        for name, (predicted, measured) in pairs.items():
            error = predicted / measured - 1
            row["compared"][name] = {"predicted": predicted, "measured": measured, "error": error}
            print(f"{n_steps:>9}{n_namespaces:>12}{name:>17}{predicted:>14.5g}{measured:>14.5g}{error:>+8.1%}")
        rows.append(row)
        path.unlink()
    return rows


def extrapolate(constants: dict[str, Any], growth: Growth, usd: dict[str, float], hot_share: float) -> list[Any]:
    """Return the model's figures for the large sizes."""
    in_index = constants["index_bytes"]
    rows = []
    for n_steps in SIZES:
        shape = Shape.of(n_steps, NAMESPACES, growth, len(ACTIONS), constants["vocabulary"])
        each = shape.state / NAMESPACES
        disk = {
            name: predict_bytes(shape, constants[f"{name}_bytes"])
            for name in ("sqlite", "postgresql")
            if f"{name}_bytes" in constants
        }
        core_s = predict_write_s(shape, constants["core_seconds"])
        held = in_index["namespace"] * shape.namespace + in_index["state"] * shape.state
        at = min((n for n in LOADED_AT if n >= each), default=max(LOADED_AT))
        rows.append(
            {
                "steps": n_steps,
                "namespaces": NAMESPACES,
                "steps_a_namespace": n_steps / NAMESPACES,
                "states": shape.state,
                "states_a_namespace": each,
                "disk_bytes": disk,
                "index_bytes": held,
                "write_core_s": core_s,
                "load_s": constants["reading"]["load_s"][at] * max(1.0, each / at),
                "query_s": constants["reading"]["query_s"][at],
                "measured_at_states": at,
                "usd": bill(max(disk.values()), held, core_s, hot_share, usd),
            }
        )
    return rows


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure the constants, check the model, and extrapolate."""
    constants: dict[str, Any] = {"vocabulary": vocabulary(options.seed)}
    calibrating = MEASURED_NAMESPACES, MEASURED_STEPS, GROWTH, options.seed
    write_namespaces(folder / "bytes.db", *calibrating)
    constants["sqlite_bytes"] = bytes_each(sqlite_tables(folder / "bytes.db"))
    constants["core_seconds"] = core_seconds_each(folder, options.rounds, options.seed)
    constants["index_bytes"] = index_bytes(options.seed)
    constants["reading"] = reading(folder, options.seed)
    if options.postgres:
        sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "memory"))
        from postgres_server import run_server

        server = run_server()
        try:
            url = server.fresh()
            seconds, _ = write_namespaces(url, *calibrating)
            constants["postgresql_write_s"] = seconds / (MEASURED_NAMESPACES * MEASURED_STEPS)
            constants["postgresql_bytes"] = bytes_each(postgres_tables(server.url(database=url.rpartition("/")[2])))
        finally:
            server.stop()
    print(json.dumps(constants, indent=1))
    usd = {name: getattr(options, f"{name}_usd") for name in PRICES}
    return {
        "growth": asdict(GROWTH),
        "textworld": textworld_growth(options.textworld) if options.textworld else None,
        "hot_share": options.hot_share,
        "actions": len(ACTIONS),
        "constants": constants,
        "prices": {name: {**asdict(price), "usd": usd[name]} for name, price in PRICES.items()},
        "simulated": simulate(folder, options.simulate, constants, options.seed),
        "figures": {
            name: extrapolate(constants, growth, usd, options.hot_share)
            for name, growth in {"as measured": GROWTH, "all new": Growth(1.0, 1.0)}.items()
        },
    }


def main() -> None:
    """Measure, print, write; or check the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds in which the seconds are measured")
    parser.add_argument("--simulate", nargs="*", default=list(SIMULATED), help="stores to check the model with")
    parser.add_argument("--postgres", action="store_true", help="also bytes and seconds on PostgreSQL")
    parser.add_argument("--textworld", type=int, default=0, help="episodes of random play to measure growth on")
    parser.add_argument("--hot-share", type=float, default=HOT_SHARE, help="share of namespaces held in memory")
    for name, price in PRICES.items():
        parser.add_argument(f"--{name}-usd", type=float, default=price.usd, help=f"USD a {price.unit}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write the figures into docs/explanation/scale.md")
    parser.add_argument("--check", action="store_true", help="fail if the page does not hold the result file's figures")
    options = parser.parse_args()
    if options.check:
        sys.exit(check_page())
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(options, Path(folder))
    result = write_result(
        "scale", {"command": " ".join(["python benchmarks/scale.py", *sys.argv[1:]]), "seed": options.seed, **figures}
    )
    if options.write:
        write_page(result)


if __name__ == "__main__":
    main()
