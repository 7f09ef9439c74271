"""Distillation within a budget, cascades of student and teacher, and attribution of steps."""

import asyncio
import math
from dataclasses import replace

import pytest

from seasoned import JitRL, Memory
from seasoned.agents import Arm, InformedReader, RunRecord, StepLog, play_run
from seasoned.agents.baselines import BySearch, PastSuccesses
from seasoned.agents.cascade.attribution import CascadePlay
from seasoned.agents.cascade.distillation import DistillationBudget, distill
from seasoned.agents.react import Agent
from seasoned.envs import ContextualBandit
from seasoned.errors import ConfigError, EnvError, InputError
from seasoned.llms import ScriptedLLM
from seasoned.policies import ModelAlone
from seasoned.policies.cascade import CascadeReader
from seasoned.protocols import PriorReading, Usage
from seasoned.types import DECIDED, Prior

MEANS = {"red": {"a": 0.0, "b": 1.0}, "blue": {"a": 1.0, "b": 0.0}}
PRICE_USD = 0.01


class SkilledReader:
    """A reader that prefers the best action to some degree; a call has 10 tokens."""

    def __init__(self, name="large", skill=1.0, cost_usd=PRICE_USD, shown=False):
        self.name, self.skill, self.cost_usd, self.shown, self.states = name, skill, cost_usd, shown, []

    async def read(self, state, task, candidates):
        self.states.append(state)
        context = state.rpartition("\n")[2]
        best = max(candidates, key=MEANS[context].__getitem__)
        p = 0.5 + 0.49999 * (self.skill if not self.shown or state != context else 0.0)
        logprobs = {c: math.log(p if c == best else (1 - p) / (len(candidates) - 1)) for c in candidates}
        return PriorReading(Prior(logprobs, "given", self.name), Usage(1, 0, 9, 1, cost_usd=self.cost_usd))


def bandit(rounds=4):
    return ContextualBandit(MEANS, noise="none", rounds=rounds)


def teach(memory, episodes=5, teacher=None, **options):
    arm = Arm(ModelAlone("argmax"), teacher or SkilledReader())
    return asyncio.run(distill(arm, bandit(), memory, episodes=episodes, **options))


@pytest.fixture
def memory():
    with Memory.open(":memory:", gamma=0.9) as opened:
        yield opened


# ---------------------------------------------------------------------------------------------- filling


def test_the_teachers_episodes_are_stored_with_their_provenance(memory):
    filled = teach(memory)
    assert [(e.id, e.arm, e.model) for e in memory.episodes()] == [
        (f"teacher-{n:05d}", "teacher", "large") for n in range(5)
    ]
    assert [result.score for result in filled.results] == [4.0] * 5
    assert replace(filled.usage, cost_usd=None, latency_s=0.0) == Usage(20, 0, 180, 20, cost_usd=None)
    assert filled.usage.cost_usd == pytest.approx(20 * PRICE_USD)
    assert filled.stopped is None


def test_stored_episodes_are_not_played_again(memory):
    teach(memory, 3)
    teacher = SkilledReader()
    more = teach(memory, 5, teacher)
    assert len(teacher.states) == 2 * 4
    assert len(memory.episodes()) == 5
    with Memory.open(":memory:", gamma=0.9) as at_once:
        teach(at_once, 5)
        assert [e.steps for e in at_once.episodes()] == [e.steps for e in memory.episodes()]
    assert more.usage.cost_usd is None  # what the earlier three took is not known
    assert more.usage.calls == 8


@pytest.mark.parametrize(
    ("budget", "played"),
    [
        ({"usd": 0.0999}, 2),  # an episode takes 0.04 USD, 40 tokens, 4 calls
        ({"usd": 0.0401}, 1),
        ({"usd": 0.001}, 1),  # the first is always played
        ({"tokens": 120}, 3),
        ({"tokens": 119}, 2),
        ({"calls": 16}, 4),
        ({"calls": 100}, 5),
        ({"usd": 100, "tokens": 50}, 1),
        ({"usd": 0}, 0),
    ],
)
def test_budget_stops_distillation_between_episodes(memory, budget, played):
    filled = teach(memory, budget=DistillationBudget(**budget))
    assert len(filled.results) == len(memory.episodes()) == played
    assert (filled.stopped is None) == (played == 5)
    assert all(e.ending == "terminated" for e in memory.episodes())


def test_record_resumes_distillation_with_its_usage(memory, tmp_path):
    def go(episodes, usd):
        record = RunRecord(tmp_path / "run", {"what": "filling"})
        return teach(memory, episodes, record=record, budget=DistillationBudget(usd=usd))

    first = go(5, 0.1)
    assert len(first.results) == 2
    again = go(5, 0.1)
    assert (again.results, again.stopped, len(memory.episodes())) == (first.results, first.stopped, 2)
    on = go(5, 1.0)
    assert len(on.results) == 5
    assert on.usage.cost_usd == pytest.approx(0.2)


def test_budget_refuses_unknown_amounts(memory):
    with pytest.raises(ConfigError, match="without a price"):
        teach(memory, teacher=SkilledReader(cost_usd=None), budget=DistillationBudget(usd=1.0))
    assert len(memory.episodes()) == 1
    assert len(teach(memory, teacher=SkilledReader(cost_usd=None)).results) == 5
    with pytest.raises(ConfigError, match="earlier run"):
        teach(memory, budget=DistillationBudget(tokens=1000))


