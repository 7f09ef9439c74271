"""A gateway that is killed and started again, an upstream that stalls and breaks off, and clients that vanish."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h11

__all__ = ["Crowd", "Restarts", "Upstream", "end_session", "serve_again"]

PATIENCE_S = 20.0  # of a client, between two parts of an answer
N_CALLS = 2  # of tools, before the text that ends an episode
GUARD_S = 900.0  # seconds after which a run has hung


# ------------------------------------------------------------------------------------------------ the service


def serve_again(path: str, port: int, upstream: str, pid_file: str) -> None:
    """In a child: serve a gateway in a process of its own, and another one whenever it was killed.

    It ends when a server ends by itself, as after SIGTERM. All modules are loaded once, before the forks.
    """
    from seasoned.service import DecisionSettings, GatewaySettings, make_app
    from seasoned.service.server import listen, make_server

    while True:
        pid = os.fork()
        if not pid:
            settings = GatewaySettings(spool=Path(f"{path}.calls"))
            app = make_app(path, create=True, decisions=DecisionSettings(upstream=upstream), gateway=settings)
            server = make_server(app)
            server.run(sockets=[listen("127.0.0.1", port, secured=False)])
            os._exit(0)
        Path(f"{pid_file}.new").write_text(str(pid))
        Path(f"{pid_file}.new").rename(pid_file)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            assert status in (0, signal.SIGTERM)  # Uvicorn ends by the signal that stopped it
            return


class Restarts:
    """Signals to the running server."""

    def __init__(self, pid_file: Path) -> None:
        self._pid_file = pid_file
        self._killed = 0
        self.n_kills = 0

    def pid(self) -> int:
        """The process that serves now; 0 while there is none."""
        with contextlib.suppress(OSError, ValueError):
            return int(self._pid_file.read_text())
        return 0

    def kill(self) -> bool:
        """Kill the server at this instant, unless it was killed already."""
        pid = self.pid()
        if pid in (0, self._killed):
            return False
        os.kill(pid, signal.SIGKILL)
        self._killed = pid
        self.n_kills += 1
        return True

    def stop(self) -> None:
        """End the server as its operator does."""
        wait_for(lambda: self.pid() not in (0, self._killed))
        self._killed = self.pid()
        os.kill(self._killed, signal.SIGTERM)


def end_session(port: int, name: str) -> None:
    """End what still runs of a session, when the gateway listens."""

    def ended() -> bool:
        try:
            exchange(port, f"/v1/episodes/{name}/end")
        except OSError:
            return False
        return True

    wait_for(ended)


def exchange(port: int, path: str) -> None:
    """Post an empty document; whatever the answer is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request("POST", path, b"{}", {"content-type": "application/json"})
        connection.getresponse().read()


def wait_for(happens: Callable[[], bool]) -> None:
    """Wait until something holds."""
    until = time.monotonic() + GUARD_S
    while not happens():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.01)


# ------------------------------------------------------------------------------------------------ the upstream


