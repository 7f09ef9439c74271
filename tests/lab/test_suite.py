"""Suites: reading, refusal with place and rule, runs and rotation of environments."""

import json

import pytest

from seasoned.errors import InputError, NotFoundError
from seasoned.lab.suites.env_rotation import env_order, expand_variables
from seasoned.lab.suites.suite import RunKey
from seasoned.lab.suites.suite_toml import load_suite, read_suite, suite_names

GRID = "grid:S.G?max_steps=10"


def data(**changes):
    return {
        "name": "s",
        "seeds": 2,
        "tasks": [{"name": "grid", "env": GRID, "episodes": 3}],
        "arms": [{"name": "alone"}, {"name": "default", "kind": "jitrl"}],
        **changes,
    }


def test_every_suite_of_the_package_survives_a_json_round_trip():
    assert "quick" in suite_names()
    for name in suite_names():
        suite = load_suite(name)
        assert suite.name == name
        assert suite.about != name, "a suite has a question"
        assert read_suite(json.loads(json.dumps(suite.to_json()))) == suite


def test_runs_are_arms_by_tasks_by_seeds_with_budget_of_last():
    suite = read_suite(
        data(
            tasks=[{"name": "a", "env": GRID, "episodes": 3}, {"name": "b", "env": [GRID, GRID], "episodes": 2}],
            arms=[
                {"name": "tries", "kind": "retries", "budget_of": "default"},
                {"name": "alone"},
                {"name": "default", "kind": "jitrl", "episodes": 1, "tasks": ["b"]},
            ],
        )
    )
    runs = suite.runs()
    assert len(runs) == len(set(runs)) == 2 * (2 + 3)
    assert runs.index(RunKey("b", "default", 0)) < runs.index(RunKey("b", "tries", 0))
    assert RunKey("a", "default", 0) not in runs
    assert [suite.episodes(RunKey("b", arm, 0)) for arm in ("tries", "alone", "default")] == [2, 2, 1]


@pytest.mark.parametrize(
    ("changes", "seen", "rule"),
    [
        ({"seeds": 0}, "seeds = 0", "at least 1"),
        ({"seeds": [1, 1]}, "seeds = [1, 1]", "different"),
        ({"seeds": 10**9}, "seeds = 1000000000", "from 1 to 1000"),
        ({"seeds": True}, "seeds = True", "whole number"),
        ({"name": "../x"}, "../x", "used for folders"),
        ({"name": 3}, "name 3", "used for folders"),
        ({"tasks": []}, "tasks = []", "a suite has tasks"),
        ({"tasks": {"name": "a"}}, "tasks = {'name': 'a'}", "[[tasks]]"),
        ({"tasks": ["a"]}, "tasks[0] = 'a'", "a table"),
        ({"tasks": [{"name": "a", "env": GRID}]}, "tasks[0]", "episodes is required"),
        ({"tasks": [{"name": "a", "env": GRID, "episodes": 0}]}, "episodes = 0", "at least 1"),
        ({"tasks": [{"name": "a", "env": [], "episodes": 1}]}, "env = []", "a task has an environment"),
        ({"tasks": [{"name": "a", "env": GRID, "episodes": 1, "max_score": 0}]}, "max_score = 0", "divided"),
        ({"tasks": [{"name": "a", "env": GRID, "episodes": 1, "max_score": float("nan")}]}, "nan", "finite"),
        ({"tasks": [{"name": "a", "env": GRID, "episodes": 1, "transfer": [{"env": GRID}]}]}, "transfer[0]", "split"),
        ({"tasks": [{"name": "a", "env": GRID, "episodes": 1}] * 2}, "'a', 'a'", "distinct names"),
        ({"arms": [{"name": "alone", "knd": "x"}]}, "'knd'", "Did you mean 'kind'"),
        ({"arms": [{"name": "b"}]}, "reference 'alone'", "an arm of the suite"),
        ({"arms": [{"name": "alone", "budget_of": "alone"}]}, "budget_of", "another arm"),
        ({"arms": [{"name": "alone"}, {"name": "b", "tasks": ["nowhere"]}]}, "nowhere", "no such task"),
        ({"budget": {"usd": -1}}, "usd = -1", "above 0"),
        ({"budget": {"dollars": 1}}, "'dollars'", "no such entry"),
        ({"budget": {"calls": 1.5}}, "calls = 1.5", "whole number"),
        ({"model": 5}, "model", "str"),
        ({"encoder": ["masked"]}, "encoder", "str"),
        ({"encoder": "maskd"}, "encoder 'maskd'", "Did you mean 'masked'"),
        ({"arms": [{"name": "alone", "tasks": "grid"}]}, "tasks = 'grid'", "a list"),
        ({"arms": [{"name": "alone", "tasks": 5}]}, "tasks = 5", "a list"),
        ({"tasks": [{"name": "a", "env": GRID, "episodes": 1, "transfer": 5}]}, "transfer = 5", "a list"),
        (
            {"tasks": [{"name": "a", "env": GRID, "episodes": 1, "transfer": [{"split": "same task", "env": GRID}]}]},
            "split 'same task'",
            "learning episodes",
        ),
        ({"calibrate": "yes"}, "calibrate = 'yes'", "true or false"),
        ({"colour": "red"}, "'colour'", "no such entry"),
    ],
)
def test_wrong_entry_is_refused_with_its_place(changes, seen, rule):
    with pytest.raises(InputError) as caught:
        read_suite(data(**changes))
    assert seen in str(caught.value)
    assert rule in str(caught.value)
    assert caught.value.next_step


def test_file_without_a_suite_is_refused(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text("name = quick\n")
    with pytest.raises(InputError, match=r"broken.toml is not TOML: .*line 1.*Correct that line"):
        load_suite(str(broken))
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="TOML file in UTF-8"):
        load_suite(str(broken))
    with pytest.raises(NotFoundError, match="Did you mean 'quick'"):
        load_suite("quikc")
    good = tmp_path / "mine.toml"
    good.write_text(
        'name = "mine"\nseeds = 2\n[[tasks]]\nname = "t"\nenv = "grid:S.G"\nepisodes = 1\n[[arms]]\nname = "alone"\n'
    )
    assert load_suite(str(good)).name == "mine"


def test_each_environment_is_played_once_a_round_in_an_order_by_seed():
    orders = [[env_order(seed, episode, 4) for episode in range(12)] for seed in range(6)]
    for order in orders:
        assert [sorted(order[i : i + 4]) for i in (0, 4, 8)] == [[0, 1, 2, 3]] * 3
    assert len(set(map(tuple, orders))) > 1, "seeds differ"
    assert {env_order(3, episode, 1) for episode in range(5)} == {0}


def test_variable_in_a_specification_is_expanded(monkeypatch):
    from seasoned.errors import ConfigError

    monkeypatch.setenv("STORIES", "/there")
    assert expand_variables("jericho:$STORIES/a.z5?max_steps=3") == "jericho:/there/a.z5?max_steps=3"
    with pytest.raises(ConfigError, match=r"\$NOT_SET_ANYWHERE.*is set.*export"):
        expand_variables("jericho:$NOT_SET_ANYWHERE/a.z5")
