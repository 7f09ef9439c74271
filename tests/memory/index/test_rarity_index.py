"""Search by rarity equals brute force over Python sets, and similarities between sets are positive semi-definite."""

from __future__ import annotations

import functools
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
from seasoned.memory.index.rarity_weights import common_above, counted_sets
from seasoned.memory.index.term_keys import keys_by
from seasoned.states.subwords import subword_terms

KERNEL_NAMES = ["numpy", *(["numba"] if importlib.util.find_spec("numba") else [])]

WORDS = ["a", "b", "c", "ab", "ba", "bc", "abc", "cab", "dd", "ddd"]
SETS = st.frozensets(st.sampled_from(WORDS), max_size=8)
STORED = st.lists(SETS, min_size=1, max_size=20)


def pairs(feature):
    """Return terms that are parts of a feature, so that different features share some: of "abc" "abc", "ab", "bc"."""
    return list(dict.fromkeys([feature, *(feature[i : i + 2] for i in range(len(feature) - 1))]))


def unsplit(feature):
    return [feature]


def before_dash(feature):
    """Return a feature and what stands before its dash."""
    return list(dict.fromkeys([feature, feature.split("-")[0]]))


TERMS_OF = {"pairs": pairs, "unsplit": unsplit}


@functools.lru_cache(10_000)
def counts_of(members, terms_of):
    return Counter(term for feature in members for term in terms_of(feature))


def weights(stored, terms_of=unsplit):
    """The definition: squared weights by term, also of those that no counted set holds."""
    n = counted_sets(len(stored))
    counts = Counter()
    for members in stored[:n]:
        counts.update(counts_of(members, terms_of))
    return defaultdict(
        lambda: math.log1p(n + 1) ** 2, {term: math.log1p((n + 1) / (count + 1)) ** 2 for term, count in counts.items()}
    )


def cosine(a, b, squared, terms_of=unsplit):
    if not a and not b:
        return 1.0
    if not a or not b:
        return 0.0
    x, y = counts_of(a, terms_of), counts_of(b, terms_of)
    if not x.keys() & y.keys():
        return 0.0
    norm = math.sqrt(math.prod(sum(n * n * squared[t] for t, n in counts.items()) for counts in (x, y)))
    return sum(n * y[t] * squared[t] for t, n in x.items()) / norm


class Filled:
    """An index of sets and what searches it by rarity, with features numbered as a store does."""

    def __init__(self, stored, terms_of=unsplit, kernel="auto", visits=None):
        self.terms_of, self.kernel = terms_of, kernel
        self.number = {f: i for i, f in enumerate(sorted({f for members in stored for f in members}))}
        self.rarity = self.afresh()
        self.index = self.layer(enumerate(stored), visits)

    def afresh(self):
        rarity = RarityIndex(keys_by(self.terms_of))
        rarity.terms.add(self.number)
        return rarity

    def layer(self, sets, visits=None):
        index = JaccardIndex(self.kernel)
        rows = [(i, sorted(self.number[feature] for feature in members)) for i, members in sets]
        index.add([(i, tokens, i if visits is None else int(visits[i])) for i, tokens in rows])
        return index

    def search(self, query, layers=None, **asked):
        return self.rarity.search(layers or [self.index], query, **asked)


@given(STORED, SETS, st.integers(1, 25), st.sampled_from([0.0, 0.2, 0.5, 0.9]), st.sampled_from(sorted(TERMS_OF)))
def test_search_equals_brute_force(stored, query, k, threshold, terms):
    terms_of = TERMS_OF[terms]
    squared = weights(stored, terms_of)
    expected = [
        (near, i, i)
        for i, members in enumerate(stored)
        if ((near := cosine(query, members, squared, terms_of)) > 0.0 and near >= threshold - 1e-12)
    ]
    expected.sort(key=lambda match: (-round(match[0], 9), -match[1]))
    matches = Filled(stored, terms_of).search(query, k=k, threshold=threshold)
    near_threshold = [match for match in expected if abs(match[0] - threshold) < 1e-9]
    if not near_threshold:
        assert [id_ for _, _, id_ in matches] == [id_ for _, _, id_ in expected[:k]]
        assert [near for near, _, _ in matches] == pytest.approx([near for near, _, _ in expected[:k]])


