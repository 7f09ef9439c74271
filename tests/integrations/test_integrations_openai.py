"""Import of chat-completion transcripts: messages are states, calls are actions."""

from __future__ import annotations

import json

import pytest

from seasoned.actions import readable_action
from seasoned.integrations import ReadEpisode, Refusal, read_episodes

SHOP = {
    "id": "chat-17",
    "model": "gpt-4o-mini",
    "messages": [
        {"role": "system", "content": "You run a shop's desk."},
        {"role": "user", "content": "Where is order 4417?"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "get_order", "arguments": '{"order": 4417, "fields": ["status"]}'},
                },
                {"id": "c2", "type": "function", "function": {"name": "get_time", "arguments": ""}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"status": "shipped"}'},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "10:00"}]},
        {"role": "assistant", "content": "It was shipped."},
        {"role": "user", "content": [{"type": "text", "text": "Thanks!"}, {"type": "image_url", "image_url": {}}]},
    ],
    "reward": 1,
    "created": 1700000000,
    "anything": {"else": True},
}


def read(*records):
    return list(read_episodes("openai", [json.dumps(record).encode() for record in records]))


def one(record):
    [item] = read(record)
    assert isinstance(item, ReadEpisode), item
    return item


def says(*contents, **fields):
    roles = ["user", "assistant"] * len(contents)
    return {"messages": [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)], **fields}


def test_transcript_is_read_as_the_expected_episode():
    item = one(SHOP)
    episode = item.episode
    before = "goal:\nWhere is order 4417?\nrecent:\nget_order, get_time\nassistant:\nLet me look.\n"
    results = before + 'tool get_order:\n{"status": "shipped"}\ntool get_time:\n10:00'
    assert [(step.state, readable_action(step.action), step.reward) for step in episode.steps] == [
        ("Where is order 4417?", 'get_order(fields=["status"], order=4417)', 0.0),
        ("Where is order 4417?", "get_time()", 0.0),
        (results, "It was shipped.", 1.0),
    ]
    assert episode.final_state.endswith("get_time, respond\nuser:\nThanks!\n[image]")
    assert (episode.id, episode.task, episode.model, episode.ending) == (
        "chat-17",
        "Where is order 4417?",
        "gpt-4o-mini",
        "terminated",
    )
    assert (item.line, item.created_at, item.rewarded) == (1, 1700000000.0, True)


def test_missing_fields_get_no_invented_values():
    item = one(says("Hi", "Hello"))
    assert not item.rewarded
    assert item.created_at is None
    assert item.episode.steps[0].reward == 0.0
    assert (item.episode.model, item.episode.final_state, item.episode.subject) == (None, None, None)


def test_transcript_without_an_id_gets_one_from_its_content():
    first, again, other = (one(says("Hi", text)).episode.id for text in ("Hello", "Hello", "Bye"))
    assert first == again != other
    assert first.startswith("openai:")


def test_order_of_call_arguments_does_not_change_the_action():
    def action(arguments):
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
        messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
        return readable_action(one({"messages": messages}).episode.steps[0].action)

    assert action('{"a": 1, "b": [2]}') == action('{"b":[2],"a":1}') == action({"b": [2], "a": 1}) == "f(a=1, b=[2])"
    # What is no strict JSON stands as it was written.
    assert action(" ls -l ") == "f(ls -l)"
    assert action('{"a": NaN}') == 'f({"a": NaN})'
    assert action('{"a": 1, "a": 2}') == 'f({"a": 1, "a": 2})'


def test_other_formats_of_tool_calls_are_read():
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "old", "content": "done"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "assistant", "content": None, "refusal": "I cannot."},
    ]
    steps = one({"messages": messages}).episode.steps
    assert [(step.state, readable_action(step.action)) for step in steps] == [
        ("x", "old(a=1)"),
        ("goal:\nx\nrecent:\nold\nfunction old:\ndone", "sql(SELECT)"),
        ("goal:\nx\nrecent:\nold, sql\ntool sql:", "I cannot."),
    ]


def test_instructions_are_a_state_only_without_other_messages():
    with_user = {"messages": [{"role": "developer", "content": "D"}, *says("U", "A")["messages"]]}
    alone = {"messages": [{"role": "system", "content": "S"}, {"role": "assistant", "content": "A"}]}
    assert one(with_user).episode.steps[0].state == "U"
    assert one(alone).episode.steps[0].state == one(alone).episode.task == "S"


def test_turns_without_a_message_between_share_a_state():
    messages = [*says("U", "A")["messages"], {"role": "assistant", "content": "B"}]
    assert [(s.state, s.action) for s in one({"messages": messages}).episode.steps] == [("U", "A"), ("U", "B")]


def test_turn_before_the_first_message_is_context():
    messages = [{"role": "assistant", "content": "Welcome!"}, *says("U", "A")["messages"]]
    episode = one({"messages": messages}).episode
    assert [(s.state, s.action) for s in episode.steps] == [("assistant:\nWelcome!\nuser:\nU", "A")]
    assert episode.task == "U"


def test_thoughts_are_not_actions():
    messages = [
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": "", "reasoning_content": "hm"},
        {"role": "assistant", "content": "A", "reasoning_content": "so"},
    ]
    assert [s.action for s in one({"messages": messages}).episode.steps] == ["A"]


def test_task_is_given_or_the_first_message():
    assert one(says("U" * 3000, "A")).episode.task == "U" * 1000
    assert one(says("U", "A", task="T" * 3000)).episode.task == "T" * 3000
    assert one(says("U", "A", metadata={"task": "M"})).episode.task == "M"
    assert one(says("U", "A", task="T", metadata={"task": "M"})).episode.task == "T"


