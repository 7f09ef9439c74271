"""The cost of exact search in the index alone at 10,000 to 1,000,000 distinct states, compared with its peers.

Run: python benchmarks/index.py [--states 10000 100000 1000000] [--kernels numpy numba] [--peer-states 100000]

The index answers `search(k=10)` at thresholds 0.5 to 0.95 for sets similar to stored ones (new members of stored
families), for sets of no stored family, and for stored sets. The worst cases are threshold 0 for sets of no family and
without a known token, and an index of a single family of near-duplicates. The benchmark stops if two kernels give
different answers. It also measures the rate of additions, the longest block of one addition, and the growth of the
process.

Peers, on the same sets in the same run, alternating with the index: a scan over Python sets, and a scan that splits
every stored text again (both exact; the benchmark stops if their answers differ); and if installed, usearch (HNSW,
Tanimoto over 1024 bits, the lowest expansion with recall 0.99) and datasketch (MinHash LSH at 0.8, 128 permutations).
Ratios are of medians over all rounds, with the minimum and maximum over rounds. Writes
`benchmarks/results/index.json`.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
from index_peers import Answers, peers
from token_sets import Sets, TokenSetMaker
from workload import HEADER, percentiles, row, timed_s, write_result

from seasoned.memory.index.jaccard import JaccardIndex

K = 10
THRESHOLD = 0.8
THRESHOLDS = (0.95, 0.8, 0.65, 0.5)
BATCH_STATES = 10_000
ADDED_ALONE = 70_000  # one by one, at the end: more than a block holds
ROUNDS = 5

Queries = list[list[int]]
Figures = dict[str, Any]


def search(index: JaccardIndex, tokens: list[int], threshold: float) -> list[tuple[int, float]]:
    """Return the K nearest, as (id, similarity)."""
    return index.search(tokens, n_features=len(tokens), k=K, threshold=threshold)


def arrays(sets: Sets, first: int, stop: int) -> tuple[Any, Any, Any, Any]:
    """Return sets as `add_arrays` takes them."""
    ids, part = np.arange(first, stop), sets[first:stop]
    sizes = np.array([len(tokens) for tokens in part], dtype=np.int32)
    return ids, sizes, np.concatenate([np.empty(0, dtype=np.uint32), *part]), ids


def make(n: int, n_queries: int, seed: int) -> tuple[Sets, dict[str, Queries]]:
    """Return `n` distinct sets, and queries of three kinds."""
    maker = TokenSetMaker(seed)
    sets, families = maker.distinct(n)
    picked = maker.rng.integers(len(families), size=n_queries)
    queries = {
        "like stored": maker.members([families[int(i)] for i in picked]),
        "no stored family": maker.members(maker.families(n_queries)),
        "stored": [sets[int(i)] for i in maker.rng.integers(n, size=n_queries)],
    }
    return sets, {kind: [tokens.tolist() for tokens in of_kind] for kind, of_kind in queries.items()}


_GROWN = """
import os, sys
from pathlib import Path
import numpy as np
from seasoned.memory.index.jaccard import JaccardIndex
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
index, sets = JaccardIndex(sys.argv[1]), [np.load(f"{sys.argv[2]}/{i}.npy") for i in range(4)]
before = resident()
index.add_arrays(*sets)
print(resident() - before)
"""


def grown_bytes(kernel: str, sets: tuple[Any, ...]) -> int:
    """Return by how much a fresh process grows (resident set) that builds this index."""
    with tempfile.TemporaryDirectory() as folder:
        for i, array in enumerate(sets):
            np.save(f"{folder}/{i}.npy", array)
        done = subprocess.run(
            [sys.executable, "-c", _GROWN, kernel, folder], check=True, capture_output=True, text=True
        )
    return int(done.stdout)


def adding(sets: Sets, kernel: str) -> Figures:
    """Return the cost of adding all at once, in batches as a store adds them, and one by one at the end."""
    n = len(sets)
    at_once = arrays(sets, 0, n)
    open_s, _ = timed_s(JaccardIndex(kernel).add_arrays, *at_once)
    index = JaccardIndex(kernel)
    batches = [[(i, sets[i], i) for i in range(a, min(a + BATCH_STATES, n))] for a in range(0, n, BATCH_STATES)]
    build_s = sum(timed_s(index.add, batch)[0] for batch in batches)
    alone = min(ADDED_ALONE, n // 2)
    index = JaccardIndex(kernel)
    index.add_arrays(*arrays(sets, 0, n - alone))
    singles = [arrays(sets, i, i + 1) for i in range(n - alone, n)]
    taken = [timed_s(index.add_arrays, *single)[0] for single in singles]
    resident = grown_bytes(kernel, at_once)
    p999_s = float(np.quantile(taken, 0.999))
    figures = {
        "open_s": open_s,
        "build_s": build_s,
        "build_states_per_s": n / build_s,
        "alone_states_per_s": alone / sum(taken),
        "alone_n": alone,
        "alone_p999_s": p999_s,
        "alone_max_s": max(taken),
        "resident_bytes_a_state": resident / n,
    }
    print(
        f"{kernel}: opened at once in {open_s:.2f} s; added by {BATCH_STATES} in {build_s:.2f} s "
        f"({n / build_s:.0f} states/s), {alone} one by one ({alone / sum(taken):.0f} states/s, "
        f"the longest took {1e3 * max(taken):.1f} ms); {resident / n:.0f} resident bytes a state"
    )
    return figures


def _built(kernel: str, sets: tuple[Any, ...]) -> JaccardIndex:
    index = JaccardIndex(kernel)
    index.add_arrays(*sets)
    return index


def searching(indexes: dict[str, JaccardIndex], cases: list[tuple[str, Queries, float]]) -> Figures:
    """Return the times of searches; stop if the kernels differ."""
    figures: Figures = {}
    print(HEADER)
    for case, queries, threshold in cases:
        answers = []
        for kernel, index in indexes.items():
            results = [timed_s(search, index, tokens, threshold) for tokens in queries]
            name = f"{kernel}, {case}, {threshold}"
            figures[name] = percentiles([taken for taken, _ in results])
            sizes = [len(tokens) for tokens in queries]
            many_s, many = timed_s(index.search_many, queries, n_features=sizes, k=K, threshold=threshold)
            figures[name]["batched_s_a_query"] = many_s / len(queries)
            print(f"{row(name, figures[name])}   batched {1e3 * many_s / len(queries):.3f}")
            answers += [[found for _, found in results], many]
        if any(answer != answers[0] for answer in answers):
            sys.exit(f"answers differ: {case}, {threshold}")
    return figures


def measure(n: int, options: argparse.Namespace) -> Figures:
    """Measure the index at one size; print and return the figures."""
    sets, queries = make(n, options.queries, options.seed)
    print(f"\n{n} states of {float(np.mean([len(tokens) for tokens in sets])):.1f} tokens")
    result: Figures = {"tokens_a_state": float(np.mean([len(tokens) for tokens in sets]))}
    result["adding"] = {kernel: adding(sets, kernel) for kernel in options.kernels}
    indexes = {kernel: _built(kernel, arrays(sets, 0, n)) for kernel in options.kernels}
    unseen = [[20_000_000 + 60 * i + j for j in range(54)] for i in range(20)]
    cases = [(kind, of_kind, threshold) for threshold in THRESHOLDS for kind, of_kind in queries.items()]
    worst = [("no stored family", queries["no stored family"][:20], 0.0), ("no known token", unseen, 0.0)]
    result["query"] = searching(indexes, [*cases, *worst])
    if n in options.peer_states:
        result["peers"] = compare(sets, queries["like stored"], indexes, options)
    return result


def one_family(n: int, options: argparse.Namespace) -> Figures:
    """Measure an index of one family of near-duplicates."""
    maker = TokenSetMaker(options.seed, family_states=n)
    sets, families = maker.distinct(n)
    print(f"\none family of {n} states")
    indexes = {kernel: _built(kernel, arrays(sets, 0, n)) for kernel in options.kernels}
    queries = [tokens.tolist() for tokens in maker.members(families * 20)]
    return searching(indexes, [("one family", queries, threshold) for threshold in (*THRESHOLDS, 0.0)])


def compare(sets: Sets, queries: Queries, indexes: dict[str, JaccardIndex], options: argparse.Namespace) -> Figures:
    """Query the peers and the index in turn; print the ratios of their times, and their recall."""
    index = indexes[options.kernels[-1]]
    wanted = [(tokens, {i for i, _ in search(index, tokens, THRESHOLD)}) for tokens in queries]
    results: Figures = {}
    for name, ask, build_s, exact in peers(sets, K, THRESHOLD, wanted):
        some = (queries[: options.splits] if "split" in name else queries[: options.scans]) if exact else queries
        got = [ask(tokens) for tokens in some]
        if exact and got != [[i for i, _ in search(index, tokens, THRESHOLD)] for tokens in some]:
            sys.exit(f"the index and this disagree: {name}")
        hits = sum(len(want.intersection(found)) for (_, want), found in zip(wanted, got, strict=False))
        recall = hits / sum(len(want) for _, want in wanted[: len(some)])
        results[name] = {"build_s": build_s, "recall": recall, "n": len(some)}
        for kernel, ours in indexes.items():
            results[name][kernel] = ratios(ours, ask, some, 1 if exact else ROUNDS)
            figures = results[name][kernel]
            print(
                f"{name}: {figures['ratio']:.2f} [{figures['least']:.2f}, {figures['most']:.2f}] times "
                f"{kernel}'s median ({1e3 * figures['peer_p50_s']:.3f} and {1e3 * figures['index_p50_s']:.3f} ms, "
                f"n = {len(some)} x {figures['rounds']}), recall {recall:.3f}, built in {build_s:.1f} s"
            )
    return results


def ratios(index: JaccardIndex, ask: Answers, queries: Queries, rounds: int) -> Figures:
    """Return how many times longer the peer takes, in rounds that alternate; of one round, query by query."""
    theirs, ours = np.empty((rounds, len(queries))), np.empty((rounds, len(queries)))
    for at in range(rounds):
        theirs[at] = [timed_s(ask, tokens)[0] for tokens in queries]
        ours[at] = [timed_s(search, index, tokens, THRESHOLD)[0] for tokens in queries]
    each = theirs[0] / ours[0] if rounds == 1 else np.median(theirs, axis=1) / np.median(ours, axis=1)
    peer_s, index_s = float(np.median(theirs)), float(np.median(ours))
    return {
        "ratio": peer_s / index_s,
        "least": float(each.min()),
        "most": float(each.max()),
        "rounds": rounds,
        "peer_p50_s": peer_s,
        "index_p50_s": index_s,
        "peer_p99_s": float(np.quantile(theirs, 0.99)),
        "index_p99_s": float(np.quantile(ours, 0.99)),
    }


def main() -> None:
    """Measure, print, write."""
    compiled = ["numba"] if importlib.util.find_spec("numba") else []
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--states", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="distinct states")
    parser.add_argument("--kernels", nargs="+", default=["numpy", *compiled], help="of the index")
    parser.add_argument("--queries", type=int, default=300, help="queries of each kind")
    parser.add_argument("--family", type=int, default=200_000, help="near-duplicates in one family; 0 for none")
    parser.add_argument("--peer-states", type=int, nargs="*", default=[100_000], help="sizes at which peers are asked")
    parser.add_argument("--scans", type=int, default=20, help="queries that the scan answers")
    parser.add_argument("--splits", type=int, default=5, help="queries that the pseudo-code answers")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    result: Figures = {"command": " ".join(["python benchmarks/index.py", *sys.argv[1:]]), "seed": options.seed, "k": K}
    for kernel in options.kernels:  # the first time, machine code is made or read
        result[f"load_{kernel}_s"], _ = timed_s(JaccardIndex, kernel)
        print(f"{kernel}: ready in {result[f'load_{kernel}_s']:.2f} s")
    sixty, _ = TokenSetMaker(options.seed, sizes=(60, 60)).distinct(max(options.states))
    at_once = arrays(sixty, 0, len(sixty))
    for kernel in options.kernels:
        grown = grown_bytes(kernel, at_once) / len(sixty)
        result[f"resident_bytes_at_60_tokens_{kernel}"] = grown
        print(f"{kernel}: {grown:.0f} resident bytes a state of 60 tokens ({len(sixty)} states)")
    result["sizes"] = {str(n): measure(n, options) for n in options.states}
    if options.family:
        result["one family"] = one_family(options.family, options)
    fewest, most = min(options.states), max(options.states)
    for kernel in options.kernels:
        name = f"{kernel}, like stored, {THRESHOLD}"
        least, last = (result["sizes"][str(n)]["query"][name] for n in (fewest, most))
        print(
            f"\n{kernel}: {most / fewest:.0f} times as many states, p50 {last['p50_s'] / least['p50_s']:.1f} times, "
            f"p99 {last['p99_s'] / least['p99_s']:.1f} times"
        )
    write_result("index", result)


if __name__ == "__main__":
    main()
