"""Runs: order of scoring and storing, resumption, judgements, and learning with a known optimum."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math

import pytest

from seasoned import JitRL, Memory
from seasoned.agents import RunRecord, UniformReader, play_run, read_lost_usage, read_results
from seasoned.core import discounted_returns
from seasoned.envs import ContextualBandit, Grid, SupportTriage
from seasoned.errors import ConfigError, EnvError, InputError
from seasoned.judges import Rule, RuleJudge
from seasoned.policies import ModelAlone
from seasoned.protocols import Usage
from seasoned.types import LATE_REWARD

ROWS = ["S..", "...", "..G"]
START = "cell:0,0 open:east,south"
BANDIT = {"red": {"a": 0.1, "b": 0.5, "c": 0.9}, "blue": {"a": 0.8, "b": 0.2, "c": 0.4}}


class Counting(Grid):
    """A grid that counts its steps, and raises errors at some of them."""

    def __init__(self, rows=ROWS, fail_at=(), error=None, **options):
        super().__init__(rows, **{"max_steps": 12, "slip": 0.2, **options})
        self.fail_at, self.error, self.steps, self.seeds = set(fail_at), error or EnvError("a", "b", "c"), 0, []

    async def reset(self, *, seed=None):
        self.seeds.append(seed)
        return await super().reset(seed=seed)

    async def step(self, action):
        self.steps += 1
        if self.steps in self.fail_at:
            raise self.error
        return await super().step(action)


class Watched:
    """Records a policy's decisions, with the ids of all episodes in memory at that moment."""

    def __init__(self, policy, memory):
        self.policy, self.memory, self.seen = policy, memory, []
        self.name = policy.name

    def decide(self, state, candidates, **options):
        decision = self.policy.decide(state, candidates, **options)
        stored = {e.id for e in self.memory.episodes()}
        self.seen.append((decision, stored, {n.experience.episode_id for n in decision.neighbors}))
        return decision


def run(memory, episodes, *, environment=None, policy=None, seed=0, **options):
    environment = environment or Counting()
    policy = policy or (ModelAlone() if memory is None else JitRL(memory))
    if "record" not in options:  # a record has an id of its own
        options = {"run_id": "r", **options}
    return asyncio.run(
        play_run(environment, policy, UniformReader(), memory=memory, episodes=episodes, seed=seed, **options)
    )


def facts(results):
    """Return the fields of a result that must be equal: all but the times."""
    return [dataclasses.replace(result, seconds=0.0, decision_s=0.0, environment_s=0.0) for result in results]


def anonymous(episodes):
    """Return episodes without run ids and attempt marks, which two runs of one seed share."""
    return [dataclasses.replace(e, id=e.id.rstrip("'").rpartition("-")[2]) for e in episodes]


def scores(results):
    return [result.score for result in results]


@pytest.fixture
def memory():
    with Memory.open(":memory:", gamma=0.9) as opened:
        yield opened


# ------------------------------------------------------------------------------------------ order


def test_each_episode_is_decided_from_earlier_episodes_only(memory):
    policy = Watched(JitRL(memory), memory)
    results = run(memory, 8, policy=policy)
    moments = iter(policy.seen)
    for number, result in enumerate(results):
        before = {f"r-{n:05d}" for n in range(number)}
        for _, stored, neighbors in (next(moments) for _ in range(result.steps)):
            assert stored == before
            assert neighbors <= before
    assert next(moments, None) is None
    assert [episode.id for episode in memory.episodes()] == [f"r-{n:05d}" for n in range(8)]


def test_later_episodes_do_not_change_earlier_ones():
    """The first five of twelve episodes equal a run of five."""
    results_by_length = []
    for episodes in (5, 12):
        with Memory.open(":memory:") as memory:
            results_by_length.append((facts(run(memory, episodes)), memory.episodes()))
    assert results_by_length[0][0] == results_by_length[1][0][:5]
    assert results_by_length[0][1] == results_by_length[1][1][:5]


def test_a_run_is_reproduced_by_its_seed_and_another_seed_differs():
    def play(seed):
        with Memory.open(":memory:") as memory:
            return facts(run(memory, 6, seed=seed)), memory.episodes()

    assert play(0) == play(0)
    assert play(1) != play(0)


def test_both_arms_meet_the_same_environment_seeds(memory):
    with_memory, alone = Counting(), Counting()
    run(memory, 5, environment=with_memory, seed=9)
    run(None, 5, environment=alone, seed=9)
    assert with_memory.seeds == alone.seeds and len(set(alone.seeds)) == 5


