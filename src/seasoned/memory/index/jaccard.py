"""Exact top-k Jaccard search over feature sets."""

from __future__ import annotations

import contextlib
import importlib.util
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from seasoned.errors import InputError, MissingExtraError
from seasoned.memory.index.blocks import MAX_BLOCK_TOKENS, MAX_ROWS, Block, Ints, Rows
from seasoned.memory.index.kernel import KERNELS, Kernel, Match, Query, SearchPlan, plan_searches
from seasoned.types.queries import check_nearest

__all__ = ["MAX_TOKENS", "JaccardIndex"]

MAX_TOKENS = 1 << 28
_MAX_TAIL_WEIGHT = 4096  # tokens and rows
_FAN_IN = 4
_POSTING_THREADS = 2
_MAX_FREQUENCY_SLOTS = 1 << 20
# Compiled code is read from disk in a fraction of a second, or made in some: fewer sets are not worth that.
_WORTH_COMPILING = 20_000


class JaccardIndex:
    """Feature sets by id; finds the k most similar to a query, exactly.

    `J(q, s) = |q & s| / |q | s|`, `J({}, {}) = 1`. Results equal a brute-force scan on every input: at or above the
    threshold, in the order of `values.ranking`.

    The few sets that were added last are compared one by one. The others are in blocks with postings; of blocks of
    about one size four become one, of 65,536 sets at most: adding a set never takes longer than that. A search
    that would read much asks for very similar sets first and stops as soon as it has k.

    Not for use by two threads at once: a search marks its tokens in a table of the index.

    Attributes:
        n_late: how many sets were added after one with a higher id: sets that were out of use and are visited again.

    Args:
        kernel: "numpy", "numba" (the extra `fast`: compiled, several times as fast, the same results), or "auto":
            numba where it is installed and the index is large enough to be worth loading it.

    Raises:
        UnknownNameError: no kernel has this name.
        MissingExtraError: the kernel is "numba", which is not installed.

    Example:
        >>> index = JaccardIndex()
        >>> index.add([(0, [1, 2, 3], 10), (1, [2, 3, 4], 11)])
        >>> index.search([1, 2, 3], n_features=3, k=2, threshold=0.4)
        [(0, 1.0), (1, 0.5)]
    """

    def __init__(self, kernel: Literal["auto", "numpy", "numba"] = "auto") -> None:
        self._may_compile = kernel == "auto" and importlib.util.find_spec("numba") is not None
        self._kernel: Kernel = KERNELS.load("numpy" if kernel == "auto" else kernel)()
        self.clear()

    def clear(self) -> None:
        """Forget all sets."""
        self._blocks: list[Block] = []
        self._tail = Block(Rows.none(), None)
        self._pending: list[Rows] = []  # to be in the tail at the next search
        self._n = 0
        self._n_pending = 0
        self._highest_id = -1
        self.n_late = 0
        self._in_query = np.zeros(1024, dtype=bool)
        # How many postings a token has, by its number modulo the slots: only the order of reading depends on it.
        self._frequencies = np.zeros(1024, dtype=np.uint32)

    def __len__(self) -> int:
        return self._n

    @property
    def kernel(self) -> str:
        """The name of the kernel that answers now."""
        return self._kernel.name

    @property
    def searching_kernel(self) -> Kernel:
        """The kernel that answers now."""
        return self._kernel

    @property
    def n_tokens(self) -> int:
        """More than every token number."""
        return len(self._in_query)

    def blocks(self) -> list[Block]:
        """Return the blocks that hold all sets; the last may be without lists."""
        self._settle()
        return [*self._blocks, self._tail] if len(self._tail) else list(self._blocks)

    @property
    def n_bytes(self) -> int:
        """The bytes of all its arrays."""
        self._settle()
        own = self._in_query.nbytes + self._frequencies.nbytes
        return own + sum(block.n_bytes for block in (*self._blocks, self._tail))

    # ------------------------------------------------------------------------------------------ adding

    def add(self, sets: Iterable[tuple[int, Sequence[int] | npt.NDArray[np.uint32], int]]) -> None:
        """Add sets as (id, distinct token numbers, visit). A known id only moves its visit; a set never changes.

        Raises:
            InputError: a token number is not in `[0, MAX_TOKENS)`; nothing was added.
        """
        batch = list(sets)
        arrays = [np.asarray(tokens) for _, tokens, _ in batch]
        self.add_arrays(
            np.array([set_id for set_id, _, _ in batch], dtype=np.int64),
            np.array([len(tokens) for tokens in arrays], dtype=np.int32),
            np.concatenate([np.empty(0, dtype=np.uint32), *(tokens for tokens in arrays if len(tokens))]),
            np.array([visit for _, _, visit in batch], dtype=np.int64),
        )

    def add_arrays(self, ids: Ints, sizes: Ints, tokens: Ints, visits: Ints) -> None:
        """Add n sets as arrays, the fast way to add many.

        Args:
            ids: int64 [n]; a known id, or one that was here before, only moves its visit.
            sizes: int32 [n]; how many tokens each has.
            tokens: uint32 [sum of sizes]; the distinct token numbers of each, one set after the other.
            visits: int64 [n].

        Raises:
            InputError: the lengths disagree, or a token number is not in `[0, MAX_TOKENS)`; nothing was added.
        """
        rows, highest = _checked(ids, sizes, tokens, visits)
        if not len(ids):
            return
        in_order = bool((rows.ids[1:] > rows.ids[:-1]).all())
        if in_order and int(rows.ids[0]) > self._highest_id:
            self._append(rows, highest)
            return
        self._settle()
        known = np.zeros(len(ids), dtype=bool)
        for block in (*self._blocks, self._tail):
            known |= block.find(rows.ids)[0]
        new = np.flatnonzero(~known)
        new = new[np.unique(rows.ids[new], return_index=True)[1]]
        if len(new):
            self.n_late += int((rows.ids[new] < self._highest_id).sum())
            self._append(rows.taken(new), highest)
            self._settle()
        for block in (*self._blocks, self._tail):
            here, at = block.find(rows.ids)
            block.visits[at] = rows.visits[here]  # of visits to one set, the last stays

    def _append(self, new: Rows, highest_token: int) -> None:
        """Add new sets; post many pending ones together with all blocks that are not much larger."""
        self._pending.append(new)
        self._n += len(new.ids)
        self._n_pending += len(new.ids) + len(new.tokens)
        self._highest_id = max(self._highest_id, int(new.ids.max()))
        if highest_token >= len(self._in_query):
            self._in_query = np.zeros(min(2 * highest_token + 2, MAX_TOKENS), dtype=bool)
        self._widen_frequencies(highest_token)
        if self._n_pending + self._tail.weight > _MAX_TAIL_WEIGHT:
            self._post()
        else:
            self._pending[-1] = Rows(*(array.copy() for array in new))  # the caller may change its own

    def _settle(self) -> None:
        """Move the pending sets into the tail."""
        if self._pending:
            self._tail = Block(Rows.joined([self._tail.rows, *self._pending]), None)
            self._pending, self._n_pending = [], 0

    def _post(self) -> None:
        if self._may_compile and self._n >= _WORTH_COMPILING:
            self._may_compile = False
            with contextlib.suppress(MissingExtraError):  # it is installed, but does not load; see `kernel`
                self._kernel = KERNELS.load("numba")()
        parts = [self._tail.rows, *self._pending]
        blocks = list(self._blocks)
        for block in self._to_merge(sum(len(part.ids) for part in parts), self._tail.weight + self._n_pending):
            blocks.remove(block)
            parts.append(block.rows)
            self._note_frequencies(block, -1)
        post = self._kernel.post
        chunks = list(Rows.joined(parts).chunks())
        if len(chunks) > 2:  # most of the time of posting is spent outside of Python's lock
            with ThreadPoolExecutor(_POSTING_THREADS) as pool:
                new = list(pool.map(lambda chunk: Block(chunk, post), chunks))
        else:
            new = [Block(chunk, post) for chunk in chunks]
        for block in new:
            self._note_frequencies(block, +1)
        blocks += new
        self._blocks, self._tail = blocks, Block(Rows.none(), None)
        self._pending, self._n_pending = [], 0

    def _to_merge(self, n: int, weight: int) -> list[Block]:
        """Return the blocks to post again with n rows of this weight: those of its tier that fit into one block."""
        growing = sorted((block for block in self._blocks if not block.full), key=lambda block: block.weight)
        merged: list[Block] = []
        while True:
            alike = [block for block in growing[len(merged) :] if _tier(block.weight) <= _tier(weight)]
            if len(alike) < _FAN_IN - 1:
                return merged
            for block in alike:
                n, weight = n + len(block), weight + block.weight
                if n > MAX_ROWS or weight > MAX_BLOCK_TOKENS:
                    return merged
                merged.append(block)

    def _widen_frequencies(self, highest_token: int) -> None:
        """Make room for more tokens; up to the limit each has a slot of its own."""
        n_slots = min(1 << highest_token.bit_length(), _MAX_FREQUENCY_SLOTS)
        if n_slots > len(self._frequencies):
            wider = np.zeros(n_slots, dtype=np.uint32)
            wider[: len(self._frequencies)] = self._frequencies
            self._frequencies = wider

    def _note_frequencies(self, block: Block, sign: int) -> None:
        if block.lists is not None:
            slots = block.lists.vocabulary[:-1] % np.uint32(len(self._frequencies))
            lengths = np.diff(block.lists.starts[:-1])
            note = np.add if sign > 0 else np.subtract
            note.at(self._frequencies, slots.astype(np.intp), lengths)

    # ------------------------------------------------------------------------------------------ searching

    def search(self, tokens: Sequence[int], *, n_features: int, k: int, threshold: float) -> list[tuple[int, float]]:
        """Return at most `k` pairs (id, similarity).

        Args:
            tokens: the query's known token numbers, distinct.
            n_features: the query's size, unknown features included.
            k: how many, >= 1.
            threshold: smallest similarity, in [0, 1].

        Raises:
            InputError: k or the threshold is out of range.
        """
        return self.search_many([tokens], n_features=[n_features], k=k, threshold=threshold)[0]

    def search_many(
        self, queries: Sequence[Sequence[int] | Ints], *, n_features: Sequence[int], k: int, threshold: float
    ) -> list[list[tuple[int, float]]]:
        """Return the result of `search` for each query; see `match_many`."""
        matches = self.match_many(queries, n_features=n_features, k=k, threshold=threshold)
        return [[(set_id, near) for near, _, set_id in found] for found in matches]

    def match_many(
        self, queries: Sequence[Sequence[int] | Ints], *, n_features: Sequence[int], k: int, threshold: float
    ) -> list[list[Match]]:
        """Return the result of `search` for each query, with visits.

        Raises:
            InputError: k or the threshold is out of range, or there are not as many sizes as queries.
        """
        k, threshold = check_nearest(k, threshold)
        if len(queries) != len(n_features):
            raise InputError(
                f"{len(n_features)} sizes for {len(queries)} queries", "each query has one size", "Pass as many."
            )
        self._settle()
        k = min(k, self._n)
        answers: list[list[Match]] = [[] for _ in queries]
        if not k:
            return answers
        steps: dict[int, list[SearchPlan]] = {}
        blocks = [*self._blocks, self._tail] if len(self._tail) else self._blocks
        for i, (tokens, n) in enumerate(zip(queries, n_features, strict=True)):
            plans = plan_searches(self._query(tokens, n), threshold, self._n, len(blocks), self._kernel.candidate_cost)
            if plans:
                steps[i] = plans[::-1]
        while steps:
            next_plans = [of_query.pop() for of_query in steps.values()]
            for i, found in zip(list(steps), self._kernel.search(blocks, next_plans, k, self._in_query), strict=True):
                if len(found) == k or not steps[i]:
                    del steps[i]
                    answers[i] = found
        return answers

    def _query(self, tokens: Sequence[int] | Ints, n: int) -> Query:
        numbers = np.asarray(tokens, dtype=np.int64)
        numbers = numbers[(numbers >= 0) & (numbers < len(self._in_query))]
        frequencies = self._frequencies[numbers % len(self._frequencies)]
        order = np.argsort(frequencies, kind="stable")
        ends = np.cumsum(frequencies[order], dtype=np.int64).tolist()
        return Query(numbers[order].astype(np.uint32), ends, n)


