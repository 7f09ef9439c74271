"""The mode `decisions` of wrapped clients: which requests leave, which answer is used, and what is stored."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from client_loops import ALERT, APIS, Loop, bare_client, collected
from hypothesis import given, settings
from hypothesis import strategies as st
from model_server import MODEL, Answer

import seasoned
from seasoned import Episode, EvidenceQuery, JitRL, Memory, Step
from seasoned.actions import canonical_tool_call, named_call
from seasoned.errors import InputError
from seasoned.integrations.clients import CallDecisions
from seasoned.integrations.clients.call_decisions import own_share
from seasoned.integrations.clients.tool_evidence import TEXT_ANSWER, ToolEvidence, expected_calls, tool_of

RESTART, ROLLBACK = (Answer(calls=((name, {"service": "Checkout"}),)) for name in ("restart", "rollback"))
TEXT = Answer("It is quiet.")
LETTERS = {"A": -0.2, "B": -2.0, "C": -3.0}


class Script(list):
    """Answers by the request: a question for a letter, a call demanded or forbidden, or the agent's own request."""

    def __init__(self, *own, letters=None, demanded=200):
        super().__init__(own)
        self.letters = Answer("A", logprobs=LETTERS) if letters is None else letters
        self.demanded = demanded

    def for_body(self, body):
        if asks_for_a_letter(body):
            return self.letters
        choice = body.get("tool_choice")
        kind = choice if isinstance(choice, str) else (choice or {}).get("type")
        if kind in ("function", "tool"):
            name = choice.get("name") or choice["function"]["name"]
            return Answer(calls=((name, {"service": "Checkout"}),), status=self.demanded)
        return TEXT if kind == "none" else self.pop(0)


def asks_for_a_letter(body):
    return "Answer with one letter." in json.dumps(body)


@pytest.fixture
def memory():
    """Restarts failed at this alert, whatever their arguments; rollbacks helped."""
    with Memory.open(":memory:") as memory:
        learn(memory, {"restart": -1.0, "rollback": 1.0})
        yield memory


def learn(memory, rewards):
    for tool, reward in rewards.items():
        for n in range(6):
            action = (
                tool if tool == TEXT.text else canonical_tool_call({"name": tool, "arguments": {"service": f"s{n}"}})
            )
            memory.add(Episode("oncall", [Step(ALERT, action, reward)]))


def mode_of(memory, **settings):
    return CallDecisions(JitRL(memory, selection="argmax", nats_per_step=None), **settings)


def tool_called(api, answer, *, stream):
    if api == "chat":
        message = answer if stream else answer.choices[0].message.model_dump()
        return message["tool_calls"][0]["function"]["name"]
    if api == "responses":
        return next(item.name for item in answer.output if item.type == "function_call")
    return next(block.name for block in answer.content if block.type == "tool_use")


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", APIS)
def test_decided_tool_is_called_and_recorded(api, stream, is_async, server, memory):
    """The agent's own choice is a restart. Where the API has logprobs, a letter is asked for; else four answers are."""
    server.script = Script(*[RESTART] * 4)
    bare = bare_client(api, server, is_async=is_async)
    client = seasoned.wrap(bare, memory, mode=mode_of(memory), timeout_s=30.0, on_error="raise")
    loop = Loop(client, api, stream)
    loop.user(ALERT)
    if is_async:

        async def ask():
            answer = await loop.create(**loop.request(), stream=stream)
            return [chunk async for chunk in answer] if stream else answer

        answer = asyncio.run(ask())
        answer = collected(api, answer) if stream else answer
    else:
        answer = loop.call()
    assert tool_called(api, answer, stream=stream) == "rollback"
    *asked, last = server.bodies()
    assert len(asked) == (4 if api == "messages" else 1)
    own = {**loop.request(), **({"stream": stream} if stream or is_async else {})}
    assert {key: value for key, value in last.items() if key != "tool_choice"} == own
    if api == "messages":
        assert all(body == own for body in asked)
    else:
        assert asks_for_a_letter(asked[0]) and asked[0]["tools"] == own["tools"] and ALERT in json.dumps(asked[0])
    memory.session.recorders[0].close()
    [step] = memory.episodes()[-1].steps
    assert step.state == ALERT and named_call(step.action).name == "rollback" and step.propensity == 1.0
    assert step.action in step.prior and {tool_of(one) for one in step.prior} == {"restart", "rollback", TEXT_ANSWER}
    [note] = memory.notes(kind="usage")
    assert note.body["calls"] == len(asked)
    assert stream or note.body == {
        "calls": len(asked),
        "prompt_tokens": 3 * len(asked),
        "completion_tokens": 2 * len(asked),
    }


