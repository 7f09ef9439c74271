"""Search by rarity equals brute force over Python sets, and similarities between sets are positive semi-definite."""

from __future__ import annotations

import importlib.util
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seasoned.errors import InputError
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.rarity import RarityIndex
from seasoned.memory.index.rarity_weights import counted_sets

PROPERTY = settings(max_examples=80, deadline=None, derandomize=True)
SETS = st.frozensets(st.integers(0, 9), max_size=8)
KERNEL_NAMES = ["numpy", *(["numba"] if importlib.util.find_spec("numba") else [])]
STORED = st.lists(SETS, min_size=1, max_size=20)


def weights(stored):
    """The definition: squared weights by feature, also of those that no counted set holds."""
    n = counted_sets(len(stored))
    counts = Counter(feature for members in stored[:n] for feature in members)
    return defaultdict(
        lambda: math.log1p(n + 1) ** 2,
        {feature: math.log1p((n + 1) / (count + 1)) ** 2 for feature, count in counts.items()},
    )


def cosine(a, b, squared):
    if not a and not b:
        return 1.0
    if not a or not b:
        return 0.0
    norm = math.sqrt(sum(squared[f] for f in a)) * math.sqrt(sum(squared[f] for f in b))
    return sum(squared[f] for f in a & b) / norm


def filled(stored, first_visit=0):
    index = JaccardIndex()
    index.add([(i, sorted(members), first_visit + i) for i, members in enumerate(stored)])
    return index


@PROPERTY
@given(STORED, SETS, st.integers(1, 25), st.sampled_from([0.0, 0.2, 0.5, 0.9]))
def test_search_equals_brute_force(stored, query, k, threshold):
    squared = weights(stored)
    expected = [
        (near, i, i)
        for i, members in enumerate(stored)
        if ((near := cosine(query, members, squared)) > 0.0 and near >= threshold - 1e-12)
    ]
    expected.sort(key=lambda match: (-round(match[0], 9), -match[1]))
    matches = RarityIndex().search([filled(stored)], sorted(query), n_features=len(query), k=k, threshold=threshold)
    near_threshold = [match for match in expected if abs(match[0] - threshold) < 1e-9]
    if not near_threshold:
        assert [id_ for _, _, id_ in matches] == [id_ for _, _, id_ in expected[:k]]
        assert [near for near, _, _ in matches] == pytest.approx([near for near, _, _ in expected[:k]])


@PROPERTY
@given(STORED)
def test_similarities_equal_definition_and_is_positive_semi_definite(stored):
    squared = weights(stored)
    between = RarityIndex().similarities([filled(stored)], range(len(stored)))
    expected = [[cosine(a, b, squared) for b in stored] for a in stored]
    assert between == pytest.approx(np.array(expected))
    assert np.linalg.eigvalsh(between).min() > -1e-9


def test_posted_blocks_give_the_same_results_as_a_tail():
    rng = np.random.default_rng(0)
    stored = [frozenset(rng.choice(200, size=12, replace=False).tolist()) for _ in range(1500)]
    index = filled(stored)
    assert len(index.blocks()) > 1 or index.blocks()[0].lists is not None
    squared = weights(stored)
    query = stored[7] | {1, 2, 3}
    expected = sorted(((cosine(query, members, squared), i) for i, members in enumerate(stored)), reverse=True)[:40]
    matches = RarityIndex().search([index], sorted(query), n_features=len(query), k=40, threshold=0.0)
    assert [near for near, _, _ in matches] == pytest.approx([near for near, _ in expected])