def test_progress_is_called_after_every_episode(memory):
    reported = []
    results = run(memory, 4, progress=lambda number, result: reported.append((number, result)))
    assert reported == list(enumerate(results))


def test_stored_episodes_have_model_policy_and_arm(memory):
    run(memory, 2, arm="treated")
    assert {(e.arm, e.model, e.policy, e.task) for e in memory.episodes()} == {
        ("treated", "uniform", "default", Counting().task)
    }


# ------------------------------------------------------------------------------------------ breaking off


def resumed(folder, breaks, episodes=10, **options):
    """Play a run that is interrupted at these steps, and resumed from disk each time."""
    for at in breaks:
        with Memory.open(folder / "m.db") as memory:
            record = RunRecord(folder / "run", {"seed": 0})
            with pytest.raises(EnvError):
                run(memory, episodes, environment=Counting(fail_at=[at]), record=record, **options)
    with Memory.open(folder / "m.db") as memory:
        record = RunRecord(folder / "run", {"seed": 0})
        done = run(memory, episodes, record=record, **options)
        return done, memory.episodes(), record


def test_resumed_run_equals_an_uninterrupted_one(tmp_path):
    with Memory.open(":memory:") as memory:
        expected, stored = run(memory, 10), memory.episodes()
    results, stored_episodes, record = resumed(tmp_path, [17, 1, 9])
    assert facts(results) == facts(expected)
    assert record.scores == scores(expected)
    broken = [episode for episode in stored_episodes if episode.ending == "aborted"]
    assert len(broken) == 3
    assert {episode.id.partition("-")[0] for episode in stored_episodes} == {record.run_id}
    assert anonymous(e for e in stored_episodes if e.ending != "aborted") == anonymous(stored)
    for episode in anonymous(broken):  # what was played of it is what would have been played
        whole = next(e for e in anonymous(stored) if e.id == episode.id)
        assert list(episode.steps) == list(whole.steps[: len(episode.steps)])


def test_episode_in_memory_only_is_not_played_again(tmp_path):
    """The process is killed between the commit and the record's line."""
    with Memory.open(tmp_path / "m.db") as memory:
        expected = run(memory, 6, record=RunRecord(tmp_path / "run", {}))
        file = tmp_path / "run" / "episodes.jsonl"
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:4]))
        environment = Counting()
        record = RunRecord(tmp_path / "run", {})
        results = run(memory, 6, environment=environment, record=record)
    assert environment.steps == 0
    assert [(r.score, r.steps, r.ending) for r in results] == [(r.score, r.steps, r.ending) for r in expected]
    assert results[5] == expected[5]  # the last one was noted before it was committed
    assert results[4].usage.cost_usd is None  # what an earlier one cost is not known any more
    assert record.usage.cost_usd is None
    assert len(RunRecord(tmp_path / "run", {}).results) == 6


def test_finished_run_is_extended_without_replaying(tmp_path):
    with Memory.open(":memory:") as memory:
        expected = scores(run(memory, 9))
    with Memory.open(tmp_path / "m.db") as memory:
        for episodes, played in ((5, True), (5, False), (9, True)):
            environment = Counting()
            results = run(memory, episodes, environment=environment, record=RunRecord(tmp_path / "run", {}))
            assert (environment.steps > 0) == played
            assert scores(results) == expected[:episodes]


def test_a_run_of_another_record_is_played_and_learns_from_the_first_one(tmp_path):
    """With equal settings and memory, no episode of the other run is reused."""
    with Memory.open(tmp_path / "m.db") as memory:
        first = run(memory, 4, record=RunRecord(tmp_path / "a", {}))
        environment, record = Counting(), RunRecord(tmp_path / "b", {})
        second = run(memory, 4, environment=environment, record=record)
        assert environment.steps == sum(result.steps for result in second) > 0
        assert first[0].memory_steps < second[0].memory_steps  # it knows what the first one found
        ids = [episode.id for episode in memory.episodes()]
        assert len(set(ids)) == 8 and ids[4:] == [f"{record.run_id}-{n:05d}" for n in range(4)]


