"""Streamed answers: of an endpoint, of the local model, of a script."""

import asyncio

import pytest
from chat_server import ChatServer, answer
from stream_chunks import chunks

from seasoned import errors
from seasoned.llms import OpenAILLM, ScriptedLLM
from seasoned.llms.wire.chat_stream import ChunkSum
from seasoned.protocols import CompletionRequest, Message, StreamingLLM, Tool

ASK = CompletionRequest((Message("user", "Say yes."),), max_tokens=3, tools=(Tool("go"), Tool("stop")))


def stream(llm):
    shown = []

    async def go():
        try:
            return await llm.stream(ASK, shown.append)
        finally:
            await llm.aclose()

    assert isinstance(llm, StreamingLLM)
    return asyncio.run(go()), shown


def of(server, **settings):
    return OpenAILLM("m", base_url=server.url, max_retries=1, retry_ceiling_s=0.01, **settings)


def test_text_is_shown_as_it_comes_and_summed():
    with ChatServer(lambda n, body: chunks("Yes", ", ", "sir.")) as server:
        done, shown = stream(of(server, usd_per_million_prompt_tokens=2.0, usd_per_million_completion_tokens=50.0))
    assert shown == ["Yes", ", ", "sir."] and done.text == "Yes, sir." and done.finish_reason == "stop"
    assert (done.usage.prompt_tokens, done.usage.cost_usd) == (1000, pytest.approx(0.0025))
    assert server.bodies[0]["stream_options"] == {"include_usage": True}


def test_calls_in_pieces_are_put_together():
    with ChatServer(lambda n, body: chunks(calls=[("go", {"to": "b"}), ("stop", {})])) as server:
        done, shown = stream(of(server))
    assert [(call.name, call.arguments) for call in done.tool_calls] == [("go", '{"to": "b"}'), ("stop", "{}")]
    assert shown == []


def test_stream_without_token_counts_has_an_unknown_cost():
    with ChatServer(lambda n, body: chunks("Yes", usage=None)) as server:
        done, _ = stream(of(server, usd_per_million_prompt_tokens=2.0, usd_per_million_completion_tokens=50.0))
    assert (done.text, done.usage.cost_usd) == ("Yes", None)


def test_failure_before_the_first_piece_is_repeated():
    with ChatServer(lambda n, body: (500, {}, {}) if n == 1 else chunks("Yes")) as server:
        assert stream(of(server))[0].text == "Yes"


def test_stream_that_breaks_off_is_an_error_and_not_repeated():
    with ChatServer(lambda n, body: chunks("Ye", ends=False)) as server, pytest.raises(errors.ModelUnavailableError):
        stream(of(server))
    assert len(server.bodies) == 1


def test_answer_that_is_no_stream_is_an_error():
    with ChatServer(lambda n, body: (200, {}, answer("yes"))) as server, pytest.raises(errors.ModelAnswerError):
        stream(of(server))


def test_script_is_streamed_by_words():
    done, shown = stream(ScriptedLLM(["Yes, indeed."]))
    assert done.text == "".join(shown) and len(shown) == 2


def test_local_model_streams_what_it_completes(local_llm):
    shown = []
    done = asyncio.run(local_llm.stream(CompletionRequest((Message("user", "Say yes."),), 6, seed=1), shown.append))
    assert done.text and "".join(shown) == done.text and done.usage.completion_tokens <= 6


@pytest.mark.parametrize("chunk", [[], "x", {"error": {"message": "overloaded"}}])
def test_what_is_no_chunk_is_an_error(chunk):
    with pytest.raises(errors.ModelAnswerError):
        ChunkSum(print).add(chunk)


def test_endless_stream_is_cut_off():
    shown = []
    total = ChunkSum(shown.append, max_chars=5)
    for _ in range(4):
        total.add({"choices": [{"delta": {"content": "abc"}}]})
    assert "".join(shown) == "abcab" and total.is_full
    assert total.body()["choices"][0]["finish_reason"] == "length"
