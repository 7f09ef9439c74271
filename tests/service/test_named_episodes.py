"""Episodes and sessions that a gateway's clients name: what is one, what is held, and when calls end after them."""

from __future__ import annotations

import contextlib
import json

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import NotFoundError
from seasoned.integrations.clients.call_recorder import recorder_of
from seasoned.integrations.clients.conversations import RecordedCall
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.service.bearer_tokens import ANYONE, Token
from seasoned.service.decisions.outcome_feedback import add_any_feedback
from seasoned.service.gateway.client_ids import ID_HEADERS
from seasoned.service.gateway.forwarder import GatewayRequest
from seasoned.service.gateway.gateway_episodes import GatewayEpisodes
from seasoned.service.gateway.session_paths import PathSession
from seasoned.service.permissions import ForbiddenError

CALLED = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}


class NamedCalls:
    """Calls of a model in episodes that their addresses name, without a server."""

    def __init__(self, memory, **settings):
        self.recorder = recorder_of(memory)
        self.episodes = GatewayEpisodes(memory, self.recorder, "task", **settings)

    def begin(self, name, said, *more, holder=ANYONE, fresh_id="fresh", headers=()):
        """Send a call, in an episode of a name or none; return what its answer is recorded with."""
        path = None if name is None else PathSession(name, True)
        request = GatewayRequest(ChatWire(), None, path, holder, headers, b"")
        body = {"messages": [{"role": "user", "content": said}, *more], "tools": [{"type": "function"}]}
        place = self.recorder.ask(lambda open_: self.episodes.place(request, body, fresh_id, open_)).result()
        return place, body

    def finish(self, place, body, response_id=None):
        """Record the answer to a call."""
        message = {"role": "assistant", "content": None, "tool_calls": [CALLED]}
        answered = {"id": response_id, "choices": [{"message": message}]}

        def read():
            context = self.episodes.reopened(place, place.context)
            answer = ChatWire().answer(answered)
            return RecordedCall(ChatWire(), body, answer, context, n_bytes=len(json.dumps(body)))

        self.recorder.submit(read)

    def held_bytes(self):
        return self.recorder.ask(lambda open_: open_.block_bytes()).result()


@contextlib.contextmanager
def named_calls(**settings):
    with Memory.open(":memory:") as memory:
        yield memory, NamedCalls(memory, **settings)


def stored(memory):
    return {one.id: [step.state[:9] for step in one.steps] for one in memory.episodes()}


def test_the_named_episode_that_was_not_used_for_the_longest_time_ends_where_all_have_too_many_bytes():
    with named_calls(max_named_bytes=500_000) as (memory, calls):
        for number in range(20):
            calls.finish(*calls.begin(f"trial/{number}", f"alert {number:03}".ljust(100_000)))
        held = calls.held_bytes()
        assert 400_000 < held < 610_000  # the call at work is above the limit
        for number in range(20):
            calls.episodes.end(f"trial/{number}", None)
        calls.recorder.settle()
        assert stored(memory) == {f"trial/{number}": [f"alert {number:03}"] for number in range(20)}
        assert calls.held_bytes() == 0


def test_one_named_episode_holds_a_limited_number_of_bytes_and_loses_no_call():
    with named_calls(max_named_bytes=500_000) as (memory, calls):
        places = set()
        for number in range(12):
            place, body = calls.begin("shared", f"alert {number:03}".ljust(100_000))
            places.add(place.episode_id)
            calls.finish(place, body)
            assert calls.held_bytes() < 610_000  # the call at work is above the limit
        calls.episodes.end("shared", None)
        kept = stored(memory)
        assert set(kept) == places == {"shared", "shared~2", "shared~3"}
        assert sorted(said for states in kept.values() for said in states) == [
            f"alert {number:03}" for number in range(12)
        ]


