"""Answered calls that wait to be recorded: above a limit of bytes the next calls wait, for a short time."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import tracemalloc

import pytest

from seasoned import Memory
from seasoned.integrations.clients.call_recorder import CallRecorder
from seasoned.integrations.clients.conversations import CallContext, RecordedCall
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.service.bearer_tokens import ANYONE
from seasoned.service.gateway.call_spool import CallSpool
from seasoned.service.gateway.call_taps import ChangedCall, RecordedTap
from seasoned.service.gateway.forwarder import GatewayRequest
from seasoned.service.gateway.gateway import Gateway, GatewaySettings
from seasoned.service.gateway.gateway_episodes import GatewayEpisodes
from seasoned.service.gateway.gateway_shares import ModeThreads
from seasoned.service.memory_pool import MemoryPool

GUARD_S = 20.0


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        yield opened


def call_of(said, n_bytes):
    answered = {"message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}
    answer = ChatWire().answer({"choices": [answered]})
    body = {"messages": [{"role": "user", "content": said}]}
    return RecordedCall(ChatWire(), body, answer, CallContext(), n_bytes=n_bytes)


def blocked(recorder, duty):
    """Let a thread of a recorder wait, and return what lets it go on."""
    goes_on = threading.Event()
    recorder._run(duty, lambda: goes_on.wait(GUARD_S))
    return goes_on


@pytest.mark.parametrize("limit", [{"max_bytes": 100_000}, {"max_waiting": 2}], ids=["bytes", "number"])
@pytest.mark.parametrize("duty", ["group", "store"])
def test_there_is_no_room_until_calls_are_stored(memory, duty, limit):
    recorder = CallRecorder(memory, **limit)
    goes_on = blocked(recorder, duty)
    for n in range(3):
        recorder.submit(lambda n=n: call_of(f"{n}", 60_000), 60_000)
    if duty == "store":
        recorder.ask(lambda _: None).result(GUARD_S)
    room = recorder.room()
    assert room is not None and not room.done()
    goes_on.set()
    room.result(GUARD_S)
    recorder.settle()
    assert recorder.room() is None
    assert len(memory.episodes()) == 3
    recorder.close()


def tap_of(memory, recorder, body, **options):
    request = GatewayRequest(ChatWire(), None, None, ANYONE, [], body)
    episodes = GatewayEpisodes(memory, recorder, "task")
    return RecordedTap(request, memory, recorder, episodes, threads=ModeThreads(), **options)


def test_call_of_the_gateway_is_sent_once_there_is_room(memory):
    recorder, body = CallRecorder(memory, max_bytes=1), b'{"messages": []}'

    async def asked():
        waiting = asyncio.ensure_future(tap_of(memory, recorder, body, mode_wait_s=GUARD_S).request(None))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        goes_on.set()
        return await waiting

    goes_on = blocked(recorder, "group")
    recorder.submit(lambda: None, 2)
    assert asyncio.run(asked()) == body
    recorder.close()


def test_call_of_the_gateway_is_sent_though_there_is_no_room(memory):
    recorder, body = CallRecorder(memory, max_bytes=1), b'{"messages": []}'
    goes_on = blocked(recorder, "group")
    recorder.submit(lambda: None, 2)
    assert asyncio.run(asyncio.wait_for(tap_of(memory, recorder, body).request(None), 5.0)) == body
    goes_on.set()
    recorder.ask(lambda _: None).result(GUARD_S)
    assert recorder.room() is None
    recorder.close()


def test_changed_request_is_written_outside_of_the_event_loop(memory):
    class Changed(dict):
        def items(self):
            wrote.add(threading.get_ident())
            return super().items()

    class Change:
        def mode_of(self, context):
            return "advise"

        def __call__(self, call):
            return ChangedCall(Changed({"messages": [1]}), call.place.context, "memory")

    recorder, wrote = CallRecorder(memory), set()
    tap = tap_of(memory, recorder, b'{"messages": []}', change=Change(), mode_wait_s=GUARD_S)
    assert asyncio.run(tap.request(None)) == b'{"messages":[1]}'
    assert wrote and threading.get_ident() not in wrote
    recorder.close()


@pytest.mark.parametrize("is_spooled", [True, False])
def test_call_that_finds_twice_as_many_waiting_is_left_in_its_file(is_spooled, memory, tmp_path, caplog):
    recorder = CallRecorder(memory, max_bytes=1)
    spool = CallSpool(tmp_path) if is_spooled else None
    tap = tap_of(memory, recorder, b'{"messages": [{"role": "user", "content": "hi"}]}', spool=spool)
    goes_on = blocked(recorder, "group")
    recorder.submit(lambda: None, 3)
    tap.begin(200, [(b"content-type", b"application/json")])
    asyncio.run(tap.add(b'{"choices": [{"message": {"role": "assistant", "content": "ok"}}]}'))
    tap.finish()
    assert recorder.counts() == {
        "waiting": 1,
        "waiting_bytes": 3,
        "left_on_disk": int(is_spooled),
        "lost": int(not is_spooled),
    }
    goes_on.set()
    recorder.close()
    assert len(list(tmp_path.rglob("*.call"))) == is_spooled
    [line] = [one.getMessage() for one in caplog.records if "not recorded here" in one.getMessage()]
    assert ("it is lost" in line) is not is_spooled


def test_request_that_cannot_be_read_is_sent_in_time_and_logs_no_error(memory, caplog):
    """It is found to be unreadable after the call has gone on."""

    class Change:
        def mode_of(self, context):
            return "advise"

    async def asked():
        tap = tap_of(memory, recorder, b"[]", change=Change(), mode_wait_s=0.01)
        assert await tap.request(None) == b"[]"
        goes_on.set()
        await asyncio.to_thread(recorder.ask(lambda _: None).result)
        await asyncio.sleep(0)

    recorder = CallRecorder(memory)
    goes_on = blocked(recorder, "group")
    asyncio.run(asked())
    gc.collect()
    assert caplog.text == ""
    recorder.close()


def left_in_its_file(memory, folder, said):
    """Leave an answered call in its file, as a recorder that is full does."""
    recorder, spool = CallRecorder(memory, max_bytes=1), CallSpool(folder)
    goes_on = blocked(recorder, "group")
    recorder.submit(lambda: None, 3)
    tap = tap_of(memory, recorder, json.dumps({"messages": [{"role": "user", "content": said}]}).encode(), spool=spool)
    tap.begin(200, [(b"content-type", b"application/json")])
    choice = {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    asyncio.run(tap.add(json.dumps({"choices": [choice]}).encode()))
    tap.finish()
    goes_on.set()
    recorder.close()
    spool.close()


def test_service_starts_though_there_is_no_room_for_calls_of_earlier_processes(tmp_path, caplog):
    pool, n_calls = MemoryPool(":memory:", None, create=True), 3
    memory = pool.memory(None)
    for number in range(n_calls):
        left_in_its_file(memory, tmp_path, f"alert {number}")
    recorder = CallRecorder(memory, max_bytes=1)
    memory.session.recorders.append(recorder)
    goes_on = blocked(recorder, "store")

    async def run():
        settings = GatewaySettings(spool=tmp_path, restore_wait_s=0.05)
        async with Gateway("http://127.0.0.1:9", pool, settings, n_tokens=0).running():
            assert "wait for room" in caplog.text
            goes_on.set()
            while len(memory.episodes()) < n_calls:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), GUARD_S))
    pool.close()


def test_request_of_many_values_is_held_as_it_was_sent(memory):
    recorder = CallRecorder(memory)
    said = [{"role": "user", "content": "hi"}]
    body = json.dumps({"messages": said, "x": [[]] * 50_000}).encode()
    tracemalloc.start()
    tap = tap_of(memory, recorder, body)
    recorder.ask(lambda _: None).result(GUARD_S)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1_000_000  # parsed it takes 3.2 MB
    assert tap._body()["messages"] == said
    recorder.close()


CHAT_END = b'data: {"choices": [{"delta": {"content": "data: [DONE] "}}]}\n\ndata: [DONE]\n\n'
MESSAGES_END = b'event: content_block_stop\ndata: {"a": 1}\n\nevent: message_stop\ndata: {"type": "message_stop"}\n\n'
RESPONSES_END = b'event: response.completed\r\ndata: {"type": "response.completed"}\r\n\r\n'


@pytest.mark.parametrize("stream", [CHAT_END, MESSAGES_END, RESPONSES_END])
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_call_is_recorded_once_with_the_last_event_of_its_stream(stream, n, memory):
    recorder = CallRecorder(memory)
    submitted = []
    recorder.submit = lambda *given: submitted.append(given)
    tap = tap_of(memory, recorder, b'{"messages": []}')
    tap.begin(200, [(b"content-type", b"text/event-stream")])
    parts = [stream[a : a + n] for a in range(0, len(stream), n)]
    for number, part in enumerate(parts, 1):
        asyncio.run(tap.add(part))
        assert len(submitted) == (number == len(parts))
    asyncio.run(tap.add(b": more"))
    tap.finish()
    assert len(submitted) == 1
    recorder.close()
