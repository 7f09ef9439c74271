"""A process that records calls is killed at random instants: no answer that its client has is lost or stored twice."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from seasoned import Memory
from seasoned.errors import StoreTimeoutError
from seasoned.integrations.clients.conversations import CallContext, CallSession, Conversations, RecordedCall
from seasoned.integrations.clients.ended_episode import ended_episode
from seasoned.integrations.clients.episode_scope import CurrentEpisode
from seasoned.integrations.clients.wires.answers import read_answer
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.clients.wires.wire_format import ModelAnswer
from seasoned.integrations.rewards import load_rules
from seasoned.memory import EpisodeRecorder

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


def run_of(run, restored_ids=(), *, n_times=1, rewards=None):
    """Return a run of the episode that a client names `nightly`, whose runs have the same steps."""
    process = RecordingProcess(random.Random(0), None, 0.0)
    scope, conversations = CurrentEpisode("nightly", "nightly", None, None, takes_free_id=True), Conversations(1800.0)
    for number in range(2 * n_times):
        called = {"id": f"{run}-c{number}", "type": "function", "function": {"name": "check", "arguments": "{}"}}
        is_last = number % 2 == 1
        if not is_last:
            messages = [{"role": "user", "content": "go"}]
        message = {"role": "assistant", "content": "all green"}
        if not is_last:
            message = {"role": "assistant", "content": None, "tool_calls": [called]}
        choice = {"message": message, "finish_reason": "stop" if is_last else "tool_calls"}
        content = json.dumps({"id": run and f"{run}-{number}", "choices": [choice]}).encode()
        kept = KeptFile(process, SpooledCall({}, CONTEXT, number, "nightly", "fresh"), frozenset(restored_ids))
        context = replace(CONTEXT, scope=scope, rewards=rewards, kept=kept)
        body = {"messages": list(messages), "tools": [{}]}
        recorded = RecordedCall(WIRE, body, read_answer(WIRE, "application/json", content), context, at=float(number))
        conversations.add(recorded)
        messages += [message, {"role": "tool", "tool_call_id": called["id"], "content": "Exit code: 2"}]
    return ended_episode(conversations.close_all("nightly"), "terminated")


def store_run(memory, *args, **kwargs):
    run_of(*args, **kwargs).store(memory)


def n_steps(memory):
    return {one.id: len(one.steps) for one in memory.episodes()}


@pytest.mark.parametrize("restored_ids", [(), ("nightly", "fresh")])
def test_another_run_of_a_name_with_equal_steps_is_another_episode(restored_ids):
    with Memory.open(":memory:") as memory:
        for run in "abc":
            store_run(memory, run, restored_ids)
        for run in "abc":
            store_run(memory, run, ("nightly", "fresh"))  # a kill came before its files were removed
        assert n_steps(memory) == {"nightly": 2, "nightly~2": 2, "nightly~3": 2}
        assert memory.response_step("c-1") == ("nightly~3", 1)


def test_an_episode_whose_commit_failed_after_it_was_stored_is_stored_once(monkeypatch):
    commit = EpisodeRecorder.commit

    def stored_and_failed(recorder, **options):
        commit(recorder, **options)
        raise StoreTimeoutError("no answer", "the server went", "Try again.")

    with Memory.open(":memory:") as memory:
        store_run(memory, "a")
        episode = run_of("b")
        monkeypatch.setattr(EpisodeRecorder, "commit", stored_and_failed)
        with pytest.raises(StoreTimeoutError):
            episode.store(memory)
        monkeypatch.undo()
        episode.store(memory)
        assert n_steps(memory) == {"nightly": 2, "nightly~2": 2}


def test_rewards_are_stored_on_the_run_that_was_killed_before_it_stored_them():
    with Memory.open(":memory:") as memory:
        for run in "abc":
            store_run(memory, run)
        for _ in range(2):
            store_run(memory, "b", ("nightly", "fresh"), rewards=load_rules("default"))
        assert n_steps(memory) == {"nightly": 2, "nightly~2": 2, "nightly~3": 2}
        assert {event.episode_id for event in memory.events()} == {"nightly~2"}


def test_steps_that_are_stored_under_two_names_of_a_restored_run_count_once():
    """Where answers have no ids, a restored turn is new as soon as more are restored than stored."""
    with Memory.open(":memory:") as memory:
        for _ in range(2):
            store_run(memory, None)
        store_run(memory, None, ("nightly", "nightly~2"), n_times=3)
        assert n_steps(memory) == {"nightly": 2, "nightly~2": 2, "nightly~3": 2}


@pytest.mark.parametrize("runs", ["ab", [None, None]], ids=["ids of responses", "no ids"])
def test_equal_runs_of_two_processes_at_one_instant_are_both_stored(runs, tmp_path):
    """The other process stores its run after this one has looked for the name, and before it stores its own."""

    def redact(text):
        if text == "go" and not others:
            others.append(runs[1])
            with Memory.open(path, redact=redact) as other:
                store_run(other, runs[1])
        return text

    path, others = tmp_path / "agent.db", []
    with Memory.open(path, redact=redact):
        pass
    with Memory.open(path, redact=redact) as memory:
        store_run(memory, runs[0])
        assert n_steps(memory) == {"nightly": 2, "nightly~2": 2}
