"""OpenTelemetry both ways: spans of agents become episodes, decisions and lift become spans and events."""

from __future__ import annotations

import json

import pytest
from client_loops import imported
from model_server import MODEL, Answer
from players import INSTRUCTIONS, PydanticPlayer

from seasoned import Episode, Holdout, JitRL, Memory, Step
from seasoned.errors import NotFoundError
from seasoned.integrations.clients.prompt_block import framed_block
from seasoned.integrations.rewards import parse_rules

pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import use_span

from seasoned.integrations.frameworks import TracedPolicy, otel_span_recorder, trace_lift

TICKET = "pool exhausted on checkout"
SAID = [
    {"role": "user", "content": TICKET},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "restart", "arguments": '{"service": "Checkout"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Checkout: ok"},
    {"role": "assistant", "content": "It is quiet again."},
]
CALL = {"type": "tool_call", "id": "c1", "name": "restart", "arguments": {"service": "Checkout"}}
RESULT = {"type": "tool_call_response", "id": "c1", "result": "Checkout: ok"}


@pytest.fixture
def provider():
    provider = TracerProvider()
    yield provider
    provider.shutdown()


def messages(*parts):
    return json.dumps([{"role": role, "parts": [part]} for role, part in parts])


def text(content):
    return {"type": "text", "content": content}


