"""Conformance of models: the scripted one, the local one, and the OpenAI client against a llama.cpp server."""

import asyncio
import math
import subprocess
import sys

import pytest
from chat_server import ChatServer, answer

from seasoned import errors
from seasoned.llms import (
    LLM_SPECIFICATIONS,
    LLMS,
    SCORER_SPECIFICATIONS,
    SCORERS,
    LabelReader,
    LocalLLM,
    OpenAILLM,
    ScriptedLLM,
    label_prior,
    open_llm,
)
from seasoned.protocols import LLM, CompletionRequest, Message

ALTERNATIVES = {chr(65 + i): -1.0 - i for i in range(20)}


@pytest.fixture(params=["scripted", "openai", "local"])
def llm(request):
    if request.param == "scripted":
        yield ScriptedLLM(lambda _: ALTERNATIVES)
    elif request.param == "openai":
        with ChatServer(lambda n, body: (200, {}, answer("A", ALTERNATIVES))) as server:
            yield OpenAILLM("m", base_url=server.url)
    else:
        yield request.getfixturevalue("local_llm")


def test_conformance(llm):
    request = CompletionRequest((Message("user", "Pick a letter."),), max_tokens=1, top_logprobs=20)

    async def go():
        caps = await llm.capabilities()
        first, again = await llm.complete(request), await llm.complete(request)
        reading = await label_prior(llm, "You are in a kitchen.", ["go north", "open fridge", "wait"])
        with pytest.raises(errors.InputError):
            await llm.complete(CompletionRequest(()))
        with pytest.raises(errors.InputError):
            await llm.complete(CompletionRequest(request.messages, max_tokens=0))
        return caps, first, again, reading

    caps, first, again, reading = asyncio.run(go())
    assert isinstance(llm, LLM)
    assert llm.name
    assert (caps.logprobs, caps.max_top_logprobs) == (True, 20)
    assert len(first.top_logprobs) == 1
    logprobs = [entry.logprob for entry in first.top_logprobs[0]]
    assert logprobs == sorted(logprobs, reverse=True)
    assert all(value <= 0 for value in logprobs)
    assert (first.text, first.top_logprobs) == (again.text, again.top_logprobs)
    assert first.usage.calls == 1
    assert first.usage.prompt_tokens > 0
    assert sum(map(math.exp, reading.prior.values())) == pytest.approx(1.0)
    assert reading.usage.calls == 1


@pytest.mark.slow
def test_local_completions_do_not_depend_on_earlier_requests(local_llm):
    story = "You are in a kitchen. There is a table, a fridge and a door. " * 5

    def ask(text):
        request = CompletionRequest((Message("user", text),), max_tokens=1, top_logprobs=20)
        return asyncio.run(local_llm.complete(request)).top_logprobs

    first = ask(story + "Go north or south?")
    ask(story + "Wait or sleep?")
    assert ask(story + "Go north or south?") == first


def test_local_refuses_a_request_that_exceeds_the_context(local_llm):
    with pytest.raises(errors.InputError, match="512"):
        asyncio.run(local_llm.complete(CompletionRequest((Message("user", "word " * 600),))))


@pytest.mark.slow
def test_local_model_reads_more_options_than_letters():
    """Two groups of 14: a policy over all, with the odds within a group that the group alone has."""
    llm = LocalLLM(context_tokens=512, threads=1)
    reader, names = LabelReader(llm), [f"desk {n}" for n in range(28)]
    whole = asyncio.run(reader.read("A refund of 40.", "Route it.", names)).prior
    half = asyncio.run(reader.read("A refund of 40.", "Route it.", names[:14])).prior
    assert list(whole) == names
    assert sum(math.exp(logprob) for logprob in whole.values()) == pytest.approx(1.0)
    assert [whole[name] - whole[names[0]] for name in half] == pytest.approx(
        [half[name] - half[names[0]] for name in half], abs=1e-6
    )


@pytest.mark.slow
def test_local_model_prints_nothing():
    program = (
        "import asyncio; from seasoned.llms import LocalLLM; from seasoned.protocols import *\n"
        "asyncio.run(LocalLLM(context_tokens=256).complete(CompletionRequest((Message('user', 'Hi'),), max_tokens=1)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert (run.stdout, run.stderr) == ("", "")


def test_openai_client_against_llama_cpp(local_llm):
    """One model over HTTP and in process gives one prior."""
    import xllamacpp

    from seasoned.llms import default_model_path

    params = xllamacpp.CommonParams()
    params.model.path = str(default_model_path())
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 512, 1, False, -1
    params.cache_prompt = False  # as LocalLLM: a completion does not depend on earlier requests
    params.cpuparams.n_threads = 1  # as `local_llm`: more would wait for each other beside other tests
    server = xllamacpp.Server(params)
    remote = OpenAILLM("smollm2", base_url=server.listening_address + "/v1")

    async def go():
        actions = ["go north", "open fridge"]
        there = await label_prior(remote, "You are hungry.", actions)
        here = await label_prior(local_llm, "You are hungry.", actions)
        await remote.aclose()
        return there.prior, here.prior

    there, here = asyncio.run(go())
    assert dict(there) == pytest.approx(dict(here), abs=1e-6)


@pytest.mark.parametrize(
    ("content", "error"), [(None, errors.NotFoundError), (b"not a model", errors.InputError), (b"", errors.InputError)]
)
def test_local_refuses_invalid_files(tmp_path, content, error):
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error):
        LocalLLM(path)


def test_truncated_model_file_is_unavailable(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    request = CompletionRequest((Message("user", "Hi"),))
    with pytest.raises(errors.ModelUnavailableError):
        asyncio.run(LocalLLM(path).complete(request))


@pytest.mark.parametrize(
    ("spec", "settings", "error"),
    [
        ("locl", {}, errors.UnknownNameError),
        ("openai:", {}, errors.ConfigError),
        ("", {}, errors.InputError),
        ("local", {"context": 3}, errors.InputError),
        ("local", {"context_tokens": 0}, errors.InputError),
        ("local", {"context_tokens": 1}, errors.InputError),
    ],
)
def test_invalid_specifications_are_refused(spec, settings, error):
    with pytest.raises(error) as raised:
        open_llm(spec, **settings)
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))


# The names are read when the tests are collected: a test of another file registers a kind of its own.
@pytest.mark.parametrize(
    ("kinds", "forms"), [(LLMS.names(), LLM_SPECIFICATIONS), (SCORERS.names(), SCORER_SPECIFICATIONS)]
)
def test_every_kind_has_a_specification(kinds, forms):
    assert {form.partition(":")[0] for form in forms} == set(kinds)


def test_import_loads_no_heavy_library():
    program = "import sys, seasoned.llms; sys.exit(bool({'openai', 'xllamacpp'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("script", ["text", 3])
def test_invalid_scripts_are_refused(script):
    with pytest.raises(errors.InputError):
        ScriptedLLM(script)


def test_exhausted_script_is_an_input_error():
    llm = ScriptedLLM(["one"])
    request = CompletionRequest((Message("user", "Hi"),))
    assert asyncio.run(llm.complete(request)).text == "one"
    with pytest.raises(errors.InputError):
        asyncio.run(llm.complete(request))