@st.composite
def memories(draw):
    """Posted sets of one kind of sizes and rarities, with copies, empty sets and sets of one feature; and a query."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_features, largest = draw(st.sampled_from([(12, 6), (300, 12), (300, 60), (20_000, 12), (20_000, 40)]))
    skew = draw(st.sampled_from([0.0, 1.0, 1.8]))
    odds = np.arange(1, n_features + 1) ** -skew
    n = 600 if largest > 12 else 1200
    drawn = rng.choice(n_features, size=(n, largest), p=odds / odds.sum())
    sizes = rng.integers(1, largest + 1, size=n) if draw(st.booleans()) else np.full(n, largest)
    stored = [frozenset(row[:size].tolist()) for row, size in zip(drawn, sizes, strict=True)]
    n_copies = draw(st.sampled_from([0, 200]))
    stored += [*stored[:n_copies], *[frozenset()] * 3, *(frozenset([feature]) for feature in range(12))]
    stored += [frozenset([n_features + i]) for i in range(2500)]  # so many that all are posted
    rng.shuffle(stored)
    words = rng.choice(n_features, size=draw(st.integers(0, largest)), p=odds / odds.sum()).tolist()
    known = draw(st.sampled_from([[], [n_features + 7]]))
    n_unknown = draw(st.integers(0, 2))
    base = stored[int(rng.integers(len(stored)))] if draw(st.booleans()) else frozenset()
    return stored, rng.permutation(len(stored)), frozenset([*words, *known]) | base, n_unknown


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(memories(), st.sampled_from([1, 3, 64, 5000]), st.sampled_from([None, None, 0.3, 0.9, 1.0]))
def test_lists_that_are_not_read_change_no_result(kernel, memory, k, place):
    stored, visits, query, n_unknown = memory
    index = JaccardIndex(kernel)
    index.add([(i, sorted(members), int(visits[i])) for i, members in enumerate(stored)])
    assert any(block.lists is not None for block in index.blocks())
    squared = weights(stored)
    unknown = {-1 - i for i in range(n_unknown)}
    near = {i: cosine(query | unknown, members, squared) for i, members in enumerate(stored)}
    found_at = sorted(similarity for similarity in near.values() if similarity > 0.0)
    # Just below a stored set's: the bounds have to let that set through.
    threshold = found_at[int(place * (len(found_at) - 1))] * (1.0 - 1e-9) if place and found_at else 0.0
    expected = [i for i in near if near[i] > 0.0 and near[i] >= threshold]
    expected = sorted(expected, key=lambda i: (-round(near[i], 9), -visits[i]))[:k]
    rarity = RarityIndex()
    matches = rarity.search([index], sorted(query), n_features=len(query) + n_unknown, k=k, threshold=threshold)
    assert [id_ for _, _, id_ in matches] == expected
    assert [similarity for similarity, _, _ in matches] == pytest.approx([near[i] for i in expected], abs=1e-11)
    found = [id_ for _, _, id_ in matches][:64]
    afresh = RarityIndex().similarities([index], found)
    assert np.array_equal(rarity.similarities([index], found), afresh)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_sets_of_a_common_feature_alone_are_found_though_its_list_is_long(kernel):
    stored = [*(frozenset([0, 1 + i]) for i in range(2500)), frozenset([0]), *(frozenset([3000, i]) for i in range(64))]
    squared = weights(stored)
    near = cosine({0, 3000}, {0}, squared)
    index = JaccardIndex(kernel)
    index.add([(i, sorted(members), i) for i, members in enumerate(stored)])
    for threshold in (0.0, 0.97 * near, near * (1.0 - 1e-9)):
        asked = {"n_features": 2, "k": 65, "threshold": threshold}
        assert 2500 in [id_ for _, _, id_ in RarityIndex().search([index], [0, 3000], **asked)]


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(memories(), st.sampled_from([1, 3, 64]), st.integers(0, 2**32 - 1))
def test_sets_that_pending_layers_repeat_leave_room_for_others(kernel, memory, k, seed):
    stored, visits, query, n_unknown = memory
    repeated = np.random.default_rng(seed).choice(len(stored), size=1500, replace=False).tolist()
    layers = [JaccardIndex(kernel), JaccardIndex(kernel)]
    layers[0].add([(i, sorted(members), int(visits[i])) for i, members in enumerate(stored)])
    later = {i: len(stored) + at for at, i in enumerate(repeated)}
    layers[1].add([(i, sorted(stored[i]), visit) for i, visit in later.items()])
    whole = JaccardIndex(kernel)
    whole.add([(i, sorted(members), later.get(i, int(visits[i]))) for i, members in enumerate(stored)])
    asked = {"n_features": len(query) + n_unknown, "k": k, "threshold": 0.0}
    found = RarityIndex().search(layers, sorted(query), **asked)
    assert found == RarityIndex().search([whole], sorted(query), **asked)


def test_pending_layer_moves_the_visit_of_a_stored_set_and_adds_new_ones():
    stored = filled([frozenset({1, 2}), frozenset({3})])
    layer = JaccardIndex()
    layer.add([(0, [1, 2], 50), (9, [1, 2, 30], 51)])
    matches = RarityIndex().search([stored, layer], [1, 2], n_features=2, k=5, threshold=0.0)
    assert [(visit, id_) for _, visit, id_ in matches] == [(50, 0), (51, 9)]
    between = RarityIndex().similarities([stored, layer], [0, 9])
    assert between[0, 1] == pytest.approx(matches[1][0])


def test_unknown_features_of_the_query_lower_similarity():
    index = filled([frozenset({1, 2})])
    near = [RarityIndex().search([index], [1, 2], n_features=n, k=1, threshold=0.0)[0][0] for n in (2, 3, 6)]
    assert near[0] == 1.0 > near[1] > near[2]


def test_weights_are_counted_again_after_a_sixteenth_of_growth_only():
    assert [counted_sets(n) for n in (0, 1, 64, 67, 68, 71, 72)] == [0, 1, 64, 64, 68, 68, 72]
    assert 10**6 / (1 + 1 / 16) < counted_sets(10**6) <= 10**6


def test_weights_follow_a_growing_memory_and_clear_forgets_them():
    index, rarity = filled([frozenset({1, 2}), frozenset({1, 3})]), RarityIndex()
    before = rarity.search([index], [1, 2], n_features=2, k=2, threshold=0.0)[1][0]
    index.add([(2, [1, 4], 2), (3, [1, 5], 3)])
    after = rarity.search([index], [1, 2], n_features=2, k=4, threshold=0.0)[-1][0]
    assert after < before  # token 1 is in every set, so it says less in a larger memory
    rarity.clear()
    assert rarity.search([index], [1, 2], n_features=2, k=4, threshold=0.0)[-1][0] == after


def test_late_sets_with_lower_ids_are_counted_as_by_a_new_index():
    rows = [(i, [1, 2 + i % 7], i) for i in range(200, 4430)]
    late = [(i, [1, 100], 5000 + i) for i in range(200)]  # states that were out of use, and are visited again
    running, rarity = JaccardIndex(), RarityIndex()
    running.add(rows)
    query = {"n_features": 3, "k": 3, "threshold": 0.0}  # no set has all of it
    before = rarity.search([running], [1, 2, 100], **query)
    running.add(late[:100])
    assert counted_sets(len(running)) == counted_sets(len(rows))
    opened = JaccardIndex()
    opened.add([*late[:100], *rows])
    after = rarity.search([running], [1, 2, 100], **query)
    assert after == RarityIndex().search([opened], [1, 2, 100], **query)
    assert after != before


def test_pending_set_with_a_low_id_is_counted_once():
    stored, layer = filled([frozenset({1, 2}), frozenset({1, 3})]), JaccardIndex()
    layer.add([(1, [1, 3], 9)])
    below = JaccardIndex()
    below.add([(5, [1, 2], 0), (6, [1, 3], 1)])
    revived = JaccardIndex()
    revived.add([(2, [1, 4], 7)])
    query = {"n_features": 2, "k": 5, "threshold": 0.0}
    two = [near for near, _, _ in RarityIndex().search([stored, layer], [1, 2], **query)]
    assert two == [near for near, _, _ in RarityIndex().search([stored], [1, 2], **query)]
    whole = filled([frozenset({1, 2}), frozenset({1, 3}), frozenset({1, 4})])
    three = [near for near, _, _ in RarityIndex().search([below, revived], [1, 2], **query)]
    assert three == [near for near, _, _ in RarityIndex().search([whole], [1, 2], **query)]


@pytest.mark.parametrize(("k", "threshold"), [(0, 0.5), (1, -0.1), (1, 1.1), (1, math.nan)])
def test_invalid_k_or_threshold_is_refused(k, threshold):
    with pytest.raises(InputError):
        RarityIndex().search([filled([frozenset({1})])], [1], n_features=1, k=k, threshold=threshold)


def test_query_without_stored_features_finds_nothing():
    index = filled([frozenset()])
    assert RarityIndex().search([index], [], n_features=2, k=1, threshold=0.0) == []
    assert RarityIndex().search([index], [], n_features=0, k=1, threshold=0.0) == [(1.0, 0, 0)]
    layer = filled([frozenset({1})], first_visit=5)
    assert RarityIndex().search([JaccardIndex(), layer], [], n_features=1, k=1, threshold=0.0) == []


def test_empty_index_has_no_matches():
    assert RarityIndex().search([JaccardIndex()], [], n_features=3, k=5, threshold=0.0) == []
    assert RarityIndex().similarities([JaccardIndex()], []).shape == (0, 0)
