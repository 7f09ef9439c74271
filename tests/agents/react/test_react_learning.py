"""Stored episodes and notes of an agent, its modes of learning, and discounted evidence."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import math
from collections import Counter

import pytest
from walkers import BARE, COLOURS, Terminal, east, follow, labels, once, prompt_of, shown_in, walker

from seasoned import JitRL, Memory, Step
from seasoned.agents import Agent, DiscountedEvidence, Templates, VerifyResult
from seasoned.agents.react import current_state
from seasoned.envs import ContextualBandit, Grid
from seasoned.errors import EnvError, ModelUnavailableError, ReadOnlyStoreError
from seasoned.llms import LabelReader, ScriptedLLM, VotesReader
from seasoned.policies.cascade import CascadeReader
from seasoned.policies.examples import Example
from seasoned.protocols import Usage
from seasoned.types import EvidenceQuery

# ------------------------------------------------------------------------------------------ what is kept


@pytest.mark.parametrize("calls", [1, 2])
def test_training_stores_episode_plan_reasoning_and_impressions(calls):
    with Memory.open(":memory:") as memory:
        agent = walker(memory, calls=calls, arm="mine")
        first, second = once(agent), asyncio.run(agent.train(Grid(["S.G"]), 1, subject="ada"))
        assert (len(memory), memory.get(first.episode_id).arm) == (4, "mine")
        assert memory.get(second.episode_id).subject == "ada"
        assert second.episode.steps == memory.get(second.episode_id).steps
        for result in (first, second):
            notes = memory.notes(episode_id=result.episode_id)
            assert [note.body["text"] for note in notes if note.kind == "plan"] == ["Walk east."]
            reasoned = "east it is." if calls == 1 else "The goal is east."
            assert [(n.step, n.body["text"]) for n in notes if n.kind == "reasoning"] == [(0, reasoned), (1, reasoned)]
        assert not [note for note in memory.notes(kind="shown") if note.episode_id == first.episode_id]
        shown = [(n.step, n.body["purpose"], n.body["mode"]) for n in memory.notes(kind="shown")]
        purposes = ["act"] if calls == 1 else ["reason", "act"]
        expected_purposes = [(0, "plan"), *((step, purpose) for step in (0, 1) for purpose in purposes)]
        assert shown == [(step, purpose, "prompt") for step, purpose in expected_purposes]
        for note in memory.notes(kind="shown"):
            assert {episode for episode, _ in note.body["examples"]} == {first.episode_id}
        assert (first.example_steps, second.example_steps) == (0, 2)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("mode", ["none", "prompt", "logits", "both"])
def test_run_writes_nothing_to_the_memory(mode, tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        options = {"reader": labels(), "calls": 2} if mode in ("logits", "both") else {}
        agent = walker(memory, mode=mode, verify=lambda episode: VerifyResult(success=True), **options)
        for seed in range(4):
            once(agent, seed=seed)
        before = memory.verify().hash, len(memory), len(memory.notes())
    at_rest = digest(path)
    with Memory.open(path) as memory:
        agent = walker(memory, mode=mode, verify=lambda episode: pytest.fail("a run is not checked"), **options)
        result = once(agent, learns=False)
        assert result.episode_id is None and result.verification is None and result.episode.steps
        [result] = asyncio.run(agent.run_many([Grid(["S.G"])], [3]))
        assert result.error is None
        assert (memory.verify().hash, len(memory), len(memory.notes())) == before
    assert digest(path) == at_rest
    with Memory.open(path, read_only=True) as memory:
        assert once(walker(memory, mode=mode, **options), learns=False).error is None
    assert digest(path) == at_rest


def test_run_with_another_gamma_stores_no_episode_and_needs_a_writable_memory(tmp_path):
    path = tmp_path / "agent.db"

    def run(memory):
        policy = lambda source: JitRL(source, gamma=0.3)
        return once(walker(memory, mode="logits", reader=labels(), plan=False, policy=policy), learns=False)

    with Memory.open(path) as memory:
        once(walker(memory))
        before = memory.verify().hash, len(memory), len(memory.notes())
    with Memory.open(path, read_only=True) as memory, pytest.raises(ReadOnlyStoreError, match="for writing"):
        run(memory)
    with Memory.open(path) as memory:
        assert run(memory).error is None
        assert (memory.verify().hash, len(memory), len(memory.notes())) == before


# ------------------------------------------------------------------------------------------ what is learned


def test_train_then_run_uses_what_was_learned():
    red = ContextualBandit({"red": COLOURS["red"]})
    with Memory.open(":memory:") as memory:
        agent = walker(memory, follow, plan=False, temperature=1.0, seed=0)
        trained = [asyncio.run(agent.train(red)) for _ in range(12)]
        assert 0 < sum(result.score for result in trained[:4]) < 4  # it tried both
        results = [asyncio.run(agent.run(red)) for _ in range(6)]
        assert [result.score for result in results] == [1.0] * 6
        assert all(result.example_steps == 1 for result in results)
        alone = walker(memory, follow, plan=False, temperature=1.0, seed=0, mode="none")
        scores = [asyncio.run(alone.run(red)).score for _ in range(12)]
        assert 0 < sum(scores) < 12


def trained_on_both(memory, episodes=16):
    """Return the memory of a bandit with both actions tried."""
    bandit = ContextualBandit(COLOURS)
    agent = walker(memory, mode="none", reader=labels(), reason=False, plan=False, seed=1)
    for _ in range(episodes):
        asyncio.run(agent.train(bandit))
    return bandit


def test_mode_none_uses_the_models_own_policy():
    with Memory.open(":memory:") as memory:
        bandit, events = trained_on_both(memory), []
        agent = walker(memory, mode="none", reader=labels(), reason=False, plan=False, on_step=events.append)
        once(agent, bandit, learns=False)
    [decision] = [event.decision for event in events]
    assert (decision.mode, decision.probs, decision.n_steps) == ("base", decision.base_probs, 0)


def test_mode_logits_shifts_by_the_evidence():
    with Memory.open(":memory:") as memory:
        bandit, events = trained_on_both(memory), []
        agent = walker(memory, mode="logits", reader=labels(), reason=False, plan=False, on_step=events.append)
        result = once(agent, bandit, learns=False)
    [event] = events
    assert event.decision.mode == "memory" and event.decision.kl_nats > 0.1
    best = max(COLOURS[event.before.state], key=COLOURS[event.before.state].get)
    assert event.decision.probs[best] > 0.9 and event.decision.base_probs[best] == pytest.approx(0.5)
    assert (result.memory_steps, result.flips, result.example_steps) == (1, 0, 0)
    assert not event.impressions and shown_in(event.model_calls[0].messages[0].content) == ""


def test_mode_both_discounts_the_shown_steps():
    with Memory.open(":memory:") as memory:
        bandit, events = trained_on_both(memory), []
        agent = walker(memory, mode="both", reader=labels(), reason=False, plan=False, on_step=events.append)
        once(agent, bandit, learns=False)
        [event] = events
        shown = {step for each in event.impressions for step in each.steps}
        assert shown and shown_in(event.model_calls[0].messages[0].content)
        policy = JitRL(memory)
        prior = event.decision.prior
        counted = {(n.experience.episode_id, n.experience.step): n.experience.action for n in event.decision.neighbors}
        read = Counter(action for place, action in counted.items() if place in shown)
        everything = policy.decide(event.before.state, prior, admissible=event.before.admissible, seed=0)
        assert event.decision.n_steps == everything.n_steps == len(counted)
        for action, whole in everything.advantages.items():
            left = 1.0 - read[action] / everything.counts[action]
            assert event.decision.advantages[action] == pytest.approx(whole * left)
        assert read and f"already in the prompt: {read.total()} of the steps" in event.decision.reason


def test_steps_in_plan_and_reasoning_prompts_are_discounted():
    with Memory.open(":memory:") as memory:
        bandit, events = trained_on_both(memory), []
        agent = walker(memory, mode="both", reader=labels(), on_step=events.append)
        once(agent, bandit, learns=False)
        there = {(n.experience.episode_id, n.experience.step) for n in events[0].decision.neighbors}
        own = Each(**dict(zip(("plan", "reason", "act"), sorted(there), strict=False)))
        once(walker(memory, mode="both", reader=labels(), examples=own, on_step=events.append), bandit, learns=False)
    by_default, event = events
    assert {shown.purpose for shown in by_default.impressions} == {"plan", "reason", "act"}
    n_shown = len({step for one in by_default.impressions for step in one.steps} & there)
    assert f"already in the prompt: {n_shown} of the steps" in by_default.decision.reason
    assert "already in the prompt: 3 of the steps" in event.decision.reason


def test_window_steps_of_an_example_are_discounted():
    events = []
    with Memory.open(":memory:") as memory:
        stored = once(walker(memory), Grid(["S....G"]))
        both = walker(memory, mode="both", reader=labels(), plan=False, reason=False, on_step=events.append)
        once(both, Grid(["S....G"]), learns=False)
    impressions = [shown for event in events for shown in event.impressions]
    assert impressions
    for shown in impressions:
        [(episode, step)] = shown.examples
        window = {(episode, n) for n in (step - 1, step, step + 1) if 0 <= n < stored.steps}
        assert (episode, set(shown.steps)) == (stored.episode_id, window)
        assert len(window) > 1


def test_step_shown_by_several_prompts_is_discounted_once():
    with Memory.open(":memory:") as memory:
        ids = [once(walker(memory, mode="none")).episode_id for _ in range(3)]
        state, options = "cell:0,0 open:east", {"k": 1, "unit": "states", "threshold": 1.0, "gamma": None}
        assert memory.evidence(EvidenceQuery(state, **options)).n_steps == 3
        rest = DiscountedEvidence(memory, {(ids[0], 0), ("gone", 0)})
        assert (
            rest.evidence(EvidenceQuery(state, **options)).n_steps,
            rest.evidence(EvidenceQuery(state, **options)).n_shown,
        ) == (3, 1)
        assert rest.evidence(EvidenceQuery(state, **options, shown_steps=[(ids[1], 0), (ids[0], 0)])).n_shown == 2


class Each:
    """A retriever that returns one named step for each prompt, or none."""

    def __init__(self, **places):
        self.places = places

    def retrieve(self, query, *, purpose, exclude_task):
        if purpose not in self.places:
            return ()
        step = Step("cell:0,1", "east")
        about = {"value": 0.0, "low": 0.0, "high": 0.0, "n_shown": 0, "kind": "imitate", "similarity": 1.0}
        return (Example(*self.places[purpose], query.goal, (step,), 0, None, None, 1.0, **about),)


def test_steps_in_the_plan_prompt_are_discounted_at_every_step():
    events = []
    both = {"mode": "both", "reader": labels(), "reason": False, "seed": 0, "on_step": events.append}
    with Memory.open(":memory:") as memory:
        ids = [once(walker(memory)).episode_id for _ in range(4)]
        reasons = {}
        for episode_id in (ids[3], "another"):
            asyncio.run(walker(memory, examples=Each(plan=(episode_id, 1)), **both).run(Grid(["S.G"])))
            last = [event.decision for event in events if event.before.state == "cell:0,1 open:east,west"][-1]
            reasons[episode_id] = last.reason
    assert "already in the prompt: 1 of the steps" in reasons[ids[3]]
    assert "already in the prompt" not in reasons["another"]


@pytest.mark.parametrize("options", [{"templates": Templates()}, {"exclude_same_task": True}, {"mode": "none"}])
def test_template_without_examples_notes_no_impression(options):
    blind = Templates(**{name: getattr(BARE, name).replace("EXAMPLES[{examples}]", "") for name in ("plan", "act")})
    with Memory.open(":memory:") as memory:
        once(walker(memory))
        if "templates" in options:
            options = {"templates": blind, "reason": False}
        agent = Agent(ScriptedLLM(east), memory, **{"templates": BARE} | options)
        assert (once(agent).example_steps, memory.notes(kind="shown")) == (0, [])
        assert not any("Example 1" in prompt_of(request) for request in agent.settings.llm.requests)


def test_votes_reader_works_without_logprobs():
    with Memory.open(":memory:") as memory:
        bandit, events = trained_on_both(memory), []
        votes = VotesReader(ScriptedLLM(lambda request: "left"), n=2)
        agent = walker(memory, mode="logits", reader=votes, reason=False, plan=False, on_step=events.append)
        once(agent, bandit, learns=False)
    assert events[0].decision.mode == "memory" and "votes" in events[0].decision.prior.method


def test_proposing_reader_acts_without_named_actions():
    def parse(reply):
        return reply.text

    votes = VotesReader(ScriptedLLM(lambda request: "stop"), n=2, parse=parse)
    terminal = Terminal()
    assert once(walker(reader=votes, reason=False, plan=False), terminal).score == 1.0
    with pytest.raises(EnvError, match="no admissible actions"):
        once(walker(reader=labels(), reason=False, plan=False), Terminal())
    with pytest.raises(EnvError, match="at least one action"):
        once(walker(plan=False), Terminal(admissible=()))


# ------------------------------------------------------------------------------------------ a cascade as its reader


def cascading(memory, n=1):
    """Student and teacher both go east; the teacher is asked where the memory has fewer than n steps."""
    student, teacher = (
        LabelReader(ScriptedLLM(lambda request: {"A": math.log(0.98), "B": math.log(0.02)}, name))
        for name in ("small", "large")
    )
    cascade = CascadeReader(student, teacher, min_evidence=n, memory=memory, observation=current_state)
    return walker(memory, mode="none", reader=cascade, plan=False)


def test_cascade_reads_evidence_at_the_current_state():
    """A prompt contains a history and a thought, so it resembles no stored state; the state alone is stored."""
    corridor = ContextualBandit({"a red light": {"go": 1.0, "stop": 0.0}}, noise="none", rounds=2)
    with Memory.open(":memory:") as memory:
        agent = cascading(memory)
        first, second = (once(agent, corridor, seed=seed) for seed in (0, 1))
        by = {result.episode_id: [] for result in (first, second)}
        for note in memory.notes(kind="decided"):
            by[note.episode_id].append((note.step, note.body["by"], note.body["model"]))
        assert list(by.values()) == [
            [(0, "teacher", "large"), (1, "teacher", "large")],  # nothing is stored while it plays
            [(0, "student", "small"), (1, "student", "small")],
        ]
        assert all(note.body["evidence"] == 2.0 for note in memory.notes(episode_id=second.episode_id, kind="decided"))
        before = len(memory.notes())
        once(agent, corridor, learns=False)
        assert len(memory.notes()) == before
    assert current_state("a prompt") == "a prompt"  # nobody is asking any more


def test_concurrent_episodes_have_separate_current_states():
    seen = []

    class Asks(LabelReader):
        async def read(self, state, task, candidates):
            await asyncio.sleep(0)
            seen.append((current_state(state), state))
            return await super().read(state, task, candidates)

    model = ScriptedLLM(lambda request: {"A": math.log(0.5), "B": math.log(0.5)})
    rooms = [ContextualBandit({f"room {n}": {"go": 1.0, "stop": 0.0}}) for n in range(3)]
    asyncio.run(walker(reader=Asks(model), reason=False, plan=False).run_many(rooms, [0, 1, 2], concurrency=3))
    assert sorted(state for state, _ in seen) == ["room 0", "room 1", "room 2"]
    assert all(f"NOW[{state}]" in prompt for state, prompt in seen)


# ------------------------------------------------------------------------------------------ what breaks off


class Down:
    """A reader whose endpoint is down."""

    name = "down"

    async def read(self, state, task, candidates):
        raise ModelUnavailableError("no endpoint", "a model answers", "Start it.")


def test_usage_of_a_failed_reader_has_an_unknown_price():
    [result] = asyncio.run(walker(reader=Down(), reason=False, plan=False).run_many([Grid(["S.G"])], [0]))
    assert isinstance(result.error, ModelUnavailableError)
    assert (result.usage.calls, result.usage.cost_usd) == (1, None)
    [result] = asyncio.run(walker(reader=labels(), reason=False, plan=False).run_many([Terminal()], [0]))
    assert isinstance(result.error, EnvError) and result.usage == Usage()  # nobody was asked


class Over(Grid):
    """A grid whose episode is over at reset."""

    async def reset(self, *, seed=None):
        return dataclasses.replace(await super().reset(seed=seed), terminated=True)


@pytest.mark.parametrize("learns", [True, False])
def test_environment_that_is_over_at_reset_is_refused(learns):
    with Memory.open(":memory:") as memory:
        agent = walker(memory, verify=lambda episode: pytest.fail("nothing was done"))
        with pytest.raises(EnvError, match=r"over when it was reset.*at least one step"):
            once(agent, Over(["S.G"]), learns=learns)
        assert [one.ending for one in memory.episodes()] == ["aborted"] * learns
        assert not agent.settings.llm.requests