def _tier(weight: int) -> int:
    """Return the tier of blocks of this weight; each tier is `_FAN_IN` times as large as the one before."""
    return int(math.log(weight + 1, _FAN_IN))


def _checked(ids: Any, sizes: Any, tokens: Any, visits: Any) -> tuple[Rows, int]:
    """Return these as rows, and the highest token number, 0 if there is none.

    Raises:
        InputError: the lengths disagree, or a token number is out of range.
    """
    n_tokens = int(sizes.sum()) if len(sizes) else 0
    if not len(ids) == len(sizes) == len(visits) or n_tokens != len(tokens) or (n_tokens and sizes.min() < 0):
        raise InputError(
            f"{len(ids)} ids, {len(sizes)} sizes for {len(tokens)} tokens, {len(visits)} visits",
            "each set has an id, a size and a visit, and the sizes sum up to the tokens",
            "Pass arrays of the same sets.",
        )
    lowest = int(tokens.min()) if n_tokens and tokens.dtype.kind != "u" else 0
    highest = int(tokens.max()) if n_tokens else 0
    if lowest < 0 or highest >= MAX_TOKENS:
        raise InputError(
            f"token numbers from {lowest} to {highest}",
            f"a token number is at least 0 and below {MAX_TOKENS}",
            "Number the tokens in the order of their first occurrence.",
        )
    kinds = (np.int64, np.int32, np.uint32, np.int64)
    rows = (
        np.ascontiguousarray(array, dtype=kind) for array, kind in zip((ids, sizes, tokens, visits), kinds, strict=True)
    )
    return Rows(*rows), highest
