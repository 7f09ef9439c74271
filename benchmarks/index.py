"""What exact search in the index alone costs at 10,000 to 1,000,000 distinct states, beside its peers.

Run: python benchmarks/index.py [--states 10000 100000 1000000] [--queries 300] [--peer-states 100000] [--scans 20]

The index answers `search(k=10)` at thresholds 0.5 to 0.95 for sets like stored ones (new members of stored families),
for sets of no stored family, and for stored sets. Peers, on the same sets in the same run: a scan over Python sets
(exact; the answers are compared, and the benchmark stops where they differ), and where installed, usearch (HNSW,
Tanimoto over 1024 bits, one or more tokens a bit) and datasketch (MinHash LSH at 0.8, 128 permutations), which are
approximate: their recall of the scan's answers is printed. Writes `benchmarks/results/index.json`.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from token_sets import Sets, TokenSetMaker
from workload import HEADER, percentiles, row, timed_s, write_result

from seasoned.memory.index import JaccardIndex

K = 10
THRESHOLD = 0.8
THRESHOLDS = (0.95, 0.8, 0.65, 0.5)
BATCH_STATES = 10_000
N_BITS = 1024

Figures = dict[str, dict[str, float]]
Peer = Callable[[Any], list[int]]


def search(index: JaccardIndex, tokens: list[int], threshold: float) -> list[tuple[int, float]]:
    """Return the K nearest, as (id, similarity)."""
    return index.search(tokens, n_features=len(tokens), k=K, threshold=threshold)


def make(n: int, n_queries: int, seed: int) -> tuple[Sets, dict[str, list[list[int]]]]:
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


def build(sets: Sets, batch: int) -> JaccardIndex:
    """Return an index of these sets, which are added in batches."""
    index = JaccardIndex()
    for first in range(0, len(sets), batch):
        index.add((i, sets[i], i) for i in range(first, min(first + batch, len(sets))))
    return index


def measure(n: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the index at one size; print and return the figures."""
    sets, queries = make(n, options.queries, options.seed)
    open_s, index = timed_s(build, sets, n)
    del index
    build_s, index = timed_s(build, sets, BATCH_STATES)
    size = {"open_s": open_s, "build_s": build_s, "build_states_per_s": n / build_s, "bytes_a_state": index.n_bytes / n,
            "tokens_a_state": float(np.mean([len(tokens) for tokens in sets]))}  # fmt: skip
    print(f"\n{n} states of {size['tokens_a_state']:.1f} tokens: opened at once in {open_s:.2f} s, "
          f"added by {BATCH_STATES} in {build_s:.2f} s ({n / build_s:.0f} states/s), "
          f"{size['bytes_a_state']:.0f} bytes a state\n{HEADER}")  # fmt: skip
    figures: Figures = {}
    for threshold in THRESHOLDS:
        for kind, of_kind in queries.items():
            name = f"index, {kind}, {threshold}"
            figures[name] = percentiles([timed_s(search, index, tokens, threshold)[0] for tokens in of_kind])
            print(row(name, figures[name]))
    result: dict[str, Any] = {**size, "query": figures}
    if n == options.peer_states:
        result["peers"] = compare(sets, queries["like stored"], index, figures, options.scans)
    return result


