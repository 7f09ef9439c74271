"""Every foreign format: its sample is recognised as this format only, and read as the steps that it defines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest
import trace_samples as samples

from seasoned.actions import readable_action
from seasoned.integrations import FORMATS, ReadEpisode, Refusal, read_episodes
from seasoned.integrations.conversation import AgentTurn, InputMessage
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.formats import recognised_format
from seasoned.integrations.json_input import Document
from seasoned.integrations.readers import MAX_IDLE_EVENTS
from seasoned.states.transcript.transcript_text import Transcript


def lines(*documents):
    return [json.dumps(document).encode() for document in documents]


def read(*documents, name="auto", **rules):
    return list(read_episodes(name, lines(*documents), **rules))


def one(*documents, **rules):
    [item] = read(*documents, **rules)
    assert isinstance(item, ReadEpisode), item
    return item


class Expected(NamedTuple):
    """What the definition of a format gives for its sample: steps as (state, action), then the rest."""

    steps: list[tuple[str, str]]
    rewards: list[float]
    task: str
    ending: str = "terminated"
    final_state: str | None = None
    model: str | None = None
    rewarded: bool = True


def later(goal, recent, *messages):
    """Return the state after some calls: the goal, the calls, and the messages as (speaker, text)."""
    return Transcript([InputMessage(*message) for message in messages], recent.split(), goal).text


ROOM, ROME_GOAL, MUG = "A room for Friday, please.", "Time in Rome?", "Put the mug away."
ROME = Expected(
    [(ROME_GOAL, 'clock(city="Rome")'), (later(ROME_GOAL, "clock", ("tool clock", "noon")), "Noon.")],
    [0, 0],
    ROME_GOAL,
    model="gpt-x",
    rewarded=False,
)

CASES = {
    "chat under a key": (
        [samples.TRAJ],
        {"messages": "run.traj", "reward": "outcome.reward", "task": "scenario"},
        Expected(
            [
                (ROOM, 'rooms(day="Friday", floor=null, quiet=true)'),
                (later(ROOM, "rooms", ("assistant", "One moment."), ("tool rooms", "[101, 102]")), "book(room=101)"),
                (later(ROOM, "rooms book", ("tool book", '{"ok":true}')), "Room 101 is yours."),
            ],
            [0, 0, 1],
            "booking",
        ),
    ),
    "sharegpt": (
        [samples.SHAREGPT],
        {},
        Expected(
            [
                ("Weather in Bern?", 'weather(city="Bern")'),
                (later("Weather in Bern?", "weather", ("tool weather", "sunny")), "It is sunny."),
            ],
            [0, 0],
            "Weather in Bern?",
            rewarded=False,
        ),
    ),
    "anthropic": (
        [samples.ANTHROPIC],
        {},
        Expected(
            [
                ("How many lamps?", 'stock(item="lamp")'),
                ("How many lamps?", "orders()"),
                (
                    later(
                        "How many lamps?",
                        "stock orders",
                        ("assistant", "I look."),
                        ("tool stock", "7"),
                        ("tool orders", "none"),
                        ("user", "Quick!"),
                    ),
                    "Seven.",
                ),
            ],
            [0, 0, 0.5],
            "How many lamps?",
            model="claude-x",
        ),
    ),
    "claude-code": (
        samples.CLAUDE_CODE[:10],
        {},
        Expected(
            [
                ("Add a test", 'Read(path="a.py")'),
                (
                    later("Add a test", "Read", ("assistant", "I read the file."), ("tool Read", "def f(): ...")),
                    "Done.",
                ),
            ],
            [0, 0],
            "Add a test",
            model="claude-x",
            rewarded=False,
        ),
    ),
    "codex": (
        samples.CODEX,
        {},
        Expected(
            [
                ("Fix the build", 'shell(command=["ls"])'),
                (
                    later("Fix the build", "shell", ("assistant", "I look."), ("tool shell", "Makefile")),
                    'local_shell(command=["make"], type="exec")',
                ),
                (later("Fix the build", "shell local_shell", ("tool local_shell", "ok")), "apply_patch(*** Begin)"),
                (
                    later("Fix the build", "shell local_shell apply_patch", ("tool apply_patch", "patched")),
                    "It builds.",
                ),
            ],
            [0, 0, 0, 0],
            "Fix the build",
            model="gpt-x",
            rewarded=False,
        ),
    ),
    "responses": (
        [samples.RESPONSES],
        {},
        Expected([("Is it open?", "hours(shop=4)")], [0.25], "Is it open?", model="gpt-x"),
    ),
    "tau-bench": (
        [samples.TAU_BENCH],
        {},
        Expected(
            [
                ("Cancel my flight.", 'get_trip(trip="T1")'),
                (later("Cancel my flight.", "get_trip", ("tool get_trip", '{"trip": "T1"}')), "It is cancelled."),
            ],
            [0, 1],
            "12",
            final_state=later("Cancel my flight.", "get_trip respond", ("user", "###STOP###")),
        ),
    ),
    "tau2": (
        [samples.TAU2],
        {},
        Expected(
            [
                ("assistant:\nHi! How can I help?\nuser:\nMy phone is dead.", "lookup(id=5)"),
                (later("My phone is dead.", "lookup", ("tool lookup", "Ann")), "Switch it on."),
                (later("My phone is dead.", "lookup respond", ("user", "It is on.")), "Good."),
            ],
            [0, 0, 0],
            "t-9",
            "truncated",
            model="gpt-x",
        ),
    ),
    "steps": (
        [samples.STEPS],
        {},
        Expected(
            [
                (later("", "", ("user", MUG), ("observation", "You are in the kitchen.")), 'open(place="shelf")'),
                (
                    later(MUG, "open", ("assistant", "I open it."), ("tool open", "The shelf is empty.")),
                    "put mug on shelf",
                ),
            ],
            [0, 1],
            MUG,
            final_state=later(MUG, "open respond", ("observation", "Done.")),
        ),
    ),
    "swe-agent": (
        [samples.SWE_AGENT],
        {},
        Expected(
            [
                ("Fix issue 7.", "ls"),
                (later("Fix issue 7.", "respond", ("assistant", "I list."), ("observation", "a.py\n")), "submit"),
            ],
            [0, 0],
            "lib__lib-7",
            rewarded=False,
        ),
    ),
    "inspect": (
        [samples.INSPECT],
        {},
        Expected(
            [("2 + 2?", "add(a=2, b=2)"), (later("2 + 2?", "add", ("assistant", "I add."), ("tool add", "4")), "4")],
            [0, 1],
            "sums/3",
            model="mock/model",
        ),
    ),
    "openhands": (
        [samples.OPENHANDS],
        {},
        Expected(
            [
                ("Fix issue 7.", 'execute_bash(command="ls")'),
                (
                    later("Fix issue 7.", "execute_bash", ("assistant", "I list."), ("tool run", "a.py")),
                    'finish(final_thought="Fixed.")',
                ),
            ],
            [0, 1],
            "lib__lib-7",
            model="gpt-x",
        ),
    ),
    "openhands events": (
        samples.OPENHANDS["history"][1:6],
        {},
        Expected(
            [("Fix issue 7.", 'execute_bash(command="ls")')],
            [0],
            "Fix issue 7.",
            final_state=later("Fix issue 7.", "execute_bash", ("assistant", "I list."), ("tool run", "a.py")),
            rewarded=False,
        ),
    ),
    "openhands sdk": (
        [samples.OPENHANDS_SDK],
        {},
        Expected(
            [("Fix issue 8.", 'terminal(command="ls")')],
            [0],
            "lib__lib-8",
            final_state=later("Fix issue 8.", "terminal", ("assistant", "I list."), ("tool terminal", "b.py")),
            rewarded=False,
        ),
    ),
    "otlp": ([samples.OTLP], {}, ROME),
    "tempo": ([samples.TEMPO], {}, ROME),
    "openinference": ([samples.OPENINFERENCE], {}, ROME._replace(steps=ROME.steps[:1], rewards=[0])),
    "jaeger": ([samples.JAEGER], {}, ROME._replace(steps=[(ROME_GOAL, "Noon.")], rewards=[0], model=None)),
    "langfuse": (
        [samples.LANGFUSE],
        {},
        Expected(
            [
                ("Where is it?", "track(n=3)"),
                (later("Where is it?", "track", ("assistant", "I look."), ("tool track", "Rome")), "In Rome."),
            ],
            [0, 1],
            "Where is it?",
            model="gpt-x",
        ),
    ),
    "atif": (
        [samples.ATIF],
        {},
        Expected(
            [("List the files.", 'bash(command="ls")')],
            [1],
            "files",
            final_state=later("List the files.", "bash", ("assistant", "I list."), ("tool bash", "a.txt")),
            model="gpt-x",
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sample_is_read_as_its_definition_says(name):
    documents, rules, expected = CASES[name]
    item = one(*documents, **rules)
    episode = item.episode
    assert [(step.state, readable_action(step.action)) for step in episode.steps] == expected.steps
    assert [step.reward for step in episode.steps] == expected.rewards
    assert (episode.task, episode.ending, episode.final_state) == (expected.task, expected.ending, expected.final_state)
    assert (episode.model, item.rewarded) == (expected.model, expected.rewarded)


@pytest.mark.parametrize("name", sorted(samples.DOCUMENTS))
def test_sample_is_recognised_as_exactly_one_format(name):
    for document in samples.DOCUMENTS[name]:
        assert recognised_format(document) == name
        specific = [other for other in FORMATS.names() if not FORMATS.load(other).general]
        assert [other for other in specific if FORMATS.load(other).recognises(document)] == [name][
            : not FORMATS.load(name).general
        ]


def test_every_format_has_a_sample():
    assert set(samples.DOCUMENTS) == set(FORMATS.names())


@pytest.mark.parametrize("name", sorted(samples.DOCUMENTS))
def test_file_read_twice_has_the_same_ids(name):
    first, again = (read(*samples.DOCUMENTS[name]) for _ in range(2))
    assert [item.episode.id for item in first] == [item.episode.id for item in again]
    assert all(item.episode.id for item in first)


class Recording(FieldRules):
    """Rules that record the turns which a reader makes."""

    turns: ClassVar[list[AgentTurn]] = []

    def read(self, items, **fields):
        listed = list(items)
        self.turns.extend(item for item in listed if isinstance(item, AgentTurn))
        return FieldRules.read(self, listed, **fields)


BESIDE = {
    "openai": "One moment.",
    "anthropic": "I look.",
    "claude-code": "I read the file.",
    "codex": "I look.",
    "responses": "I check.",
    "swe-agent": "I list.",
    "inspect": "I add.",
    "openhands": "I list.",
    "langfuse": "I look.",
    "atif": "I list.",
    "steps": "I open it.",
}


@pytest.mark.parametrize("name", BESIDE)
def test_text_beside_a_call_is_passed_on(name):
    Recording.turns.clear()
    reader = FORMATS.load(name).reader(Recording())
    for number, document in enumerate(samples.DOCUMENTS[name], 1):
        list(reader.add(Document(number, document)))
    list(reader.close())
    assert BESIDE[name] in [turn.text for turn in Recording.turns if turn.actions]


def test_formats_in_one_file_are_told_apart():
    every = [document for documents in samples.DOCUMENTS.values() for document in documents]
    items = read(*every)
    assert not [item for item in items if isinstance(item, Refusal)]
    assert {item.format for item in items} == set(samples.DOCUMENTS)


@pytest.mark.parametrize("layout", ["list", "indented list", "concatenated", "one document"])
def test_documents_are_read_in_every_layout(layout):
    runs = [samples.TAU_BENCH, {**samples.TAU_BENCH, "trial": 1}]
    texts = {
        "list": json.dumps(runs),
        "indented list": json.dumps(runs, indent=2),
        "concatenated": "\n".join(json.dumps(run, indent=1) for run in runs),
        "one document": json.dumps(runs[0]),
    }
    items = list(read_episodes("auto", texts[layout].encode().splitlines()))
    assert [item.format for item in items] == ["tau-bench"] * (1 if layout == "one document" else 2)


def test_list_of_messages_is_one_chat():
    item = one([samples.user("Hi"), samples.assistant("Hello")])
    assert (item.format, item.episode.steps[0].state, item.episode.steps[0].action) == ("openai", "Hi", "Hello")


def test_codex_session_of_an_earlier_version_is_the_same_episode():
    earlier = [{"id": "c-1", "timestamp": "2026-01-02T10:00:00Z", "instructions": None}, {"record_type": "state"}]
    earlier += [event["payload"] for event in samples.CODEX if event["type"] == "response_item"]
    now, then = one(*samples.CODEX), one(*earlier)
    assert (then.format, then.episode.id, then.episode.steps) == ("codex", now.episode.id, now.episode.steps)


def test_page_of_the_langfuse_api_has_the_same_episode():
    page = {"data": [samples.LANGFUSE], "meta": {"page": 1}}
    observations = {"data": samples.LANGFUSE["observations"], "meta": {}}
    assert one(page).episode == one(samples.LANGFUSE).episode
    assert one(observations).episode.steps[0] == one(samples.LANGFUSE).episode.steps[0]


def test_sidechain_is_an_episode_of_its_own():
    first, second = read(*samples.CLAUDE_CODE)
    assert (first.episode.id, second.episode.id) == ("claude-code:s-1", "claude-code:s-1/q7")
    assert [(s.state, s.action) for s in second.episode.steps] == [("Find the tests", "In tests/.")]


def test_passed_over_events_are_counted_by_kind():
    item = one(*samples.CLAUDE_CODE[2:10])
    assert item.skipped == {"messages of the program": 1, "events before a prompt was edited": 1, "thoughts": 1}
    assert one(samples.TAU2).skipped == {"the user's own tool calls and results": 2}
    assert one(samples.TRAJ, messages="run.traj").skipped == {"messages without text or call": 1}


def test_session_is_closed_after_many_events_of_others():
    other = samples.claude("assistant", "x", None, [{"type": "text", "text": "more"}], session="long")
    reader = FORMATS.load("claude-code").reader(FieldRules())
    events = [*samples.CLAUDE_CODE[2:10], *[other] * (MAX_IDLE_EVENTS + 1), samples.CLAUDE_CODE[3]]
    items = [item for number, each in enumerate(events, 1) for item in reader.add(Document(number, each))]
    assert [type(item) for item in items] == [ReadEpisode, Refusal]
    assert (items[0].episode.id, items[1].line) == ("claude-code:s-1", len(events))


def test_interrupted_session_is_aborted():
    stop = samples.claude("user", "u9", "a4", [{"type": "text", "text": "[Request interrupted by user]"}])
    assert one(*samples.CLAUDE_CODE[2:10], stop).episode.ending == "aborted"


@pytest.mark.parametrize(
    ("scores", "evaluation", "reward"),
    [
        ({"match": {"value": "I"}}, None, 0.0),
        ({"match": {"value": "C"}, "tone": {"value": 0.25}}, "tone", 0.25),
        ({"match": {"value": True}}, "match", 1.0),
    ],
    ids=str,
)
def test_score_of_an_inspect_sample_is_the_reward(scores, evaluation, reward):
    item = one({**samples.INSPECT_SAMPLE, "scores": scores}, evaluation=evaluation)
    assert (item.episode.steps[-1].reward, item.rewarded) == (reward, True)


@pytest.mark.parametrize(
    ("task", "expected"),
    [("/room for (\\w+)/", "Friday"), ("/room/", "room"), ("scenario", "booking"), ("run.traj.0.role", "system")],
)
def test_task_is_named_by_field_or_pattern(task, expected):
    assert one(samples.TRAJ, task=task).episode.task == expected


@pytest.mark.parametrize(
    ("documents", "rules", "reason"),
    [
        ([{"a": 1}], {}, "no known format: an object with ['a']"),
        ([{"a": [samples.user("Hi")], "b": [samples.user("Ho")]}], {}, "openai: lists of messages at ['a', 'b']"),
        ([samples.TRAJ], {"messages": "traj"}, "--messages"),
        ([samples.TRAJ], {"task": "nothing"}, "openai: nothing: no such field"),
        ([samples.TRAJ], {"task": "/Monday/"}, "openai: the first user message"),
        ([samples.TRAJ], {"reward": "scenario"}, "scenario must be a number"),
        ([{**samples.TAU2["simulations"][0], "messages": [{"role": "bot", "text": ""}]}], {}, "role 'bot'"),
        ([{**samples.INSPECT_SAMPLE, "scores": {"a": {}, "b": {}}}], {}, "inspect: sample 0: scores ['a', 'b']"),
    ],
    ids=str,
)
def test_refusal_names_format_and_next_step(documents, rules, reason):
    items = read(
        *documents, samples.SHAREGPT if "task" not in rules and "messages" not in rules else documents[0], **rules
    )
    assert reason in str(items[0])
    assert isinstance(items[0], Refusal)


def test_page_has_the_counts_of_the_samples():
    rows = []
    for name, documents in sorted(samples.DOCUMENTS.items()):
        found = read(*documents)
        assert {one.format for one in found} == {name}
        n_steps, n_rewarded = sum(len(one.episode.steps) for one in found), sum(one.rewarded for one in found)
        rows.append(f"| `{name}` | {len(documents)} | {len(found)} | {n_steps} | {n_rewarded} |")
    page = Path(__file__, "../../../docs/how-to/import.md").resolve().read_text(encoding="utf-8")
    assert "\n".join(rows) in page
