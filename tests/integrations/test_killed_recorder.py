"""A process that records calls is killed at random instants: no answer that its client has is lost or stored twice."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from seasoned import Memory
from seasoned.integrations.clients.conversations import CallContext, CallSession, Conversations, RecordedCall
from seasoned.integrations.clients.ended_episode import ended_episode
from seasoned.integrations.clients.wires.answers import read_answer
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.clients.wires.wire_format import ModelAnswer
from seasoned.integrations.rewards import load_rules

WIRE, CONTEXT = ChatWire(), CallContext(session=CallSession("s"))
N_CALLS = 2  # of tools, before the text that ends an episode


class KilledError(Exception):
    """The process ends here."""


@dataclass
class SpooledCall:
    """A call on disk."""

    body: dict
    context: CallContext
    at: int
    episode: str
    fresh_id: str
    content: bytes = b""


@dataclass(frozen=True)
class KeptFile:
    """The file of a call, of a process that may be killed whenever it removes one."""

    process: RecordingProcess
    call: SpooledCall
    restored_ids: frozenset[str] = frozenset()

    def release(self):
        self.process.may_be_killed()
        self.process.disk.pop(self.call.at, None)

    def set_aside(self, reason):
        raise AssertionError(reason)


@dataclass
class RecordingProcess:
    """Records the calls of one client, as the gateway does; some answers break off, some are read late."""

    draw: random.Random
    memory: Memory
    kills: float
    disk: dict = field(default_factory=dict)
    late: list = field(default_factory=list)
    is_alive: bool = False
    n_answers: int = 0
    acknowledged: list = field(default_factory=list)

    def may_be_killed(self):
        if self.is_alive and self.draw.random() < self.kills:
            raise KilledError

    def start(self):
        self.is_alive, self.late, self.conversations = False, [], Conversations(1800.0)
        for at in sorted(self.disk):
            call = self.disk[at]
            context, _ = self.place(call.body, call.episode, call.fresh_id)
            kept = KeptFile(self, call, frozenset({call.episode, call.fresh_id}))
            self.record(replace(call, context=context), kept)
        self.is_alive = True

    def place(self, body, restored_id, fresh_id):
        known = self.conversations.episode_id(RecordedCall(WIRE, body, ModelAnswer(()), CONTEXT))
        begins = None if known else restored_id or fresh_id
        return replace(CONTEXT, begins=begins), known or begins

    def record(self, call, kept):
        answer, context = read_answer(WIRE, "text/event-stream", call.content), replace(call.context, kept=kept)
        for over in self.conversations.add(RecordedCall(WIRE, call.body, answer, context, at=float(call.at))):
            self.store(over)

    def store(self, conversation):
        episode = ended_episode([conversation], conversation.ending)
        if episode is not None:
            self.may_be_killed()
            episode.store(self.memory)

    def stop(self):
        self.is_alive = False
        for call in self.late:
            self.record(call, KeptFile(self, call))
        for conversation in self.conversations.close_all():
            self.store(conversation)

    def answer(self, messages):
        """Return the message of an answer; None if its client has not all of it, and so asks again."""
        self.n_answers += 1
        action, message, parts = answer_of(self.n_answers, messages)
        body = {"messages": list(messages), "tools": [{}]}
        context, episode = self.place(body, None, f"fresh-{self.n_answers}")
        call = SpooledCall(body, context, self.n_answers, episode, f"fresh-{self.n_answers}")
        n_received = len(parts) if self.draw.random() < 0.6 else self.draw.randrange(1, len(parts))
        for part in parts[: max(n_received, self.draw.choice([n_received, len(parts)]))]:
            call.content += part
            self.disk[call.at] = call
            self.may_be_killed()
        is_whole = n_received == len(parts)
        self.acknowledged += [action] * is_whole
        self.late.append(call)
        try:
            while self.late and self.draw.random() < 0.7:
                one = self.late.pop(self.draw.randrange(len(self.late)))
                self.record(one, KeptFile(self, one))
        except KilledError:
            self.start()
        return message if is_whole else None


def answer_of(number, messages):
    """Return the action of an answer, its message, and the parts of its stream."""
    said = max(at for at, one in enumerate(messages) if one["role"] == "user")
    if sum(one["role"] == "tool" for one in messages[said:]) >= N_CALLS:
        action, finish = f"Answer {number} is the last.", "stop"
        message = {"role": "assistant", "content": action}
        deltas = [{"content": piece} for piece in (f"Answer {number}", " is", " the last.")]
    else:
        function, finish = {"name": "run", "arguments": f'{{"n":{number}}}'}, "tool_calls"
        call = {"id": f"c{number}", "type": "function", "function": function}
        action = f'{{"arguments":{{"n":{number}}},"name":"run"}}'
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        pieces = [{**call, "function": {**function, "arguments": '{"n":'}}, {"function": {"arguments": f"{number}}}"}}]
        deltas = [{"tool_calls": [{"index": 0, **piece}]} for piece in pieces]
    chunks = [{"delta": delta, "finish_reason": None} for delta in deltas] + [{"delta": {}, "finish_reason": finish}]
    events = [json.dumps({"id": f"r{number}", "choices": [{"index": 0, **chunk}]}) for chunk in chunks]
    return action, message, [f"data: {event}\n\n".encode() for event in (*events, "[DONE]")]


def played(seed, kills):
    """Return the actions that a client had whole, and how often each is stored, after three of its episodes."""
    with Memory.open(":memory:") as memory:
        process, messages = RecordingProcess(random.Random(seed), memory, kills), []
        process.start()
        for number in range(3):
            messages.append({"role": "user", "content": f"alert {number}"})
            n_done = 0
            while n_done <= N_CALLS:
                try:
                    message = process.answer(messages)
                except KilledError:
                    process.start()
                    continue
                if message is not None:
                    n_done += 1
                    results = [{"role": "tool", "tool_call_id": one["id"]} for one in message.get("tool_calls", ())]
                    messages += [message, *({**one, "content": "done"} for one in results)]
        process.stop()
        process.start()
        process.stop()
        return process.acknowledged, Counter(step.action for one in memory.episodes() for step in one.steps)


@pytest.mark.parametrize("kills", [0.0, 0.05])
@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(n, marks=pytest.mark.slow) for n in range(5, 200))])
def test_no_answer_is_lost_or_stored_twice(seed, kills):
    acknowledged, stored = played(seed, kills)
    assert set(acknowledged) <= set(stored)
    assert max(stored.values()) == 1


def test_rewards_are_stored_though_the_process_was_killed_before_it_did():
    with Memory.open(":memory:") as memory:
        for rewards, is_restored in ((None, False), (load_rules("default"), True), (load_rules("default"), True)):
            process, messages = RecordingProcess(random.Random(0), memory, 0.0), [{"role": "user", "content": "go"}]
            process.conversations = Conversations(1800.0)
            for number in range(1, N_CALLS + 2):
                _, message, parts = answer_of(number, messages)
                context = replace(CONTEXT, begins="x1", rewards=rewards)
                call = SpooledCall({"messages": list(messages), "tools": [{}]}, context, number, "x1", "x1")
                call.content = b"".join(parts)
                process.record(call, KeptFile(process, call, frozenset({"x1"} if is_restored else ())))
                results = [{"role": "tool", "tool_call_id": one["id"]} for one in message.get("tool_calls", ())]
                messages += [message, *({**one, "content": "Exit code: 2"} for one in results)]
        [episode] = memory.episodes()
        assert len(episode.steps) == 3 and len(memory.events()) == 2
