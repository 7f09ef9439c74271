"""AnthropicLLM against a local server that streams as the Messages API does."""

import asyncio
import json

import pytest

pytest.importorskip("anthropic", reason="run `make test-clients`")

from chat_server import ChatServer

from seasoned import errors
from seasoned.llms import AnthropicLLM, open_llm
from seasoned.protocols import CompletionRequest, Message, StreamingLLM, Tool, ToolCall

ASK = (
    Message("system", "Be brief."),
    Message("user", "Go."),
    Message("assistant", "", (ToolCall("c1", "go", '{"to": "a"}'),)),
    Message("tool", "a wall", tool_call_id="c1"),
)


def events(*texts, call=None, reason="end_turn", ends=True):
    """The status, headers and payload of a stream of the Messages API."""
    usage = {"input_tokens": 1000, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    sent = [{"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}]
    sent.append({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for text in texts:
        sent.append({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
    if call is not None:
        name, arguments = call
        block = {"type": "tool_use", "id": "c9", "name": name, "input": {}}
        sent.append({"type": "content_block_start", "index": 1, "content_block": block})
        for part in (arguments[:4], arguments[4:]):
            delta = {"type": "input_json_delta", "partial_json": part}
            sent.append({"type": "content_block_delta", "index": 1, "delta": delta})
    if ends:
        delta = {"stop_reason": reason, "stop_sequence": None}
        sent.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}})
        sent.append({"type": "message_stop"})
    else:
        sent.append({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    text = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in sent)
    return 200, {"Content-Type": "text/event-stream"}, text


def stream(server, **settings):
    shown = []
    llm = AnthropicLLM("m", server.url, max_retries=1, retry_ceiling_s=0.01, **settings)
    assert isinstance(llm, StreamingLLM)

    async def go():
        try:
            return await llm.stream(
                CompletionRequest(ASK, 9, tools=(Tool("go", "Go.", {"type": "object"}),)), shown.append
            )
        finally:
            await llm.aclose()

    return asyncio.run(go()), shown


def test_text_and_call_are_streamed_and_summed():
    with ChatServer(lambda n, body: events("I ", "go.", call=("go", '{"to": "b"}'), reason="tool_use")) as server:
        done, shown = stream(server, usd_per_million_prompt_tokens=2.0, usd_per_million_completion_tokens=50.0)
    assert shown == ["I ", "go."] and done.text == "I go." and done.finish_reason == "tool_calls"
    assert [(call.id, call.name, call.arguments) for call in done.tool_calls] == [("c9", "go", '{"to": "b"}')]
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (1000, 10)
    assert done.usage.cost_usd == pytest.approx(0.0025)
    [body] = server.bodies
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["system"][0]["text"] == "Be brief." and body["tools"][0]["name"] == "go" and body["stream"] is True


def test_complete_is_the_same_without_pieces():
    with ChatServer(lambda n, body: events("Yes.")) as server:
        llm = AnthropicLLM("m", server.url)
        assert asyncio.run(llm.complete(CompletionRequest((Message("user", "Ready?"),)))).text == "Yes."


@pytest.mark.parametrize(
    ("status", "error", "n_calls"),
    [
        (429, errors.RateLimitError, 2),
        (529, errors.ModelUnavailableError, 2),
        (401, errors.ConfigError, 1),
        (400, errors.ModelError, 1),
    ],
)
def test_errors_are_ours(status, error, n_calls):
    with ChatServer(lambda n, body: (status, {}, {"error": {"message": "no"}})) as server, pytest.raises(error):
        stream(server)
    assert len(server.bodies) == n_calls


def test_stream_that_breaks_off_is_an_error_and_not_repeated():
    with ChatServer(lambda n, body: events("I ", ends=False)) as server, pytest.raises(errors.ModelUnavailableError):
        stream(server)
    assert len(server.bodies) == 1


def test_temperature_is_left_out_where_it_is_refused():
    def respond(number, body):
        return (
            (400, {}, {"error": {"message": "temperature is not supported"}})
            if "temperature" in body
            else events("Yes.")
        )

    with ChatServer(respond) as server:
        llm = AnthropicLLM("m", server.url)

        async def go():
            return [await llm.complete(CompletionRequest((Message("user", "Hi"),), temperature=1.5)) for _ in range(2)]

        assert [done.text for done in asyncio.run(go())] == ["Yes."] * 2
    assert [body.get("temperature") for body in server.bodies] == [1.0, None, None]


def test_key_is_needed_elsewhere(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    with pytest.raises(errors.ConfigError, match="ANTHROPIC_API_KEY"):
        open_llm("anthropic:claude")


def test_wrong_address_of_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "api.example.org")
    with pytest.raises(errors.ConfigError, match=r"base_url = 'api\.example\.org'"):
        open_llm("anthropic:claude")
