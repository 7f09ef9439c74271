"""The action parser, and tool calls over HTTP and through the cache."""

import asyncio

import pytest
from chat_server import ChatServer, answer

from seasoned import errors
from seasoned.llms import CachedLLM, OpenAILLM, ScriptedLLM, read_action
from seasoned.llms.wire.chat_completions import check_request, read_completion, request_digest, request_json
from seasoned.protocols import Completion, CompletionRequest, Message, Tool, ToolCall, Usage

ASK = CompletionRequest((Message("user", "Go?"),))
GO = Tool("go", "Go somewhere.", {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]})
CALL = {"id": "call_1", "type": "function", "function": {"name": "go", "arguments": '{"to": "shop"}'}}


def completion(text, *calls):
    return Completion(text, "m", Usage(), None, (), tuple(ToolCall(*call) for call in calls))


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("  go north \n", "go north"),
        ("go north\nbecause of the door", "go north"),
        ("Action: go north", "go north"),
        ("Thought: north?\n**Action:** go north\nObservation: a cave\nAction: go south", "go north"),
        ("> action : click('Add to Cart', 2)", "click('Add to Cart', 2)"),
        ("```\ngo north\n```", "go north"),
        ("I will do this:\n```bash\nls -l | wc\n```\nIt counts files.", "ls -l | wc"),
        ("```go north```", "go north"),
        ("<think>\nAction: go south\nNo, wrong.\n</think>\nAction: go north", "go north"),
        ("<thinking>\nsouth?\n</thinking>\n\ngo north", "go north"),
        ("go south?\n</think>\n```\ngo north\n```", "go north"),
        ("go north\n<think>\nSouth?\n</think>\ngo south", "go north"),
        ("Action: `click('a')`", "`click('a')`"),
    ],
)
def test_action_is_parsed(text, action):
    assert read_action(completion(text)) == action


@pytest.mark.parametrize("text", ["", "  \n ", "```\n\n```", "<think>\nAction: go south", "<think>go south</think>"])
def test_blank_completion_is_refused(text):
    with pytest.raises(errors.ModelAnswerError) as raised:
        read_action(completion(text))
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))


def test_tool_call_is_canonical_and_precedes_the_text():
    call = ("id", "go", '{"to": "shop", "by": ["bus", 2]}')
    assert read_action(completion("I go.", call)) == '{"arguments":{"by":["bus",2],"to":"shop"},"name":"go"}'
    assert read_action(completion("", call, call)) == read_action(completion("", call))
    assert read_action(completion("", ("id", "look", ""))) == '{"arguments":{},"name":"look"}'


@pytest.mark.parametrize(
    "calls",
    [
        [("1", "go", "{")],
        [("1", "go", '"shop"')],
        [("1", "go", '{"to": "a", "to": "b"}')],
        [("1", "go", '{"to": Infinity}')],
        [("1", "go", '{"to": "\\ud800"}'), ("1", "go", "{}")],
        [("1", "go", '{"to": "a"}'), ("1", "go", '{"to": "b"}')],
        [("1", "go", '{"to": "a"}'), ("2", "go", '{"to": "a"}')],
        [("1", "go", "[" * 100_000)],
    ],
)
def test_unusable_tool_call_is_refused(calls):
    with pytest.raises(errors.ModelAnswerError) as raised:
        read_action(completion("go north", *calls))
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))


def test_tools_are_sent_and_calls_read_over_http_and_cached(tmp_path):
    request = CompletionRequest(ASK.messages, tools=(GO,))
    with ChatServer(lambda n, body: (200, {}, answer(None, tool_calls=[CALL]))) as server:
        llm = CachedLLM(OpenAILLM("m", base_url=server.url), tmp_path / "answers.db")
        first, again = (asyncio.run(llm.complete(request)) for _ in range(2))
    (body,) = server.bodies
    assert body["tools"] == [
        {"type": "function", "function": {"name": "go", "description": "Go somewhere.", "parameters": GO.parameters}}
    ]
    assert first.tool_calls == again.tool_calls == (ToolCall("call_1", "go", '{"to": "shop"}'),)
    assert (first.text, again.usage.cached_calls) == ("", 1)


def test_digest_of_a_request_without_tools_is_unchanged():
    """The digest is the key of the answer cache; this one was computed before tools existed."""
    assert "tools" not in request_json(ASK)
    assert request_digest("m", ASK) == "3e208a3e339578d2201ac0b785489fce4a9682661074b09765d89db381ffd5fe"
    assert request_digest("m", ASK) != request_digest("m", CompletionRequest(ASK.messages, tools=(GO,)))


@pytest.mark.parametrize(
    "message",
    [
        {"content": None},
        {"content": None, "tool_calls": []},
        {"content": None, "refusal": "I cannot."},
        {"content": None, "tool_calls": ["go"]},
        {"content": None, "tool_calls": [{"id": "1", "function": {"name": "go"}}]},
        {"content": None, "tool_calls": [{"id": "1", "function": {"name": None, "arguments": "{}"}}]},
        {"content": 3, "tool_calls": [CALL]},
    ],
)
def test_blank_messages_are_refused(message):
    body = {"choices": [{"message": message}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    with pytest.raises(errors.ModelAnswerError):
        read_completion(body, ASK, "m")


@pytest.mark.parametrize("tools", [(Tool(""),), (GO, GO), (Tool(3),)])
def test_invalid_tools_are_refused(tools):
    with pytest.raises(errors.InputError):
        check_request(CompletionRequest(ASK.messages, tools=tools))


def test_scripted_tool_calls_are_returned():
    llm = ScriptedLLM([completion("", ("1", "go", "{}"))])
    assert asyncio.run(llm.complete(ASK)).tool_calls[0].name == "go"


@pytest.mark.parametrize("call", [("1", "go", {"to": "shop"}), ("1", 3, "{}"), (None, "go", "{}")])
def test_malformed_tool_call_object_is_an_input_error(call):
    with pytest.raises(errors.InputError, match=r"json\.dumps") as raised:
        read_action(completion("", call))
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))
    with pytest.raises(errors.InputError):
        asyncio.run(ScriptedLLM([completion("", call)]).complete(ASK))