def test_answer_that_calls_the_decided_tool_is_used_as_it_is(server, memory):
    server.script = Script(RESTART, ROLLBACK, RESTART, RESTART)
    mode = mode_of(memory, method="votes")
    loop = Loop(seasoned.wrap(bare_client("chat", server), memory, mode=mode, timeout_s=30.0), "chat")
    loop.user(ALERT)
    assert tool_called("chat", loop.call(), stream=False) == "rollback"
    assert len(server.requests) == 4 and all(body == loop.request() for body in server.bodies())


def test_answer_in_text_can_be_decided(server, memory):
    learn(memory, {"rollback": -3.0, TEXT.text: 1.0})
    server.script = Script()
    loop = Loop(seasoned.wrap(bare_client("chat", server), memory, mode=mode_of(memory), timeout_s=30.0), "chat")
    loop.user(ALERT)
    assert loop.call().choices[0].message.content == TEXT.text
    assert server.bodies()[-1]["tool_choice"] == "none"


def test_a_limited_number_of_models_without_labels_is_kept(memory):
    mode = mode_of(memory)
    for number in range(1100):
        mode.without_labels(f"model {number}")
    assert [mode.reads_labels(f"model {number}") for number in (0, 99, 100, 1099)] == [True, True, False, False]


def test_unreadable_labels_are_not_asked_for_again(server, memory):
    server.script = Script(*[RESTART] * 8, letters=Answer(status=400))
    loop = Loop(seasoned.wrap(bare_client("chat", server), memory, mode=mode_of(memory), timeout_s=30.0), "chat")
    loop.user(ALERT)
    for _ in range(2):
        assert tool_called("chat", loop.call(), stream=False) == "rollback"
    assert [asks_for_a_letter(body) for body in server.bodies()] == [True, *[False] * 10]


@pytest.mark.parametrize(
    ("script", "n_requests"),
    [
        (Script(RESTART, letters=Answer(status=503)), 2),  # the question fails
        (Script(RESTART, demanded=400), 3),  # the demanded call is refused
    ],
    ids=["question", "demand"],
)
def test_agent_gets_its_own_answer_where_the_endpoint_refuses(script, n_requests, server, memory):
    server.script = script
    loop = Loop(seasoned.wrap(bare_client("chat", server), memory, mode=mode_of(memory), timeout_s=30.0), "chat")
    loop.user(ALERT)
    assert tool_called("chat", loop.call(), stream=False) == "restart"
    assert len(server.requests) == n_requests and server.bodies()[-1] == loop.request()
    memory.session.recorders[0].close()
    [step] = memory.episodes()[-1].steps
    assert step.prior is None and step.propensity is None


ONE_TOOL = {"tools": Loop(None, "chat").options["tools"][:1]}


@pytest.mark.parametrize(
    "options",
    [
        {"tool_choice": "none"},
        {"tool_choice": {"type": "function", "function": {"name": "restart"}}},
        {**ONE_TOOL, "tool_choice": "required"},
        {"tools": [{"type": "custom", "custom": {"name": "shell"}}]},
    ],
    ids=["none", "given", "one", "custom"],
)
def test_request_without_a_choice_leaves_unchanged(options, server, memory):
    server.script = Script(RESTART)
    loop = Loop(seasoned.wrap(bare_client("chat", server), memory, mode="decisions", on_error="raise"), "chat")
    loop.user(ALERT)
    loop.options |= options
    loop.call()
    assert server.bodies() == [loop.request()]


def test_nothing_is_asked_where_memory_knows_too_little(server, memory):
    server.script = Script(RESTART)
    loop = Loop(seasoned.wrap(bare_client("chat", server), memory, mode="decisions", on_error="raise"), "chat")
    loop.user("a question about something else entirely")
    loop.call()
    assert server.bodies() == [loop.request()]