@pytest.mark.parametrize("lost", [[0, 1, 2, 3], [2]])
def test_memory_without_a_recorded_episode_is_refused(tmp_path, lost):
    with Memory.open(tmp_path / "m.db") as memory:
        run(memory, 4, record=RunRecord(tmp_path / "run", {}))
        remaining = [episode for number, episode in enumerate(memory.episodes()) if number not in lost]
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    with Memory.open(tmp_path / "other.db") as other:
        other.add_many(remaining)
        environment, record = Counting(), RunRecord(tmp_path / "run", {})
        with pytest.raises(ConfigError) as caught:
            run(other, 8, environment=environment, record=record)
        assert f"{record.run_id}-{lost[0]:05d}" in caught.value.seen
        assert "memory" in caught.value.rule and "another folder" in caught.value.next_step
        assert environment.seeds == [] and len(other.episodes()) == len(remaining)
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()} == before


def test_aborted_episode_does_not_replace_a_recorded_one(tmp_path):
    with Memory.open(tmp_path / "m.db") as memory:
        run(memory, 1, record=RunRecord(tmp_path / "run", {}))
        aborted = dataclasses.replace(memory.episodes()[0], ending="aborted")
    with Memory.open(tmp_path / "other.db") as other:
        other.add(aborted)
        with pytest.raises(ConfigError):
            run(other, 1, record=RunRecord(tmp_path / "run", {}))


def test_run_id_beside_a_record_is_refused(tmp_path, memory):
    with pytest.raises(InputError, match="run_id") as caught:
        run(memory, 1, run_id="r", record=RunRecord(tmp_path / "run", {}))
    assert caught.value.rule and caught.value.next_step and memory.episodes() == []


def test_run_without_a_record_or_a_name_is_new(memory):
    for _ in range(2):
        run(memory, 2, run_id=None)
    assert len(memory.episodes()) == 4


def test_record_lists_every_resumed_session(tmp_path):
    with Memory.open(tmp_path / "m.db") as memory:
        for count in (0, 1, 2):
            record = RunRecord(tmp_path / "run", {})
            run(memory, 2 + count, record=record)
            run_record = json.loads((tmp_path / "run" / "run.json").read_text())
            assert len(run_record.get("sessions", [])) == count and run_record["run_id"] == record.run_id
    first, second = run_record["sessions"]
    assert run_record["started_at"] <= first["at"] <= second["at"] <= run_record["finished_at"]
    assert all({"versions", "revision", "python", "machine"} <= set(session) for session in (first, second))


class Paid:
    """A reader with one call and ten tokens a step."""

    name = "paid"

    async def read(self, state, task, candidates):
        reading = await UniformReader().read(state, task, candidates)
        return dataclasses.replace(reading, usage=Usage(calls=1, prompt_tokens=10))


