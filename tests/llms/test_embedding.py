"""Embedders: unit vectors in order, in batches, and cached on disk under their identity."""

import math
import sqlite3
import threading

import numpy as np
import pytest
from chat_server import ChatServer

from seasoned import errors
from seasoned.core.similarity import CosineIndex
from seasoned.llms.cache.vector_cache import CachedEmbedder
from seasoned.llms.embeddings.batched_embedder import ScriptedEmbedder
from seasoned.llms.embeddings.endpoint_embedder import EndpointEmbedder
from seasoned.llms.embeddings.local_embedder import LocalEmbedder
from seasoned.protocols import Embedder, Usage
from seasoned.testing.embedders import check_embedder

TEXTS = ["page cart total", "page pay", "page cart total", "a red lamp"]


def table(**vectors):
    return ScriptedEmbedder(lambda text: vectors[text], dimensions=2, batch_size=2)


# ---------------------------------------------------------------------------------------------- every embedder


def test_vectors_are_unit_in_text_order_and_each_distinct_text_is_sent_once():
    embedder = ScriptedEmbedder(batch_size=2)
    rows = embedder.embed(TEXTS)
    assert isinstance(embedder, Embedder)
    assert (rows.shape, rows.dtype) == ((4, 64), np.float32)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(4), abs=1e-6)
    assert (rows[0] == rows[2]).all()
    assert rows == pytest.approx(np.concatenate([ScriptedEmbedder().embed([text]) for text in TEXTS]), abs=1e-6)
    assert embedder.spent.calls == 2  # three distinct texts, two a call
    assert embedder.embed([]).shape == (0, 64)


def test_public_checker_passes_our_embedders_and_detects_a_fault(tmp_path):
    check_embedder(ScriptedEmbedder())
    check_embedder(CachedEmbedder(ScriptedEmbedder(), tmp_path / "v.db"))

    class Broken(ScriptedEmbedder):
        fault = None

        def embed(self, texts):
            rows = super().embed(texts)
            if self.fault == "order":
                return rows[[0, 3, 2, 1]] if len(rows) == 4 else rows
            return {"length": rows * 2, "kind": rows.astype(np.float64), "few": rows[:-1]}[self.fault]

    for fault, rule in {"length": "length 1", "kind": "float32", "order": "order", "few": "per text"}.items():
        Broken.fault = fault
        with pytest.raises(errors.InputError, match=rule):
            check_embedder(Broken())


