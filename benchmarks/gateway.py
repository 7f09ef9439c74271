"""Calls through the gateway: the time to the first byte that it adds, the pauses between chunks, and its memory.

Run: python benchmarks/gateway.py [--streams 1 4 16 64] [--rounds 6] [--peer] [--requests 2000] [--write]

A fake upstream in a process of its own answers Chat Completions with a stream of 20 chunks, one each 50 ms, the first
at once. `seasoned serve` stands before it in another process, with a memory in a file and calls spooled. N clients send
conversations of about 4 kB, each one stream after the other; their starts are spread. Rounds through the gateway and
rounds to the upstream itself alternate. `--peer` puts LiteLLM's proxy beside it, in the same rounds, as one worker with
a model that is this upstream; it is run from `.venv-litellm-proxy`, whose install line is printed where it is missing.

Of each way: the time to the first byte of the answer (p50, p99), and the largest pause between two chunks of a stream
beyond the upstream's 50 ms (p50, p99). `added` is the difference of the quantiles of a way and the upstream, with a
95 % interval by bootstrap over rounds; `peer_ratio` is the ratio of what the two add to the first byte at the median,
drawn together. Clients, upstream and gateway share the machine's cores.

Then `--requests` short conversations pass through a fresh gateway, 16 at a time, each with an answer that is no stream
and is stored as an episode. Its resident memory is sampled 40 times: `mb_per_1000` is the slope over the second half,
with the 95 % interval of the line's fit. The long run is `--streams --requests 100000`. With `--texts` as large as
`--requests` no message recurs: then the writer's cache of known states grows too, up to 50,000 of them.

`--write` writes `benchmarks/results/gateway.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from workload import write_result

CHUNKS, GAP_S = 20, 0.05
STREAMS_EACH = 4  # of each client, in each round
PEER = Path(__file__).parents[1] / ".venv-litellm-proxy" / "bin" / "litellm"
PEER_START_S = 600.0  # its imports take long on a busy machine
N_SENDERS, N_SAMPLES = 16, 40  # of the run of many requests


# ------------------------------------------------------------------------------------------------ servers


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests with streams."""
    choice = {"index": 0, "delta": {"content": "some words of an answer "}, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            lengths = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length")]
            if b"transfer-encoding: chunked" in lines:
                body = await reader.readuntil(b"\r\n0\r\n\r\n")
            else:  # a peer asks for the list of models too
                body = await reader.readexactly(sum(lengths))
            if b'"stream": true' not in body and b'"stream":true' not in body:
                writer.write(whole_answer())
                continue
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            id_ = f"chatcmpl-{time.time_ns()}"
            for at in range(CHUNKS):
                fields = {"id": id_, "object": "chat.completion.chunk", "created": 1, "model": "fake"}
                event = json.dumps({**fields, "choices": [last if at == CHUNKS - 1 else choice]})
                part = f"data: {event}\n\n".encode()
                writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                await writer.drain()
                await asyncio.sleep(GAP_S if at < CHUNKS - 1 else 0)
            writer.write(b"0\r\n\r\n")
    writer.close()


def whole_answer() -> bytes:
    """Return an answer that is no stream."""
    message = {"role": "assistant", "content": "It is quiet again."}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    fields = {"id": f"chatcmpl-{time.time_ns()}", "object": "chat.completion", "created": 1, "model": "fake"}
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    body = json.dumps({**fields, "choices": choices, "usage": usage}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


async def upstream() -> None:
    """Serve until the process is killed."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def started(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server, and return its process and the first line that it prints."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()


@contextlib.contextmanager
def gateway(folder: str, upstream_port: str) -> Iterator[tuple[int, int]]:
    """Run a gateway with a new memory, and return its process id and port."""
    url = f"http://127.0.0.1:{upstream_port}"
    command = f"-m seasoned serve {folder}/agent.db --create --quiet --port 0 --upstream {url}"
    with started(command.split()) as (process, line):
        yield process.pid, int(line.split()[0].rstrip("/").rpartition(":")[2])


@contextlib.contextmanager
def litellm_proxy(folder: str, upstream_port: str) -> Iterator[int]:
    """Run LiteLLM's proxy, and return its port."""
    if not PEER.exists():
        line = f"python -m venv {PEER.parents[1]} && {PEER.parent}/pip install 'litellm[proxy]'"
        raise SystemExit(f"{PEER} is missing. Install LiteLLM's proxy: {line}")
    params = {"model": "openai/fake", "api_base": f"http://127.0.0.1:{upstream_port}/v1", "api_key": "k"}
    config = Path(folder) / "litellm.json"  # JSON is YAML
    config.write_text(json.dumps({"model_list": [{"model_name": "fake", "litellm_params": params}]}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quiet = {**os.environ, "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    quiet["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"  # on loopback, and ours has no token either
    command = [str(PEER), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    with (
        (Path(folder) / "litellm.log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=quiet) as process,
    ):
        try:
            until = time.monotonic() + PEER_START_S
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"LiteLLM's proxy does not start:\n{(Path(folder) / 'litellm.log').read_text()}")
                time.sleep(0.5)
            yield port
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False


# ------------------------------------------------------------------------------------------------ clients


class Timed:
    """The times of one way: to the first byte, and the largest pause of each stream, in ms."""

    def __init__(self) -> None:
        self.first_ms: list[float] = []
        self.pause_ms: list[float] = []
        self.failed = 0


async def stream(port: int, timed: Timed, rng: random.Random, connection: Any) -> None:
    """Send one request, and time the parts of its answer."""
    reader, writer = connection
    words = " ".join(str(rng.random()) for _ in range(200))
    said = [{"role": "system", "content": "You are on call."}, {"role": "user", "content": words}]
    body = json.dumps({"model": "fake", "stream": True, "messages": said}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    began = time.perf_counter()
    writer.write(f"{head}authorization: Bearer k\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    ended, first, before, pauses = b"", None, 0.0, []
    while not ended.endswith(b"\r\n0\r\n\r\n"):
        data = await reader.read(65536)
        if not data:
            timed.failed += 1
            return
        now = time.perf_counter()
        if first is None:
            first = now - began
            timed.failed += b" 200 " not in data[:20]
        else:
            pauses.append(now - before)
        before, ended = now, (ended + data)[-16:]
    timed.first_ms.append(1000 * (first or 0.0))
    timed.pause_ms.append(1000 * (max(pauses) - GAP_S))


async def client(port: int, timed: Timed, seed: int) -> None:
    """Send some requests, one after the other, on one connection."""
    rng = random.Random(seed)
    connection = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(rng.random() * CHUNKS * GAP_S)
    for _ in range(STREAMS_EACH):
        await stream(port, timed, rng, connection)
        await asyncio.sleep(rng.random() * GAP_S)
    connection[1].close()


async def play(port: int, n_streams: int, seed: int) -> Timed:
    """Play one round of clients at one way."""
    timed = Timed()
    await asyncio.gather(*(client(port, timed, 1000 * seed + at) for at in range(n_streams)))
    return timed


# ------------------------------------------------------------------------------------------------ figures


def added(rounds: Sequence[tuple[Timed, Timed]], name: str, q: float, rng: np.random.Generator) -> list[float]:
    """Return the difference of a quantile between the two ways, and its 95 % interval over rounds."""

    def difference(chosen: Sequence[int]) -> float:
        through = np.concatenate([getattr(rounds[at][1], name) for at in chosen])
        direct = np.concatenate([getattr(rounds[at][0], name) for at in chosen])
        return float(np.percentile(through, q) - np.percentile(direct, q))

    drawn = [difference(rng.integers(len(rounds), size=len(rounds)).tolist()) for _ in range(400)]
    return [round(value, 2) for value in (difference(range(len(rounds))), *np.percentile(drawn, [2.5, 97.5]))]


def peer_ratio(rounds: Mapping[str, Sequence[Timed]], rng: np.random.Generator) -> list[float]:
    """Return what the gateway adds to the first byte at the median, by what the peer adds, and its 95 % interval."""

    def ratio(chosen: Sequence[int]) -> float:
        ways = {name: np.concatenate([ones[at].first_ms for at in chosen]) for name, ones in rounds.items()}
        medians = {name: float(np.median(values)) for name, values in ways.items()}
        return (medians["gateway"] - medians["direct"]) / max(1e-3, medians["peer"] - medians["direct"])

    n_rounds = len(rounds["direct"])
    drawn = [ratio(rng.integers(n_rounds, size=n_rounds).tolist()) for _ in range(400)]
    return [round(value, 3) for value in (ratio(range(n_rounds)), *np.percentile(drawn, [2.5, 97.5]))]


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def cpu_s(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of streams, and print them."""
    rng = np.random.default_rng(0)
    figures: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        _, port = stack.enter_context(started([str(Path(__file__)), "--serve-upstream"]))
        pid, own = stack.enter_context(gateway(folder, port))
        ways = {"direct": int(port), "gateway": own}
        if options.peer:
            ways["peer"] = stack.enter_context(litellm_proxy(folder, port))
        for name, way in ways.items():  # what is loaded at the first call
            assert not asyncio.run(play(way, 2, 0)).failed, f"{name} refuses"
        for n_streams in options.streams:
            found: dict[str, list[Timed]] = {name: [] for name in ways}
            before_s = cpu_s(pid)
            for at in range(options.rounds):
                for name, way in ways.items():
                    found[name].append(asyncio.run(play(way, n_streams, at + 1)))
            n_calls = options.rounds * n_streams * STREAMS_EACH
            figures[str(n_streams)] = shown = {
                "calls": n_calls,
                "failed": {name: sum(one.failed for one in rounds) for name, rounds in found.items()},
                "cpu_ms_per_stream": round(1000 * (cpu_s(pid) - before_s) / n_calls, 2),
                "resident_mb": memory_mb(pid),
            }
            for name, rounds in found.items():
                for kind in ("first_ms", "pause_ms"):
                    every = np.concatenate([getattr(one, kind) for one in rounds])
                    shown[f"{name}_{kind}"] = [round(float(np.percentile(every, q)), 2) for q in (50, 99)]
                if name == "direct":
                    continue
                pairs = list(zip(found["direct"], rounds, strict=True))
                shown[f"{name}_added_first_p50_ms"] = added(pairs, "first_ms", 50, rng)
                shown[f"{name}_added_first_p99_ms"] = added(pairs, "first_ms", 99, rng)
                shown[f"{name}_added_pause_p50_ms"] = added(pairs, "pause_ms", 50, rng)
            if options.peer:
                shown["peer_ratio"] = peer_ratio(found, rng)
            print(n_streams, json.dumps(shown, indent=1), flush=True)
    return figures


async def send_many(port: int, n_requests: int, n_texts: int, sample: Callable[[int], None]) -> int:
    """Send short conversations, 16 at a time; return how many failed. `sample` gets the number sent so far."""
    numbers, failed = iter(range(n_requests)), 0
    steps = {round(at * n_requests / N_SAMPLES) for at in range(1, N_SAMPLES + 1)}

    async def sender() -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        for number in numbers:
            body = json.dumps(
                {"model": "fake", "messages": [{"role": "user", "content": f"Alert {number % n_texts}"}]}
            ).encode()
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            answered = (await reader.readuntil(b"\r\n\r\n")).lower()
            lines = answered.split(b"\r\n")
            length = next(int(one.partition(b":")[2]) for one in lines if one.startswith(b"content-length"))
            await reader.readexactly(length)
            failed += b" 200 " not in lines[0]
            if number + 1 in steps:
                sample(number + 1)
        writer.close()

    await asyncio.gather(*(sender() for _ in range(N_SENDERS)))
    return failed


def measure_memory(n_requests: int, n_texts: int) -> dict[str, Any]:
    """Return the resident memory of a gateway over many requests, and print it."""
    samples: list[tuple[int, float]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        started([str(Path(__file__)), "--serve-upstream"]) as (_, upstream_port),
        gateway(folder, upstream_port) as (pid, port),
    ):
        began_s, before_s = time.perf_counter(), cpu_s(pid)
        failed = asyncio.run(send_many(port, n_requests, n_texts, lambda n: samples.append((n, memory_mb(pid)))))
        elapsed_s, own_s = time.perf_counter() - began_s, cpu_s(pid) - before_s
    late = np.array([one for one in samples if one[0] > n_requests / 2])
    (slope, _), covariance = np.polyfit(late[:, 0] / 1000, late[:, 1], 1, cov=True)
    half = 1.96 * float(np.sqrt(covariance[0][0]))
    figures = {
        "requests": n_requests,
        "distinct_texts": min(n_texts, n_requests),
        "failed": failed,
        "seconds": round(elapsed_s, 1),
        "cpu_ms_per_request": round(1000 * own_s / n_requests, 2),
        "mb_per_1000": [round(value, 4) for value in (slope, slope - half, slope + half)],
        "resident_mb": [[n, mb] for n, mb in samples],
    }
    print("requests", json.dumps(figures), flush=True)
    return figures


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="*", default=[1, 4, 16, 64])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--peer", action="store_true", help="LiteLLM's proxy beside it")
    parser.add_argument("--requests", type=int, default=2000, help="of the run that samples memory; 0: none")
    parser.add_argument("--texts", type=int, default=1000, help="how many different messages these requests have")
    parser.add_argument("--serve-upstream", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.serve_upstream:
        asyncio.run(upstream())
        return
    streams = measure(options) if options.streams else {}
    many = measure_memory(options.requests, options.texts) if options.requests else None
    if options.write:
        write_result("gateway", {"command": " ".join(sys.argv), "streams": streams, "many_requests": many})


if __name__ == "__main__":
    main()