@pytest.mark.parametrize("api", APIS)
def test_nothing_can_be_demanded_of_a_model_that_thinks(api, server, memory):
    """Messages refuses a demanded call while the model thinks: then memory chooses among its answers."""
    server.script = Script(RESTART, ROLLBACK, RESTART, RESTART)
    loop = Loop(seasoned.wrap(bare_client(api, server), memory, mode=mode_of(memory), timeout_s=30.0), api)
    if api == "messages":
        loop.options |= {"extra_body": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
    loop.user(ALERT)
    assert tool_called(api, loop.call(), stream=False) == "rollback"
    assert len(server.requests) == (4 if api == "messages" else 2)


@pytest.mark.parametrize("argument", [{"method": "guess"}, {"n": 1}, {"policy": "default"}])
def test_wrong_setting_of_decisions_is_refused(argument, memory):
    with pytest.raises(InputError, match=next(iter(argument))):
        CallDecisions(**{"policy": JitRL(memory), **argument})


PROBS = st.lists(st.floats(1e-6, 1.0), min_size=3, max_size=3).map(
    lambda masses: dict(zip("abc", [mass / sum(masses) for mass in masses], strict=True))
)


@given(base=PROBS, shifted=PROBS)
def test_own_answers_and_demanded_ones_together_are_the_shifted_policy(base, shifted):
    share, rest = own_share(base, shifted)
    assert 0.0 <= share <= 1.0 and min(rest.values()) >= 0.0
    for action, p in base.items():
        assert share * p + (1.0 - share) * rest[action] == pytest.approx(shifted[action], abs=1e-9)


def test_own_answer_is_used_as_often_as_the_shift_allows(server, memory):
    """A draw without a demand is the model's own request, unchanged. Propensities are those of both ways together."""
    server.script = Script(*[ROLLBACK] * 40)
    mode = CallDecisions(JitRL(memory, beta=0.2), seed=0)
    for _ in range(20):
        loop = Loop(seasoned.wrap(bare_client("chat", server), memory, mode=mode, timeout_s=30.0), "chat")
        loop.user(ALERT)
        loop.call()
    finals = [body for body in server.bodies() if not asks_for_a_letter(body)]
    assert 0 < sum("tool_choice" not in body for body in finals) < 20
    memory.session.recorders[0].close()
    by_tool = {}
    for episode in memory.episodes()[-20:]:
        [step] = episode.steps
        by_tool.setdefault(named_call(step.action).name, set()).add(round(step.propensity, 9))
    assert all(len(found) == 1 for found in by_tool.values())


CALLS = [canonical_tool_call({"name": "scale", "arguments": {"service": one, "n": 4}}) for one in ("search", "orders")]


def test_expected_call_is_one_that_fits_the_state():
    """Its service occurs in the state, and its number in all calls; else a call without values stands for the tool."""
    with Memory.open(":memory:") as memory:
        for action in [*CALLS, "Quiet now.", "Done.", "sh(git status)"]:
            memory.add(Episode("t", [Step("slow alert", action, 1.0)]))
        evidence = ToolEvidence(memory).evidence(EvidenceQuery("slow alert", k=5, unit="states", threshold=0.1))
    assert set(evidence.actions) == {*CALLS, TEXT_ANSWER, "sh(git status)"} and evidence.counts.sum() == 5.0
    tools = ["scale", "restart", "sh", TEXT_ANSWER]
    for state, expected in [("slow search", CALLS[0]), ("slow ORDERS", CALLS[1])]:
        assert expected_calls(tools, evidence, state)["scale"] == expected
    elsewhere = expected_calls(tools, evidence, "slow cart")
    assert named_call(elsewhere["scale"]).shape == named_call(CALLS[0]).shape and elsewhere["scale"] not in CALLS
    assert [tool_of(elsewhere[tool]) for tool in tools] == tools


JSON_BODIES = st.dictionaries(
    st.sampled_from(["tools", "tool_choice", "messages", "input", "include", "thinking", "conversation"]),
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(st.sampled_from(["type", "name", "function", "role", "content"]), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@settings(max_examples=50, deadline=None)
@given(body=JSON_BODIES)
def test_any_body_has_options_and_a_question_or_none(body):
    for wire in seasoned.integrations.clients.wrapped_client.WIRE_FORMATS:
        options = wire.tool_options(body)
        assert options is None or options.tools
        with contextlib.suppress(InputError):
            question = wire.question({"model": MODEL, **body}, "Which?", 20)
            assert question is None or "Which?" in json.dumps(question)
        assert wire.first_token(body) == () and wire.usage(body).calls == 1