@pytest.mark.parametrize(
    ("vectors", "seen"),
    [
        ({"a": [1.0, 0.0], "b": [math.nan, 1.0]}, "NaN"),
        ({"a": [1.0, 0.0], "b": [math.inf, 1.0]}, "infinity"),
        ({"a": [1.0, 0.0], "b": [0.0, 0.0]}, "all zeros"),
        ({"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 0.0]}, "(2, 3)"),
        ({"a": [1.0, 0.0], "b": [1.0]}, "vectors"),
    ],
)
def test_invalid_vectors_are_model_answer_errors(vectors, seen, tmp_path):
    for embedder in (table(**vectors), CachedEmbedder(table(**vectors), tmp_path / f"{len(seen)}.db")):
        with pytest.raises(errors.ModelAnswerError) as caught:
            embedder.embed(["a", "b"])
        assert seen in caught.value.seen
        assert "scripted:words" in caught.value.seen
        assert caught.value.next_step


@pytest.mark.parametrize("texts", ["page", ["page", ""], ["page", "  "], [1], None, ["\ud800"]])
def test_invalid_texts_are_refused_before_any_call(texts, tmp_path):
    model = ScriptedEmbedder()
    for embedder in (model, CachedEmbedder(model, tmp_path / "v.db")):
        with pytest.raises(errors.InputError):
            embedder.embed(texts)
    assert model.spent.calls == 0


@pytest.mark.parametrize("settings", [{"batch_size": 0}, {"dimensions": 0}, {"batch_size": True}])
def test_settings_outside_their_range_are_refused(settings):
    with pytest.raises(errors.InputError):
        ScriptedEmbedder(**settings)


# ---------------------------------------------------------------------------------------------- the cache


def test_reopened_cache_embeds_only_missing_texts(tmp_path):
    first, again = ScriptedEmbedder(), ScriptedEmbedder()
    wanted = CachedEmbedder(first, tmp_path / "v.db").embed(TEXTS)
    cached = CachedEmbedder(again, tmp_path / "v.db")
    assert (cached.embed(TEXTS) == wanted).all()
    assert (cached.dimensions, cached.identity) == (64, first.identity)
    assert again.spent == Usage()
    cached.embed([*TEXTS, "new"])
    assert (again.spent.calls, again.spent.prompt_tokens) == (1, 1)  # the missing text only
    assert cached.spent == again.spent


def test_another_embedder_needs_reindex(tmp_path):
    path = tmp_path / "v.db"
    old, new = ScriptedEmbedder(), ScriptedEmbedder(dimensions=8, name="new")
    CachedEmbedder(old, path).embed(TEXTS)
    with pytest.raises(errors.EncoderMismatchError) as caught:
        CachedEmbedder(new, path)
    assert "scripted:words" in caught.value.seen
    assert "scripted:new" in caught.value.seen
    assert "reindex=True" in caught.value.next_step
    assert CachedEmbedder(new, path, reindex=True).embed(TEXTS).shape == (4, 8)
    with pytest.raises(errors.EncoderMismatchError):
        CachedEmbedder(old, path)
    CachedEmbedder(old, path, reindex=True).embed(TEXTS)
    assert old.spent.calls == 1  # its vectors were still there


def test_changed_vector_length_under_one_identity_is_refused(tmp_path):
    CachedEmbedder(table(a=[1.0, 0.0]), tmp_path / "v.db").embed(["a"])
    same_name = ScriptedEmbedder(lambda text: [1.0, 0.0, 0.0], dimensions=3)
    same_name._dimensions = 2  # its identity differs from its answers
    cached = CachedEmbedder(same_name, tmp_path / "v.db")
    with pytest.raises(errors.ModelAnswerError):
        cached.embed(["b"])


def test_vectors_of_earlier_batches_are_stored_if_a_later_call_fails(tmp_path):
    def script(text):
        return [1.0, float(text)] if float(text) < 300 else [0.0, 0.0]

    failing = CachedEmbedder(ScriptedEmbedder(script, 2, batch_size=64), tmp_path / "v.db")
    with pytest.raises(errors.ModelAnswerError):
        failing.embed([str(n) for n in range(400)])
    model = ScriptedEmbedder(script, 2, batch_size=64)
    CachedEmbedder(model, tmp_path / "v.db").embed([str(n) for n in range(300)])
    assert model.spent.prompt_tokens == 300 - 256


def test_threads_share_a_file(tmp_path):
    path, vectors, faults = tmp_path / "v.db", {}, []

    def work(number):
        try:
            embedder = CachedEmbedder(ScriptedEmbedder(), path)
            vectors[number] = embedder.embed([f"text {n}" for n in range(number, number + 20)])
        except errors.SeasonedError as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    whole = CachedEmbedder(ScriptedEmbedder(), path).embed([f"text {n}" for n in range(25)])
    assert all((vectors[number] == whole[number : number + 20]).all() for number in range(6))


@pytest.mark.parametrize(
    ("vector", "seen"),
    [
        (b"123", "3 bytes"),
        (np.zeros(64, "<f4").tobytes(), "length 1"),
        (np.full(64, np.nan, "<f4").tobytes(), "length 1"),
    ],
)
def test_damaged_vector_is_an_integrity_error(tmp_path, vector, seen):
    path = tmp_path / "v.db"
    CachedEmbedder(ScriptedEmbedder(), path).embed(TEXTS)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE vectors SET vector = ?", (vector,))
    with pytest.raises(errors.IntegrityError, match=seen):
        CachedEmbedder(ScriptedEmbedder(), path).embed(TEXTS)


def test_forgotten_texts_are_deleted_for_every_embedder(tmp_path):
    path = tmp_path / "v.db"
    old, new = ScriptedEmbedder(), ScriptedEmbedder(name="new")
    first = CachedEmbedder(old, path)
    first.embed(TEXTS)
    first.close()
    cached = CachedEmbedder(new, path, reindex=True)
    [secret] = cached.embed(["page pay"])
    cached.close()
    assert secret.tobytes() in path.read_bytes()
    assert cached.forget(["page pay", "never seen", "page pay"]) == 2
    assert secret.tobytes() not in path.read_bytes()
    calls = new.spent.calls
    cached.embed(["page pay"])
    assert new.spent.calls == calls + 1


def test_foreign_and_newer_files_are_refused_untouched(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes")
    with pytest.raises(errors.ForeignStoreError):
        CachedEmbedder(ScriptedEmbedder(), path)
    assert path.read_text() == "my notes"
    newer = tmp_path / "newer.db"
    CachedEmbedder(ScriptedEmbedder(), newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 9")
    with pytest.raises(errors.NewerStoreError):
        CachedEmbedder(ScriptedEmbedder(), newer)
    with pytest.raises(errors.InputError):
        CachedEmbedder("model", tmp_path / "v.db")


# ---------------------------------------------------------------------------------------------- an endpoint


def body_of(vectors, tokens=5):
    data = [{"object": "embedding", "index": n, "embedding": v} for n, v in enumerate(vectors)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data[::-1], "model": "m", "usage": usage}  # in any order


def by_length(number, body):
    return 200, {}, body_of([[float(len(text)), 1.0] for text in body["input"]])


@pytest.fixture
def endpoint():
    pytest.importorskip("openai", reason="needs the extra 'openai'")
    opened = []

    def make(url, **settings):
        opened.append(EndpointEmbedder("m", url, **{"max_retries": 0, "retry_ceiling_s": 0.01, **settings}))
        return opened[-1]

    yield make
    for embedder in opened:
        embedder.close()


def test_endpoint_gets_batches_and_rows_are_ordered_by_index(endpoint):
    with ChatServer(by_length) as server:
        embedder = endpoint(server.url, batch_size=2, usd_per_million_tokens=2.0)
        rows = embedder.embed(["a", "bb", "ccc", "a"])
        unpriced = endpoint(server.url)
        unpriced.embed(["a"])
    assert [body["input"] for body in server.bodies[:2]] == [["a", "bb"], ["ccc"]]
    assert server.bodies[0]["model"] == "m"
    assert "dimensions" not in server.bodies[0]
    assert rows == pytest.approx(np.array([[n, 1] / np.hypot(n, 1) for n in (1, 2, 3, 1)]), abs=1e-6)
    spent = embedder.spent
    assert (spent.calls, spent.prompt_tokens, spent.cost_usd) == (2, 10, pytest.approx(2e-5))
    assert spent.latency_s > 0
    assert unpriced.spent.cost_usd is None


def test_identity_is_independent_of_the_location(endpoint):
    one, other = endpoint("http://127.0.0.1:1/v1"), endpoint("http://127.0.0.1:2/v1")
    assert one.identity == other.identity == "openai:m"
    assert endpoint("http://127.0.0.1:1/v1", dimensions=2).identity == "openai:m?dimensions=2"
    assert endpoint("http://127.0.0.1:1/v1", name="bge-small").identity == "openai:bge-small"


def test_dimensions_are_sent_to_the_endpoint(endpoint):
    with ChatServer(by_length) as server:
        assert endpoint(server.url, dimensions=2).embed(["a"]).shape == (1, 2)
        assert endpoint(server.url).dimensions == 2
        with pytest.raises(errors.ModelAnswerError, match=r"\(1, 2\)"):
            endpoint(server.url, dimensions=3).embed(["a"])
    assert server.bodies[0]["dimensions"] == 2


def test_transient_errors_are_retried(endpoint):
    def script(number, body):
        return (
            (429, {"Retry-After": "0"}, {})
            if number == 1
            else (503, {}, {})
            if number == 2
            else by_length(number, body)
        )

    with ChatServer(script) as server:
        assert endpoint(server.url, max_retries=2).embed(["a"]).shape == (1, 2)
    assert len(server.bodies) == 3


FAULTS = [
    ((429, {}, {}), errors.RateLimitError),
    ((500, {}, {}), errors.ModelUnavailableError),
    ((404, {}, {"error": {"message": "no such model"}}), errors.ConfigError),
    ((401, {}, {"error": {"message": "bad key"}}), errors.ConfigError),
    ((400, {}, {"error": {"message": "too long"}}), errors.ModelError),
    ((200, {}, "<html>"), errors.ModelAnswerError),
    ((200, {}, {"data": []}), errors.ModelAnswerError),
    ((200, {}, body_of([])), errors.ModelAnswerError),
    ((200, {}, body_of([[0.0, 0.0]])), errors.ModelAnswerError),
    ((200, {}, body_of([[math.nan, 1.0]])), errors.ModelAnswerError),
    ((200, {}, body_of([["x", 1.0]])), errors.ModelAnswerError),
    ((200, {}, body_of(["text"])), errors.ModelAnswerError),
    ((200, {}, 0.6), errors.ModelTimeoutError),
]


def test_endpoint_faults_raise_our_errors(endpoint):
    with ChatServer(lambda number, body: FAULTS[number - 1][0]) as server:
        embedder = endpoint(server.url, timeout_s=0.3)
        for answer, error in FAULTS:
            with pytest.raises(error) as caught:
                embedder.embed(["a"])
            assert type(caught.value) is error, answer
            assert all((caught.value.seen, caught.value.rule, caught.value.next_step))
    assert len(server.bodies) == len(FAULTS)


def test_remote_endpoint_without_a_key_is_refused(monkeypatch):
    pytest.importorskip("openai", reason="needs the extra 'openai'")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("SEASONED_OPENAI_API_KEY", raising=False)
    with pytest.raises(errors.ConfigError, match="key"):
        EndpointEmbedder("m", "https://example.org/v1")


# ---------------------------------------------------------------------------------------------- a local model


@pytest.mark.parametrize("settings", [{"context_tokens": 8}, {"context_tokens": 0}, {"threads": 0}])
def test_settings_of_the_local_embedder_are_checked(settings, tmp_path):
    with pytest.raises(errors.InputError):
        LocalEmbedder(tmp_path / "none.gguf", **settings)


def test_file_that_is_not_gguf_is_refused(tmp_path):
    with pytest.raises(errors.NotFoundError):
        LocalEmbedder(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("text")
    with pytest.raises(errors.InputError, match="GGUF"):
        LocalEmbedder(tmp_path / "text.gguf")


@pytest.mark.slow
def test_local_vectors_do_not_depend_on_the_batch_and_reflect_similarity(tmp_path):
    pytest.importorskip("xllamacpp", reason="needs the extra 'local'")
    embedder = LocalEmbedder(context_tokens=128, threads=1)
    texts = ["page: cart, total 12 dollars", "page: cart, total 13 dollars", "the dragon sleeps in its cave"]
    try:
        check_embedder(embedder)
        rows = embedder.embed(texts)
        assert rows.shape == (3, embedder.dimensions) == (3, 576)
        assert (rows[1] == embedder.embed(texts[1:2])[0]).all()
        assert rows[0] @ rows[1] > max(rows[0] @ rows[2], rows[1] @ rows[2])
        index = CosineIndex(embedder.dimensions)
        index.add(texts, rows)
        assert [key for key, _ in index.search(embedder.embed(["page: cart, total 14 dollars"])[0], 3)][2] == texts[2]
        assert embedder.spent.prompt_tokens > 10
        assert embedder.spent.cost_usd == 0.0
        with pytest.raises(errors.InputError, match="context_tokens = 128"):
            embedder.embed(["word " * 500])
        assert embedder.embed(["still here"]).shape == (1, 576)
        cached = CachedEmbedder(embedder, tmp_path / "v.db")
        cached.embed(texts)
        before = embedder.spent.calls
        again = CachedEmbedder(LocalEmbedder(context_tokens=128, threads=1), tmp_path / "v.db")
        assert (again.embed(texts) == rows).all()
        assert again.dimensions == 576
        assert embedder.spent.calls == before
    finally:
        embedder.close()
