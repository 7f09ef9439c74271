"""Baselines of the model alone at an equal budget: repeated attempts and self-consistency."""

from __future__ import annotations

import asyncio
import dataclasses

import numpy as np
import pytest

from seasoned import Memory
from seasoned.agents import StepLog, UniformReader, play_episode, play_run
from seasoned.agents.baselines import Attempts, MajorityPolicy, SelfConsistency
from seasoned.envs import ContextualBandit, Grid, SupportTriage
from seasoned.errors import EnvError, InputError
from seasoned.llms import LabelReader, ScriptedLLM, VotesReader, votes_prompt
from seasoned.policies import ModelAlone
from seasoned.types import Episode, Prior, Step

ROWS = ["S..", "...", "..G"]


def labels():
    """A model with equal logprobs, with usage for each call."""
    return LabelReader(ScriptedLLM(lambda request: dict.fromkeys("ABCD", -1.5)))


class Watched(Grid):
    """Records its calls."""

    def __init__(self, **options):
        super().__init__(ROWS, **{"max_steps": 8, "slip": 0.3, **options})
        self.seeds, self.scores, self.fail_at = [], [], None

    async def reset(self, *, seed=None):
        self.seeds.append(seed)
        self.scores.append(0.0)
        return await super().reset(seed=seed)

    async def step(self, action):
        if self.fail_at is not None and len(self.seeds) == self.fail_at:
            raise EnvError("a", "b", "c")
        seen = await super().step(action)
        self.scores[-1] = seen.score
        return seen


def play(attempts, environment=None, *, seed=3, reader=None):
    log = StepLog()
    environment = environment or Watched()
    result = asyncio.run(attempts(environment, ModelAlone(), reader or labels(), log, seed=seed))
    return result, log, environment


def run_one(memory, environment, attempts):
    options = {"memory": memory, "episodes": 1, "seed": 0, "play": attempts, "run_id": "r"}
    return asyncio.run(play_run(environment, ModelAlone(), labels(), **options))


# ------------------------------------------------------------------------------------- attempts


def test_best_of_n_plays_all_attempts_and_records_the_best():
    results = [play(Attempts(attempts=8), seed=seed) for seed in range(4)]
    for result, log, environment in results:
        assert len(environment.scores) == 8
        assert result.score == max(environment.scores)
        assert sum(step.reward for step in log.steps) == pytest.approx(result.score)
        assert result.steps == len(log.steps)
        assert log.ending == result.ending
    assert np.mean([result.score for result, _, _ in results]) > np.mean([e.scores[0] for _, _, e in results])


def test_attempts_share_the_instance_and_the_first_equals_the_model_alone():
    _, _, environment = play(Attempts(attempts=4), seed=7)
    assert environment.seeds == [7] * 4
    alone, one = StepLog(), StepLog()
    asyncio.run(play_episode(Watched(), ModelAlone(), labels(), alone, seed=7))
    asyncio.run(Attempts(attempts=1)(Watched(), ModelAlone(), labels(), one, seed=7))
    assert alone.steps == one.steps


def test_attempts_make_independent_decisions():
    means = {"c": {name: float(i) for i, name in enumerate("abcdefgh")}}
    best = [
        play(Attempts(attempts=8), ContextualBandit(means), seed=seed, reader=UniformReader())[0].score
        for seed in range(20)
    ]
    once = [
        play(Attempts(attempts=1), ContextualBandit(means), seed=seed, reader=UniformReader())[0].score
        for seed in range(20)
    ]
    assert np.mean(best) > 6.0 > np.mean(once)  # of 8 draws from 0..7 the best is 6.5 on average, one is 3.5


def test_retries_stop_at_the_best_possible_score():
    for seed in range(4):
        result, _, environment = play(Attempts(attempts=20, retries=True), seed=seed)
        reached = [score >= environment.max_score for score in environment.scores]
        assert not any(reached[:-1])
        assert reached[-1] or len(reached) == 20
        assert result.score == max(environment.scores)


def test_retries_stop_at_stop_at_without_a_max_score():
    bandit = ContextualBandit({"c": {"a": 0.0, "b": 1.0}}, noise="gaussian", sigma=0.01)
    assert bandit.max_score is None
    result, _, _ = play(Attempts(attempts=50, retries=True, stop_at=0.9), bandit, reader=UniformReader())
    assert result.score >= 0.9


def test_attempts_exceed_the_token_budget_by_at_most_one_attempt():
    alone = play(Attempts(attempts=1))[0].usage.tokens
    for budget in (0.0, 1.0, 3.5 * alone, 10.0 * alone):
        result, _, environment = play(Attempts(tokens=budget))
        assert len(environment.scores) >= 1
        assert result.usage.tokens >= budget
        before_last, _, _ = play(Attempts(attempts=max(1, len(environment.scores) - 1)))
        assert len(environment.scores) == 1 or before_last.usage.tokens < budget
    assert len(play(Attempts(tokens=0.0))[2].scores) == 1


def test_usage_and_time_are_sums_over_attempts():
    three = play(Attempts(attempts=3))[0]
    two = play(Attempts(attempts=2))[0]
    one = play(Attempts(attempts=1))[0]
    assert one.usage.calls < two.usage.calls < three.usage.calls
    assert three.usage.tokens > three.steps * 10


def test_attempt_without_usage_ends_the_attempts():
    assert len(play(Attempts(tokens=100.0), reader=UniformReader())[2].scores) == 1


def test_failed_attempt_is_stored_as_aborted_episode():
    environment = Watched()
    environment.fail_at = 2
    with Memory.open(":memory:") as memory:
        with pytest.raises(EnvError):
            run_one(memory, environment, Attempts(attempts=3))
        assert memory.get("r-00000").ending == "aborted"
        assert memory.get("r-00000").steps == ()


