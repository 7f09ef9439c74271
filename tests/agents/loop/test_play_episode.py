"""The episode loop: scores, records, counts, and no retrieval of the running episode."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import math

import pytest

from seasoned import Episode, JitRL, Memory, Step
from seasoned.agents import StepLog, UniformReader, episode_seed, play_episode
from seasoned.core import log_softmax
from seasoned.envs import ContextualBandit, Grid, open_env
from seasoned.errors import EnvError, InputError
from seasoned.llms import LabelReader, ScriptedLLM, VotesReader
from seasoned.policies import ModelAlone
from seasoned.protocols import Completion, Observation, TokenLogprob, Usage
from seasoned.testing import check_environment

COLOURS = {"red": {"left": 0.0, "right": 1.0}, "blue": {"left": 0.5, "right": 0.25}}


class Recorded:
    """A policy that forwards to another one and records its decisions; `before` is called first."""

    def __init__(self, policy, before=lambda: None):
        self.policy, self.before, self.decisions = policy, before, []
        self.name = policy.name

    def decide(self, state, candidates, **options):
        self.before()
        self.decisions.append(self.policy.decide(state, candidates, **options))
        return self.decisions[-1]


class Broken(Grid):
    """A grid that raises an error at one step."""

    def __init__(self, error, at, **options):
        super().__init__(["S...G"], **options)
        self.error, self.at, self.steps = error, at, 0

    async def step(self, action):
        self.steps += 1
        if self.steps == self.at:
            raise self.error
        return await super().step(action)


class UnnamedActions(Grid):
    """A grid without named actions."""

    async def reset(self, *, seed=None):
        return dataclasses.replace(await super().reset(seed=seed), admissible=None)


def play(environment, policy=None, log=None, seed=0, reader=None):
    log = StepLog() if log is None else log
    return asyncio.run(play_episode(environment, policy or ModelAlone(), reader or UniformReader(), log, seed=seed))


def fed(memory, episodes=8):
    """Return a memory in which right is better than left at red, and only left was tried at blue."""
    for n in range(episodes):
        for colour, action, reward in (("red", "right", 1.0), ("red", "left", 0.0), ("blue", "left", 1.0)):
            memory.add(Episode("t", [Step(colour, action, reward)], id=f"{colour}-{action}-{n}"))
    return memory


ENDINGS = [
    (Grid(["S.G"], step_cost=0.25), "terminated"),
    (Grid(["S...................G"], max_steps=20, step_cost=0.5), "truncated"),
    (Grid(["TST", ".G."], slip=0.5), "terminated"),
    (ContextualBandit(COLOURS, rounds=7), "terminated"),
    (ContextualBandit(COLOURS, rounds=7, noise="gaussian"), "terminated"),
]


@pytest.mark.parametrize(("environment", "ending"), ENDINGS, ids=[env.name for env, _ in ENDINGS])
def test_the_score_is_the_sum_of_the_rewards_and_the_ending_is_the_environments(environment, ending):
    log = StepLog()
    result = play(environment, log=log)
    assert result.score == pytest.approx(sum(step.reward for step in log.steps), abs=1e-12)
    assert result.steps == len(log.steps) >= 1
    assert result.ending == log.ending == ending
    assert result.max_score == environment.max_score
    assert result.seconds >= result.decision_s >= 0.0
    if isinstance(environment, Grid) and ending == "terminated":
        assert log.final_state.endswith(("goal", "trap"))


def test_an_episode_that_ends_on_the_limit_by_reaching_the_goal_is_terminated():
    result = play(Grid(["SG"], max_steps=1))
    assert (result.ending, result.score, result.steps) == ("terminated", 1.0, 1)


def test_stored_steps_have_prior_and_propensity_of_the_decision():
    bandit = ContextualBandit(COLOURS, rounds=12)
    with Memory.open(":memory:") as memory:
        policy = Recorded(JitRL.preset("means", fed(memory)))
        with memory.episode(task=bandit.task) as episode:
            result = play(bandit, policy, episode)
        stored = memory.get(episode.id)
    assert stored.ending == "terminated" and stored.final_state in COLOURS
    assert (stored.policy, stored.model) == ("means", "uniform")
    for step, decision in zip(stored.steps, policy.decisions, strict=True):
        assert (step.state, step.action) == (decision.state, decision.action)
        assert step.reward == COLOURS[step.state][step.action]
        assert dict(step.prior) == pytest.approx({"left": math.log(0.5), "right": math.log(0.5)})
        assert step.propensity == pytest.approx(decision.probs[step.action])
        assert (step.propensity != 0.5) == (step.state == "red")
    assert result.kl_nats == pytest.approx(
        sum(sum(p * math.log(p / 0.5) for p in decision.probs.values()) for decision in policy.decisions)
    )
    assert result.memory_steps == 12
    assert [decision.step for decision in policy.decisions] == list(range(12))


def test_flips_count_the_steps_at_which_memory_changed_the_most_likely_action():
    """The model prefers left everywhere; the memory prefers right at red, and has no preference at blue."""
    bandit = ContextualBandit(COLOURS, rounds=20)
    llm = ScriptedLLM(lambda request: {"A": math.log(0.6), "B": math.log(0.4)})
    with Memory.open(":memory:") as memory:
        policy = Recorded(JitRL(fed(memory)))
        result = play(bandit, policy, reader=LabelReader(llm))
    reds = sum(decision.state == "red" for decision in policy.decisions)
    assert 0 < reds < 20
    assert result.flips == reds
    alone = play(ContextualBandit(COLOURS, rounds=20), reader=LabelReader(llm))
    assert (alone.flips, alone.kl_nats, alone.memory_steps) == (0, 0.0, 0)


@pytest.mark.parametrize(
    "spec",
    [
        "grid:S..../.#.T./....G?slip=0.3&max_steps=40",
        'bandit:{"red":{"a":0.1,"b":0.9,"c":0.5},"blue":{"a":0.2,"b":0.3}}?rounds=12&noise=gaussian',
    ],
)
def test_a_seed_reproduces_an_episode_exactly_and_another_one_differs(spec):
    def episode(seed):
        log = StepLog()
        result = play(open_env(spec), log=log, seed=seed)
        return log.steps, log.final_state, result.score, result.ending

    assert [episode(seed) for seed in range(5)] == [episode(seed) for seed in range(5)]
    assert len({repr(episode(seed)) for seed in range(5)}) == 5


def test_every_episode_of_every_run_has_a_seed_of_its_own():
    seeds = {(run, episode): episode_seed(run, episode) for run in range(20) for episode in range(50)}
    assert len(set(seeds.values())) == len(seeds)
    assert all(episode_seed(*key) == seed for key, seed in seeds.items())


def test_running_episode_is_not_retrieved():
    grid = Grid(["S....G"], max_steps=30)
    asked = []
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("elsewhere", "wait", 5.0)], id="old"))

        def look():
            ids = [neighbor.experience.episode_id for neighbor in memory.search("cell:0,0", k=100)]
            asked.append((ids, len(memory), [episode.id for episode in memory.episodes()]))

        with memory.episode(task=grid.task, id="new") as episode:
            result = play(grid, Recorded(JitRL(memory), before=look), episode)
        assert result.steps > 4 and asked == [(["old"], 1, ["old"])] * result.steps
        look()
        assert len(memory) == 1 + result.steps and set(asked[-1][0]) == {"old", "new"}


@pytest.mark.parametrize("error", [EnvError("a", "b", "c"), RuntimeError("boom"), KeyboardInterrupt()], ids=repr)
def test_error_stores_aborted_episode_and_is_raised(error):
    grid = Broken(error, at=3)
    with Memory.open(":memory:") as memory:
        with pytest.raises(type(error)) as caught, memory.episode(task=grid.task, id="e") as episode:
            play(grid, log=episode)
        assert caught.value is error or isinstance(error, KeyboardInterrupt)
        stored = memory.get("e")
        assert stored.ending == "aborted"
        assert len(stored.steps) == 2  # the step that failed was not executed
        assert memory.search(stored.steps[0].state, threshold=0.0) == []
        memory.verify()


def test_environment_without_named_actions_is_refused():
    check_environment(lambda: Grid(["S.G"]))  # the sound one
    with pytest.raises(EnvError) as caught:
        play(UnnamedActions(["S.G"]))
    assert caught.value.seen and caught.value.rule and caught.value.next_step


def test_usage_adds_up_and_an_unknown_price_stays_unknown():
    def script(price):
        counter = itertools.count()

        def answer(request):
            alternatives = ((TokenLogprob("A", -0.7), TokenLogprob("B", -0.8)),)
            usage = Usage(1, 0, 10, 1, 0.5, None if price is None and next(counter) == 2 else 0.25)
            return Completion("A", "m", usage, "length", alternatives)

        return ScriptedLLM(answer)

    for price, cost in ((0.25, 6 * 0.25), (None, None)):
        usage = play(ContextualBandit(COLOURS, rounds=6), reader=LabelReader(script(price))).usage
        assert usage == Usage(6, 0, 60, 6, 3.0, cost)
    assert play(ContextualBandit(COLOURS)).usage == Usage()


def test_uniform_reader_returns_equal_logprobs():
    reading = asyncio.run(UniformReader().read("s", "t", ["a", "b", "c"]))
    assert list(reading.prior.values()) == pytest.approx(log_softmax([0.0, 0.0, 0.0]).tolist())
    assert (reading.prior.method, reading.prior.model, reading.usage) == ("uniform", "uniform", Usage())
    with pytest.raises(InputError):
        asyncio.run(UniformReader().read("s", "t", []))


class Parrot:
    """An environment with free-text actions; one unnamed word has a reward."""

    name, task, max_score = "parrot", "say it", 1.0

    def __init__(self):
        self.said = []

    async def reset(self, *, seed=None):
        return Observation("a parrot waits", None)

    async def step(self, action):
        self.said.append(action)
        return Observation(
            "it flew off", None, float(action == "please"), terminated=True, score=float(action == "please")
        )

    async def aclose(self):
        pass


def test_model_and_memory_propose_actions_of_free_text_environments():
    llm = ScriptedLLM(lambda request: "Action: talk")
    reader = VotesReader(llm, n=2, canonical=lambda action: action.lower())
    with Memory.open(":memory:") as memory:
        for _ in range(6):
            memory.add(Episode("say it", [Step("a parrot waits", "please", 1.0)]))
            memory.add(Episode("say it", [Step("a parrot waits", "talk", 0.0)]))
        parrot = Parrot()
        policy = JitRL(memory, beta=50.0)
        result = asyncio.run(play_episode(parrot, policy, reader, StepLog(), seed=0))
    assert parrot.said == ["please"]
    assert result.score == 1.0
    assert result.usage.calls == 2


def test_free_text_environment_needs_a_proposer():
    with pytest.raises(EnvError, match=r"no admissible actions.*propose"):
        asyncio.run(play_episode(Parrot(), ModelAlone(), UniformReader(), StepLog(), seed=0))
