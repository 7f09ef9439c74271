"""Both kernels give the same answers, in batches or one by one; sets arrive as arrays; work per addition is bounded."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seasoned
from seasoned.errors import InputError, UnknownNameError
from seasoned.memory.index import kernel as kernels
from seasoned.memory.index.blocks import MAX_ROWS, post_by_sorting
from seasoned.memory.index.jaccard import MAX_TOKENS, JaccardIndex
from seasoned.memory.index.vector_lists import add_up, places

COMPILED = pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs the extra `fast`")
KERNELS = pytest.mark.parametrize("kernel", ["numpy", pytest.param("numba", marks=COMPILED)])
FEW = settings(max_examples=25)


def arrays(sets, first_id=0):
    """`sets`: sequences of token numbers; ids and visits count from `first_id`."""
    ids = np.arange(first_id, first_id + len(sets))
    flat = [token for tokens in sets for token in sorted(tokens)]
    sizes = np.array([len(tokens) for tokens in sets], dtype=np.int32)
    return ids, sizes, np.array(flat, dtype=np.uint32), ids


def by_definition(sets, query, k, threshold):
    """(position, similarity) of the k best of `sets`, ties by the later."""
    query = set(query)
    rows = []
    for at, tokens in enumerate(sets):
        union = len(query | set(tokens))
        near = len(query & set(tokens)) / union if union else 1.0
        if near >= threshold:
            rows.append((near, at))
    return [(at, near) for near, at in sorted(rows, reverse=True)[:k]]


def ask(index, query, k, threshold):
    return index.search(sorted(query), n_features=len(query), k=k, threshold=threshold)


def family(draw, n, size=40, changes=3):
    """Near-duplicates of one set, with few distinct similarities and so with many ties."""
    return [
        (set(range(size)) - set(draw.sample(range(size), changes))) | set(draw.sample(range(size, 3 * size), changes))
        for _ in range(n)
    ]


@pytest.fixture(scope="module")
def many_sets():
    """More sets than one block holds, most of them tiny, with a large family among them."""
    draw = random.Random(11)
    tiny = [{i % 5000, 5000 + i % 77, 6000 + i} for i in range(MAX_ROWS + 6000)]
    return tiny[:30_000] + family(draw, 3000) + tiny[30_000:]


@KERNELS
def test_search_equals_brute_force_across_full_blocks(kernel, many_sets):
    draw = random.Random(2)
    index = JaccardIndex(kernel)
    index.add_arrays(*arrays(many_sets[:50_000]))
    index.add_arrays(*arrays(many_sets[50_000:], first_id=50_000))
    queries = [
        {1, 5001},
        {6000 + MAX_ROWS},
        many_sets[31_000],
        many_sets[31_500] | {9, 99_999_999},
        {88_888_888},
        set(),
    ]
    for query in queries:
        for threshold in (0.0, 0.5, 0.8, 0.95):
            k = draw.choice([1, 10, 100])
            assert ask(index, query, k, threshold) == by_definition(many_sets, query, k, threshold)


@COMPILED
@FEW
@given(
    st.lists(st.frozensets(st.integers(0, 30), max_size=12), max_size=120),
    st.lists(st.frozensets(st.integers(0, 33), max_size=12), min_size=1, max_size=4),
    st.integers(1, 150),
    st.floats(0, 1),
    st.integers(0, 5000),
)
def test_kernels_return_equal_results(sets, queries, k, threshold, n_more):
    sets = [*sets, *({1, 2 + i % 40, 50 + i} for i in range(n_more))]
    answers = []
    for kernel in ("numpy", "numba"):
        index = JaccardIndex(kernel)
        index.add_arrays(*arrays(sets))
        answers.append([ask(index, query, k, threshold) for query in queries])
    assert answers[0] == answers[1]


@COMPILED
@FEW
@given(st.lists(st.frozensets(st.integers(0, 70_000), max_size=9), max_size=50))
def test_kernels_build_equal_posting_lists(sets):
    from seasoned.memory.index.kernel_numba import NumbaKernel

    _, sizes, tokens, _ = arrays(sets)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)
    for ours, theirs in zip(NumbaKernel().post(tokens, starts), post_by_sorting(tokens, starts), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("n_features", [0, 1, 4, 60, 200])
@pytest.mark.parametrize("least", [0.0, 9.0])
def test_sums_over_few_or_many_lists_equal_the_definition(n_features, least):
    rng = np.random.default_rng(n_features)
    sets = [set(rng.choice(300, size=5, replace=False).tolist()) - {0} for _ in range(400)]
    _, sizes, tokens, _ = arrays(sets)
    lists = post_by_sorting(tokens, np.concatenate([[0], np.cumsum(sizes)]))
    features = np.sort(rng.choice(300, size=n_features, replace=False)).astype(np.uint32)
    values = np.zeros(300)
    values[features] = rng.integers(1, 9, size=n_features)  # whole numbers, which add up without rounding
    norms = rng.integers(1, 3, size=len(sets)).astype(np.float32)
    sums = {row: sum(values[list(members)]) for row, members in enumerate(sets)}
    expected = {row: total for row, total in sums.items() if total > 0.0 and total >= least * norms[row]}
    at = places(lists.vocabulary, features)
    here = lists.vocabulary[at]
    assert here.tolist() == [feature for feature in features.tolist() if any(feature in members for members in sets)]
    rows, found = add_up(lists, lists.starts[at], lists.starts[at + 1], values[here], norms, least)
    assert len(rows) == len(expected)
    assert dict(zip(rows.tolist(), found.tolist(), strict=True)) == expected


@KERNELS
@pytest.mark.parametrize("n_sets", [0, 1, 9])
def test_products_of_sets_equal_the_definition(kernel, n_sets):
    rng = np.random.default_rng(n_sets)
    terms_of = [sorted(rng.choice(12, size=rng.integers(0, 5), replace=False).tolist()) for _ in range(20)]
    squared = np.where(np.arange(12) % 5 == 0, 0.0, rng.random(12))  # common terms have no weight
    sets = [sorted(rng.choice(20, size=rng.integers(0, 8), replace=False).tolist()) for _ in range(n_sets)]
    counts = np.zeros((n_sets, 12))
    for row, features in enumerate(sets):
        for feature in features:
            counts[row, terms_of[feature]] += 1.0
    searching = kernels.KERNELS.load(kernel)()
    for _ in range(2):  # what a kernel keeps is as it was
        products = searching.products(
            np.array([one for features in sets for one in features], dtype=np.uint32),
            np.array([len(features) for features in sets], dtype=np.int64),
            np.cumsum([0, *map(len, terms_of)]),
            np.array([term for terms in terms_of for term in terms], dtype=np.uint32),
            squared,
        )
        np.testing.assert_allclose(products, (counts * squared) @ counts.T, rtol=1e-12, atol=1e-15)
        assert np.array_equal(products, products.T)


@KERNELS
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.8, 0.9, 0.95])
def test_batch_of_queries_equals_single_queries(kernel, threshold, many_sets):
    index = JaccardIndex(kernel)
    index.add_arrays(*arrays(many_sets[29_000:36_000]))
    queries = [sorted(many_sets[at]) for at in range(29_900, 33_100, 10)] + [[], [7, 123_456_789]]
    sizes = [len(query) + i % 3 for i, query in enumerate(queries)]
    together = index.search_many(queries, n_features=sizes, k=5, threshold=threshold)
    one_by_one = [
        index.search(query, n_features=n, k=5, threshold=threshold) for query, n in zip(queries, sizes, strict=True)
    ]
    assert together == one_by_one
    assert index.search_many([], n_features=[], k=5, threshold=threshold) == []


@KERNELS
def test_search_among_many_similar_sets_equals_brute_force(kernel):
    draw = random.Random(4)
    sets = family(draw, 4000)
    index = JaccardIndex(kernel)
    index.add_arrays(*arrays(sets))
    for at in (0, 1234, 3999):
        for query in (sets[at], sets[at] - {min(sets[at])} | {500}, set(range(40))):
            for k, threshold in ((1, 0.8), (10, 0.0), (10, 0.8), (300, 0.7), (5000, 0.5)):
                assert ask(index, query, k, threshold) == by_definition(sets, query, k, threshold)


@KERNELS
def test_disjoint_sets_are_ordered_by_visit(kernel):
    index = JaccardIndex(kernel)
    index.add_arrays(*arrays([{i} for i in range(5000)]))
    index.add([(3, [], 9000)])  # visited again
    results = index.search([77_777], n_features=1, k=3, threshold=0.0)
    assert results == [(3, 0.0), (4999, 0.0), (4998, 0.0)]


@KERNELS
def test_sets_of_many_shared_tokens_equal_brute_force(kernel):
    """More tokens than an 8-bit count holds, all shared."""
    sets = [set(range(1000)) - {i} for i in range(200)]
    index = JaccardIndex(kernel)
    index.add_arrays(*arrays(sets))
    for threshold in (0.0, 0.5, 0.99, 0.999):
        assert ask(index, sets[7], 20, threshold) == by_definition(sets, sets[7], 20, threshold)


# ------------------------------------------------------------------------------------------ adding


@KERNELS
def test_added_arrays_equal_added_lists(kernel):
    draw = random.Random(6)
    sets = [draw.sample(range(300), draw.randrange(30)) for _ in range(900)]
    by_arrays, by_lists = JaccardIndex(kernel), JaccardIndex(kernel)
    for first in range(0, 900, 250):
        batch = sets[first : first + 250]
        by_arrays.add_arrays(*arrays(batch, first_id=first))
        by_lists.add([(first + i, tokens, first + i) for i, tokens in enumerate(batch)])
        by_arrays.add_arrays(
            np.array([first, 0]), np.zeros(2, dtype=np.int32), np.empty(0), np.array([2000, 3000 + first])
        )
        by_lists.add([(first, [], 2000), (0, [], 3000 + first)])
    assert len(by_arrays) == len(by_lists) == 900
    for query in sets[::50]:
        assert ask(by_arrays, query, 900, 0.0) == ask(by_lists, query, 900, 0.0)


def test_added_arrays_are_copied():
    index = JaccardIndex()
    given_arrays = [array.copy() for array in arrays([{1, 2, 3}])]
    index.add_arrays(*given_arrays)
    for array in given_arrays:
        array[:] = 99
    assert index.search([1, 2, 3], n_features=3, k=1, threshold=1.0) == [(0, 1.0)]


@pytest.mark.parametrize(
    ("ids", "sizes", "tokens", "visits", "rule"),
    [
        ([1], [2], [5], [1], "sizes sum up"),
        ([1, 2], [1], [5], [1], "each set has"),
        ([1], [1], [5], [], "each set has"),
        ([1, 2], [2, -1], [5], [1, 2], "sizes sum up"),
        ([1], [1], [MAX_TOKENS], [1], "below"),
        ([1], [1], [4_000_000_000], [1], "below"),
        ([1], [1], [-1], [1], "at least 0"),
    ],
)
def test_bad_arrays_are_refused_and_nothing_is_added(ids, sizes, tokens, visits, rule):
    index = JaccardIndex()
    with pytest.raises(InputError, match=rule) as caught:
        index.add_arrays(*(np.array(numbers, dtype=np.int64) for numbers in (ids, sizes, tokens, visits)))
    assert all((caught.value.seen, caught.value.rule, caught.value.next_step))
    assert len(index) == 0


def test_a_list_with_a_token_out_of_range_is_refused():
    index = JaccardIndex()
    with pytest.raises(InputError, match="below"):
        index.add([(0, [1, 2], 0), (1, [4_000_000_000], 1)])
    assert len(index) == 0


@KERNELS
def test_large_token_numbers_use_little_memory(kernel):
    far = MAX_TOKENS - 1
    index = JaccardIndex(kernel)
    index.add_arrays(*arrays([{i, far - i} for i in range(4000)]))
    assert ask(index, {5, far - 5}, 1, 0.5) == [(5, 1.0)]
    # All but the table of marks, of which only what is used is ever touched.
    assert index.n_bytes - MAX_TOKENS < 4000 * 600 + 2**23


@KERNELS
def test_full_block_is_not_rebuilt(kernel, many_sets):
    index = JaccardIndex(kernel)
    index.add_arrays(*arrays(many_sets))
    full = list(index._blocks)[:1]
    assert [len(block) for block in full] == [MAX_ROWS]
    for first in range(100_000, 140_000, 500):
        before = index._blocks
        index.add_arrays(*arrays([{i, i + 1, i + 2} for i in range(500)], first_id=first))
        made = [block for block in index._blocks if not any(block is one for one in before)]
        assert sum(map(len, made)) <= MAX_ROWS
    assert index._blocks[0] is full[0]
    assert len(index) == len(many_sets) + 40_000
    assert len(index._blocks) < 16


@KERNELS
def test_cleared_index_is_empty(kernel):
    index = JaccardIndex(kernel)
    index.add_arrays(*arrays([{i, i + 1} for i in range(3000)]))
    index.clear()
    assert len(index) == 0
    assert index.search([1, 2], n_features=2, k=3, threshold=0.0) == []
    index.add([(1, [1, 2, 3], 5)])  # an id that was here, with another set
    assert index.search([1, 2], n_features=2, k=3, threshold=0.0) == [(1, 2 / 3)]


# ------------------------------------------------------------------------------------------ use


@KERNELS
def test_threads_that_hold_a_lock_search_while_another_adds(kernel):
    draw = random.Random(8)
    sets = family(draw, 1500, size=12, changes=2)
    index, lock, failures = JaccardIndex(kernel), threading.Lock(), []

    def searches(seed):
        own = random.Random(seed)
        for _ in range(25):
            query = own.choice(sets)
            with lock:
                results, n = ask(index, query, 5, 0.5), len(index)
            if results != by_definition(sets[:n], query, 5, 0.5):
                failures.append((n, query))

    threads = [threading.Thread(target=searches, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for first in range(0, len(sets), 10):
        with lock:
            index.add_arrays(*arrays(sets[first : first + 10], first_id=first))
    for thread in threads:
        thread.join()
    assert not failures
    assert len(index) == len(sets)


def test_unknown_kernel_is_refused():
    with pytest.raises(UnknownNameError, match="numba"):
        JaccardIndex("nmuba")


def test_number_of_sizes_must_equal_number_of_queries():
    with pytest.raises(InputError, match="one size"):
        JaccardIndex().search_many([[1]], n_features=[], k=1, threshold=0.0)


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None  # as if it were not installed
import numpy as np
from seasoned.errors import MissingExtraError
from seasoned.memory.index.jaccard import JaccardIndex
index = JaccardIndex()
n = 30_000
index.add_arrays(np.arange(n), np.ones(n, dtype=np.int32), np.arange(n, dtype=np.uint32), np.arange(n))
assert index.search([5], n_features=1, k=1, threshold=1.0) == [(5, 1.0)]
assert index.kernel == "numpy"
try:
    JaccardIndex("numba")
except MissingExtraError as error:
    assert "pip install 'numba>=" in error.next_step
else:
    sys.exit("numba was found")
"""

NOT_LOADED = """
import sys
from seasoned.memory.index.jaccard import JaccardIndex
index = JaccardIndex()
index.add([(i, [i, i + 1], i) for i in range(1000)])
index.search([5], n_features=1, k=1, threshold=0.1)
assert "numba" not in sys.modules
"""


@pytest.mark.parametrize("script", [WITHOUT_NUMBA, NOT_LOADED], ids=["not installed", "not worth it"])
def test_numba_is_loaded_only_for_large_indexes(script):
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@COMPILED
def test_code_is_compiled_again_without_a_writable_folder(tmp_path):
    import shutil

    shutil.copytree(Path(seasoned.__file__).parent, tmp_path / "seasoned", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "seasoned" / "memory" / "index" / "__pycache__").write_text("not a folder")
    script = "from seasoned.memory.index.jaccard import JaccardIndex\n"
    script += "i = JaccardIndex('numba'); i.add([(0, [1], 0)]); print(len(i))"
    environment = {"PYTHONPATH": str(tmp_path), "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=200, env=environment
    )
    assert done.stdout.strip() == "1", done.stderr