def test_aborted_episode_is_played_again(memory):
    class Failing(SkilledReader):
        async def read(self, state, task, candidates):
            if len(self.states) == 5:
                self.states.append(state)
                raise EnvError("a", "b", "c")
            return await super().read(state, task, candidates)

    teacher = Failing()
    with pytest.raises(EnvError):
        teach(memory, 3, teacher)
    assert [e.ending for e in memory.episodes()] == ["terminated", "aborted"]
    teach(memory, 3, teacher)
    assert [e.ending for e in memory.episodes()].count("terminated") == 3


@pytest.mark.parametrize("episodes", [0, -1, True, 2.0])
def test_number_of_episodes_must_be_whole(memory, episodes):
    with pytest.raises(InputError):
        teach(memory, episodes)


def test_budget_must_not_be_negative():
    with pytest.raises(InputError, match="usd = -1"):
        DistillationBudget(usd=-1)


# ---------------------------------------------------------------------------------------------- then the student


def test_the_student_learns_from_the_teachers_steps_and_calls_it_less(memory):
    """With a teacher's step in its prompt the student is certain; else it guesses, and the teacher is asked."""

    def play(store):
        shown = PastSuccesses(BySearch(store.search), success=4.0)
        for episode in store.episodes():
            asyncio.run(shown.learn(episode))
        student = InformedReader(SkilledReader("small", cost_usd=0.0001, shown=True), shown)
        cascade, play_one = CascadeReader(student, SkilledReader()), CascadePlay()
        run = play_run(
            bandit(),
            ModelAlone("argmax"),
            cascade,
            memory=store,
            episodes=3,
            seed=1,
            run_id="c",
            play=play_one,
            arm="cascade",
        )
        return asyncio.run(run), play_one

    with Memory.open(":memory:", gamma=0.9) as empty:
        results, counted = play(empty)
        assert counted.teacher_steps == counted.steps == [4, 4, 4]
    teach(memory)
    taught, counted = play(memory)
    assert counted.teacher_steps == [0, 0, 0]
    assert [r.score for r in taught] == [r.score for r in results] == [4.0] * 3
    assert sum(r.usage.cost_usd for r in taught) < sum(r.usage.cost_usd for r in results) / 10


def test_deciding_model_is_noted_at_each_step(memory):
    student, teacher = SkilledReader("small", skill=0.1, cost_usd=0.0001), SkilledReader()
    cascade, play_one = CascadeReader(student, teacher, memory=memory, min_evidence=2.0), CascadePlay()
    asyncio.run(
        play_run(bandit(3), JitRL(memory), cascade, memory=memory, episodes=2, seed=0, run_id="c", play=play_one)
    )
    assert play_one.teacher_steps == play_one.steps == [3, 3]
    assert [e.model for e in memory.episodes()] == [cascade.name] * 2
    notes = memory.notes(kind=DECIDED)
    assert [(note.episode_id, note.step) for note in notes] == [(f"c-0000{e}", s) for e in range(2) for s in range(3)]
    assert {note.body["by"] for note in notes} == {"teacher"}
    assert {note.body["model"] for note in notes} == {"large"}
    assert notes[0].body["reason"] == "0 stored steps in similar states < 2"
    assert "agreement" not in notes[0].body
    assert cascade.tally.teacher_steps == 6
    memory.verify()


def test_agent_with_a_cascade_notes_the_deciding_model(memory):
    """The agent's readers get a whole prompt; `observation` extracts the state."""
    teach(memory)
    cascade = CascadeReader(
        SkilledReader("small", skill=0.999),
        SkilledReader(),
        memory=memory,
        min_evidence=1,
        observation=lambda prompt: prompt.rpartition("Now:\n")[2],
    )
    agent = Agent(ScriptedLLM([]), memory, mode="prompt", plan=False, reason=False, reader=cascade)
    arm, by = agent.as_arm(), CascadePlay()
    by.play = arm.play
    asyncio.run(play_run(bandit(), arm.policy, arm.reader, memory=memory, episodes=1, seed=0, run_id="agent", play=by))
    assert (by.steps, by.teacher_steps) == ([4], [0])
    notes = memory.notes(episode_id="agent-00000")
    assert [note.step for note in notes if note.kind == DECIDED] == [0, 1, 2, 3]
    assert all(note.body["evidence"] >= 1 for note in notes if note.kind == DECIDED)
    assert {note.kind for note in notes} == {DECIDED, "shown"}  # the agent's own notes got through


def test_cascade_play_counts_steps_without_a_memory():
    play_one = CascadePlay()
    cascade = CascadeReader(SkilledReader("small", skill=0.999), SkilledReader())
    result = asyncio.run(play_one(bandit(), ModelAlone(), cascade, log := StepLog(), seed=0))
    assert (play_one.steps, play_one.teacher_steps) == ([4], [0])
    assert len(log.steps) == result.steps == 4
    assert log.ending == "terminated"
    with pytest.raises(InputError, match="SkilledReader"):
        asyncio.run(play_one(bandit(), ModelAlone(), SkilledReader(), StepLog(), seed=0))