def test_an_answer_that_comes_after_the_end_of_its_named_episode_begins_the_next_one():
    with named_calls(max_named_bytes=1) as (memory, calls):
        late = calls.begin("slow", "the slow model")
        calls.finish(*calls.begin("slow", "the quick model"))
        calls.finish(*calls.begin("other", "another"))  # for which the first episode ends
        assert calls.episodes.end("other", None) == ["other"]
        calls.finish(*late)
        assert calls.held_bytes()
        assert calls.episodes.end("slow", None) == ["slow~2"]
        calls.recorder.settle()
        assert {id_: len(steps) for id_, steps in stored(memory).items()} == {"slow": 1, "other": 1, "slow~2": 1}


def test_a_server_that_repeats_the_ids_of_its_answers_loses_no_episode():
    """Feedback by the id is on the latest of them."""
    with named_calls() as (memory, calls):
        for said in ("first", "second", "third"):
            calls.finish(*calls.begin("trial", said), "always")
        assert calls.episodes.end("trial", None) == ["trial"]
        calls.recorder.settle()
        assert {id_: len(steps) for id_, steps in stored(memory).items()} == {"trial": 3}
        memory.feedback("always", 0.5)
        assert [(event.episode_id, event.step) for event in memory.events()] == [("trial", 2)]


def test_a_name_that_an_earlier_process_stored_is_not_taken_again(tmp_path, monkeypatch):
    monkeypatch.setattr("seasoned.service.gateway.named_episode_ids._LOOKUP_S", 10.0)  # a busy machine
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.add(Episode("old", [Step("alert old", "wait")], "trial"))
    with Memory.open(tmp_path / "agent.db") as memory:
        calls = NamedCalls(memory)
        place, body = calls.begin("trial", "alert new")
        assert place.episode_id == "trial~2"  # the header of the answer
        calls.finish(place, body)
        assert calls.episodes.end("trial", None) == ["trial~2"]
        assert stored(memory) == {"trial": ["alert old"], "trial~2": ["alert new"]}


FOREIGN = [
    {"kind": "thumbs", "up": True, "episode_id": "run/7"},
    {"reward": 1.0, "episode_id": "run/7"},
    {"reward": 1.0, "inference_id": "run/7"},
    {"up": False, "inference_id": "chatcmpl-7"},
    {"metric_name": "solved", "value": 1.0, "episode_id": "run/7"},
    {"name": "solved", "value": 1.0, "traceId": "run/7"},
]


@pytest.mark.parametrize("name", ["run/7", None], ids=["named", "in a conversation"])
def test_feedback_of_another_author_ends_no_running_episode(name):
    ann, bob, root = (Token(f"the-token-of-{one}-alone", one, scopes=["feedback"]) for one in ("ann", "bob", "root"))
    root = Token(root.token, "root", scopes=["admin"])
    with named_calls() as (memory, calls):
        for fresh_id, judge in (("run/7", ann), ("run/8", root)):
            answer = fresh_id.replace("run/", "chatcmpl-")
            calls.finish(*calls.begin(name and fresh_id, f"alert {fresh_id}", holder=ann, fresh_id=fresh_id), answer)
            for body in json.loads(json.dumps(FOREIGN).replace("run/7", fresh_id).replace("chatcmpl-7", answer)):
                with pytest.raises(ForbiddenError, match="another author"):
                    add_any_feedback(memory, body, bob, {})
            assert fresh_id not in stored(memory)
            add_any_feedback(memory, {"reward": 1.0, "inference_id": answer}, judge, {})
            add_any_feedback(memory, {"up": True, "inference_id": answer}, bob, {})  # a verdict, after its end
            assert {one.author for one in memory.events() if one.episode_id == fresh_id} == {judge.author, "bob"}


