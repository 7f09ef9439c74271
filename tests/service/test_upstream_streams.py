"""The client of the gateway's upstream server: connections that are used again, answers that are given up or early."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
import threading
import weakref

import pytest
from raw_upstream import RawAnswer, raw_upstream

pytest.importorskip("h11", reason="needs the extra serve")

from seasoned.errors import ModelTimeoutError, ModelUnavailableError
from seasoned.service.gateway import upstream_streams
from seasoned.service.gateway.upstream_connection import UpstreamConnection
from seasoned.service.gateway.upstream_streams import UpstreamStreams

SILENCE_S = 0.4


async def received(streams, slow_s=0.0):
    """Return the parts of an answer of the server, read by a client that waits after each."""
    answer, parts = await streams.send(b"POST", b"/v1/messages", [], b"{}"), []
    with contextlib.closing(answer):
        async for part in answer.parts():
            parts.append(part)
            await asyncio.sleep(slow_s)
    return b"".join(parts)


def test_only_silence_of_the_server_ends_an_answer_and_connections_are_used_again():
    async def play():
        streams = UpstreamStreams(upstream.url, silence_s=SILENCE_S)
        upstream.answer = RawAnswer([b"a", b"b", b"c"], pause_s=SILENCE_S / 2)  # takes longer than a silence may
        assert await received(streams) == b"abc"
        upstream.answer = RawAnswer([b"d" * 70_000, b"e"])
        assert await received(streams, slow_s=1.5 * SILENCE_S) == b"d" * 70_000 + b"e"
        assert upstream.n_connections == 1
        upstream.answer = RawAnswer([b"f", b"g"], pause_s=10 * SILENCE_S)
        with pytest.raises(ModelTimeoutError, match="silent"):
            await received(streams)
        streams.close()

    with raw_upstream() as upstream:
        asyncio.run(play())


@pytest.mark.parametrize("with_reset", [False, True])
def test_refusal_of_an_upload_that_is_not_read_is_delivered(with_reset):
    """The server closes with most of the upload unread, which resets the connection."""
    refusal = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 9\r\nconnection: close\r\n\r\ntoo large"

    def refuse():
        for _ in range(2):
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(refusal)
                if with_reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def play():
        streams = UpstreamStreams(f"http://127.0.0.1:{listening.getsockname()[1]}")
        for _ in range(2):
            answer = await streams.send(b"POST", b"/v1/messages", [], b"x" * 16_000_000)
            assert answer.status == 413
            assert b"".join([part async for part in answer.parts()]) == b"too large"
            answer.close()
        streams.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=refuse)
        thread.start()
        asyncio.run(play())
        thread.join()


@pytest.mark.parametrize(("method", "n_sent"), [(b"POST", 1), (b"GET", 2)])
def test_only_an_idempotent_request_is_sent_again_on_a_connection_that_the_server_closes(method, n_sent):
    class Closing(RawAnswer):
        def pieces(self):
            return iter(())

    async def play():
        streams = UpstreamStreams(upstream.url)
        upstream.answer = RawAnswer([b"{}"], framing="length")
        (await read_to_its_end(streams, b"GET")).close()
        upstream.received.clear()
        answers = iter([Closing([], breaks=True), RawAnswer([b"{}"], framing="length")])
        upstream.answer = lambda request: next(answers)
        if method == b"POST":
            with pytest.raises(ModelUnavailableError, match="before it answered"):
                await streams.send(method, b"/v1/messages", [], b"{}")
        else:
            (await read_to_its_end(streams, method)).close()
        assert len(upstream.received) == n_sent
        streams.close()

    async def read_to_its_end(streams, method):
        answer = await streams.send(method, b"/v1/models", [], b"")
        assert [part async for part in answer.parts()] == [b"{}"]
        return answer

    with raw_upstream() as upstream:
        asyncio.run(play())


def test_nothing_is_left_of_a_connection_whose_handshake_fails(monkeypatch):
    begun = []

    def begin(h11, silence_s):
        connection = UpstreamConnection(h11, silence_s)
        begun.append(weakref.ref(connection))
        return connection

    monkeypatch.setattr(upstream_streams, "UpstreamConnection", begin)

    def refuse():
        connection, _ = listening.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def play():
        streams = UpstreamStreams(f"https://127.0.0.1:{listening.getsockname()[1]}")
        with pytest.raises(ModelUnavailableError):
            await streams.send(b"POST", b"/v1/messages", [], b"{}")
        await asyncio.sleep(0.01)
        gc.collect()
        assert [one() for one in begun] == [None]
        streams.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=refuse)
        thread.start()
        asyncio.run(play())
        thread.join()