def compare(sets: Sets, queries: list[list[int]], index: JaccardIndex, ours: Figures, scans: int) -> dict[str, Any]:
    """Ask the peers too; print how many times longer they take, and what the approximate ones find."""
    stored = [frozenset(tokens.tolist()) for tokens in sets]
    exact = [timed_s(scan, stored, tokens) for tokens in queries[:scans]]
    for tokens, (_, theirs) in zip(queries, exact, strict=False):
        if [similarity for _, similarity in search(index, tokens, THRESHOLD)] != [near for near, _ in theirs]:
            sys.exit(f"index and scan disagree on {tokens}")
    results: dict[str, Any] = {"scan": {"query": percentiles([seconds for seconds, _ in exact])}}
    for name, make_peer in (("usearch", usearch_peer), ("datasketch", datasketch_peer)):
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed: not compared")
            continue
        build_s, ask = timed_s(make_peer, sets)
        answers = [timed_s(ask, tokens) for tokens in queries]
        wanted = [{i for _, i in theirs} for _, theirs in exact]
        hits = sum(len(want.intersection(got)) for want, (_, got) in zip(wanted, answers, strict=False))
        recall = hits / max(1, sum(map(len, wanted)))
        results[name] = {"build_s": build_s, "recall": recall, "query": percentiles([taken for taken, _ in answers])}
    own = ours[f"index, like stored, {THRESHOLD}"]
    for name, of_peer in results.items():
        ratios = [of_peer["query"][at] / own[at] for at in ("p50_s", "p99_s")]
        built = f", built in {of_peer['build_s']:.1f} s, recall {of_peer['recall']:.3f}" if "recall" in of_peer else ""
        print(f"{name}: {ratios[0]:.1f} times the index's p50, {ratios[1]:.1f} times its p99 "
              f"(n = {of_peer['query']['n']} and {own['n']}){built}")  # fmt: skip
    return results


def scan(stored: list[frozenset[int]], tokens: list[int]) -> list[tuple[float, int]]:
    """Return the K nearest as (similarity, position), ties by the later, by comparing with every set."""
    query = frozenset(tokens)
    found = []
    for position, members in enumerate(stored):
        shared = len(query & members)
        similarity = shared / (len(query) + len(members) - shared)
        if similarity >= THRESHOLD:
            found.append((similarity, position))
    return sorted(found, reverse=True)[:K]


def usearch_peer(sets: Sets) -> Peer:
    """Build an HNSW graph over the sets as bits."""
    from usearch.index import Index, MetricKind, ScalarKind  # type: ignore[import-not-found,unused-ignore]

    def packed(tokens: Any) -> Any:
        bits = np.zeros(N_BITS, dtype=np.uint8)
        bits[np.asarray(tokens) % N_BITS] = 1
        return np.packbits(bits)

    graph = Index(ndim=N_BITS, metric=MetricKind.Tanimoto, dtype=ScalarKind.B1)
    graph.add(np.arange(len(sets)), np.array([packed(tokens) for tokens in sets]))
    return lambda tokens: graph.search(packed(tokens), K).keys.tolist()


def datasketch_peer(sets: Sets) -> Peer:
    """Build a MinHash LSH over the sets."""
    from datasketch import MinHash, MinHashLSH  # type: ignore[import-not-found,unused-ignore]

    def sketch(tokens: list[int]) -> Any:
        made = MinHash(num_perm=128)
        made.update_batch([token.to_bytes(4, "little") for token in tokens])
        return made

    tables = MinHashLSH(threshold=THRESHOLD, num_perm=128)
    with tables.insertion_session() as session:
        for i, tokens in enumerate(sets):
            session.insert(i, sketch(tokens.tolist()), check_duplication=False)
    return lambda tokens: list(tables.query(sketch(tokens)))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--states", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="distinct states")
    parser.add_argument("--queries", type=int, default=300, help="queries of each kind")
    parser.add_argument("--peer-states", type=int, default=100_000, help="the size at which peers are asked too")
    parser.add_argument("--scans", type=int, default=20, help="queries that the scan answers")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sizes = {str(n): measure(n, options) for n in options.states}
    fewest, most = min(options.states), max(options.states)
    least, last = (sizes[str(n)]["query"][f"index, like stored, {THRESHOLD}"] for n in (fewest, most))
    print(f"\n{most / fewest:.0f} times as many states: p50 {last['p50_s'] / least['p50_s']:.1f} times, "
          f"p99 {last['p99_s'] / least['p99_s']:.1f} times")  # fmt: skip
    write_result("index", {"command": " ".join(["python benchmarks/index.py", *sys.argv[1:]]), "seed": options.seed,
                           "k": K, "sizes": sizes})  # fmt: skip


if __name__ == "__main__":
    main()
