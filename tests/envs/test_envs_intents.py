"""Rounds from labelled sentences, and the environment that shows them."""

from __future__ import annotations

import json

import pytest

from intent_files import WORDS, write_intents
from seasoned.envs import IntentRouting, open_env
from seasoned.envs.intent_rounds import IntentTask, draw_rounds, intent_options, read_intents
from seasoned.errors import InputError, NotFoundError
from seasoned.sync import Sync
from seasoned.testing import check_environment


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_intents(tmp_path_factory.mktemp("intents"))


@pytest.fixture(scope="module")
def data(folder):
    return read_intents(folder)


def test_every_split_is_read_and_out_of_scope_sentences_are_left_out(data):
    assert len(data.sentences) == 120
    assert {intent for _, intent in data.sentences} == set(data.domain_of)
    assert data.domain_of["visa"] == "travel"


def test_sentences_are_drawn_without_replacement_in_an_order_of_the_seed(data):
    first, again, other = (draw_rounds(data, IntentTask("domains"), seed) for seed in (0, 0, 1))
    texts = [each.text for each in first]
    assert sorted(texts) == sorted(text for text, _ in data.sentences)
    assert texts == [each.text for each in again] != [each.text for each in other]


def test_fewer_rounds_are_the_first_of_more(data):
    task = IntentTask("desks", noise=0.3, max_delay=5)
    assert draw_rounds(data, task, 3, 10) == draw_rounds(data, task, 3, 50)[:10]


def test_domain_of_the_sentence_earns_one_and_the_others_nothing(data):
    intent_of = dict(data.sentences)
    for each in draw_rounds(data, IntentTask("domains"), 0):
        right = data.domain_of[intent_of[each.text]]
        assert each.rewards == {domain: float(domain == right) for domain in WORDS}


def test_each_intent_goes_to_one_desk_drawn_by_seed(data):
    intent_of = dict(data.sentences)

    def desks(seed, n):
        by_intent = {}
        for each in draw_rounds(data, IntentTask("desks", desks=n), seed):
            (desk,) = [option for option, reward in each.rewards.items() if reward == 1.0]
            assert sum(each.rewards.values()) == 1.0
            assert by_intent.setdefault(intent_of[each.text], desk) == desk
        return by_intent

    assert sorted(desks(0, 3).values()) == ["desk 1", "desk 1", "desk 2", "desk 2", "desk 3", "desk 3"]
    assert len({json.dumps(desks(seed, 3), sort_keys=True) for seed in range(5)}) > 1


def test_a_desk_of_the_same_building_earns_half(data):
    for each in draw_rounds(data, IntentTask("desks", desks=4, graded=True), 0):
        values = list(each.rewards.values())
        assert sorted(values) == [0.0, 0.0, 0.5, 1.0]
        assert values.index(1.0) // 2 == values.index(0.5) // 2


def test_intents_of_one_domain_are_the_options_and_the_seed_chooses_the_domain(data):
    domains = set()
    for seed in range(3):
        options = intent_options(data, IntentTask("intents"), seed)
        rounds = draw_rounds(data, IntentTask("intents"), seed)
        assert len(rounds) == 40
        assert all(tuple(each.rewards) == options for each in rounds)
        domains.add(data.domain_of[options[0]])
    assert domains == set(WORDS)


def test_noise_flips_the_observed_reward_only(data):
    rounds = draw_rounds(data, IntentTask("domains", noise=0.3), 0)
    assert 0.15 < sum(each.flipped for each in rounds) / len(rounds) < 0.45
    for each in rounds:
        for option, reward in each.rewards.items():
            assert each.observed(option) == (1.0 - reward if each.flipped else reward)
    assert [each.rewards for each in rounds] == [each.rewards for each in draw_rounds(data, IntentTask("domains"), 0)]


