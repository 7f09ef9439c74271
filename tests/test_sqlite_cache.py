"""The SQLite cache: written formats stay readable, writes survive forks and kills, requests in flight run once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

from seasoned import errors
from seasoned.envs.jericho.action_cache import ActionCache
from seasoned.llms import CachedLLM
from seasoned.llms.cache.vector_cache import CachedEmbedder
from seasoned.llms.embeddings.batched_embedder import ScriptedEmbedder
from seasoned.llms.wire.chat_completions import request_digest
from seasoned.protocols import Capabilities, CompletionRequest, Message
from seasoned.sqlite_cache import CacheFile, CacheFormat, Codec, SqliteCache

FORMAT = CacheFormat(
    "a test cache",
    0x5EA50CFF,
    ("CREATE TABLE pairs (a TEXT, b INTEGER, value TEXT NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID",),
    "Delete the file.",
)


def pairs(path):
    """A cache of numbers, by a text and a number."""
    return SqliteCache(CacheFile(path, FORMAT), Codec("pairs", ("a", "b", "value"), json.dumps, json.loads))


def test_first_value_of_each_key_is_stored(tmp_path):
    cache = pairs(tmp_path / "c.db")
    assert cache.get(("x", 1)) is None
    cache.put(("x", 1), 1.5)
    cache.put(("x", 1), 2.5)
    cache.put_many({("x", 2): 3, ("y", 1): 4})
    assert pairs(tmp_path / "c.db").get(("x", 1)) == 1.5
    assert cache.get_many([("y", 1), ("y", 2), ("x", 2)]) == {("y", 1): 4, ("x", 2): 3}
    assert cache.get_many([]) == {}


def test_opening_waits_for_a_writer_of_a_new_file(tmp_path):
    """A new file changes to a log, which SQLite refuses at once while another connection writes."""
    with sqlite3.connect(tmp_path / "c.db", isolation_level=None, check_same_thread=False) as writer:
        for statement in (*FORMAT.schema, f"PRAGMA application_id={FORMAT.application_id}", "PRAGMA user_version=1"):
            writer.execute(statement)
        writer.execute("BEGIN IMMEDIATE")
        threading.Timer(0.1, writer.execute, ["COMMIT"]).start()
        pairs(tmp_path / "c.db").put(("x", 1), 1.5)
    assert pairs(tmp_path / "c.db").get(("x", 1)) == 1.5


def test_many_keys_are_read_in_order_through_the_index(tmp_path):
    cache = pairs(tmp_path / "c.db")
    values = {("x", number): number for number in range(2000)}
    cache.put_many(values)
    keys = list(reversed(values))
    statements = []
    cache.file.connection.set_trace_callback(statements.append)
    assert list(cache.get_many(keys).items()) == [(key, values[key]) for key in keys]
    assert len(statements) > 1
    plan = cache.file.connection.execute(f"EXPLAIN QUERY PLAN {statements[0]}").fetchall()
    assert any("SEARCH pairs USING PRIMARY KEY (a=? AND b=?)" in row[3] for row in plan)


def test_an_exception_in_a_transaction_rolls_it_back(tmp_path):
    cache = pairs(tmp_path / "c.db")
    with pytest.raises(KeyError), cache.file.transaction() as connection:
        connection.execute("INSERT INTO pairs VALUES ('x', 1, '1')")
        raise KeyError("x")
    assert cache.get(("x", 1)) is None


def test_undecodable_value_is_an_integrity_error(tmp_path):
    cache = pairs(tmp_path / "c.db")
    with cache.file.transaction() as connection:
        connection.execute("INSERT INTO pairs VALUES ('x', 1, '[')")
    with pytest.raises(errors.IntegrityError, match="a test cache can be read back"):
        cache.get(("x", 1))


def test_other_exception_of_the_codec_is_raised_unchanged(tmp_path):
    def decode(stored):
        raise ZeroDivisionError

    cache = SqliteCache(CacheFile(tmp_path / "c.db", FORMAT), Codec("pairs", ("a", "b", "value"), str, decode))
    cache.put(("x", 1), 1)
    with pytest.raises(ZeroDivisionError):
        cache.get(("x", 1))


def test_closed_cache_refuses_calls_and_a_parked_one_reopens(tmp_path):
    cache = pairs(tmp_path / "c.db")
    cache.put(("x", 1), 1)
    cache.file.park()
    assert cache.get(("x", 1)) == 1
    cache.file.close()
    with pytest.raises(errors.StoreError, match="closed"):
        cache.get(("x", 1))


# ------------------------------------------------------------------------------- requests in flight


def test_equal_keys_in_flight_are_computed_once_and_a_failure_is_not_stored(tmp_path):
    cache, calls = pairs(tmp_path / "c.db"), []

    async def compute():
        calls.append(1)
        await asyncio.sleep(0.01)
        if len(calls) == 1:
            raise ValueError("fails at first")
        return len(calls)

    async def run():
        requests = (cache.get_or_compute(("x", 1), compute) for _ in range(5))
        return await asyncio.gather(*requests, return_exceptions=True)

    first, *others = asyncio.run(run())
    assert isinstance(first, ValueError)
    assert (others, len(calls)) == ([2] * 4, 2)
    assert cache.get(("x", 1)) == 2


def test_different_keys_in_flight_are_computed_concurrently(tmp_path):
    cache = pairs(tmp_path / "c.db")

    async def run():
        both = asyncio.Barrier(2)

        async def compute():
            await both.wait()
            return 1

        return await asyncio.gather(*(cache.get_or_compute(("x", number), compute) for number in range(2)))

    assert asyncio.run(asyncio.wait_for(run(), 10)) == [1, 1]


# ------------------------------------------------------------------------------- files


@pytest.mark.parametrize("content", [b"my notes", b"SQLite format 3\0" + bytes(200)])
def test_a_foreign_file_is_refused_untouched(tmp_path, content):
    path = tmp_path / "mine.db"
    path.write_bytes(content)
    with pytest.raises(errors.ForeignStoreError, match="left untouched"):
        pairs(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_and_a_newer_file_are_refused(tmp_path):
    with pytest.raises(errors.StoreError):
        pairs(tmp_path)
    pairs(tmp_path / "c.db").file.close()
    with sqlite3.connect(tmp_path / "c.db") as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(errors.NewerStoreError, match="versions up to 1"):
        pairs(tmp_path / "c.db")


def test_an_empty_file_becomes_a_cache(tmp_path):
    (tmp_path / "c.db").touch()
    cache = pairs(tmp_path / "c.db")
    cache.put(("x", 1), 1)
    assert cache.get(("x", 1)) == 1


def test_concurrent_threads_lose_no_value(tmp_path):
    faults = []

    def fill(number):
        try:
            cache = pairs(tmp_path / "c.db")
            for key in range(20):
                cache.put((str(number), key), key)
        except errors.SeasonedError as error:
            faults.append(error)

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = [(str(number), key) for number in range(6) for key in range(20)]
    assert not faults
    assert pairs(tmp_path / "c.db").get_many(keys) == {key: key[1] for key in keys}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_parent_and_forked_child_both_write(tmp_path):
    cache = pairs(tmp_path / "c.db")
    cache.put(("parent", 1), 1)
    child = os.fork()
    if not child:
        signal.alarm(30)
        try:
            cache.put(("child", 1), 2)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    cache.put(("parent", 2), 3)
    assert pairs(tmp_path / "c.db").get_many([("parent", 1), ("child", 1), ("parent", 2)]) == {
        ("parent", 1): 1,
        ("child", 1): 2,
        ("parent", 2): 3,
    }


def test_killed_writer_loses_no_reported_value(tmp_path):
    program = """
