"""Import of ATIF trajectories."""

from __future__ import annotations

import copy
import json

import pytest

from seasoned.actions import readable_action
from seasoned.integrations import ReadEpisode, Refusal, read_episodes

BEFORE = "goal:\nMake hello.txt.\nrecent:\nbash, pwd\nassistant:\nFirst a look.\n"
TRAJECTORY = {
    "schema_version": "ATIF-v1.7",
    "session_id": "0193-run",
    "trajectory_id": "t-1",
    "agent": {"name": "terminus", "version": "2.0", "model_name": "claude-sonnet-4-5", "extra": {"parser": "json"}},
    "notes": "one of three runs",
    "steps": [
        {"step_id": 1, "timestamp": "2025-11-03T10:00:00Z", "source": "system", "message": "You are in a terminal."},
        {"step_id": 2, "timestamp": "2025-11-03T10:00:01Z", "source": "user", "message": "Make hello.txt."},
        {
            "step_id": 3,
            "timestamp": "2025-11-03T10:00:05Z",
            "source": "agent",
            "message": "First a look.",
            "reasoning_content": "I should look.",
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": "bash", "arguments": {"keystrokes": "ls\n", "duration": 0.1}},
                {"tool_call_id": "c2", "function_name": "pwd", "arguments": {}},
            ],
            "observation": {
                "results": [
                    {"source_call_id": "c1", "content": ""},
                    {"source_call_id": "c2", "content": [{"type": "text", "text": "/root"}]},
                ]
            },
            "metrics": {"prompt_tokens": 520, "completion_tokens": 80, "cost_usd": 0.001},
        },
        {
            "step_id": 4,
            "timestamp": "2025-11-03T10:00:09+00:00",
            "source": "agent",
            "message": "Done.",
            "model_name": "claude-sonnet-4-5",
            "observation": {"results": [{"content": "hello.txt is there"}]},
        },
    ],
    "final_metrics": {"total_prompt_tokens": 1000, "total_steps": 4, "extra": {"reward": 0.5}},
}


def read(*documents):
    return list(read_episodes("atif", [json.dumps(document).encode() for document in documents]))


def changed(**fields):
    document = copy.deepcopy(TRAJECTORY)
    document.update(fields)
    return document


def one(document):
    [item] = read(document)
    assert isinstance(item, ReadEpisode), item
    return item


def test_trajectory_is_read_as_the_expected_episode():
    read_back = one(TRAJECTORY)
    episode = read_back.episode
    assert [(step.state, readable_action(step.action), step.reward) for step in episode.steps] == [
        ("Make hello.txt.", 'bash(duration=0.1, keystrokes="ls\\n")', 0.0),
        ("Make hello.txt.", "pwd()", 0.0),
        (f"{BEFORE}tool bash:\ntool pwd:\n/root", "Done.", 0.5),
    ]
    assert episode.final_state.endswith("recent:\nbash, pwd, respond\nobservation:\nhello.txt is there")
    assert (episode.id, episode.task, episode.model, episode.policy, episode.ending) == (
        "t-1",
        "Make hello.txt.",
        "claude-sonnet-4-5",
        "terminus",
        "terminated",
    )
    assert read_back.created_at == 1762164009.0
    assert read_back.rewarded


def test_document_over_several_lines_equals_one_line():
    printed = json.dumps(TRAJECTORY, indent=2).encode().splitlines()
    two = [*printed, *json.dumps([TRAJECTORY], indent=4).encode().splitlines(), json.dumps(TRAJECTORY).encode()]
    items = list(read_episodes("atif", two))
    assert [read.line for read in items] == [1, len(printed) + 2, len(two)]  # of a list, the item's own line
    assert all(read.episode == one(TRAJECTORY).episode for read in items)


def test_id_is_the_trajectory_the_session_or_the_content():
    assert one(changed(trajectory_id=None)).episode.id == "0193-run"
    unnamed = changed(trajectory_id=None, session_id=None)
    assert one(unnamed).episode.id == one(unnamed).episode.id
    assert one(unnamed).episode.id.startswith("atif:")
    assert one(changed(trajectory_id=None, session_id=None, notes="other")).episode.id != one(unnamed).episode.id


def test_every_minor_version_of_atif_1_is_read():
    for minor in (0, 4, 6, 12):
        assert one(changed(schema_version=f"ATIF-v1.{minor}", new_field={"x": 1})).episode.id == "t-1"
    for version in ("ATIF-v2.0", "v1.7", 1.7, None, "ATIF-v1.", ["ATIF-v1.7"]):
        [refusal] = read(changed(schema_version=version))
        assert "the version must be ATIF-v1.x" in refusal.reason


