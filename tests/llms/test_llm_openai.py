"""OpenAILLM against a local HTTP server: requests, completions and errors."""

import asyncio
import socket

import pytest
from chat_server import ChatServer, answer

from seasoned import errors
from seasoned.llms import OpenAILLM
from seasoned.protocols import CompletionRequest, Message

ASK = CompletionRequest((Message("user", "A or B?"),), max_tokens=1)
ASK_LOGPROBS = CompletionRequest((Message("user", "A or B?"),), max_tokens=1, top_logprobs=5)


def run(url, request=ASK, method="complete", **settings):
    settings = {"max_retries": 0, "retry_ceiling_s": 0.01, **settings}

    async def go():
        llm = OpenAILLM("m", base_url=url, **settings)
        try:
            return await (llm.complete(request) if method == "complete" else llm.capabilities())
        finally:
            await llm.aclose()

    return asyncio.run(go())


def test_usage_and_cost_are_reported():
    with ChatServer(lambda n, body: (200, {}, answer("yes"))) as server:
        unpriced = run(server.url)
        priced = run(server.url, usd_per_million_prompt_tokens=2.0, usd_per_million_completion_tokens=50.0)
    assert unpriced.text == "yes"
    assert unpriced.usage.cost_usd is None
    assert (priced.usage.prompt_tokens, priced.usage.completion_tokens, priced.usage.calls) == (1000, 10, 1)
    assert priced.usage.cost_usd == pytest.approx(0.0025)
    assert server.bodies[0] == {
        "model": "m",
        "messages": [{"role": "user", "content": "A or B?"}],
        "max_tokens": 1,
        "temperature": 0.0,
    }


@pytest.mark.parametrize("status", [429, 500, 503])
def test_transient_failure_is_retried(status):
    with ChatServer(lambda n, body: (status, {"Retry-After": "3600"}, {}) if n < 3 else (200, {}, answer())) as server:
        assert run(server.url, max_retries=2).text == "A"
    assert len(server.bodies) == 3


FAILURES = {
    "rate": (lambda n, b: (429, {"Retry-After": "0"}, {}), errors.RateLimitError, 3),
    "server": (lambda n, b: (500, {}, "oops"), errors.ModelUnavailableError, 3),
    "slow": (lambda n, b: (200, {}, 1.0), errors.ModelTimeoutError, 2),
    "auth": (lambda n, b: (401, {}, {"error": {"message": "bad key"}}), errors.ConfigError, 1),
    "unknown": (lambda n, b: (404, {}, {"error": {"message": "no model"}}), errors.ConfigError, 1),
    "refused": (lambda n, b: (400, {}, {"error": {"message": "no"}}), errors.ModelError, 1),
    "html": (lambda n, b: (200, {"Content-Type": "text/html"}, "<html>hi</html>"), errors.ModelAnswerError, 1),
    "truncated": (lambda n, b: (200, {}, '{"choices": [{"mess'), errors.ModelAnswerError, 1),
    "list": (lambda n, b: (200, {}, "[]"), errors.ModelAnswerError, 1),
    "no choices": (lambda n, b: (200, {}, answer() | {"choices": []}), errors.ModelAnswerError, 1),
    "null": (lambda n, b: (200, {}, answer(None)), errors.ModelAnswerError, 1),
    "no usage": (lambda n, b: (200, {}, answer() | {"usage": None}), errors.ModelAnswerError, 1),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_raise_our_errors(name):
    script, error, calls = FAILURES[name]
    with ChatServer(script) as server, pytest.raises(error) as raised:
        run(server.url, max_retries=2, timeout_s=0.2 if name == "slow" else 10)
    assert type(raised.value) is error
    assert len(server.bodies) == calls
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))


@pytest.mark.parametrize("logprobs", [None, {"A": float("nan")}, {"A": 2.0}])
def test_unusable_logprobs_are_refused(logprobs):
    with ChatServer(lambda n, b: (200, {}, answer("A", logprobs))) as server, pytest.raises(errors.ModelAnswerError):
        run(server.url, ASK_LOGPROBS)


def test_unavailable_endpoint_is_an_error():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(errors.ModelUnavailableError):
        run(url, max_retries=1)


def test_token_limit_field_follows_the_endpoint():
    def script(n, body):
        if "max_tokens" in body:
            return 400, {}, {"error": {"message": "Use 'max_completion_tokens' instead."}}
        return 200, {}, answer()

    with ChatServer(script) as server:
        assert run(server.url).text == "A"
    assert "max_completion_tokens" in server.bodies[1]
    assert "max_tokens" not in server.bodies[1]


@pytest.mark.parametrize(("limit", "expected"), [(20, 20), (5, 5), (1, 1), (0, 0)])
def test_probed_capabilities_match_the_endpoint(limit, expected):
    def script(n, body):
        n_logprobs = body.get("top_logprobs", 0)
        if n_logprobs > limit:
            return 400, {}, {"error": {"message": "too many"}}
        return 200, {}, answer("A", {chr(65 + i): -1.0 - i for i in range(n_logprobs)})

    with ChatServer(script) as server:
        capabilities = run(server.url, method="capabilities")
    assert (capabilities.logprobs, capabilities.max_top_logprobs) == (expected > 0, expected)


def test_capabilities_of_an_unavailable_endpoint_are_an_error():
    with ChatServer(lambda n, b: (503, {}, {})) as server, pytest.raises(errors.ModelUnavailableError):
        run(server.url, method="capabilities")


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"base_url": "nonsense"}, errors.ConfigError),
        ({"base_url": "http://[::1/v1"}, errors.ConfigError),
        ({"base_url": "https://example.org/v1"}, errors.ConfigError),
        ({"base_url": "http://127.0.0.1:1/v1", "timeout_s": 0}, errors.InputError),
        ({"base_url": "http://127.0.0.1:1/v1", "max_retries": -1}, errors.InputError),
        ({"base_url": "http://127.0.0.1:1/v1", "usd_per_million_prompt_tokens": -1}, errors.InputError),
    ],
)
def test_invalid_settings_are_refused(settings, error, monkeypatch):
    for key in ("OPENAI_API_KEY", "SEASONED_OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(key, raising=False)
    with pytest.raises(error) as raised:
        OpenAILLM("m", **settings)
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))
