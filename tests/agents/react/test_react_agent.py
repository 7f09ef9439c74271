"""The agent: its model calls, refused settings and replies, callbacks, and seeds."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import tempfile

import pytest
from walkers import COLOURS, Terminal, east, follow, kinds, once, prompt_of, walker

from seasoned import Episode, Memory, Step
from seasoned.agents import Agent, episode_seed
from seasoned.envs import ContextualBandit, Grid
from seasoned.errors import EnvError, InputError, ModelAnswerError, ModelUnavailableError
from seasoned.llms import BiasChooser, LabelReader, ScriptedLLM
from seasoned.policies.cascade import CascadeReader
from seasoned.policies.examples import Examples
from seasoned.protocols import Completion, Tool, ToolCall, Usage
from seasoned.sync import Sync

# ------------------------------------------------------------------------------------------ what is asked


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, ["PLAN", "BOTH", "BOTH"]),
        ({"calls": 2}, ["PLAN", "REASON", "ACT", "REASON", "ACT"]),
        ({"plan": False}, ["BOTH", "BOTH"]),
        ({"reason": False}, ["PLAN", "ACT", "ACT"]),
        ({"plan": False, "reason": False}, ["ACT", "ACT"]),
    ],
)
def test_agent_plans_once_then_reasons_and_acts_as_configured(options, asked):
    agent = walker(**options)
    result = once(agent)
    assert kinds(agent) == asked
    assert (result.score, result.steps, result.ending, result.error) == (1.0, 2, "terminated", None)
    assert result.plan == ("Walk east." if options.get("plan", True) else None)
    counted = {purpose: usage.calls for purpose, usage in result.usage_by.items()}
    names = {"PLAN": "plan", "REASON": "reason", "ACT": "act", "BOTH": "act"}
    assert counted == {names[kind]: sum(names[k] == names[kind] for k in asked) for kind in asked}
    assert sum(result.usage_by.values(), Usage()) == result.usage
    assert result.usage.prompt_tokens > 0


def test_reader_gets_the_reasoning_and_the_policy_decides():
    def script(request):
        return {"A": math.log(0.9), "B": math.log(0.1)} if prompt_of(request).startswith("Task:") else east(request)

    events = []
    reader = LabelReader(ScriptedLLM(script))
    agent = walker(script=script, reader=reader, on_step=events.append, plan=False, max_steps=20)
    result = once(agent, Grid(["S..G"]))
    reads = [prompt_of(request) for request in reader.llm.requests]
    assert kinds(agent) == ["REASON"] * result.steps
    assert reads and all("READ" in read and "The goal is east." in read for read in reads)
    assert {event.decision.policy for event in events} == {"base"}
    two = next(event for event in events if len(event.before.admissible) == 2)
    assert two.decision.base_probs[two.before.admissible[0]] == pytest.approx(0.9)


def test_the_steps_of_the_default_prompts_are_seen_in_the_history():
    llm = ScriptedLLM(lambda request: "Thought: on.\nAction: east")
    asyncio.run(Agent(llm, plan=False).run(Grid(["S.G"])))
    assert "So far:" not in prompt_of(llm.requests[0])
    assert "Thought: on.\nAction: east" in prompt_of(llm.requests[1]).partition("So far:")[2].partition("Now:")[0]


def test_any_text_is_an_action_where_none_are_named():
    terminal = Terminal()
    replies = ["Thought: one.\nAction: echo 1", "Action:\n```sh\necho 2\nstop\n```"]
    result = asyncio.run(Agent(ScriptedLLM(replies), plan=False).run(terminal))
    assert (terminal.taken, result.score) == (["echo 1", "echo 2\nstop"], 1.0)


def test_field_in_a_task_or_state_is_not_replaced():
    agent = Agent(ScriptedLLM(["Action: stop"]), plan=False)
    asyncio.run(agent.run(Terminal()))
    [request] = agent.settings.llm.requests
    assert "Say {goal}, then stop." in prompt_of(request) and "$ {plan}" in prompt_of(request)


def test_native_tool_calls_are_actions():
    tool = Tool("stop", "Stop now.")
    call = Completion("Done.", "m", Usage(calls=1), None, (), (ToolCall("c", "stop", '{"City": "Paris"}'),))
    terminal, events = Terminal(), []
    llm = ScriptedLLM(["Stop soon.", call])
    result = asyncio.run(Agent(llm, tools=[tool], on_step=events.append).run(terminal))
    assert [request.tools for request in llm.requests] == [(), (tool,)]  # the plan calls nothing
    assert json.loads(terminal.taken[0]) == {"name": "stop", "arguments": {"City": "Paris"}}
    assert (result.steps, events[0].reasoning) == (1, "Done.")
    assert prompt_of(llm.requests[1]).endswith("Call one tool.")


# ------------------------------------------------------------------------------------------ what cannot be used


def test_unusable_reply_is_requested_again_with_the_reason():
    events = []
    agent = Agent(ScriptedLLM(["Action: fly", "Action: east", "Action: east"]), plan=False, on_step=events.append)
    assert once(agent).score == 1.0
    first, again, _ = agent.settings.llm.requests
    assert prompt_of(again).startswith(prompt_of(first))
    assert "Action: fly" in prompt_of(again) and "east" in prompt_of(again).removeprefix(prompt_of(first))
    assert [ask.fault is None for ask in events[0].model_calls] == [False, True]
    assert events[0].usage.calls == 2


def test_cut_off_reply_is_named_and_a_brief_one_requested():
    cut = Completion("<think>\nAction: east?\n</think>\nThought: I would like to thi", "m", Usage(), "length")
    agent = Agent(ScriptedLLM([cut, cut]), plan=False, max_tokens=16)
    with pytest.raises(ModelAnswerError) as error:
        once(agent)
    assert "'\\nThought: I would like to thi', cut off at max_tokens = 16" in error.value.seen
    assert error.value.next_step == "Raise Agent(max_tokens=...)."
    again = prompt_of(agent.settings.llm.requests[1])
    assert "cut off" in again and "be brief" in again
    assert "max_tokens" not in again and "think>" not in again


@pytest.mark.parametrize("options", [{}, {"calls": 2}, {"plan": False}])
def test_second_unusable_reply_aborts_without_another_action(options):
    def script(request):
        return east(request) if "cell:0,0" in prompt_of(request) or "PLAN" in prompt_of(request) else ""

    with Memory.open(":memory:") as memory:
        agent = walker(memory, script, **options)
        with pytest.raises(ModelAnswerError):
            once(agent)
        [episode] = memory.episodes()
        assert (episode.ending, len(episode.steps)) == ("aborted", 1)
        assert memory.search("cell:0,0 open:east") == []
        assert {note.step for note in memory.notes(kind="reasoning")} == {0}


@pytest.mark.parametrize("at", ["plan", "act"])
def test_failing_model_aborts_before_the_first_step(at):
    down = ModelUnavailableError("503", "the endpoint is up", "Wait.")
    with Memory.open(":memory:") as memory:
        agent = walker(memory, lambda request: down if at == "plan" or "BOTH" in prompt_of(request) else "Walk.")
        with pytest.raises(ModelUnavailableError):
            once(agent)
        [episode] = memory.episodes()
        assert (episode.ending, len(episode.steps)) == ("aborted", 0)


class Failing(Grid):
    """A grid that raises an error at its second step, or returns a reward that is not a number."""

    def __init__(self, error=None):
        super().__init__(["S...G"])
        self.error, self.steps = error, 0

    async def step(self, action):
        self.steps += 1
        seen = await super().step(action)
        if self.steps == 2 and self.error is not None:
            raise self.error
        return seen if self.steps < 2 else dataclasses.replace(seen, reward=math.nan)


@pytest.mark.parametrize(
    ("error", "raised"),
    [(EnvError("a", "b", "c"), EnvError), (KeyboardInterrupt(), KeyboardInterrupt), (None, EnvError)],
)
def test_error_stores_the_agents_episode_as_aborted(error, raised):
    with Memory.open(":memory:") as memory:
        with pytest.raises(raised):
            once(walker(memory), Failing(error))
        [episode] = memory.episodes()
        assert (episode.ending, len(episode.steps)) == ("aborted", 1)
        assert once(walker(memory)).error is None


# ------------------------------------------------------------------------------------------ seeds


def test_agent_seed_determines_episodes_and_requests():
    def sides(agent_seed):
        agent = walker(script=follow, plan=False, temperature=0.7, seed=agent_seed)
        environment = ContextualBandit(COLOURS, rounds=4)
        results = [asyncio.run(agent.run(environment)) for _ in range(3)]
        results += asyncio.run(agent.run_many(lambda n: ContextualBandit(COLOURS, rounds=4), episodes=2))
        seeds = [request.seed for request in agent.settings.llm.requests]
        assert [result.seed for result in results] == [episode_seed(agent_seed, n) for n in range(5)]
        assert len(set(seeds)) == len(seeds) == 20 and all(0 <= seed < 2**31 for seed in seeds)
        return seeds, [result.episode.steps for result in results]

    assert sides(7) == sides(7) != sides(8)


def test_second_seed_is_refused_and_greedy_requests_have_none():
    agent = walker(seed=3)
    with pytest.raises(InputError, match="stated once"):
        once(agent, seed=0)
    with pytest.raises(InputError, match="stated once"):
        asyncio.run(agent.run_many([Grid(["SG"])], [0]))
    asyncio.run(agent.run(Grid(["SG"])))
    assert {request.seed for request in agent.settings.llm.requests} == {None}
    assert asyncio.run(agent.run(Grid(["SG"]))).seed == episode_seed(3, 1)  # what was refused was not counted
    assert once(walker(), seed=5).seed == 5
    for wrong in (-1, 1.5, "1", True):
        with pytest.raises(InputError, match="seed"):
            walker(seed=wrong)
        with pytest.raises(InputError, match="seed"):
            once(walker(), seed=wrong)


# ------------------------------------------------------------------------------------------ callbacks


@pytest.mark.parametrize("is_async", [False, True])
def test_on_step_gets_all_fields_of_a_step(is_async):
    events = []

    async def later(event):
        await asyncio.sleep(0)
        events.append(event)

    with Memory.open(":memory:") as memory:
        once(walker(memory, on_step=later if is_async else events.append))
    first, second = events
    assert [ask.purpose for ask in first.model_calls] == ["plan", "act"] and [
        ask.purpose for ask in second.model_calls
    ] == ["act"]
    assert first.model_calls[1].messages[1].content.startswith("BOTH") and "east" in first.model_calls[1].reply.text
    assert (first.step, first.plan, first.reasoning, first.action) == (0, "Walk east.", "east it is.", "east")
    assert (first.before.state, second.before.state) == ("cell:0,0 open:east", first.after.state)
    assert (first.after.reward, second.after.reward, second.after.terminated) == (0.0, 1.0, True)
    assert (first.usage.calls, second.usage.calls, first.seed, first.learns) == (2, 1, 0, True)


def test_error_in_on_step_aborts_the_episode():
    def refuse(event):
        raise RuntimeError("no")

    with Memory.open(":memory:") as memory:
        with pytest.raises(RuntimeError):
            once(walker(memory, on_step=refuse))
        assert memory.episodes()[0].ending == "aborted"


# ------------------------------------------------------------------------------------------ sync, limits, refusals


def test_sync_agent_plays_the_same_episode():
    with Sync(walker()) as agent:
        direct = agent.run(Grid(["S.G"]), seed=0)
        [of_many] = agent.run_many([Grid(["S.G"])], [0])
    assert direct.episode == of_many.episode == once(walker()).episode


def test_episode_is_truncated_after_max_steps():
    with Memory.open(":memory:") as memory:
        result = once(walker(memory, max_steps=2), Grid(["S...G"]))
        assert (result.ending, result.steps, memory.get(result.episode_id).ending) == ("truncated", 2, "truncated")
        assert memory.get(result.episode_id).final_state == "cell:0,2 open:east,west"


class Nothing:
    """A retriever without examples."""

    def retrieve(self, query, *, purpose, exclude_task):
        return ()


LLM = ScriptedLLM([])
LABELS = LabelReader(LLM)
REFUSED = [
    ({"mode": "logits"}, "LabelReader"),
    ({"mode": "both"}, "VotesReader"),
    ({"mode": "logits", "reader": LABELS, "memory": None}, "Pass one"),
    ({"mode": "prompt", "memory": None}, "mode='none'"),
    ({"mode": "sometimes"}, "one of 'none', 'prompt', 'logits', 'both'"),
    ({"reader": LABELS, "calls": 1}, "calls=2 or reason=False"),
    ({"reader": LABELS, "tools": [Tool("go")], "reason": False}, "VotesReader"),
    ({"reader": BiasChooser(LLM)}, "play_episode"),
    ({"reader": "labels"}, "LabelReader"),
    ({"calls": 2, "reason": False}, "calls"),
    ({"calls": 3}, "1 or 2"),
    ({"calls": 0}, "1 or 2"),
    ({"calls": True}, "1 or 2"),
    ({"tools": ["go"]}, "must be a Tool, not str"),
    ({"templates": "{goal}"}, "Templates"),
    ({"canonical": "lower"}, "canonical"),
    ({"policy": "JitRL", "mode": "logits", "reader": LABELS}, "policy"),
    ({"policy": lambda memory: None, "mode": "logits", "reader": LABELS}, "Policy"),
    ({"examples": "all"}, "retrieve"),
    ({"examples": Nothing(), "mode": "none"}, "shows none"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_steps": 0}, "max_steps"),
    ({"history_tokens": -1}, "history_tokens"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": math.nan}, "temperature"),
    ({"plan": "yes"}, "plan"),
    ({"verify": True}, "verify"),
    ({"on_step": 1}, "on_step"),
    ({"arm": " "}, "arm"),
    ({"demonstrations": "walk"}, "must be a list of Episode"),
    ({"demonstrations": [Step("s", "a")]}, "must be an Episode"),
    ({"demonstrations": [Episode("t", [Step("s", "a")])], "memory": None}, "Pass a memory"),
    ({"llm": "gpt"}, "open_llm"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED, ids=[" ".join(options) for options, _ in REFUSED])
def test_invalid_settings_are_refused_by_the_constructor(options, says):
    with Memory.open(":memory:") as memory, pytest.raises(InputError) as error:
        Agent(**{"llm": LLM, "memory": memory} | options)
    assert says in str(error.value)
    assert all((error.value.seen, error.value.rule, error.value.next_step))


@pytest.mark.parametrize("guard", [{"trusted": bool}, {"vouched_by": {"tests"}}], ids="".join)
def test_guarded_examples_are_refused_in_mode_both(guard):
    with Memory.open(":memory:") as memory:
        guarded = Examples(memory, **guard)
        with pytest.raises(InputError, match=r"memory\.quarantine"):
            Agent(LLM, memory, mode="both", reader=LABELS, examples=guarded)
        Agent(LLM, memory, mode="prompt", reader=LABELS, examples=guarded)
        Agent(LLM, memory, mode="both", reader=LABELS, examples=Examples(memory))


def test_cascade_with_evidence_needs_the_current_state():
    with Memory.open(":memory:") as memory:
        with pytest.raises(InputError, match="observation=current_state"):
            Agent(LLM, memory, reader=CascadeReader(LABELS, LABELS, min_evidence=1, memory=memory))
        Agent(LLM, memory, reader=CascadeReader(LABELS, LABELS, memory=memory))


def test_demonstrations_are_stored_once():
    """Demonstrations are stored once over agents, restarts and processes; changed ones are stored separately."""
    given = [
        Episode("go east", [Step("hall", "east", 1.0, prior={"east": -0.5})]),
        Episode("t", [Step("s", "a")], "own"),
    ]

    def ids(memory):
        return [episode.id for episode in memory.episodes()]

    with tempfile.TemporaryDirectory() as folder:
        with Memory.open(f"{folder}/a.db") as memory, Memory.open(f"{folder}/a.db") as other:
            for held in (memory, other, memory):
                Agent(LLM, held, demonstrations=given)
            [first, own] = ids(memory)
        with Memory.open(f"{folder}/a.db") as memory:
            Agent(LLM, memory, demonstrations=given[::-1])
            assert ids(memory) == [first, own] and own == "own"
            Agent(LLM, memory, demonstrations=[dataclasses.replace(given[0], model="a person")])
            assert len(ids(memory)) == 3
    with Memory.open(":memory:") as memory:
        result = once(
            walker(memory, demonstrations=[Episode(Grid(["S.G"]).task, [Step("cell:0,0 open:east", "east", 1.0)])])
        )
        assert result.example_steps > 0  # the first episode was shown it


def test_training_needs_a_memory_and_an_environment():
    with pytest.raises(InputError, match="memory"):
        once(walker(), learns=True)
    with pytest.raises(InputError, match="open_env"):
        asyncio.run(walker().run("grid:SG"))