def test_rewards_and_endings_are_in_extra():
    assert not one(changed(final_metrics=None)).rewarded
    assert one(changed(extra={"score": 2})).episode.steps[-1].reward == 2.0
    steps = copy.deepcopy(TRAJECTORY["steps"])
    steps[2]["extra"] = {"reward": 0.25}
    episode = one(changed(steps=steps, final_metrics=None)).episode
    assert [step.reward for step in episode.steps] == [0.0, 0.25, 0.0]
    assert one(changed(extra={"truncated": True})).episode.ending == "truncated"
    assert one(changed(extra={"error": "agent timed out"})).episode.ending == "aborted"
    assert one(changed(extra={"task": "hello", "subject": "ann"})).episode.task == "hello"


def test_copied_context_is_not_a_step():
    steps = copy.deepcopy(TRAJECTORY["steps"])
    steps[2]["is_copied_context"] = True
    episode = one(changed(steps=steps)).episode
    assert [(s.state, s.action) for s in episode.steps] == [(f"{BEFORE}tool bash:\ntool pwd:\n/root", "Done.")]
    assert episode.task == "Make hello.txt."


def test_steps_without_an_action_are_part_of_the_next_state():
    steps = copy.deepcopy(TRAJECTORY["steps"])
    steps.insert(2, {"step_id": 9, "source": "agent", "message": "", "reasoning_content": "hm"})
    steps.insert(3, {"step_id": 9, "source": "agent", "message": "", "observation": {"results": [{"content": "$"}]}})
    steps.insert(4, {"step_id": 9, "source": "system", "message": "", "observation": {"results": [{"content": "#"}]}})
    states = [step.state for step in one(changed(steps=steps)).episode.steps]
    assert states[0] == "user:\nMake hello.txt.\nobservation:\n$\nobservation:\n#"
    assert len(states) == 3


def test_embedded_subagents_are_separate_episodes():
    inner = changed(trajectory_id="t-2", session_id=None)
    bad = changed(trajectory_id="t-3", schema_version="ATIF-v9")
    deepest = changed(trajectory_id="t-4")
    items = read(
        changed(
            subagent_trajectories=[
                {**inner, "subagent_trajectories": [deepest]},
                bad,
                {**inner, "trajectory_id": "t-5"},
            ]
        )
    )
    assert [r.reason[:14] if isinstance(r, Refusal) else r.episode.id for r in items] == [
        "t-1",
        "t-2",
        "t-4",
        "schema_version",
        "t-5",
    ]


def with_step(**step):
    return changed(steps=[*TRAJECTORY["steps"][:2], {"step_id": 3, **step}, TRAJECTORY["steps"][3]])


REFUSED = [
    (changed(steps=[]), "a trajectory needs at least one step"),
    (changed(steps=None), "a trajectory needs at least one step"),
    (changed(steps={}), "steps must be a list"),
    (changed(steps=[7]), "a step must be a JSON object"),
    (changed(steps=TRAJECTORY["steps"][:2]), "an episode needs at least one step"),
    (changed(agent=None), "agent must be a JSON object"),
    (changed(agent={"name": 7}), "agent name must be a str"),
    (changed(extra=[1]), "extra must be a JSON object"),
    (changed(extra={"reward": "high"}), "reward must be a number"),
    (with_step(source="robot", message="x"), "the source must be system, user or agent"),
    (with_step(source=None, message="x"), "the source must be system, user or agent"),
    (with_step(source="agent", message=""), "a step needs a message, a call or an observation"),
    (with_step(source="user", message=""), "a step needs a message or an observation"),
    (with_step(source="agent", message=7), "must be a list"),
    (with_step(source="agent", message=[{"type": "smell"}]), "this type of part is unknown"),
    (with_step(source="agent", message="", tool_calls=[{"function_name": ""}]), "tool name must not be empty"),
    (with_step(source="agent", message="x", observation=[]), "observation must be a JSON object"),
]


@pytest.mark.parametrize(("document", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_invalid_documents_are_refused_with_reasons(document, reason):
    before, refusal, after = read(TRAJECTORY, document, TRAJECTORY)
    assert isinstance(before, ReadEpisode)
    assert isinstance(after, ReadEpisode)
    assert isinstance(refusal, Refusal)
    assert reason in refusal.reason
    assert refusal.line == 2