class Upstream:
    """Streams Chat Completions: calls with a number of their own, then a text with one. Some stall, some break off."""

    def __init__(self, seed: int, *, stalls: float, breaks: float) -> None:
        self._draw = random.Random(seed)
        self._stalls, self._breaks = stalls, breaks
        self._numbers = itertools.count(1)
        self.n_answers = self.n_stalled = self.n_broken = 0
        self.url = ""

    @contextlib.asynccontextmanager
    async def serving(self) -> Any:
        """Serve while the block runs."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length"))
                if not await self._answer(json.loads(await reader.readexactly(length)), reader, writer):
                    break
        writer.close()

    async def _answer(self, body: dict[str, Any], reader: Any, writer: asyncio.StreamWriter) -> bool:
        events = list(self._events(body["messages"]))
        fate, cut = self._draw.random(), self._draw.randrange(1, len(events))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for at, event in enumerate(events):
            if at == cut and fate < self._stalls:
                self.n_stalled += 1
                await reader.read()  # until the gateway closes the connection
                return False
            if at == cut and fate < self._stalls + self._breaks:
                self.n_broken += 1
                return False
            part = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
            await asyncio.sleep(self._draw.random() * 0.02)
        writer.write(b"0\r\n\r\n")
        return True

    def _events(self, messages: Sequence[dict[str, Any]]) -> Any:
        self.n_answers += 1
        number = next(self._numbers)
        begin = max(at for at, one in enumerate(messages) if one["role"] == "user")
        is_last = sum(one["role"] == "tool" for one in messages[begin:]) >= N_CALLS
        head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}

        def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
            return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        yield chunk({"role": "assistant"})
        if is_last:
            yield from (chunk({"content": piece}) for piece in ("Answer ", str(number), " is"))
            yield chunk({"content": " the last."})
        else:
            function = {"name": "restart", "arguments": ""}
            yield chunk(
                {"tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]}
            )
            for piece in ('{"number"', f": {number}", "}"):
                yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        yield chunk({}, "stop" if is_last else "tool_calls")
        yield "[DONE]"


# ------------------------------------------------------------------------------------------------ the clients


@dataclass
class Crowd:
    """Clients with sessions of their own, each of which works on some episodes, whatever becomes of the connections.

    Args:
        port: of the gateway.
        seed: of what they do.
        n_clients, n_episodes: how many there are, and how many episodes each has.
        vanishes: the probability with which a client goes in the middle of an answer, and asks again.

    Attributes:
        acknowledged: the actions of the answers that clients had whole, by session and episode.
        n_vanished, n_failed: the answers that were left, and those that broke off or did not come.
    """

    port: int
    seed: int
    n_clients: int
    n_episodes: int
    vanishes: float
    acknowledged: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    n_vanished: int = 0
    n_failed: int = 0

    @property
    def n_acknowledged(self) -> int:
        """The number of answers that clients had whole."""
        return sum(map(len, self.acknowledged.values()))

    async def work(self) -> None:
        """Do all that the clients have to do."""
        async with asyncio.timeout(GUARD_S), asyncio.TaskGroup() as tasks:
            for number in range(self.n_clients):
                tasks.create_task(self._client(number))

    async def _client(self, number: int) -> None:
        draw = random.Random(self.seed * 1000 + number)
        messages: list[dict[str, Any]] = []
        for episode in range(self.n_episodes):
            messages.append({"role": "user", "content": f"alert {episode} of {number}"})
            done = self.acknowledged[number, episode] = []
            while len(done) <= N_CALLS:
                answer = await self._asked(number, messages, draw)
                messages.append(answer)
                calls = answer.get("tool_calls") or ()
                done.append(calls[0]["function"]["arguments"] if calls else answer["content"])
                messages += [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in calls]

    async def _asked(self, number: int, messages: Sequence[Any], draw: random.Random) -> dict[str, Any]:
        """Return the whole answer, however often it must be asked for."""
        while True:
            vanishes_after = draw.randrange(1, 6) if draw.random() < self.vanishes else None
            try:
                answer = await self._exchanged(f"/sessions/c{number}", messages, vanishes_after)
            except (OSError, TimeoutError, h11.ProtocolError):
                self.n_failed += 1
                answer = None
            if answer is not None:
                return answer
            await asyncio.sleep(draw.random() * 0.1)

    async def _exchanged(self, prefix: str, messages: Sequence[Any], vanishes_after: int | None) -> Any:
        """Return the answer to a request; None if this client went before its end."""
        body = json.dumps({"model": "m", "stream": True, "messages": messages, "tools": TOOLS}).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        http = h11.Connection(h11.CLIENT)
        try:
            headers = [("host", "127.0.0.1"), ("content-type", "application/json"), ("content-length", str(len(body)))]
            request = h11.Request(method="POST", target=f"{prefix}/v1/chat/completions", headers=headers)
            writer.write(http.send(request) + http.send(h11.Data(body)) + http.send(h11.EndOfMessage()))
            content = b""
            while True:
                event = http.next_event()
                if event is h11.NEED_DATA:
                    http.receive_data(await asyncio.wait_for(reader.read(65536), PATIENCE_S))
                elif isinstance(event, h11.Data):
                    content += bytes(event.data)
                    if vanishes_after is not None and content.count(b"data: ") >= vanishes_after:
                        self.n_vanished += 1
                        return None
                    if content.endswith(b"data: [DONE]\n\n"):  # as the official clients do, it reads no further
                        return _message(content)
                elif isinstance(event, h11.Response):
                    if event.status_code != 200:
                        raise ConnectionError(event.status_code)
                else:
                    raise ConnectionError(event)
        finally:
            writer.close()


TOOLS = [{"type": "function", "function": {"name": "restart", "parameters": {"type": "object"}}}]


def _message(content: bytes) -> dict[str, Any]:
    """Return the message of a whole stream."""
    text, calls = "", list[dict[str, Any]]()
    for line in content.decode().split("\n\n")[:-2]:
        delta = json.loads(line.removeprefix("data: "))["choices"][0]["delta"]
        text += delta.get("content") or ""
        for piece in delta.get("tool_calls") or ():
            if "id" in piece:
                calls.append({**piece, "function": dict(piece["function"])})
            else:
                calls[0]["function"]["arguments"] += piece["function"]["arguments"]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    for call in calls:
        call.pop("index")
    return {**message, "tool_calls": calls} if calls else message