@pytest.mark.parametrize(
    ("fields", "expected", "rewarded"),
    [
        ({}, [0, 0], False),
        ({"reward": None}, [0, 0], False),
        ({"reward": 0}, [0, 0], True),
        ({"score": 0.5}, [0, 0.5], True),
        ({"reward": 1, "score": 0.5}, [0, 1], True),
        ({"rewards": [1, -1]}, [1, -1], True),
        ({"rewards": [1, None]}, [1, 0], True),
        ({"rewards": [0.25, 0.5], "reward": 0.75}, [0.25, 0.5], True),
    ],
    ids=str,
)
def test_reward_fields_are_read(fields, expected, rewarded):
    item = one(says("U", "A", "V", "B", **fields))
    assert [step.reward for step in item.episode.steps] == expected
    assert item.rewarded is rewarded


def test_reward_of_a_turn_belongs_to_its_last_call():
    calls = [{"id": str(n), "type": "function", "function": {"name": "f", "arguments": {"n": n}}} for n in range(2)]
    messages = [
        {"role": "user", "content": "U"},
        {"role": "assistant", "tool_calls": calls, "reward": 2.0},
        {"role": "assistant", "content": "A"},
    ]
    assert [s.reward for s in one({"messages": messages}).episode.steps] == [0.0, 2.0, 0.0]
    for message in messages:
        message.pop("reward", None)
    assert [s.reward for s in one({"messages": messages, "rewards": [2, 1]}).episode.steps] == [0.0, 2.0, 1.0]
    assert [s.reward for s in one({"messages": messages, "rewards": [3, 2, 1]}).episode.steps] == [3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("fields", "ending"),
    [
        ({}, "terminated"),
        ({"finish_reason": "stop"}, "terminated"),
        ({"finish_reason": "length"}, "truncated"),
        ({"finish_reason": "content_filter"}, "aborted"),
        ({"truncated": True}, "truncated"),
        ({"truncated": False, "error": None}, "terminated"),
        ({"error": {"message": "timeout"}}, "aborted"),
        ({"ending": "truncated", "error": "x"}, "truncated"),
    ],
    ids=str,
)
def test_ending_is_derived_from_the_fields(fields, ending):
    assert one(says("U", "A", **fields)).episode.ending == ending


def test_logged_call_has_one_turn():
    request = {"model": "gpt-4o", "user": "ann", "messages": says("U", "A", "V")["messages"]}
    choice = {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": "B"}}
    response = {"id": "chatcmpl-1", "model": "gpt-4o-2024", "created": 1700000000, "choices": [choice]}
    item = one({"request": request, "response": response, "reward": 0.5})
    episode = item.episode
    assert [(s.state, readable_action(s.action), s.reward) for s in episode.steps] == [
        ("goal:\nU\nrecent:\nrespond\nuser:\nV", "B", 0.5)
    ]
    assert (episode.id, episode.model, episode.subject, episode.ending, episode.task) == (
        "chatcmpl-1",
        "gpt-4o-2024",
        "ann",
        "truncated",
        "U",
    )
    assert item.created_at == 1700000000.0


def bad_message(**message):
    return {"messages": [{"role": "user", "content": "U"}, message, {"role": "assistant", "content": "A"}]}


REFUSED = [
    (says(), "a transcript needs at least one message"),
    (says("U"), "an episode needs at least one step"),
    ({"messages": None}, "a transcript needs at least one message"),
    ({"messages": "hi"}, "messages must be a list"),
    ({"messages": ["hi"]}, "a message must be a JSON object"),
    ({"prompt": "hi"}, "a transcript has `messages`"),
    ([7], "a transcript must be a JSON object"),
    (bad_message(role="bot", content="x"), "role 'bot': this role is unknown"),
    (bad_message(role=7, content="x"), "role 7: this role is unknown"),
    (bad_message(role=["user"], content="x"), "role a list: this role is unknown"),
    (bad_message(content="x"), "role None: this role is unknown"),
    (bad_message(role="assistant", content="", reward=0.5), "a reward needs an action"),
    (bad_message(role="user", content={"text": "x"}), "must be a list"),
    (bad_message(role="user", content=[{"type": 7}]), "this type of part is unknown"),
    (bad_message(role="assistant", tool_calls=[{"type": "psychic"}]), "this type of call is unknown"),
    (bad_message(role="assistant", tool_calls=[{"function": {"arguments": "{}"}}]), "tool name must be a str"),
    (bad_message(role="assistant", tool_calls={"id": 1}), "must be a list"),
    (bad_message(role="assistant", content="x", reward="high"), "reward must be a number"),
    (says("U", "A", reward=1e200), "reward must be between"),
    (says("U", "A", reward="NaN"), "reward must be finite"),
    (says("U", "A", rewards=[1, 2, 3]), "one number for each turn"),
    (says("U", "A", "V", "B", rewards=[1, 1], reward=5), "the rewards of the steps must add up"),
    (says("U", "A", id={}), "id must be a str"),
    (says("U", "A", model=7), "model must be a str"),
    (says("U", "A", ending="done"), "known are terminated, truncated, aborted"),
    ({"request": {"messages": []}, "response": {"choices": []}}, "the one that was used"),
    ({"request": {"messages": []}, "response": {"choices": [{}, {}]}}, "the one that was used"),
]


@pytest.mark.parametrize(("record", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_invalid_documents_are_refused_with_reasons(record, reason):
    before, refusal, after = read(says("U", "A"), record, says("V", "B"))
    assert isinstance(refusal, Refusal)
    assert refusal.line == 2
    assert reason in refusal.reason
    assert isinstance(before, ReadEpisode)
    assert isinstance(after, ReadEpisode)
    assert after.line == 3
