"""Search with goals equals brute force and is a kernel; without goals nothing changes."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned import Episode, Memory, Step
from seasoned.memory.index.goal_similarity import GOAL_SHARE, GoalIndex, without_goals
from seasoned.memory.index.jaccard import JaccardIndex
from seasoned.memory.index.rarity import RarityIndex
from seasoned.memory.index.term_keys import subword_keys
from seasoned.states import InputMessage, Transcript, TranscriptEncoder
from seasoned.states.transcript.goals import apart_from_goal, goal_feature, goal_terms, is_goal

WORDS = ["open", "opened", "lamp", "sea", "go"]
GOALS = st.lists(st.sampled_from(["cancel", "cancelled", "change", "it", "bag"]), max_size=3).map(goal_feature)
SETS = st.builds(lambda words, goal: words | ({goal} if goal else set()), st.sets(st.sampled_from(WORDS)), GOALS)


def built(stored):
    sets, index = JaccardIndex(), GoalIndex(RarityIndex(without_goals(subword_keys)))
    tokens = {}
    for members in stored:
        for feature in sorted(members):
            tokens.setdefault(feature, len(tokens))
    index.states.terms.add(tokens)
    index.add(tokens)
    sets.add([(id_, [tokens[each] for each in members], id_) for id_, members in enumerate(stored)])
    return [sets], index


def states_alone(stored):
    return built([{each for each in members if not is_goal(each)} for members in stored])


def goal_of(members):
    return next((set(goal_terms(each)) for each in members if is_goal(each)), None)


def goal_similarity(a, b, stored):
    """The definition: the cosine of goals by the terms' rarity over the distinct goals."""
    a, b = goal_of(a), goal_of(b)
    if a is None or b is None:
        return float(a is b)
    goals = {each for members in stored for each in members if is_goal(each)}
    held = Counter(term for goal in goals for term in goal_terms(goal))
    squared = {term: math.log1p((len(goals) + 1) / (held[term] + 1)) ** 2 for term in a | b}
    return sum(squared[t] for t in a & b) / math.sqrt(sum(squared[t] for t in a) * sum(squared[t] for t in b))


@given(st.lists(SETS, min_size=1, max_size=15), SETS, st.integers(1, 6), st.sampled_from([0.0, 0.3, 0.7]))
def test_search_equals_brute_force(stored, query, k, threshold):
    layers, index = built(stored)
    found = index.search(layers, query, k=k, threshold=threshold)
    plain_layers, plain = states_alone(stored)
    words = {each for each in query if not is_goal(each)}
    expected = []
    for near, visit, id_ in plain.states.search(plain_layers, words, k=len(stored), threshold=0.0):
        score = near * (1 - GOAL_SHARE + GOAL_SHARE * goal_similarity(query, stored[id_], stored))
        expected.append((-score, -visit, id_))
    expected = [one for one in sorted(expected) if -one[0] >= threshold + 1e-9][:k]
    assert [near for near, _, _ in found][: len(expected)] == pytest.approx([-one[0] for one in expected], abs=1e-9)
    ties = Counter(round(-one[0], 9) for one in expected)
    if all(n == 1 for n in ties.values()):
        assert [id_ for _, _, id_ in found][: len(expected)] == [id_ for _, _, id_ in expected]


@given(st.lists(SETS, min_size=1, max_size=12))
def test_similarities_are_those_of_the_search_and_positive_semi_definite(stored):
    layers, index = built(stored)
    ids = list(range(len(stored)))
    between = index.similarities(layers, ids)
    assert np.linalg.eigvalsh(between).min() > -1e-9
    assert np.diag(between) == pytest.approx(np.ones(len(ids)))
    for near, _, id_ in index.search(layers, stored[0], k=len(ids), threshold=0.0):
        if id_:
            assert near == pytest.approx(between[0, id_], abs=1e-9)


