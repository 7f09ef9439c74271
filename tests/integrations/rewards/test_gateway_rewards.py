"""Rewards of rules, and scores of other systems, on the calls that go through a gateway."""

from __future__ import annotations

import logging

import pytest
from model_server import MODEL, Answer

from seasoned import Memory, TranscriptEncoder
from seasoned.integrations.rewards import load_rules, parse_rules
from seasoned.lab.diagnosis.doctor import diagnose
from seasoned.memory import FeedbackPolicy
from seasoned.service import DecisionSettings, GatewaySettings

pytest.importorskip("fastapi", reason="needs the extra serve")
from serving import serving

RULES = parse_rules('extends = "default"\n[[score]]\nname = "stars"\nlow = 1\nhigh = 5')


def test_rules_and_scores_judge_the_calls_of_a_session(server):
    server.script += [Answer(calls=(("restart", {"service": "a"}),)), Answer("It is down.")]
    tools = [{"type": "function", "function": {"name": "restart", "parameters": {"type": "object"}}}]
    said = [{"role": "user", "content": "pool exhausted"}]
    with serving(decisions=DecisionSettings(upstream=server.url), rewards=RULES) as client:
        for result in ("Exit code: 3", None):
            body = {"model": MODEL, "messages": said, "tools": tools}
            answer = client.post("/sessions/run-7/v1/chat/completions", json=body).json()
            said.append(answer["choices"][0]["message"])
            if result is not None:
                call = said[-1]["tool_calls"][0]["id"]
                said.append({"role": "tool", "tool_call_id": call, "content": result})
        score = {"name": "stars", "value": 5, "traceId": "unknown", "sessionId": "run-7"}
        assert client.post("/v1/feedback", json=score).status_code == 201
        assert client.post("/v1/feedback", json={**score, "sessionId": "run-8"}).status_code == 404
        found = client.post("/v1/search", json={"state": "pool exhausted", "k": 100}).json()["neighbors"]
        assert sorted((one["step"], one["reward"]) for one in found) == [(0, -0.1), (1, 1.0)]


@pytest.mark.parametrize("has_policy", [False, True])
def test_lift_counts_episodes_without_a_failure_where_silence_has_a_meaning(has_policy, server, tmp_path, caplog):
    path, n_good, n_bad = tmp_path / "agent.db", 6, 4
    with Memory.open(path, encoder=TranscriptEncoder()) as memory:
        if has_policy:
            memory.set_feedback_policy(FeedbackPolicy(deadline_s=0, default_reward=0.0))
    for _ in range(n_good + n_bad):
        server.script += [Answer(calls=(("restart", {"service": "a"}),)), Answer("It is up.")]
    tools = [{"type": "function", "function": {"name": "restart", "parameters": {"type": "object"}}}]
    settings = GatewaySettings(modes={"*": "examples"}, mode_wait_s=20.0)
    decisions = DecisionSettings(upstream=server.url)
    with (
        caplog.at_level(logging.WARNING, "seasoned.service"),
        serving(path, create=False, decisions=decisions, rewards=load_rules("default"), gateway=settings) as client,
    ):
        for number in range(n_good + n_bad):
            said = [{"role": "user", "content": f"alert {number}"}]
            for result in ("restarted" if number < n_good else "Exit code: 3", None):
                answer = client.post("/v1/chat/completions", json={"model": MODEL, "messages": said, "tools": tools})
                said.append(answer.json()["choices"][0]["message"])
                if result is not None:
                    call = said[-1]["tool_calls"][0]["id"]
                    said.append({"role": "tool", "tool_call_id": call, "content": result})
    with Memory.open(path) as memory:
        memory.settle_overdue()
        found = memory.lift("conversations")
        names = [check.name for check in diagnose(memory).findings]
    assert found.n_treated + found.n_control == (n_good + n_bad if has_policy else n_bad)
    assert ("--deadline 1h --silence 0" in caplog.text) is not has_policy
    assert ("rules that find failures only" in names) is not has_policy