def test_usage_of_failed_episodes_is_counted(tmp_path):
    """The episode fails at its fourth step, and is played again from its beginning."""
    environment, reported = Counting(fail_at=[4], slip=0.0), []

    def play():
        with Memory.open(tmp_path / "memory.db") as memory:
            record = RunRecord(tmp_path / "run", {})
            lost = {"lost": lambda number, usage: reported.append((number, usage.calls, usage.tokens))}
            arguments = (environment, ModelAlone(), Paid())
            asyncio.run(play_run(*arguments, memory=memory, episodes=2, seed=0, record=record, **lost))

    with pytest.raises(EnvError):
        play()
    assert reported == [(0, 4, 40)]
    assert read_lost_usage(tmp_path / "run").calls == RunRecord(tmp_path / "run", {}).usage.calls == 4
    play()
    assert reported == [(0, 4, 40)]
    record = RunRecord(tmp_path / "run", {})
    steps = sum(result.steps for result in record.results.values())
    assert record.usage.calls == steps + 4
    assert sum(result.usage.calls for result in read_results(tmp_path / "run")) == steps
    (tmp_path / "run" / "lost.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="intact record"):
        read_lost_usage(tmp_path / "run")


def test_record_sums_the_usage_of_the_run(tmp_path):
    record = RunRecord(tmp_path / "run", {})
    results = run(None, 3, record=record)
    assert record.usage == sum((result.usage for result in results), Usage())
    assert record.scores == scores(results)


# ------------------------------------------------------------------------------------------ judges


def judge(rewards):
    rules = [Rule(f"{action} costs", {"action": f"^{action}$"}, reward) for action, reward in rewards.items()]
    return RuleJudge(rules, source="rules")


class Failing(RuleJudge):
    """A judge that raises an error at its first episode."""

    def score(self, episode):
        raise RuntimeError("judge broke down")


def returns(memory):
    neighbors = memory.search("cell", k=1000)
    return {(n.experience.episode_id, n.experience.step): n.experience.return_ for n in neighbors}


def judged_returns(memory, rewards):
    table = {}
    for episode in memory.episodes():
        summed = [step.reward + rewards.get(step.action, 0.0) for step in episode.steps]
        for index, value in enumerate(discounted_returns(summed, 0.9)):
            table[episode.id, index] = pytest.approx(float(value))
    return table


def test_judgements_become_feedback_and_change_returns(memory):
    rewards = {"north": -0.5, "west": -0.25}
    plain = run(None, 1)  # the first episode knows nothing yet
    results = run(memory, 6, judges=(judge(rewards),))
    assert results[0].score == plain[0].score  # a score is the environment's
    assert returns(memory) == judged_returns(memory, rewards)
    expected = {(e.id, i) for e in memory.episodes() for i, s in enumerate(e.steps) if s.action in rewards}
    assert {(event.episode_id, event.step) for event in memory.events()} == expected
    assert {event.source for event in memory.events()} == {"rules"}
    assert all(step.reward in (0.0, 1.0) for e in memory.episodes() for step in e.steps)
    memory.verify()


def test_environment_that_knows_its_best_score_leaves_nothing_to_await_but_judges(memory):
    run(memory, 1)
    run(memory, 1, run_id="judged", judges=(judge({"north": -0.5}),))
    assert [memory.get(id_).awaits_feedback for id_ in ("r-00000", "judged-00000")] == [False, None]


def test_resumed_run_judges_stored_episodes(memory):
    rewards = {"north": -0.5, "south": 0.25}
    with pytest.raises(RuntimeError):
        run(memory, 4, judges=(Failing([Rule("any", lambda moment: True, 1.0)]),))
    assert len(memory.episodes()) == 1 and memory.events() == []
    run(memory, 4, judges=(judge(rewards),))
    assert returns(memory) == judged_returns(memory, rewards)
    assert len(memory.episodes()) == 4


# ------------------------------------------------------------------------------------------ learning


def policy_of(policy, states):
    """Return the policy's probabilities by state."""
    return {
        state: dict(policy.decide(state, dict.fromkeys(actions, 0.0), admissible=actions, seed=0).probs)
        for state, actions in states.items()
    }


def bandit_value(probs):
    """Return the exact mean reward of a round."""
    return sum(p * BANDIT[c][a] for c in BANDIT for a, p in probs[c].items()) / len(BANDIT)


def kl_optimal(values, beta):
    """softmax(log uniform + beta * Q): the exact maximiser of E[Q] - KL / beta."""
    weights = {state: {a: math.exp(beta * q) for a, q in actions.items()} for state, actions in values.items()}
    return {state: {a: w / sum(ws.values()) for a, w in ws.items()} for state, ws in weights.items()}


@pytest.mark.parametrize(
    ("noise", "tolerance"), [pytest.param("none", 1e-9, marks=pytest.mark.slow), ("bernoulli", 0.03)]
)
def test_value_on_a_bandit_rises_to_the_kl_optimum(noise, tolerance):
    """Without shrinkage and scaling, A = Q - V with the true Q is the optimum itself; noise only blurs Q."""
    beta, bandit = 4.0, ContextualBandit(BANDIT, noise=noise, rounds=10)
    states = {context: tuple(actions) for context, actions in BANDIT.items()}
    optimum = bandit_value(kl_optimal(BANDIT, beta))
    alone = bandit_value(policy_of(ModelAlone(), states))
    assert alone == pytest.approx((0.5 + 1.4 / 3) / 2) and optimum > alone + 0.15
    finals = []
    for seed in range(4):
        with Memory.open(":memory:", gamma=0.0) as memory:  # what a round brings does not depend on the last one
            policy = JitRL.preset("means", memory, beta=beta, scale="none", kappa=0.0, k=1, threshold=1.0)
            assert bandit_value(policy_of(policy, states)) == pytest.approx(alone)
            run(memory, 40, environment=bandit, policy=policy, seed=seed)
            finals.append(bandit_value(policy_of(policy, states)))
    assert sum(finals) / len(finals) == pytest.approx(optimum, abs=tolerance)
    if noise == "none":
        assert finals == pytest.approx([optimum] * 4, abs=tolerance)


def test_default_policy_learns_a_bandit():
    """At least three quarters of the way to the best."""
    states = {context: tuple(actions) for context, actions in BANDIT.items()}
    alone = bandit_value(policy_of(ModelAlone(), states))
    best = (0.9 + 0.8) / 2
    for seed in range(2):
        with Memory.open(":memory:", gamma=0.0) as memory:
            environment = ContextualBandit(BANDIT, noise="bernoulli", rounds=10)
            run(memory, 25, environment=environment, seed=seed)
            assert bandit_value(policy_of(JitRL(memory), states)) > alone + 0.75 * (best - alone)


def grid_value(grid, probs):
    """The exact value, at the start, of acting by `probs` for ever: KL control at beta 0 under this prior."""
    return grid.exact_kl_values(0.9, 0.0, probs).v[START]


@pytest.mark.parametrize("settings", [{}, {"beta": 8.0, "scale": "none", "kappa": 0.0, "k": 1, "threshold": 1.0}])
def test_value_on_a_grid_rises_close_to_the_kl_optimum(settings):
    preset = "means" if settings else "default"
    grid = Grid(ROWS, max_steps=30)
    exact = grid.exact_kl_values(0.9, 8.0)
    optimum = grid_value(grid, kl_optimal(exact.q, 8.0))
    alone = grid_value(grid, policy_of(ModelAlone(), grid.states()))
    best = grid.exact_values(0.9).v[START]
    assert alone < 0.5 * optimum and optimum < best == pytest.approx(0.9**3)
    curves = []
    for seed in range(2):
        with Memory.open(":memory:", gamma=0.9) as memory:
            policy = JitRL.preset(preset, memory, **settings)
            curve = [grid_value(grid, policy_of(policy, grid.states()))]
            for episodes in (8, 40):
                run(memory, episodes, environment=grid, policy=policy, seed=seed)
                curve.append(grid_value(grid, policy_of(policy, grid.states())))
        assert curve[0] == pytest.approx(alone)
        assert all(value <= best + 1e-9 for value in curve)
        curves.append(curve)
    first, early, late = (sum(column) / 2 for column in zip(*curves, strict=True))
    assert first < early
    assert late > first + 0.85 * (optimum - first)
    if settings:
        assert late == pytest.approx(optimum, abs=0.1 * (optimum - first))


def test_the_model_alone_does_not_learn(memory):
    """Its decisions do not depend on earlier episodes: every expected score equals the first one."""
    grid = Grid(ROWS, max_steps=30)
    policy = Watched(ModelAlone(), memory)
    before = grid_value(grid, policy_of(policy, grid.states()))
    run(memory, 20, environment=grid, policy=policy)
    assert grid_value(grid, policy_of(policy, grid.states())) == before
    for decision, _, _ in policy.seen:
        assert list(decision.probs.values()) == pytest.approx([1 / len(decision.probs)] * len(decision.probs))


def test_late_reward_is_stored_at_its_step(tmp_path):
    """Feedback events move late rewards to their steps; the score of the report is the true one."""
    desk = SupportTriage(tickets=6, delay=2, noise=0.3)
    with Memory.open(tmp_path / "m.db", gamma=0.0) as memory:
        record = RunRecord(tmp_path / "run", {})
        (result,) = asyncio.run(
            play_run(desk, ModelAlone(), UniformReader(), memory=memory, episodes=1, seed=0, record=record)
        )
        (episode,) = memory.episodes()
        noisy = [late.reward for late in sorted(desk.late_rewards(), key=lambda late: late.step)]
        returns = {
            neighbor.experience.step: neighbor.experience.return_
            for neighbor in memory.search("any text", 10, 0.0, gamma=0.0)
        }
        assert [returns[step] for step in range(6)] == pytest.approx(noisy)
        assert result.score == desk.true_score
        assert {event.source for event in memory.events()} == {LATE_REWARD}
        assert sum(step.reward for step in episode.steps) == pytest.approx(sum(noisy))
        assert RunRecord(tmp_path / "run", {}).results[0] == result


def test_keep_aborted_false_stores_no_aborted_episode(tmp_path):
    environment = Counting(fail_at=[17])
    with Memory.open(tmp_path / "m.db") as memory:
        with pytest.raises(EnvError):
            run(memory, 10, environment=environment, record=RunRecord(tmp_path / "r", {}), keep_aborted=False)
        assert {episode.ending for episode in memory.episodes()} <= {"terminated", "truncated"}
        results = run(memory, 10, environment=environment, record=RunRecord(tmp_path / "r", {}), keep_aborted=False)
        assert len(memory.episodes()) == len(results) == 10
