"""Files of calls that no process can store: they are set aside and counted, and no later process reads them again."""

from __future__ import annotations

from dataclasses import replace

from serving import serving

from seasoned import Memory
from seasoned.integrations.clients.call_recorder import recorder_of
from seasoned.integrations.clients.conversations import CallContext, RecordedCall
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.service import DecisionSettings, GatewaySettings
from seasoned.service.gateway.call_spool import CallSpool, spooled_calls


def left_behind(folder, *contents):
    """Leave files as a process that was killed does."""
    spool = CallSpool(folder)
    for facts, content in contents:
        path = spool.write(facts, b"{}").path
        if content is not None:
            path.write_bytes(content)
    spool.close()


def test_file_that_is_no_call_is_set_aside_once(tmp_path, caplog):
    left_behind(tmp_path, ({}, b"no JSON\n"), ({}, b"[1]\n"), ({"namespace": "n"}, None))
    for n_messages in (2, 0):
        caplog.clear()
        spool = CallSpool(tmp_path)
        assert [call.facts for call, _ in spool.read()] == [{"namespace": "n"}]
        spool.close()
        assert [record.message.count("set aside") for record in caplog.records] == [1] * n_messages
    assert spooled_calls(tmp_path) == (1, 2)


def test_oldest_refused_calls_are_removed_above_a_bound(tmp_path, caplog):
    spool = CallSpool(tmp_path, max_refused_bytes=2500)
    names = []
    for _ in range(5):
        file = spool.write({}, b"x" * 1000)
        names.append(file.path.name)
        file.set_aside("no")
    spool.close()
    assert sorted(path.name for path in spool.refused.iterdir()) == names[-2:]
    removed = [record.message for record in caplog.records if "are removed" in record.message]
    assert len(removed) == 3
    assert all(message.startswith("1 of the oldest") for message in removed)


def test_service_sets_aside_what_it_cannot_restore(tmp_path):
    left_behind(tmp_path / "calls", ({"namespace": "default"}, None), ({"namespace": "another"}, None))
    decisions, gateway = DecisionSettings(upstream="http://127.0.0.1:9"), GatewaySettings(spool=tmp_path / "calls")
    with serving(tmp_path / "agent.db", decisions=decisions, gateway=gateway):
        pass
    assert spooled_calls(tmp_path / "calls") == (1, 1)  # that of another namespace waits


def test_call_of_an_episode_that_the_store_refuses_is_set_aside(tmp_path):
    """A text with a lone surrogate is none that a store takes."""
    spool = CallSpool(tmp_path)
    with Memory.open(":memory:") as memory:
        for said in ("fine", "\ud800"):
            answered = {"message": {"role": "assistant", "content": f"{said}."}, "finish_reason": "stop"}
            answer = ChatWire().answer({"choices": [answered]})
            context = replace(CallContext(), kept=spool.write({}, b"{}"))
            call = RecordedCall(ChatWire(), {"messages": [{"role": "user", "content": said}]}, answer, context)
            recorder_of(memory).submit(lambda call=call: call)
        recorder_of(memory).settle()
        assert len(list(memory.episodes())) == 1
    assert spooled_calls(tmp_path) == (0, 1)