@pytest.mark.parametrize("n_states", [1, 3, 700])
@pytest.mark.parametrize("n_goals", [2, 1300])
def test_search_equals_brute_force_where_many_states_or_goals_tie(n_states, n_goals):
    rng = np.random.default_rng(n_states + n_goals)
    words = [f"{a}{b}{a}o" for a in "bdfgklmnprst" for b in "aeiou"]
    texts = [set(rng.choice(words, 3).tolist()) for _ in range(n_states)]
    goals = [goal_feature(rng.choice(words, 4).tolist()) for _ in range(n_goals)]
    stored = [texts[rng.integers(n_states)] | {goals[i % n_goals]} for i in range(1300)] + texts
    layers, index = built(list(map(set, dict.fromkeys(map(frozenset, stored)))))
    between = index.similarities(layers, range(len(layers[0])))
    for at in rng.integers(len(between), size=4).tolist():
        query = {name for name, id_ in index.states.terms.number_of.items() if id_ in tokens_of(layers, at)}
        expected = sorted((-round(near, 9), -id_) for id_, near in enumerate(between[at].tolist()) if near > 0)
        found = [(-round(near, 9), -id_) for near, _, id_ in index.search(layers, query, k=7, threshold=0.0)]
        assert found == expected[:7]


def tokens_of(layers, id_):
    [tokens] = [b.taken(b.find(np.array([id_]))[1]).tokens for b in layers[0].blocks() if b.find(np.array([id_]))[0]]
    return set(tokens.tolist())


def test_sets_without_features_other_than_a_goal_are_alike_as_their_goals_are():
    stored = [set(), {goal_feature(["cancel"])}, {goal_feature(["change"])}, {"open"}]
    layers, index = built(stored)
    assert index.similarities(layers, range(4))[0].tolist() == [1.0, 0.5, 0.5, 0.0]
    for id_ in range(3):
        found = {other: near for near, _, other in index.search(layers, stored[id_], k=4, threshold=0.0)}
        assert [found.get(other, 0.0) for other in range(4)] == pytest.approx(index.similarities(layers, range(4))[id_])


def test_sets_without_goals_have_the_same_similarities_to_the_last_digit():
    stored = [{"open", "lamp"}, {"opened"}, {"sea", "go"}]
    layers, index = built(stored)
    assert index.search(layers, {"open", "sea"}, k=3, threshold=0.0) == index.states.search(
        layers, {"open", "sea"}, k=3, threshold=0.0
    )
    assert (index.similarities(layers, [0, 1, 2]) == index.states.similarities(layers, [0, 1, 2])).all()


def state(goal, text='{"flights": []}'):
    return Transcript([InputMessage("tool find", text)], ["find"], goal).text


def test_memory_ranks_the_same_screen_by_the_goal_and_jaccard_stays_plain():
    with Memory.open(":memory:", encoder=TranscriptEncoder()) as memory:
        for goal, action in (("Cancel my trip to Boston.", "cancel"), ("Add two suitcases, please.", "bags")):
            memory.add(Episode(goal, [Step(state(goal), action, 1.0)]))
        for goal, action in (("I want to cancel my trip", "cancel"), ("one more suitcase", "bags")):
            assert memory.search(state(goal), k=1, similarity="rarity")[0].experience.action == action
        query = state("Something else")
        [best, _] = memory.search(query, k=2)
        left, right = memory.encoder.features(query), memory.encoder.features(best.experience.state)
        assert best.similarity == len(left & right) / len(left | right)


@given(st.lists(SETS, min_size=1, max_size=12), SETS)
def test_sets_are_of_one_situation_if_they_are_equal_apart_from_goals_that_are_not_pursued(stored, query):
    layers, index = built(stored)
    found = index.situations(layers, query, range(len(stored)))
    if not any(map(is_goal, set().union(*stored))):
        assert found is None
        return
    keys = [(apart_from_goal(each), goal_of(each) == goal_of(query)) for each in stored]
    same = [[one == other for other in keys] for one in keys]
    assert (found[:, None] == found).tolist() == same