import json, sys
from seasoned.sqlite_cache import CacheFile, CacheFormat, Codec, SqliteCache
schema = ("CREATE TABLE pairs (a TEXT, b INTEGER, value TEXT NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID",)
file = CacheFile(sys.argv[1], CacheFormat("a test cache", 0x5EA50CFF, schema, "Delete the file."))
cache = SqliteCache(file, Codec("pairs", ("a", "b", "value"), json.dumps, json.loads))
for number in range(1_000_000):
    cache.put(("x", number), number)
    print(number, flush=True)
"""
    path = tmp_path / "c.db"
    writer = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    reported = [int(writer.stdout.readline()) for _ in range(50)]
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    cache = pairs(path)
    assert cache.get_many([("x", number) for number in reported]) == {("x", number): number for number in reported}
    cache.put(("y", 1), 1)
    assert cache.file.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# ------------------------------------------------------------------------------- files of earlier versions


def written(path, application_id, version, *statements):
    """A file of an earlier version."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement, *values in statements:
        connection.execute(statement, values)
    connection.execute(f"PRAGMA application_id = {application_id}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def never():
    raise AssertionError("a stored value needs no call")


def test_stored_completions_and_capabilities_are_read(tmp_path):
    request = CompletionRequest((Message("user", "x"),))
    completion = {
        "text": "yes",
        "model": "m",
        "top_logprobs": [[{"token": "A", "logprob": -0.5}]],
        "usage": {"calls": 1, "prompt_tokens": 3, "completion_tokens": 1, "latency_s": 0.5},
    }
    written(
        tmp_path / "a.db",
        0x5EA50CAC,
        1,
        (
            "CREATE TABLE answers (digest TEXT PRIMARY KEY, model TEXT NOT NULL, completion TEXT NOT NULL)"
            " WITHOUT ROWID",
        ),
        ("CREATE TABLE capabilities (model TEXT PRIMARY KEY, capabilities TEXT NOT NULL) WITHOUT ROWID",),
        ("INSERT INTO answers VALUES (?, 'm', ?)", request_digest("m", request), json.dumps(completion)),
        ("INSERT INTO capabilities VALUES ('m', ?)", '{"logprobs":true,"max_top_logprobs":20}'),
    )
    llm = CachedLLM(never, tmp_path / "a.db", name="m")
    answer = asyncio.run(llm.complete(request))
    assert (answer.text, answer.top_logprobs[0][0].logprob, answer.usage.cached_tokens) == ("yes", -0.5, 4)
    assert asyncio.run(llm.capabilities()) == Capabilities(True, 20)


def test_stored_vectors_are_read(tmp_path):
    model = ScriptedEmbedder(lambda text: [0.6, 0.8], dimensions=2)
    digest = hashlib.sha256(b"x").digest()
    written(
        tmp_path / "v.db",
        0x5EA50EBD,
        1,
        (
            "CREATE TABLE embedders (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, dimensions INTEGER,"
            " current INTEGER NOT NULL)",
        ),
        (
            "CREATE TABLE vectors (id INTEGER PRIMARY KEY, embedder INTEGER NOT NULL, digest BLOB NOT NULL,"
            " vector BLOB NOT NULL, UNIQUE (embedder, digest))",
        ),
        ("INSERT INTO embedders VALUES (3, ?, 2, 1)", model.identity),
        ("INSERT INTO vectors VALUES (1, 3, ?, ?)", digest, np.array([0.8, 0.6], "<f4").tobytes()),
    )
    assert CachedEmbedder(model, tmp_path / "v.db").embed(["x"]).tolist() == [[np.float32(0.8), np.float32(0.6)]]
    assert model.spent.calls == 0


def test_stored_actions_are_read_from_a_file_without_a_version(tmp_path):
    digest = hashlib.sha256(b'["story", "here"]').digest()
    written(
        tmp_path / "j.db",
        0x5EA50CAD,
        0,
        ("CREATE TABLE actions (digest BLOB PRIMARY KEY, actions TEXT NOT NULL) WITHOUT ROWID",),
        ("INSERT INTO actions VALUES (?, ?)", digest, '["north"]'),
    )
    cache = ActionCache(tmp_path / "j.db")
    assert cache.get(("story", "here"), never) == ("north",)
    cache.close()
