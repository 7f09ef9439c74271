"""The bandit's rewards against its means."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seasoned.envs import ContextualBandit
from seasoned.errors import EnvError, InputError
from seasoned.sync import Sync
from seasoned.testing import check_environment

MEANS = {"red light": {"go": 0.1, "stop": 0.9}, "green light": {"go": 0.8, "stop": 0.3}}


def play(env, seed, rounds):
    seen, trace = env.reset(seed=seed), []
    for _ in range(rounds):
        state, action = seen.state, seen.admissible[0]
        seen = env.step(action)
        trace.append((state, action, seen.reward))
    return trace, seen


@pytest.mark.parametrize("noise", ["none", "gaussian", "bernoulli"])
def test_mean_rewards_are_the_true_values(noise):
    n = 4000
    with Sync(ContextualBandit(MEANS, noise=noise, sigma=0.5, rounds=n)) as env:
        trace, seen = play(env, 1, n)
        assert seen.terminated and not seen.truncated
        for context, values in env.true_values.items():
            rewards = [r for s, a, r in trace if (s, a) == (context, "go")]
            assert len(rewards) > n / 3  # contexts are uniform
            error = max(np.std(rewards) / math.sqrt(len(rewards)), 1e-12)
            assert abs(np.mean(rewards) - values["go"]) < 4.5 * error
            if noise == "bernoulli":
                assert set(rewards) == {0.0, 1.0}


def test_equal_seeds_give_equal_episodes():
    with Sync(ContextualBandit(MEANS, noise="gaussian", rounds=20)) as env:
        assert play(env, 3, 20) == play(env, 3, 20)
        assert play(env, 3, 20)[0] != play(env, 4, 20)[0]


@pytest.mark.parametrize(("noise", "best"), [("none", 2.7), ("bernoulli", 3.0), ("gaussian", None)])
def test_max_score_is_the_best_possible(noise, best):
    assert ContextualBandit(MEANS, noise=noise, rounds=3).max_score == (best if best is None else pytest.approx(best))


def test_true_values_are_a_copy():
    bandit = ContextualBandit(MEANS)
    bandit.true_values["red light"]["go"] = 99.0
    assert bandit.true_values == MEANS


@pytest.mark.parametrize("noise", ["none", "gaussian", "bernoulli"])
def test_bandit_conforms_to_the_protocol(noise):
    check_environment(lambda: ContextualBandit(MEANS, noise=noise, rounds=5), episodes=4)


def test_steps_out_of_order_are_refused():
    with Sync(ContextualBandit(MEANS)) as env:
        with pytest.raises(EnvError, match="not begun"):
            env.step("go")
        env.reset()
        env.step(" GO ")
        with pytest.raises(EnvError, match="ended"):
            env.step("go")
        env.aclose()
        with pytest.raises(EnvError, match="closed"):
            env.reset()


@pytest.mark.parametrize(
    ("means", "options"),
    [
        ({}, {}),
        ([], {}),
        ({"": {"a": 1.0}}, {}),
        ({"x": {}}, {}),
        ({"x": {"a": math.inf}}, {}),
        ({"x": {"a": 1.0, "A ": 0.0}}, {}),
        ({"x": {"a": 1.5}}, {"noise": "bernoulli"}),
        (MEANS, {"noise": "gausian"}),
        (MEANS, {"sigma": -1.0}),
        (MEANS, {"rounds": 0}),
        (MEANS, {"seed": -1}),
    ],
)
def test_invalid_bandits_are_refused(means, options):
    with pytest.raises(InputError) as caught:
        ContextualBandit(means, **options)
    assert caught.value.seen and caught.value.rule and caught.value.next_step