@given(STORED, st.sampled_from(sorted(TERMS_OF)))
def test_similarities_equal_definition_and_is_positive_semi_definite(stored, terms):
    squared, filled = weights(stored, TERMS_OF[terms]), Filled(stored, TERMS_OF[terms])
    between = filled.rarity.similarities([filled.index], range(len(stored)))
    expected = [[cosine(a, b, squared, TERMS_OF[terms]) for b in stored] for a in stored]
    assert between == pytest.approx(np.array(expected))
    assert np.linalg.eigvalsh(between).min() > -1e-9


def named(numbers):
    return frozenset(f"{number:04d}" for number in numbers)


def test_posted_blocks_give_the_same_results_as_a_tail():
    rng = np.random.default_rng(0)
    stored = [named(rng.choice(200, size=12, replace=False).tolist()) for _ in range(1500)]
    filled = Filled(stored)
    assert len(filled.index.blocks()) > 1 or filled.index.blocks()[0].lists is not None
    squared = weights(stored)
    query = stored[7] | named([1, 2, 3])
    expected = sorted(((cosine(query, members, squared), i) for i, members in enumerate(stored)), reverse=True)[:40]
    matches = filled.search(query, k=40, threshold=0.0)
    assert [near for near, _, _ in matches] == pytest.approx([near for near, _ in expected])