class AgentTrace:
    """The spans of one run, as an instrumentation of the GenAI conventions makes them."""

    def __init__(self, provider, ticket=TICKET, block=""):
        self.tracer, self.asked = provider.get_tracer("agent"), [("user", text(ticket + block))]

    def call(self, part, id_):
        head = {"gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL, "gen_ai.conversation.id": "thread-1"}
        with self.tracer.start_as_current_span(f"chat {MODEL}", attributes=head) as span:
            span.set_attribute("gen_ai.input.messages", messages(*self.asked))
            span.set_attribute("gen_ai.output.messages", messages(("assistant", part)))
            span.set_attribute("gen_ai.response.id", id_)
        self.asked.append(("assistant", part))

    def run(self, name="run", score=None):
        with self.tracer.start_as_current_span(name) as root:
            self.call(CALL, f"{name}-1")
            self.asked.append(("tool", RESULT))
            self.call(text("It is quiet again."), f"{name}-2")
            if score is not None:
                scored = {"gen_ai.evaluation.name": "solved", "gen_ai.evaluation.score.value": score}
                root.set_attribute("gen_ai.operation.name", "invoke_agent")
                root.add_event("gen_ai.evaluation.result", scored)
        return f"{root.get_span_context().trace_id:032x}"


def test_traces_without_room_are_counted_and_not_recorded(memory, provider, caplog):
    recorder = otel_span_recorder(memory, max_bytes=10_000)
    provider.add_span_processor(recorder)
    first = AgentTrace(provider).run("first")
    huge = AgentTrace(provider, "x" * 20_000).run("huge")
    recorder.settle()  # what is stored has left room
    traces = [AgentTrace(provider).run(f"later-{number}") for number in range(3) if recorder.force_flush()]
    recorder.settle()
    assert [episode.id for episode in memory.episodes()] == [first, *traces]
    [line] = [record.getMessage() for record in caplog.records if record.name == "seasoned.clients"]
    assert line.startswith(f"The trace {huge} was not recorded: no room for its 2 spans")


def test_open_traces_have_room_for_their_bytes_together(memory, provider, caplog):
    recorder = otel_span_recorder(memory, max_bytes=10_000)
    provider.add_span_processor(recorder)
    roots = [provider.get_tracer("agent").start_span(f"root-{number}") for number in range(20)]
    for number, root in enumerate(roots):
        with use_span(root):
            AgentTrace(provider).call(CALL, f"r{number}")
    for root in roots:
        root.end()
    recorder.settle()
    n_stored, lines = len(list(memory.episodes())), [record.getMessage() for record in caplog.records]
    assert 2 <= n_stored <= 10 and len(lines) == 20 - n_stored  # a span has 1,000 bytes and more
    assert all("no room for its 1 span;" in line for line in lines)


def test_trace_is_the_episode_of_its_conversation(memory, provider):
    provider.add_span_processor(otel_span_recorder(memory))
    trace_id = AgentTrace(provider, block=f"\n\n{framed_block('- prefer this')}").run()
    memory.feedback(trace_id, reward=1.0)
    memory.feedback("run-2", reward=0.5)
    episode, read = memory.get(trace_id), imported(SAID)
    assert [(step.state, step.action) for step in episode.steps] == [(step.state, step.action) for step in read.steps]
    assert (episode.task, episode.model, episode.ending) == (TICKET, MODEL, "terminated")
    assert [(event.episode_id, event.step) for event in memory.events()] == [(trace_id, 1)] * 2
    with pytest.raises(NotFoundError):
        memory.feedback("0" * 32, reward=1.0)


def test_traces_of_one_conversation_are_episodes_of_their_own_that_await_feedback(memory, provider):
    provider.add_span_processor(otel_span_recorder(memory))
    first, second = (AgentTrace(provider, ticket=name).run(name) for name in ("one", "two"))
    memory.session.recorders[-1].settle()
    assert [episode.id for episode in memory.episodes()] == [first, second]
    assert memory.search(TICKET) == []
    memory.feedback(second, reward=1.0)
    assert {found.experience.episode_id for found in memory.search("two")} == {second}


def test_evaluation_on_a_span_is_the_reward(memory, provider):
    provider.add_span_processor(otel_span_recorder(memory))
    AgentTrace(provider).run(score=0.75)
    memory.session.recorders[-1].settle()
    assert [step.reward for step in memory.episodes()[0].steps] == [0.0, 0.75]
    assert memory.search(TICKET)


def test_rules_reward_what_tools_answered(memory, provider):
    rules = parse_rules('[[rule]]\nname = "ok"\nreads = "text"\npattern = "Checkout: ok"\nreward = 0.25')
    provider.add_span_processor(otel_span_recorder(memory, rewards=rules))
    AgentTrace(provider).run()
    memory.session.recorders[-1].settle()
    assert [(event.step, event.reward) for event in memory.events()] == [(0, 0.25)]


def test_spans_that_are_no_episode_are_logged_or_passed_over(memory, provider, caplog):
    provider.add_span_processor(otel_span_recorder(memory))
    tracer = provider.get_tracer("other")
    with tracer.start_as_current_span("GET /"):
        pass
    with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
        pass
    provider.force_flush()
    assert len(memory) == 0
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in caplog.text


def test_span_after_the_end_of_its_trace_is_passed_over(memory, provider):
    provider.add_span_processor(otel_span_recorder(memory))
    trace = AgentTrace(provider)
    with trace.tracer.start_as_current_span("run") as root:
        late = trace.tracer.start_span("late", attributes={"gen_ai.operation.name": "chat"})
        trace.call(text("Quiet."), "r1")
    late.end()
    memory.feedback(f"{root.get_span_context().trace_id:032x}", reward=1.0)
    assert [len(episode.steps) for episode in memory.episodes()] == [1]


def test_trace_without_its_end_is_stored_at_the_end_of_the_memory_and_later_ones_are_harmless(tmp_path, provider):
    with Memory.open(tmp_path / "agent.db") as memory:
        provider.add_span_processor(otel_span_recorder(memory))
        trace = AgentTrace(provider)
        root = trace.tracer.start_span("run")
        from opentelemetry.trace import use_span

        with use_span(root):
            trace.call(text("Quiet."), "r1")
    AgentTrace(provider).run("after")
    root.end()
    with Memory.open(tmp_path / "agent.db") as memory:
        assert [len(episode.steps) for episode in memory.episodes()] == [1]


def test_span_that_is_open_when_the_memory_closes_keeps_no_other_processor_from_its_end(tmp_path, provider):
    exporter = InMemorySpanExporter()
    with Memory.open(tmp_path / "agent.db") as memory:
        provider.add_span_processor(otel_span_recorder(memory))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    from opentelemetry.trace import use_span

    trace = AgentTrace(provider)
    with use_span(trace.tracer.start_span("run")):
        trace.call(text("Quiet."), "r1")
    provider.shutdown()
    assert len(exporter.get_finished_spans()) == 1


def test_flush_of_a_busy_store_says_that_it_is_not_done(memory, provider):
    recorder = otel_span_recorder(memory)
    provider.add_span_processor(recorder)
    with memory.session.store.lock:
        AgentTrace(provider).run("talk")
        assert recorder.force_flush(1) is False
    assert recorder.force_flush() is True


@pytest.mark.skipif(not PydanticPlayer.is_installed(), reason="needs pydantic-ai-slim")
def test_spans_of_a_real_instrumentation_are_the_episode(server, memory, provider):
    from pydantic_ai.models.instrumented import InstrumentationSettings

    server.script = [Answer(calls=(("restart", {"service": "Checkout"}),)), Answer("It is quiet again.")]
    provider.add_span_processor(otel_span_recorder(memory))
    with Memory.open(":memory:") as other:
        agent = PydanticPlayer(other, server).agent()
        agent.instrument = InstrumentationSettings(tracer_provider=provider)
        agent.run_sync(TICKET)
    memory.session.recorders[-1].settle()
    [episode] = memory.episodes()
    read = imported([{"role": "system", "content": INSTRUCTIONS}, *SAID])
    assert [(step.state, step.action) for step in episode.steps] == [(step.state, step.action) for step in read.steps]


# ------------------------------------------------------------------------------------------------ out


def exported(provider):
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter.get_finished_spans


def test_decision_is_a_span_below_the_one_that_runs(memory, provider):
    spans = exported(provider)
    for action, reward in (("pay", 1.0), ("back", 0.0)) * 4:
        memory.add(Episode("checkout", [Step("page:cart", action, reward)]))
    own = JitRL(memory)
    policy = TracedPolicy(own, tracer_provider=provider)
    with provider.get_tracer("agent").start_as_current_span("run"):
        decision = policy.decide("page:cart", {"pay": -1.4, "back": -0.3}, seed=0)
    inner, root = spans()
    named = {name.removeprefix("seasoned.decision."): value for name, value in inner.attributes.items()}
    assert inner.parent.span_id == root.context.span_id and inner.name == "seasoned.decide"
    assert named["mode"] == "memory" and named["changed"] is True and named["n_candidates"] == 2
    assert named["kl_nats"] == decision.kl_nats and named["probability"] == decision.probs[decision.action]
    assert "page:cart" not in str(inner.attributes) and not {"action", "state"} & named.keys()
    assert (policy.name, policy.settings) == (own.name, own.settings)
    TracedPolicy(own, content=True, tracer_provider=provider).decide("page:cart", {"pay": -1.4, "back": -0.3})
    assert spans()[-1].attributes["seasoned.decision.state"] == "page:cart"


def test_lift_of_each_family_is_an_evaluation(memory, provider):
    spans = exported(provider)
    policy = TracedPolicy(Holdout(JitRL(memory), memory), tracer_provider=provider)
    for _ in range(6):
        with memory.episode(task="checkout") as episode:
            decision = policy.decide("page:cart", {"pay": -0.3, "back": -1.4})
            episode.record("page:cart", decision, reward=1.0)
    arms = [span.attributes["seasoned.decision.arm"] for span in spans()]
    assert arms == [episode.arm for episode in memory.episodes() if episode.steps]
    assert trace_lift(memory, tracer_provider=provider) == 1
    [event] = spans()[-1].events
    lift = memory.lift("checkout")
    assert (event.name, event.attributes["gen_ai.evaluation.score.label"]) == ("gen_ai.evaluation.result", lift.state)
    assert event.attributes["seasoned.lift.low"] == lift.low
    assert event.attributes["seasoned.lift.n_treated"] + event.attributes["seasoned.lift.n_control"] == 6
