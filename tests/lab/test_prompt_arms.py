"""Arms with past steps in the prompt: the text, the notes, and no double use of evidence."""

from __future__ import annotations

import asyncio
import math
from collections import Counter

import pytest

from seasoned import Episode, JitRL, Memory, Step
from seasoned.agents import play_run
from seasoned.envs import ContextualBandit, Grid
from seasoned.errors import InputError
from seasoned.lab.arms.registry import build_arm, check_arm
from seasoned.lab.suites.suite import ArmSpec
from seasoned.lab.suites.suite_toml import load_suite, read_suite
from seasoned.llms import LabelReader, ScriptedLLM

ACTIONS = ("east", "north", "south")


def undecided(request):
    return dict.fromkeys("ABCD", -1.4)


def suite(*arms):
    tasks = [{"name": "grid", "env": "grid:S..G", "episodes": 2}]
    return read_suite({"name": "s", "seeds": 1, "tasks": tasks, "arms": [{"name": "alone"}, *arms]})


SHIFT = {"beta": 2.0, "gamma": 0.5, "min_neighbors": 1, "scale": "max_abs"}
"""The scale is that of the evidence; the default one is that of the whole namespace."""
ARMS = suite(
    {"name": "shows", "kind": "prompt", "settings": {"window_tokens": 300, "k": 2}},
    {"name": "both", "settings": {"preset": "means", "window_tokens": 300, "k": 2, **SHIFT}},
)


def build(name, memory, llm=None):
    model = llm or ScriptedLLM(undecided)
    return build_arm(ARMS.arm(name), memory=memory, llm=model, reader=LabelReader(model), seed=0)


def play(arm, memory, episodes, environment=None):
    environment = environment or Grid(["S..", "..G"], max_steps=6, slip=0.2)
    return asyncio.run(
        play_run(
            environment,
            arm.policy,
            arm.reader,
            memory=memory,
            episodes=episodes,
            seed=1,
            run_id="r",
            play=arm.play,
            learn=arm.learn,
            arm="it",
        )
    )


def fill(memory, rewards):
    """Add one-step episodes at one state, so that each return is one reward."""
    for number, (action, reward) in enumerate(rewards):
        memory.add(Episode("choose", [Step("a red door", action, reward)], f"e{number}"))


@pytest.mark.parametrize("name", ["shows", "both"])
def test_examples_in_the_prompt_are_noted_at_the_step(name):
    llm = ScriptedLLM(undecided)
    with Memory.open(":memory:") as memory:
        play(build(name, memory, llm), memory, 5)
        notes = memory.notes(kind="shown")
        stored = {(e.id, step): s for e in memory.episodes() for step, s in enumerate(e.steps)}
        prompts = [r.messages[-1].content for r in llm.requests if "\nWhich action" in r.messages[-1].content]
        shown = [prompt for prompt in prompts if "\nNow:\n" in prompt]
        assert notes
        assert len(notes) == len(shown)
        order = {e.id: i for i, e in enumerate(memory.episodes())}
        for note in notes:
            body = note.body
            assert (note.episode_id, note.step) in stored
            assert body["mode"] == ("prompt" if name == "shows" else "both")
            assert body["purpose"] == "act"
            assert 1 <= len(body["examples"]) <= 2
            for episode_id, step in body["examples"]:
                assert stored[episode_id, step].reward >= 0, "the examples are real steps"
                assert order[episode_id] < order[note.episode_id], "of episodes that had ended"


@pytest.mark.parametrize("name", ["shows", "both"])
def test_resumed_run_ends_like_an_uninterrupted_one(name):
    with Memory.open(":memory:") as whole, Memory.open(":memory:") as broken:
        unbroken = play(build(name, whole), whole, 5)
        play(build(name, broken), broken, 2)
        resumed = play(build(name, broken), broken, 5)

        def facts(memory, results):
            notes = [(n.kind, n.episode_id, n.step, n.body) for n in memory.notes()]
            played = [(r.score, r.steps, r.flips, r.usage.tokens) for r in results[2:]]
            return [e.steps for e in memory.episodes()], notes, played

        assert facts(whole, unbroken) == facts(broken, resumed)


REWARDS = [("east", 1.0), ("east", 0.0), ("north", 0.0), ("north", 1.0), ("south", 0.0), ("south", 0.5), ("east", 1.0)]


def test_both_discounts_the_steps_in_the_prompt():
    """z' = z + beta * A * (n - s) / n: A from all stored steps, s of the n that took the action are in the prompt."""
    bandit = ContextualBandit({"a red door": dict.fromkeys(ACTIONS, 0.5)}, noise="none")
    with Memory.open(":memory:") as memory:
        fill(memory, REWARDS)
        arm = build("both", memory)
        decided = []

        class Spy:
            name = "spy"

            def decide(self, *args, **options):
                decided.append(arm.policy.decide(*args, **options))
                return decided[-1]

        asyncio.run(play_run(bandit, Spy(), arm.reader, memory=memory, episodes=1, seed=1, run_id="r", play=arm.play))
        [note] = memory.notes(kind="shown")
        shown = {episode_id for episode_id, _ in note.body["examples"]}
        assert 0 < len(shown) < len(REWARDS)
        everything = JitRL.preset("means", memory, **SHIFT).decide(
            "a red door", decided[0].prior, admissible=ACTIONS, seed=0
        )
        n = Counter(action for action, _ in REWARDS)
        s = Counter(memory.get(episode_id).steps[0].action for episode_id in shown)
        z = everything.base_probs
        tilted = {
            a: z[a] * math.exp(everything.beta * everything.advantages[a] * (n[a] - s[a]) / n[a]) for a in ACTIONS
        }
        expected = {a: weight / sum(tilted.values()) for a, weight in tilted.items()}
        assert decided[0].probs == pytest.approx(expected)
        assert decided[0].probs != pytest.approx(everything.probs)


def test_prompt_alone_does_not_shift():
    with Memory.open(":memory:") as memory:
        results = play(build("shows", memory), memory, 4)
        assert [(r.kl_nats, r.memory_steps) for r in results] == [(0.0, 0)] * 4


def test_gamma_applies_to_the_examples_and_to_the_shift():
    """With 0, opening the door gets no return from the later reward."""
    for kind in ("prompt", "both"):
        for gamma, worked in ((None, True), (0.0, False)):
            with Memory.open(":memory:", gamma=0.9) as memory:
                memory.add(Episode("t", [Step("a door", "open", 0.0), Step("a hall", "rest", 1.0)]))
                settings = {} if gamma is None else {"gamma": gamma}
                arm = build_arm(
                    ArmSpec(kind, kind, {"window_tokens": 300, **settings}),
                    memory=memory,
                    llm=ScriptedLLM([]),
                    reader=LabelReader(ScriptedLLM([])),
                    seed=0,
                )
                context = arm.reader.memory.context("a door", "t")
                assert ("Action: open" in context) == worked


def test_too_small_window_is_refused_before_the_first_episode():
    for kind in ("prompt", "both"):
        with pytest.raises(InputError, match="budget_tokens = 1"):
            check_arm(ArmSpec("a", kind, {"window_tokens": 1}))


def test_suite_gives_every_prompt_arm_the_same_window():
    """Arms that are compared at equal tokens have equal windows."""
    for name in ("icrl", "icrl-text"):
        shipped = load_suite(name)
        windows = {arm.name: arm.settings["window_tokens"] for arm in shipped.arms if "window_tokens" in arm.settings}
        assert {"prompt", "both", "top-k"} <= set(windows)
        assert len(set(windows.values())) == 1
    for arm in shipped.arms:
        check_arm(arm)
