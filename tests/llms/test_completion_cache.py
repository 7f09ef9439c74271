"""The answer cache: a repeated run costs nothing, a foreign file is not changed."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from seasoned import Memory, errors
from seasoned.llms import CachedLLM, ScriptedLLM
from seasoned.protocols import Capabilities, Completion, CompletionRequest, Message, Usage


def ask(text, **settings):
    return CompletionRequest((Message("user", text),), **settings)


def test_repeated_run_makes_no_call_and_no_model(tmp_path):
    path = tmp_path / "answers.db"
    model = ScriptedLLM(lambda request: {"A": -0.1, "B": -2.5}, name="m")

    async def first():
        llm = CachedLLM(model, path)
        assert await llm.capabilities() == Capabilities(True, 20)
        completion = await llm.complete(ask("x", top_logprobs=2))
        await llm.complete(ask("x", top_logprobs=3))
        await llm.aclose()
        return completion

    def never():
        raise AssertionError("a warm cache needs no model")

    async def second():
        llm = CachedLLM(never, path, name="m")
        assert await llm.capabilities() == Capabilities(True, 20)
        completion = await llm.complete(ask("x", top_logprobs=2))
        await llm.aclose()
        return completion

    fresh, cached = asyncio.run(first()), asyncio.run(second())
    assert len(model.requests) == 2
    assert cached.usage == Usage(cached_calls=1, cached_tokens=fresh.usage.tokens, cached_usd=fresh.usage.cost_usd)
    assert (cached.text, cached.model, cached.top_logprobs) == (fresh.text, fresh.model, fresh.top_logprobs)


def test_concurrent_equal_requests_are_sent_once(tmp_path):
    model = ScriptedLLM(lambda request: "yes")

    async def go():
        llm = CachedLLM(model, tmp_path / "a.db")
        return await asyncio.gather(*(llm.complete(ask("x")) for _ in range(8)))

    usages = [answer.usage for answer in asyncio.run(go())]
    assert len(model.requests) == 1
    assert sorted(usage.calls for usage in usages) == [0] * 7 + [1]


def test_errors_and_nan_are_not_stored(tmp_path):
    script = [errors.RateLimitError("429", "slow down", "Wait."), {"A": float("nan")}, "fine"]
    llm = CachedLLM(ScriptedLLM(script), tmp_path / "a.db")
    for error in (errors.RateLimitError, errors.ModelAnswerError):
        with pytest.raises(error):
            asyncio.run(llm.complete(ask("x", top_logprobs=1)))
    assert asyncio.run(llm.complete(ask("x", top_logprobs=1))).text == "fine"


def test_two_processes_share_one_file(tmp_path):
    program = """
import asyncio, sys
from seasoned.llms import CachedLLM, ScriptedLLM
from seasoned.protocols import CompletionRequest, Message
async def go():
    llm = CachedLLM(ScriptedLLM(lambda r: r.messages[0].content.upper(), name="m"), sys.argv[1])
    for i in range(50):
        request = CompletionRequest((Message("user", f"q{i}"),))
        assert (await llm.complete(request)).text == f"Q{i}"
asyncio.run(go())
"""
    path = tmp_path / "a.db"
    runs = [subprocess.Popen([sys.executable, "-c", program, str(path)]) for _ in range(2)]
    assert [run.wait(60) for run in runs] == [0, 0]
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (50,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_completions_of_a_forked_child_survive_the_parents_close(tmp_path):
    path = tmp_path / "a.db"
    llm = CachedLLM(ScriptedLLM(lambda request: "yes", name="m"), path)
    asyncio.run(llm.complete(ask("parent")))
    (parent_read, parent_write), (child_read, child_write) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(30)
        try:
            asyncio.run(llm.complete(ask("child 1")))
            os.write(child_write, b"x")
            os.read(parent_read, 1)
            asyncio.run(llm.complete(ask("child 2")))
        finally:
            os._exit(0)
    assert os.read(child_read, 1) == b"x"
    asyncio.run(llm.aclose())
    other = CachedLLM(ScriptedLLM(lambda request: "yes", name="m"), path)
    asyncio.run(other.complete(ask("other")))
    os.write(parent_write, b"x")
    assert os.waitpid(child, 0)[1] == 0

    def never():
        raise AssertionError("it is in the cache")

    cached = CachedLLM(never, path, name="m")
    for text in ("parent", "child 1", "other", "child 2"):
        usage = asyncio.run(cached.complete(ask(text))).usage
        assert (usage.calls, usage.cached_calls, usage.prompt_tokens) == (0, 1, 0)


class FailsFirst:
    """A model that fails at its first call, and counts its concurrent calls."""

    name = "m"

    def __init__(self):
        self.calls = self.now = self.most = 0

    async def capabilities(self):
        return Capabilities(True, 0)

    async def complete(self, request):
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        first = self.calls == 1
        await asyncio.sleep(0.01)
        self.now -= 1
        if first:
            raise errors.RateLimitError("429", "slow down", "Wait.")
        return Completion("yes", "m", Usage(calls=1))

    async def aclose(self):
        pass


def test_retrying_caller_does_not_overtake_a_waiting_one(tmp_path):
    model = FailsFirst()
    llm = CachedLLM(model, tmp_path / "a.db")

    async def twice():
        try:
            return await llm.complete(ask("x"))
        except errors.RateLimitError:
            return await llm.complete(ask("x"))

    async def go():
        return await asyncio.gather(twice(), llm.complete(ask("x")), llm.complete(ask("x")))

    answers = asyncio.run(go())
    assert [answer.text for answer in answers] == ["yes"] * 3
    assert (model.calls, model.most) == (2, 1)


@pytest.mark.parametrize(("offset", "kind"), [(16, errors.ForeignStoreError), (100, errors.IntegrityError)])
def test_damaged_file_raises_the_same_error_as_a_damaged_memory(tmp_path, offset, kind):
    path, store = tmp_path / "a.db", tmp_path / "m.db"
    asyncio.run(CachedLLM(ScriptedLLM([]), path).aclose())
    Memory.open(store).close()
    for file in (path, store):
        content = bytearray(file.read_bytes())
        content[offset : offset + 2] = b"\xff\xff"
        file.write_bytes(content)
    with pytest.raises(kind):
        Memory.open(store)
    with pytest.raises(kind):
        asyncio.run(CachedLLM(ScriptedLLM([]), path).capabilities())


def foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()


@pytest.mark.parametrize("make", [foreign_database, lambda path: path.write_text("my notes")])
def test_foreign_file_is_refused_untouched(tmp_path, make):
    path = tmp_path / "mine.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(errors.ForeignStoreError):
        CachedLLM(ScriptedLLM([]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_newer_file_is_refused(tmp_path):
    path = tmp_path / "a.db"
    asyncio.run(CachedLLM(ScriptedLLM([]), path).aclose())
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(errors.NewerStoreError):
        CachedLLM(ScriptedLLM([]), path)


def test_factory_without_a_name_is_refused(tmp_path):
    with pytest.raises(errors.InputError):
        CachedLLM(lambda: ScriptedLLM([]), tmp_path / "a.db")