@st.composite
def memories(draw):
    """Posted sets of one kind of sizes and rarities, with copies, empty sets and sets of one feature; and a query."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_features, largest = draw(st.sampled_from([(12, 6), (300, 12), (300, 60), (7_000, 12), (7_000, 40)]))
    skew = draw(st.sampled_from([0.0, 1.0, 1.8]))
    odds = np.arange(1, n_features + 1) ** -skew
    n = 600 if largest > 12 else 1200
    drawn = rng.choice(n_features, size=(n, largest), p=odds / odds.sum())
    sizes = rng.integers(1, largest + 1, size=n) if draw(st.booleans()) else np.full(n, largest)
    stored = [named(row[:size].tolist()) for row, size in zip(drawn, sizes, strict=True)]
    n_copies = draw(st.sampled_from([0, 200]))
    stored += [*stored[:n_copies], *[frozenset()] * 3, *(named([feature]) for feature in range(12))]
    stored += [named([n_features + i]) for i in range(2500)]  # so many that all are posted
    rng.shuffle(stored)
    words = rng.choice(n_features, size=draw(st.integers(0, largest)), p=odds / odds.sum()).tolist()
    known = draw(st.sampled_from([[], [n_features + 7]]))
    unknown = [f"new {i}" for i in range(draw(st.integers(0, 2)))]
    base = stored[int(rng.integers(len(stored)))] if draw(st.booleans()) else frozenset()
    return stored, rng.permutation(len(stored)), named([*words, *known]) | base | frozenset(unknown)


@pytest.mark.parametrize("few_postings", [0, None])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@settings(max_examples=6)
@given(
    memories(),
    st.sampled_from([1, 3, 64, 5000]),
    st.sampled_from([None, None, 0.3, 0.9, 1.0]),
    st.sampled_from(sorted(TERMS_OF)),
)
def test_lists_that_are_not_read_change_no_result(kernel, few_postings, memory, k, place, terms):
    stored, visits, query = memory
    terms_of = TERMS_OF[terms]
    filled = Filled(stored, terms_of, kernel, visits)
    if few_postings is not None:
        filled.rarity.few_postings = few_postings  # the lists that are needed are searched for, however few there are
    assert any(block.lists is not None for block in filled.index.blocks())
    squared = weights(stored, terms_of)
    near = {i: cosine(query, members, squared, terms_of) for i, members in enumerate(stored)}
    found_at = sorted(similarity for similarity in near.values() if similarity > 0.0)
    # Just below a stored set's: the bounds have to let that set through.
    threshold = found_at[int(place * (len(found_at) - 1))] * (1.0 - 1e-9) if place and found_at else 0.0
    expected = [i for i in near if near[i] > 0.0 and near[i] >= threshold]
    expected = sorted(expected, key=lambda i: (-round(near[i], 9), -visits[i]))[:k]
    matches = filled.search(query, k=k, threshold=threshold)
    assert [id_ for _, _, id_ in matches] == expected
    assert [similarity for similarity, _, _ in matches] == pytest.approx([near[i] for i in expected], abs=1e-11)
    found = [id_ for _, _, id_ in matches][:64]
    afresh = filled.afresh().similarities([filled.index], found)
    assert np.array_equal(filled.rarity.similarities([filled.index], found), afresh)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_room_is_made_for_stored_sets_alone(kernel):
    filled = Filled([named([1, 2]), named([2, 3])], kernel=kernel)
    assert filled.search(named([2]), k=10**13, threshold=0.0) == filled.search(named([2]), k=2, threshold=0.0)


@pytest.mark.skipif("numba" not in KERNEL_NAMES, reason="needs the extra `fast`")
def test_compiled_search_leaves_out_lists_and_no_result():
    """There are many times as many postings as sets, so that it stops reading before the end."""
    rng = np.random.default_rng(0)
    odds = np.arange(1, 401) ** -1.0
    stored = [named(row.tolist()) for row in rng.choice(400, size=(4000, 30), p=odds / odds.sum())]
    compiled, plain = Filled(stored, kernel="numba"), Filled(stored, kernel="numpy")
    for k in (1, 5, 64):
        query = stored[k] | named(rng.choice(400, size=20).tolist())
        assert compiled.search(query, k=k, threshold=0.0) == plain.search(query, k=k, threshold=0.0)


@pytest.mark.skipif("numba" not in KERNEL_NAMES, reason="needs the extra `fast`")
def test_compiled_search_finds_a_set_by_lists_that_it_does_not_read():
    """The lists of the rarer half of the features are read. One set holds the whole other half, and is a little nearer
    than 20 sets that hold 18 of the rarer ones.
    """
    stored = [named(40 + (i + 8 * j) % 40 for j in range(5)) for i in range(3000)]
    stored += [named((i + 8 * j) % 40 for j in range(5)) for i in range(1000)]
    stored += [named((2 * i + j) % 40 for j in range(18)) for i in range(20)]
    best = len(stored)
    stored.append(named(range(40, 80)))
    matches = Filled(stored, kernel="numba").search(named(range(80)), k=1, threshold=0.0)
    assert [id_ for _, _, id_ in matches] == [best]


@pytest.mark.skipif("numba" not in KERNEL_NAMES, reason="needs the extra `fast`")
def test_compiled_search_finds_the_same_among_sets_too_large_to_count_their_features():
    rng = np.random.default_rng(1)
    stored = [named(rng.permutation(1500)[: int(n)].tolist()) for n in rng.choice([5, 40, 1100], size=200)]
    compiled, plain = Filled(stored, kernel="numba"), Filled(stored, kernel="numpy")
    for k in (1, 20):
        query = named(rng.permutation(1500)[:300].tolist())
        assert compiled.search(query, k=k, threshold=0.0) == plain.search(query, k=k, threshold=0.0)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_sets_of_a_common_feature_alone_are_found_though_its_list_is_long(kernel):
    stored = [*(named([0, 1 + i]) for i in range(2500)), named([0]), *(named([3000, i]) for i in range(64))]
    near = cosine(named([0, 3000]), named([0]), weights(stored))
    filled = Filled(stored, kernel=kernel)
    filled.rarity.few_postings = 0
    for threshold in (0.0, 0.97 * near, near * (1.0 - 1e-9)):
        assert 2500 in [id_ for _, _, id_ in filled.search(named([0, 3000]), k=65, threshold=threshold)]


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@settings(max_examples=4)
@given(memories(), st.sampled_from([1, 3, 64]), st.integers(0, 2**32 - 1))
def test_sets_that_pending_layers_repeat_leave_room_for_others(kernel, memory, k, seed):
    stored, visits, query = memory
    repeated = np.random.default_rng(seed).choice(len(stored), size=1500, replace=False).tolist()
    filled = Filled(stored, pairs, kernel, visits)
    later = {i: len(stored) + at for at, i in enumerate(repeated)}
    layer = filled.layer(((i, stored[i]) for i in later), later)
    whole = filled.layer(enumerate(stored), {i: later.get(i, int(visits[i])) for i in range(len(stored))})
    found = filled.search(query, [filled.index, layer], k=k, threshold=0.0)
    filled.rarity = filled.afresh()
    assert found == filled.search(query, [whole], k=k, threshold=0.0)


def test_pending_layer_moves_the_visit_of_a_stored_set_and_adds_new_ones():
    filled = Filled([named([1, 2]), named([3])])
    filled.rarity.terms.replace_pending([{"0030": 3}])
    layer = JaccardIndex()
    layer.add([(0, [0, 1], 50), (9, [0, 1, 3], 51)])
    matches = filled.search(named([1, 2]), [filled.index, layer], k=5, threshold=0.0)
    assert [(visit, id_) for _, visit, id_ in matches] == [(50, 0), (51, 9)]
    between = filled.rarity.similarities([filled.index, layer], [0, 9])
    assert between[0, 1] == pytest.approx(matches[1][0])


def test_pending_features_are_replaced_and_stored_ones_follow():
    filled = Filled([frozenset(["card", "lamp"]), frozenset(["boat"])], subword_terms)
    for pending in ("cards", "boats", "carding"):  # each time number 3 is another feature
        filled.rarity.terms.replace_pending([{pending: 3}])
        layer = JaccardIndex()
        layer.add([(9, [3], 51)])
        found = filled.search([pending], [filled.index, layer], k=1, threshold=0.0)
        assert found == [(1.0, 51, 9)]
        opened = Filled([frozenset(["card", "lamp"]), frozenset(["boat"]), frozenset([pending])], subword_terms)
        [(near, _, _)] = filled.search(["card"], [filled.index, layer], k=1, threshold=0.0)
        expected = opened.search(["card"], k=1, threshold=0.0)
        assert [near] == pytest.approx([match[0] for match in expected])
    filled.rarity.clear()
    filled.rarity.terms.replace_pending([])
    filled.rarity.terms.add({"lamps": 3})
    filled.index.add([(2, [3], 3)])
    assert filled.search(["lamps"], k=1, threshold=0.0) == [(1.0, 3, 2)]


def test_features_that_share_subwords_are_alike_whatever_their_order_of_coming():
    stored = [frozenset(text.split()) for text in ("refund please", "a card payment", "my parcel")]
    filled = Filled(stored, subword_terms)
    [(near, _, id_)] = filled.search(["refunds!"], k=3, threshold=0.0)
    assert id_ == 0 and near > 0.3
    assert Filled(stored).search(["refunds!"], k=3, threshold=0.0) == []


def test_features_added_one_by_one_give_the_same_results():
    rng = np.random.default_rng(3)
    stored = [named(rng.choice(3000, size=5).tolist()) for _ in range(700)]
    whole = Filled(stored, pairs)
    rarity, index = RarityIndex(keys_by(pairs)), JaccardIndex()
    text_of = {number: feature for feature, number in whole.number.items()}
    first = 0
    for stop in (500, 1000, len(text_of)):
        rarity.terms.add({text_of[number]: number for number in range(first, stop)})
        first = stop
        rarity.search([index], ["0001"], k=1, threshold=0.0)
    index.add([(i, sorted(whole.number[feature] for feature in members), i) for i, members in enumerate(stored)])
    for query in (stored[3], named([1, 50, 700])):
        assert rarity.search([index], query, k=20, threshold=0.0) == whole.search(query, k=20, threshold=0.0)


def without_common(stored, terms_of):
    """The definition of terms by those of features: a common one is left out, but where it is the feature itself."""
    in_use = set().union(*stored[: counted_sets(len(stored))])
    held = Counter(term for feature in in_use for term in terms_of(feature))
    common = {term for term, n in held.items() if n > common_above(len(in_use))}
    assert len(common) <= 20 * max(len(terms_of(feature)) for feature in in_use)

    def terms(feature):
        left = [term for term in terms_of(feature) if term not in common]
        return [("alone", feature), *left] if feature in common else left

    return terms, common


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_prefix_of_most_features_says_nothing_until_they_are_few_again(kernel):
    ids = [frozenset([f"order-{i}", f"desk-{i % 7}", f"n{i % 3}"]) for i in range(1100)]
    stored = [*ids, frozenset(["order", "n1"]), frozenset(["order"]), frozenset(["order-7", "order"])]
    later = [frozenset(f"other{i}-{j}" for j in range(320)) for i in range(90)]
    filled = Filled([*stored, *later], before_dash, kernel)
    filled.index = filled.layer(enumerate(stored))
    queries = [["order-7"], ["order"], ["order", "desk-3"], ["order-99999", "n1"], ["order-5", "desk-1"]]
    for sets, expected_common in ((stored, {"order"}), (stored + later, set())):
        filled.index.add(
            [(i, sorted(filled.number[f] for f in sets[i]), i) for i in range(len(filled.index), len(sets))]
        )
        terms, common = without_common(sets, before_dash)
        assert common == expected_common
        squared = weights(sets, terms)
        for query in map(frozenset, queries):
            near = [(round(cosine(query, members, squared, terms), 9), i) for i, members in enumerate(sets)]
            expected = sorted((match for match in near if match[0] > 0.0), reverse=True)[:40]
            matches = filled.search(query, k=40, threshold=0.0)
            assert [id_ for _, _, id_ in matches] == [id_ for _, id_ in expected]
            assert [found for found, _, _ in matches] == pytest.approx([found for found, _ in expected])
        among = [1, 7, 1100, 1101, 1102]
        between = filled.rarity.similarities([filled.index], among)
        assert between == pytest.approx(
            np.array([[cosine(sets[i], sets[j], squared, terms) for j in among] for i in among])
        )
        filled.rarity.terms.replace(dict(filled.number))  # of features that kept their numbers nothing changes
        filled.rarity.clear()


def test_terms_follow_features_that_get_other_numbers():
    filled = Filled([frozenset(["card", "lamp"]), frozenset(["boat"])], subword_terms)
    assert filled.search(["boats"], k=1, threshold=0.0)
    filled.rarity.clear()
    filled.rarity.terms.replace({"boat": 0, "lamp": 1, "oar": 2})
    filled.index = JaccardIndex()
    filled.index.add([(0, [0, 2], 5), (1, [1], 6)])
    [(near, _, id_)] = filled.search(["boats"], k=5, threshold=0.0)
    afresh = Filled([frozenset(["boat", "oar"]), frozenset(["lamp"])], subword_terms)
    assert (near, id_) == (afresh.search(["boats"], k=5, threshold=0.0)[0][0], 0)


def test_unknown_features_of_the_query_lower_similarity():
    filled = Filled([named([1, 2])])
    queries = (named([1, 2]), named([1, 2, 8]), named([1, 2, 5, 6, 7, 8]))
    near = [filled.search(query, k=1, threshold=0.0)[0][0] for query in queries]
    assert near[0] == 1.0 > near[1] > near[2]


def test_weights_are_counted_again_after_a_sixteenth_of_growth_only():
    assert [counted_sets(n) for n in (0, 1, 64, 67, 68, 71, 72)] == [0, 1, 64, 64, 68, 68, 72]
    assert 10**6 / (1 + 1 / 16) < counted_sets(10**6) <= 10**6


def test_weights_follow_a_growing_memory_and_clear_forgets_them():
    filled = Filled([named([1, 2]), named([1, 3]), named([4]), named([5])])
    filled.index = filled.layer(enumerate([named([1, 2]), named([1, 3])]))
    before = filled.search(named([1, 2]), k=2, threshold=0.0)[1][0]
    number = filled.number
    filled.index.add([(2, [number["0001"], number["0004"]], 2), (3, [number["0001"], number["0005"]], 3)])
    after = filled.search(named([1, 2]), k=4, threshold=0.0)[-1][0]
    assert after < before  # the first feature is in every set, so it says less in a larger memory
    filled.rarity.clear()
    assert filled.search(named([1, 2]), k=4, threshold=0.0)[-1][0] == after


def test_late_sets_with_lower_ids_are_counted_as_by_a_new_index():
    sets = {i: named([1, 2 + i % 7]) for i in range(200, 4430)}
    late = {i: named([1, 100]) for i in range(200)}  # states that were out of use, and are visited again
    filled = Filled([*late.values(), *sets.values()])
    running = filled.layer(sets.items(), {i: i for i in sets})
    query = {"query": named([1, 2, 100]), "k": 3, "threshold": 0.0}  # no set has all of it
    before = filled.search(layers=[running], **query)
    token = filled.number
    running.add([(i, sorted(token[f] for f in late[i]), 5000 + i) for i in range(100)])
    assert counted_sets(len(running)) == counted_sets(len(sets))
    some = {i: late[i] for i in range(100)}
    opened = filled.layer((some | sets).items(), {i: 5000 + i if i < 100 else i for i in some | sets})
    after = filled.search(layers=[running], **query)
    filled.rarity = filled.afresh()
    assert after == filled.search(layers=[opened], **query)
    assert after != before


def test_pending_set_with_a_low_id_is_counted_once():
    filled = Filled([named([1, 2]), named([1, 3]), named([1, 4])])
    sets = [named([1, 2]), named([1, 3]), named([1, 4])]
    stored, layer = filled.layer(enumerate(sets[:2])), filled.layer([(1, sets[1])], {1: 9})
    below, revived = filled.layer([(5, sets[0]), (6, sets[1])], {5: 0, 6: 1}), filled.layer([(2, sets[2])], {2: 7})
    query = {"query": sets[0], "k": 5, "threshold": 0.0}

    def near(*layers):
        filled.rarity = filled.afresh()
        return [match[0] for match in filled.search(layers=layers, **query)]

    assert near(stored, layer) == near(stored)
    assert near(below, revived) == near(filled.layer(enumerate(sets)))


@pytest.mark.parametrize(("k", "threshold"), [(0, 0.5), (1, -0.1), (1, 1.1), (1, math.nan)])
def test_invalid_k_or_threshold_is_refused(k, threshold):
    with pytest.raises(InputError):
        Filled([named([1])]).search(named([1]), k=k, threshold=threshold)


def test_query_without_stored_features_finds_nothing():
    filled = Filled([frozenset()])
    assert filled.search(named([7, 8]), k=1, threshold=0.0) == []
    assert filled.search([], k=1, threshold=0.0) == [(1.0, 0, 0)]
    assert Filled([named([1])]).search(named([8]), k=1, threshold=0.0) == []


def test_empty_index_has_no_matches():
    assert RarityIndex().search([JaccardIndex()], ["a", "b"], k=5, threshold=0.0) == []
    assert RarityIndex().similarities([JaccardIndex()], []).shape == (0, 0)
