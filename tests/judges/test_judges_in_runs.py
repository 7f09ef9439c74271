"""Model judges in a run: order, usage, and no loss of episodes after a refused judgement."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from seasoned import Memory
from seasoned.agents import RunRecord, UniformReader, play_run
from seasoned.envs import Grid
from seasoned.errors import ModelAnswerError
from seasoned.judges import LLMJudge, Rule, RuleJudge
from seasoned.llms import ScriptedLLM
from seasoned.policies import ModelAlone

ROWS = ["S..", "...", "..G"]


def scores(request):
    """A model that scores every step 0.5; its third vote is empty."""
    steps = re.findall(r'"(\d+)": score', request.messages[-1].content)
    return json.dumps(dict.fromkeys(steps, 0.0 if request.seed == 6 else 0.5))


def run(memory, judges, episodes=2, record=None):
    environment = Grid(ROWS, max_steps=6)
    named = {"record": record} if record else {"run_id": "r"}
    return asyncio.run(
        play_run(
            environment, ModelAlone(), UniformReader(), memory=memory, episodes=episodes, seed=0, judges=judges, **named
        )
    )


@pytest.fixture
def memory():
    with Memory.open(":memory:", gamma=0.5) as opened:
        yield opened


def test_a_judgement_becomes_weighted_feedback_and_its_cost_is_counted(memory):
    model = ScriptedLLM(scores)
    rules = RuleJudge([Rule("north", {"action": "north"}, -1.0)])
    results = run(memory, (LLMJudge(model, votes=3, source="m"), rules))
    for episode, result in zip(memory.episodes(), results, strict=True):
        events = [event for event in memory.events(episode.id) if event.source == "m"]
        assert [event.step for event in events] == list(range(len(episode.steps)))
        assert {event.reward for event in events} == {0.5}
        assert [event.weight for event in events] == pytest.approx([1 - 0.5 / 3] * len(events))
        assert result.usage.calls == 3 * -(-len(episode.steps) // 10)
        assert result.usage.prompt_tokens > 0
    assert sum(result.usage.calls for result in results) == len(model.requests)
    assert {(e.source, e.weight) for e in memory.events() if e.source == "rules"} <= {("rules", 1.0)}
    memory.verify()


@pytest.mark.parametrize("recorded", [False, True])
def test_refused_judgement_ends_the_run_and_the_episode_stays(memory, tmp_path, recorded):
    def record():
        return RunRecord(tmp_path / "run", {}) if recorded else None

    stubborn = ScriptedLLM(lambda request: "I would rather not.")
    with pytest.raises(ModelAnswerError, match="3 replies"):
        run(memory, (LLMJudge(stubborn),), record=record())
    assert len(stubborn.requests) == 3
    assert len(memory.episodes()) == 1 and memory.events() == []
    assert memory.episodes()[0].ending != "aborted"
    played = memory.episodes()[0]

    results = run(memory, (LLMJudge(ScriptedLLM(scores)),), record=record())
    assert memory.episodes()[0] == played and len(memory.episodes()) == len(results) == 2
    for episode in memory.episodes():
        assert [event.step for event in memory.events(episode.id)] == list(range(len(episode.steps)))
    assert results[0].usage.calls == 1 and results[0].usage.cost_usd is None  # what playing it cost is not known


def test_earlier_judgement_is_stored_if_a_later_judge_fails(memory):
    rules = RuleJudge([Rule("any", lambda moment: True, -0.1)])
    with pytest.raises(ModelAnswerError):
        run(memory, (rules, LLMJudge(ScriptedLLM(lambda request: "no"))))
    [episode] = memory.episodes()
    assert len(memory.events()) == len(episode.steps)
    run(memory, (rules, LLMJudge(ScriptedLLM(scores))), episodes=1)
    standing = [event for event in memory.events() if event.revoked_at is None]
    assert sorted((e.source, e.step) for e in standing) == sorted(
        (source, step) for source in ("judge", "rules") for step in range(len(episode.steps))
    )
    memory.verify()