def test_memory_stores_the_best_attempt():
    with Memory.open(":memory:") as memory:
        (result,) = run_one(memory, Watched(), Attempts(attempts=5))
        stored = memory.get("r-00000")
    assert sum(step.reward for step in stored.steps) == pytest.approx(result.score)
    assert all(step.prior and step.propensity for step in stored.steps)


@pytest.mark.parametrize(
    "wrong",
    [{}, {"attempts": 2, "tokens": 5.0}, {"attempts": 0}, {"attempts": 1.5}, {"tokens": -1.0}, {"tokens": "many"}],
)
def test_attempts_need_exactly_one_limit(wrong):
    with pytest.raises(InputError):
        Attempts(**wrong)


# ------------------------------------------------------------------------------------- self-consistency


def consistent(script, **options):
    llm = ScriptedLLM(script)
    return llm, SelfConsistency(llm, lambda model, n, seed: VotesReader(model, n=n, seed=seed), votes_prompt, **options)


def test_majority_policy_takes_the_most_voted_candidate():
    llm, reader = consistent(["left", "right", "right", "left", "right"], samples=5)
    reading = asyncio.run(reader.read("s", "t", ["left", "right"]))
    for seed in range(5):
        assert MajorityPolicy().decide("s", reading.prior, seed=seed).action == "right"
    assert all(request.temperature == 1.0 for request in llm.requests)
    assert len({request.seed for request in llm.requests}) == 5
    assert reading.usage.calls == 5


def test_majority_ties_are_broken_by_seed():
    candidates = Prior({"a": -1.0, "b": -1.0, "c": -5.0})
    taken = {MajorityPolicy().decide("s", candidates, seed=seed).action for seed in range(30)}
    assert taken == {"a", "b"}
    assert (
        MajorityPolicy().decide("s", candidates, seed=1).action
        == MajorityPolicy().decide("s", candidates, seed=1).action
    )
    assert MajorityPolicy().decide("s", candidates, admissible=["c"], seed=1).action == "c"
    with pytest.raises(InputError):
        MajorityPolicy().decide("s", candidates, admissible=["d"])


def test_no_usable_vote_gives_uniform_prior_with_usage():
    _, reader = consistent(lambda request: "I do not know", samples=3)
    reading = asyncio.run(reader.read("s", "t", ["a", "b"]))
    assert reading.prior["a"] == reading.prior["b"]
    assert "none usable" in reading.prior.method
    assert reading.usage.calls == 3


def test_single_candidate_needs_no_call():
    llm, reader = consistent([], samples=5)
    assert asyncio.run(reader.read("s", "t", ["only"])).usage.tokens == 0
    assert llm.requests == []


def test_samples_differ_by_step_and_repeat_with_the_seed():
    def seeds(seed):
        llm, reader = consistent(lambda request: "east", samples=2)
        environment = Grid(["S.....G"], max_steps=6)
        asyncio.run(reader.play(environment, MajorityPolicy(), reader, StepLog(), seed=seed))
        return [request.seed for request in llm.requests]

    assert seeds(1) == seeds(1)
    assert len(set(seeds(1))) == len(seeds(1)) > 2
    assert not set(seeds(1)) & set(seeds(2))


def to_and_fro(budget, *, learned=True):
    """A corridor of ten steps, five of them with a choice."""
    llm, reader = consistent(lambda request: "west", tokens=budget)
    if learned:
        priors = [Prior({"east": 0.0}), Prior({"west": -0.7, "east": -0.7})] * 5
        asyncio.run(reader.learn(Episode("t", [Step("s", "east", prior=prior) for prior in priors])))
    environment = Grid(["S.........G"], max_steps=10)
    result = asyncio.run(reader.play(environment, MajorityPolicy(), reader, StepLog(), seed=0))
    return len(llm.requests), result.usage.tokens


def test_a_budget_of_tokens_sets_the_number_of_samples():
    calls, tokens = to_and_fro(0.0)
    assert calls == 5  # one a step at least
    for budget in (2.0 * tokens, 7.3 * tokens):
        calls, spent = to_and_fro(budget)
        assert budget <= spent < budget + spent / calls  # by at most one sample more
    _, unknown = to_and_fro(20.0 * tokens, learned=False)  # 20 steps are expected, 5 come
    assert 0.5 < unknown / (5.0 * tokens) < 1.5


@pytest.mark.parametrize("wrong", [{}, {"samples": 2, "tokens": 1.0}, {"samples": 0}, {"tokens": 1.0, "steps": 0}])
def test_self_consistency_needs_one_limit(wrong):
    with pytest.raises(InputError):
        consistent([], **wrong)


def test_usage_of_self_consistency_is_in_the_result():
    llm, reader = consistent(lambda request: "south", samples=2)
    result = asyncio.run(reader.play(Watched(slip=0.0), MajorityPolicy(), reader, StepLog(), seed=0))
    assert result.usage.calls == len(llm.requests) > 0
    assert dataclasses.replace(result.usage, calls=0).tokens > 0


def test_attempts_return_true_score_and_late_rewards():
    """A support desk with late and noisy rewards: the true score counts, and rewards belong to their steps."""
    desk = SupportTriage(tickets=8, noise=0.4)
    log = StepLog()
    alone = asyncio.run(play_episode(desk, ModelAlone(), UniformReader(), StepLog(), seed=3))
    tried = asyncio.run(Attempts(1)(desk, ModelAlone(), UniformReader(), log, seed=3))
    assert (tried.score, tried.late_rewards) == (alone.score, alone.late_rewards)
    assert tried.score == desk.true_score
    assert tried.late_rewards
