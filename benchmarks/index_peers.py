"""Other libraries' search, for comparison with `index.py` on the same sets."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from token_sets import Sets
from workload import timed_s

__all__ = ["Answers", "peers"]

Answers = Callable[[list[int]], list[int]]
"""The positions of the sets found for a query, best first."""

Peer = tuple[str, Answers, float, bool]
"""A name, its search function, its build time in seconds, and whether it is exact."""

_N_BITS = 1024
_EXPANSIONS = (16, 32, 64, 128, 256, 512)
_RECALL = 0.99


def peers(sets: Sets, k: int, threshold: float, wanted: list[tuple[list[int], set[int]]]) -> Iterator[Peer]:
    """Build each peer in turn. `wanted` are queries and their exact answers, from which the recall is set."""
    stored = [frozenset(tokens.tolist()) for tokens in sets]
    yield "scan of Python sets", lambda tokens: _scan(stored, frozenset(tokens), k, threshold), 0.0, True
    texts = [" ".join(map(str, tokens.tolist())) for tokens in sets]
    yield "pseudo-code: every text split anew", lambda tokens: _split_and_scan(texts, tokens, k, threshold), 0.0, True
    for name, make in (("usearch", _usearch), ("datasketch", _datasketch)):
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed: not compared")
        else:
            build_s, (label, ask) = timed_s(make, sets, k, threshold, wanted)
            yield label, ask, build_s, False


def _scan(stored: list[frozenset[int]], query: frozenset[int], k: int, threshold: float) -> list[int]:
    found = []
    for position, members in enumerate(stored):
        shared = len(query & members)
        similarity = shared / (len(query) + len(members) - shared)
        if similarity >= threshold:
            found.append((similarity, position))
    return [position for _, position in sorted(found, reverse=True)[:k]]


def _split_and_scan(texts: list[str], tokens: list[int], k: int, threshold: float) -> list[int]:
    query = " ".join(map(str, tokens))
    found = []
    for position, text in enumerate(texts):
        ours, theirs = set(query.split()), set(text.split())
        similarity = len(ours & theirs) / len(ours | theirs)
        if similarity >= threshold:
            found.append((similarity, position))
    return [position for _, position in sorted(found, reverse=True)[:k]]


def _usearch(sets: Sets, k: int, threshold: float, wanted: list[tuple[list[int], set[int]]]) -> tuple[str, Answers]:
    """Build an HNSW graph over the sets as bits; use the lowest expansion with a recall of 0.99."""
    from usearch.index import Index, MetricKind, ScalarKind  # type: ignore[import-not-found,unused-ignore]

    def packed(tokens: Any) -> Any:
        bits = np.zeros(_N_BITS, dtype=np.uint8)
        bits[np.asarray(tokens) % _N_BITS] = 1
        return np.packbits(bits)

    def ask(tokens: list[int]) -> list[int]:
        found: list[int] = graph.search(packed(tokens), k).keys.tolist()
        return found

    graph = Index(ndim=_N_BITS, metric=MetricKind.Tanimoto, dtype=ScalarKind.B1)
    graph.add(np.arange(len(sets)), np.array([packed(tokens) for tokens in sets]))
    for expansion in _EXPANSIONS:
        graph.expansion_search = expansion
        hits = sum(len(want.intersection(ask(tokens))) for tokens, want in wanted)
        if hits >= _RECALL * sum(len(want) for _, want in wanted):
            break
    return f"usearch HNSW, expansion {expansion}", ask


def _datasketch(sets: Sets, k: int, threshold: float, wanted: Any) -> tuple[str, Answers]:
    """Build a MinHash LSH over the sets."""
    from datasketch import MinHash, MinHashLSH  # type: ignore[import-not-found,unused-ignore]

    def sketch(tokens: list[int]) -> Any:
        made = MinHash(num_perm=128)
        made.update_batch([token.to_bytes(4, "little") for token in tokens])
        return made

    tables = MinHashLSH(threshold=threshold, num_perm=128)
    with tables.insertion_session() as session:
        for i, tokens in enumerate(sets):
            session.insert(i, sketch(tokens.tolist()), check_duplication=False)
    return "datasketch MinHash LSH, 128", lambda tokens: list(tables.query(sketch(tokens)))