def test_delays_reach_from_one_to_the_largest(data):
    assert {each.delay for each in draw_rounds(data, IntentTask("domains"), 0)} == {1}
    assert {each.delay for each in draw_rounds(data, IntentTask("domains", max_delay=4), 0)} == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"options": "desk"}, "options"),
        ({"desks": 1}, "desks"),
        ({"noise": 0.5}, "noise"),
        ({"max_delay": 0}, "max_delay"),
        ({"graded": 1}, "graded"),
    ],
)
def test_a_rule_outside_its_limits_is_refused(changes, hint):
    with pytest.raises(InputError, match=hint):
        IntentTask(**{"options": "desks", **changes})


@pytest.mark.parametrize(
    ("domains", "splits", "error"),
    [
        (None, {"train": []}, NotFoundError),
        ({"a": ["x"], "b": ["x"]}, {"train": [["t", "x"]]}, InputError),
        ({"a": ["x"], "b": ["y"]}, {"train": [["t", "z"]]}, InputError),
        ({"a": ["x"]}, {"train": [["t", "x"]]}, InputError),
        ({"a": "x", "b": ["y"]}, {"train": [["t", "y"]]}, InputError),
        ({"a": ["x"], "b": ["y"]}, {"train": [["t"]]}, InputError),
        ({"a": ["x"], "b": ["y"]}, {"train": [["", "x"]]}, InputError),
        ({"a": ["x"], "b": ["y"]}, {"train": [["t", ["x"]]]}, InputError),
        (["a"], {"train": [["t", "x"]]}, InputError),
    ],
)
def test_files_of_another_form_are_refused(tmp_path, domains, splits, error):
    if domains is not None:
        (tmp_path / "domains.json").write_text(json.dumps(domains))
    (tmp_path / "data_full.json").write_text(json.dumps(splits))
    with pytest.raises(error):
        read_intents(tmp_path)


def test_a_file_that_is_not_json_is_refused(tmp_path):
    for name in ("domains.json", "data_full.json"):
        (tmp_path / name).write_text("{")
    with pytest.raises(InputError, match="JSON"):
        read_intents(tmp_path)


@pytest.mark.parametrize("options", ["domains", "desks", "intents"])
def test_environment_conforms_to_the_protocol(folder, options):
    check_environment(lambda: IntentRouting(folder, options=options, rounds=5), episodes=3)


def test_name_opens_the_same_environment(folder):
    env = IntentRouting(folder, options="desks", desks=4, graded=True, noise=0.1, rounds=3, seed=7)
    again = open_env(env.name)
    assert (again.name, again.task, again.max_score) == (env.name, env.task, 3.0)
    with Sync(env) as one, Sync(again) as other:
        assert one.reset(seed=5) == other.reset(seed=5)


def test_rule_stays_and_sentences_change_with_the_seed_of_an_episode(folder, data):
    """A memory of one desk per intent earns every reward in later episodes."""
    intent_of = dict(data.sentences)
    desk_of = {}
    with Sync(IntentRouting(folder, options="desks", desks=3, rounds=60)) as env:
        for seed in range(3):
            for each in draw_rounds(data, IntentTask("desks", desks=3), seed, rule_seed=0):
                desk_of[intent_of[each.text]] = max(each.rewards, key=each.rewards.get)
            seen = env.reset(seed=seed)
            while not seen.terminated:
                seen = env.step(desk_of[intent_of[seen.state]])
            assert seen.score == env.true_score == env.max_score


def test_true_score_is_without_noise(folder):
    with Sync(IntentRouting(folder, noise=0.3, rounds=60)) as env:
        seen, rewards = env.reset(seed=0), []
        while not seen.terminated:
            seen = env.step(seen.admissible[0])
            rewards.append(seen.reward)
        with Sync(IntentRouting(folder, rounds=60)) as clear:
            seen = clear.reset(seed=0)
            while not seen.terminated:
                seen = clear.step(seen.admissible[0])
            assert env.true_score == clear.true_score == seen.score != sum(rewards)


def test_more_rounds_than_sentences_are_refused(folder):
    with pytest.raises(InputError, match="rounds"):
        IntentRouting(folder, options="intents", rounds=41)