UUIDS = "0199f3a2-7c1e-7b54-9d53-2f6a1f0c8e11", "0199f3a2-8d02-7e31-8a47-5b0c9d4e7f22"
SESSION_HEADERS = {  # as their clients spell them, with ids of the clients' form
    "X-Seasoned-Session-Id": ("ticket 17", "ticket 18"),
    "x-litellm-session-id": UUIDS,
    "Helicone-Session-Id": UUIDS,
    "x-portkey-trace-id": ("1a2b3c4d5e6f7a8b", "9c0d1e2f3a4b5c6d"),
    "langfuse_session_id": ("chat/2026-11-24/17", "chat/2026-11-24/18"),
    "X-Claude-Code-Session-Id": UUIDS,
    "session-id": UUIDS,  # Codex, and before it had hyphens
    "session_id": UUIDS,
    "thread-id": UUIDS,
    "thread_id": UUIDS,
    "x-opencode-session": ("ses_5f1c2d3e4ffeAbCdEfGhIjKlMn", "ses_5f1c2d3e5ffeZyXwVuTsRqPoNm"),
    "X-Session-Id": ("ses_5f1c2d3e4ffeAbCdEfGhIjKlMn", "trial__7"),
    "x-session-affinity": UUIDS,
    "X-Agent-Session-Id": ("20261124_101500_a1b2c3", "20261124_101501_d4e5f6"),
    "X-Cagent-Session-Id": UUIDS,
    "x-grok-conv-id": UUIDS,
    "Conversation-Id": ("conv_68f0a1b2", "conv_68f0a1b3"),
}
SUBAGENT_HEADERS = {
    "x-claude-code-agent-id": None,  # names an agent, also the main one
    "x-claude-code-parent-agent-id": "agent-1",
    "x-openai-subagent": "review",
    "x-codex-parent-thread-id": UUIDS[0],
    "x-parent-session-id": "ses_5f1c2d3e4ffeAbCdEfGhIjKlMn",
}
OWN_HEADERS = {"x-seasoned-episode-id", "x-seasoned-task", "x-seasoned-subject"}


def test_each_header_that_is_read_has_an_example_here():
    assert {*map(str.lower, SESSION_HEADERS), *SUBAGENT_HEADERS, *OWN_HEADERS} == set(ID_HEADERS)


@pytest.mark.parametrize("header", SESSION_HEADERS)
def test_sessions_by_a_clients_header_are_apart_and_each_goes_on(header):
    name, (one, other) = header.lower().encode(), SESSION_HEADERS[header]  # a server reads names in lower case
    with named_calls() as (_, calls):
        episodes = {}
        for session in (one, other):
            headers = [(b"x-client-request-id", UUIDS[1].encode()), (name, session.encode())]
            place, body = calls.begin(None, "the same alert", fresh_id=f"of {session}", headers=headers)
            calls.finish(place, body)
            episodes[session] = place.episode_id
        assert episodes == {one: f"of {one}", other: f"of {other}"}
        assert [calls.recorder.session_episode(session, None) for session in (one, other)] == list(episodes.values())
        said = {"role": "assistant", "content": None, "tool_calls": [CALLED]}
        result = {"role": "tool", "tool_call_id": "c", "content": "done"}
        for session in (one, other, None):
            headers = [] if session is None else [(name, session.encode())]
            place, _ = calls.begin(None, "the same alert", said, result, fresh_id="new", headers=headers)
            assert place.episode_id == ("new" if session is None else episodes[session])


@pytest.mark.parametrize("header", [name for name, example in SUBAGENT_HEADERS.items() if example])
def test_call_with_a_header_of_a_sub_agent_is_a_side_call(header):
    session = (b"x-session-id", b"trial__7")
    with named_calls() as (_, calls):
        main, body = calls.begin(None, "alert", headers=[session, (b"x-claude-code-agent-id", b"agent-1")])
        calls.finish(main, body)
        child = [session, (header.encode(), SUBAGENT_HEADERS[header].encode())]
        place, _ = calls.begin(None, "look at the logs", headers=child, fresh_id="of the sub-agent")
        assert (main.context.is_side, place.context.is_side) == (False, True)
        assert place.episode_id == "of the sub-agent"


def test_dry_run_of_a_metric_finds_a_running_episode_and_a_response_in_it():
    with named_calls() as (memory, calls):
        calls.finish(*calls.begin("run/7", "alert"), "chatcmpl-7")
        metric = {"metric_name": "solved", "value": 1.0, "dryrun": True}
        for target in ({"episode_id": "run/7"}, {"inference_id": "chatcmpl-7"}):
            assert add_any_feedback(memory, {**metric, **target}, ANYONE, {})["feedback_id"]
        with pytest.raises(NotFoundError):
            add_any_feedback(memory, {**metric, "episode_id": "run/8"}, ANYONE, {})
        assert stored(memory) == {}
