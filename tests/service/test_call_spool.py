"""The spool of a running gateway: what a client has of an answer is on disk, and no folder or store stops it."""

from __future__ import annotations

import http.client
import json
import logging
import sqlite3
import threading
import time
from contextlib import closing

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from raw_upstream import GUARD_S, RawAnswer, exchange, raw_upstream
from recorded_streams import CHAT, STREAMS
from served_gateway import gateway

from seasoned.errors import ConfigError
from seasoned.service import DecisionSettings, GatewaySettings, make_app
from seasoned.service.gateway.call_spool import CallSpool

ASKED = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}], "input": "hi"}'


@pytest.fixture
def upstream():
    with raw_upstream() as server:
        yield server


def spooled(folder):
    """What the files of calls hold."""
    return b"".join(path.read_bytes() for path in folder.rglob("*.call"))


@pytest.mark.parametrize("framing", ["chunked", "close", "cut short"])
@pytest.mark.parametrize("path", STREAMS)
def test_what_a_client_has_of_a_stream_is_on_disk(upstream, tmp_path, path, framing):
    """Also where the end of the body comes long after the event that ends the answer."""
    events = [event + b"\n\n" for event in STREAMS[path].split(b"\n\n") if event]
    goes_on = threading.Event()

    class Waiting(RawAnswer):
        def pieces(self):
            for piece in super().pieces():
                yield piece
                if piece.strip().endswith(events[-1].strip()):
                    assert goes_on.wait(GUARD_S)

    answer_framing = "chunked" if framing == "cut short" else framing
    upstream.answer = Waiting(events, framing=answer_framing, breaks=framing == "cut short", pause_s=0.002)
    store = tmp_path / "agent.db"
    with gateway(upstream.url, store, gateway=GatewaySettings(spool=tmp_path)) as port:
        connection, other = http.client.HTTPConnection("127.0.0.1", port, timeout=GUARD_S), sqlite3.connect(store)
        with closing(connection), closing(other):
            other.execute("BEGIN IMMEDIATE")  # a stored call has no file any more, so storing waits
            connection.request("POST", path, ASKED, {"content-type": "application/json"})
            response, received = connection.getresponse(), b""
            while not received.endswith(events[-1]):
                received += response.read1(65536)
                assert received in spooled(tmp_path)
            other.rollback()
            goes_on.set()
            try:
                response.read()
            except http.client.IncompleteRead:
                assert framing == "cut short"


@pytest.mark.parametrize("spoil", ["folder", "lock"])
def test_folder_that_cannot_be_used_is_named_at_the_start(upstream, tmp_path, spoil, caplog):
    if spoil == "folder":
        (tmp_path / "calls").write_text("a file")
        with pytest.raises(ConfigError, match="no folder") as error:
            make_app(
                ":memory:",
                create=True,
                decisions=DecisionSettings(upstream=upstream.url),
                gateway=GatewaySettings(spool=tmp_path / "calls"),
            )
        assert str(tmp_path / "calls") in error.value.seen and "--spool" in error.value.next_step
        return
    (tmp_path / "of-another" / "lock").mkdir(parents=True)  # no process can take it
    upstream.answer = RawAnswer([CHAT])
    with caplog.at_level(logging.ERROR), gateway(upstream.url, gateway=GatewaySettings(spool=tmp_path)) as port:
        assert exchange(port, "/v1/chat/completions", ASKED)[0] == 200
    assert "of-another" in caplog.text


@pytest.mark.parametrize("is_full", [False, True])
def test_named_episode_whose_call_does_not_fit_on_disk_is_stored_at_the_stop(upstream, tmp_path, monkeypatch, is_full):
    """One whose calls are all on disk goes on in the next process."""
    if is_full:
        monkeypatch.setattr(CallSpool, "count", lambda self, n_bytes: n_bytes < 0)
    called = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [called]}
    answer = {"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    upstream.answer = RawAnswer([json.dumps(answer).encode()], headers=[("content-type", "application/json")])
    path = tmp_path / "agent.db"
    with gateway(upstream.url, path, gateway=GatewaySettings(spool=tmp_path / "calls")) as port:
        assert exchange(port, "/episodes/trial/v1/chat/completions", ASKED)[0] == 200
    with closing(sqlite3.connect(path)) as store:
        assert store.execute("SELECT id FROM episode").fetchall() == [("trial",)] * is_full
    assert bool(spooled(tmp_path)) is not is_full


@pytest.mark.parametrize("is_named", [False, True], ids=["task", "named"])
def test_locked_store_delays_no_call_and_its_episode_has_an_id(upstream, tmp_path, is_named):
    path = tmp_path / "agent.db"
    said = b'data: {"id": "c-%d", "choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}\n\n'
    ids, slowest_s = [], 0.0
    settings = GatewaySettings(spool=tmp_path / "calls", mode_wait_s=GUARD_S, id_wait_s=GUARD_S)
    with (
        gateway(upstream.url, path, gateway=settings) as port,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        for number in range(6):  # each ends an episode, which waits for the store
            upstream.answer = RawAnswer([said % number], framing="length")
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"alert {number}"}]}).encode()
            named = [("x-seasoned-episode-id", f"trial-{number}")] if is_named else []
            began = time.perf_counter()
            status, headers, _ = exchange(port, "/v1/chat/completions", body, named)
            slowest_s = max(slowest_s, time.perf_counter() - began)
            assert status == 200
            ids.append(dict(headers).get("x-seasoned-episode-id"))
        other.execute("ROLLBACK")
    assert slowest_s < 0.7
    if is_named:
        assert ids == [f"trial-{number}" for number in range(6)]
        return
    with closing(sqlite3.connect(path)) as store:
        assert {id_ for (id_,) in store.execute("SELECT id FROM episode")} == set(ids)
