"""Checks that both episode loops share: async environments, observations, actions and finite numbers."""

from __future__ import annotations

import asyncio
import dataclasses
import math

import pytest

from seasoned import Memory
from seasoned.agents import Agent, StepLog, UniformReader, play_episode
from seasoned.envs import Grid
from seasoned.errors import EnvError
from seasoned.llms import ScriptedLLM
from seasoned.policies import ModelAlone
from seasoned.protocols import Observation


def east_agent(memory=None):
    return Agent(ScriptedLLM(lambda request: "Action: east"), memory, plan=False, reason=False)


def run_policy(environment):
    log = StepLog()
    try:
        asyncio.run(play_episode(environment, ModelAlone(), UniformReader(), log, seed=0))
    finally:
        recorded.extend(log.steps)


def run_agent(environment):
    asyncio.run(east_agent().run(environment, seed=0))


def train_agent(environment):
    with Memory.open(":memory:") as memory:
        try:
            asyncio.run(east_agent(memory).train(environment, seed=0))
        finally:
            [episode] = memory.episodes()
            assert episode.ending == "aborted"
            recorded.extend(episode.steps)


recorded = []
LOOPS = [run_policy, run_agent, train_agent]


@pytest.fixture(autouse=True)
def _nothing_recorded():
    recorded.clear()


class Replaced(Grid):
    """A grid whose `reset` or `step` returns a fixed value, from an async or a plain function."""

    def __init__(self, method, value, *, is_async):
        super().__init__(["S.G"])

        async def later(*_, **__):
            return value

        setattr(self, method, later if is_async else lambda *_, **__: value)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("method", "value", "is_async"),
    [
        ("reset", Observation("a cell", ("east",)), False),
        ("reset", "a cell", True),
        ("reset", "a cell", False),
        ("step", Observation("a cell", ("east",)), False),
        ("step", (Observation("a cell", ("east",)), 1.0, True), True),
        ("step", None, True),
    ],
)
def test_environment_must_be_async_and_return_observations(loop, method, value, is_async):
    with pytest.raises(EnvError) as caught:
        loop(Replaced(method, value, is_async=is_async))
    assert caught.value.rule == f"{method} is `async def` and returns an Observation"
    assert f"{method} gave" in caught.value.seen
    assert f"async def {method}(self" in caught.value.next_step
    assert recorded == []


class Changed(Grid):
    """A grid whose first step returns a changed observation."""

    def __init__(self, **changes):
        super().__init__(["S.G"])
        self.changes = changes

    async def step(self, action):
        return dataclasses.replace(await super().step(action), **self.changes)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("reward", [math.nan, math.inf, "1"])
def test_reward_must_be_a_finite_number(loop, reward):
    with pytest.raises(EnvError, match=r"reward of .* must be"):
        loop(Changed(reward=reward))
    assert recorded == []


@pytest.mark.parametrize("loop", LOOPS)
def test_score_must_be_a_finite_number(loop):
    with pytest.raises(EnvError, match=r"score of .* must be finite"):
        loop(Changed(score=math.nan, terminated=True))


@pytest.mark.parametrize("loop", LOOPS)
def test_empty_list_of_actions_is_refused(loop):
    with pytest.raises(EnvError, match="no admissible actions"):
        loop(Changed(admissible=()))


def test_blank_final_state_is_recorded_as_unknown():
    for loop in (play_episode_log, agent_log):
        assert loop(Changed(state=" ", terminated=True)) is None


def play_episode_log(environment):
    log = StepLog()
    asyncio.run(play_episode(environment, ModelAlone(), UniformReader(), log, seed=0))
    return log.final_state


def agent_log(environment):
    return asyncio.run(east_agent().run(environment, seed=0)).episode.final_state
