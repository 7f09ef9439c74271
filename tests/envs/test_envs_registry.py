"""Specifications: every name opens its environment again, and errors name each mistake."""

from __future__ import annotations

import inspect

import pytest

from seasoned import envs
from seasoned.envs import ContextualBandit, Grid, open_env
from seasoned.errors import InputError
from seasoned.protocols import Environment

EXAMPLES = [
    Grid(["S.#", "..G"], step_cost=0.04, slip=0.1, max_steps=30, seed=7),
    Grid(["ST", ".G"], trap_reward=-0.25, goal_reward=3.0),
    ContextualBandit({"a?b&c=d/é": {"x": 0.25, "y z": 1.0}}, noise="bernoulli", rounds=4, seed=2),
    ContextualBandit({"red": {"left": -2.0}}, noise="gaussian", sigma=0.3),
]


@pytest.mark.parametrize("kind", envs.ENVIRONMENTS.names())
def test_every_opener_takes_a_target_and_options(kind):
    opener = envs.ENVIRONMENTS.load(kind)
    inspect.signature(opener).bind("target", {"seed": "1"})
    assert opener.__doc__
    assert any(form.startswith(f"{kind}:") for form in envs.ENVIRONMENT_SPECIFICATIONS)


@pytest.mark.parametrize("env", EXAMPLES, ids=lambda env: type(env).__name__)
def test_name_opens_the_same_environment(env):
    again = open_env(env.name)
    assert isinstance(again, Environment)
    assert type(again) is type(env)
    assert (again.name, again.task, again.max_score) == (env.name, env.task, env.max_score)
    if isinstance(env, Grid):
        assert again.exact_values(0.9) == env.exact_values(0.9)
    else:
        assert again.true_values == env.true_values


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("", "Known are"),
        ("cooking", "kind:target"),
        ("textwrld:cooking", "Did you mean 'textworld'"),
        ("textworld:cookin", "Did you mean 'cooking'"),
        ("textworld:cooking?recip=2", "Did you mean 'recipe'"),
        ("textworld:cooking?level=2", "no such option"),
        ("textworld:cooking?recipe", "name=value"),
        ("textworld:cooking?recipe=1&recipe=2", "once"),
        ("textworld:cooking?recipe=many", "whole number"),
        ("textworld:cooking?recipe=1&take=2", "Lower take"),
        ("textworld:cooking?go=5", "1, 6, 9, 12"),
        ("textworld:cooking?cook=perhaps", "cook=1 or cook=0"),
        ("textworld:cooking?split=traing", "train, valid, test"),
        ("textworld:cooking?max_steps=0", "at least 1"),
        ("textworld:cooking?seed=-1", "whole number"),
        ("textworld:coin_collector?level=301", "at least 1 and at most 300"),
        ("textworld:simple?rewards=much", "dense, balanced, sparse"),
        ("textworld:/no/such/game.z8", "Check the path"),
        ("textworld:/no/such/game.z8?recipe=2", "no such option"),
        ("grid:S.G?slipp=0.1", "Did you mean 'slip'"),
        ("grid:S.G?slip=some", "is a number"),
        ("bandit:red", "JSON"),
        ('bandit:{"red":{"left":1}}?noise=loud', "noise must be one of"),
        ("python:seasoned.envs:Grid?slipp=0.1", "Did you mean 'slip'"),
        ("python:seasoned.envs:Grid", "missing a required argument: 'rows'"),
        ("python:sys:exc_info?knd=angry", "it has no options"),
        ("python:sys:maxsize", "something to call"),
    ],
)
def test_error_names_the_mistake_in_a_specification(spec, hint):
    with pytest.raises(InputError) as caught:
        open_env(spec)
    assert hint in str(caught.value)
    assert caught.value.seen and caught.value.rule and caught.value.next_step
