"""Search by rarity equals brute force over Python sets, and similarities between sets are positive semi-definite."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seasoned.errors import InputError
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.rarity import RarityIndex, counted_sets

PROPERTY = settings(max_examples=80, deadline=None, derandomize=True)
SETS = st.frozensets(st.integers(0, 9), max_size=8)
STORED = st.lists(SETS, min_size=1, max_size=20)


def weights(stored):
    """The definition: squared weights by feature, and that of a feature that no set holds."""
    n = len(stored)
    counts = {feature: sum(feature in members for members in stored) for feature in range(10)}
    return {feature: math.log1p((n + 1) / (count + 1)) ** 2 for feature, count in counts.items()}


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
    squared = {
        feature: math.log1p(1501 / (1 + sum(feature in members for members in stored))) ** 2 for feature in range(200)
    }
    query = stored[7] | {1, 2, 3}
    expected = sorted(((cosine(query, members, squared), i) for i, members in enumerate(stored)), reverse=True)[:40]
    matches = RarityIndex().search([index], sorted(query), n_features=len(query), k=40, threshold=0.0)
    assert [near for near, _, _ in matches] == pytest.approx([near for near, _ in expected])


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
    assert [counted_sets(n) for n in (0, 1, 4096, 4351, 4352, 10**6)][:5] == [0, 1, 4096, 4096, 4352]
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
    rows = [(i, [1, 2 + i % 7], i) for i in range(200, 4400)]
    late = [(i, [1, 100], 5000 + i) for i in range(200)]  # states that were out of use, and are visited again
    running, rarity = JaccardIndex(), RarityIndex()
    running.add(rows)
    query = {"n_features": 2, "k": 3, "threshold": 0.0}
    rarity.search([running], [1, 100], **query)
    running.add(late[:100])
    assert counted_sets(len(running)) == counted_sets(len(rows))
    opened = JaccardIndex()
    opened.add([*late[:100], *rows])
    assert rarity.search([running], [1, 2], **query) == RarityIndex().search([opened], [1, 2], **query)


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
