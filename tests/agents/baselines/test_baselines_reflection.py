"""Baselines with lessons of a model: Reflexion, workflows and prompt evolution, by their papers' descriptions."""

from __future__ import annotations

import asyncio

import pytest

from seasoned.agents import UniformReader
from seasoned.agents.baselines import Evolution, LessonWriter, Reflexion, Workflows
from seasoned.agents.baselines.reflection import ask_lesson
from seasoned.errors import InputError, ModelAnswerError, ModelUnavailableError
from seasoned.llms import ScriptedLLM
from seasoned.protocols import Usage
from seasoned.types import Episode, Step


def episode(score=0.0, task="t", mark="x", **options):
    return Episode(task, [Step(f"room {mark}", f"go {mark}"), Step(f"hall {mark}", f"do {mark}", score)], **options)


def tell(arm, *episodes):
    return [asyncio.run(arm.learn(each)) for each in episodes]


def counting():
    """A model that answers `answer 1`, `answer 2`, ..."""
    llm = ScriptedLLM(lambda request: f"answer {len(llm.requests)}")
    return llm


def sent_prompts(llm, index=-1):
    return llm.requests[index].messages[-1].content


# ------------------------------------------------------------------------------------- Reflexion


def test_reflexion_shows_the_last_three_reflections_on_failures():
    llm = counting()
    arm = Reflexion(LessonWriter(llm), success=1.0)
    usages = tell(arm, *(episode(mark=str(n)) for n in range(4)), episode(1.0))
    assert [usage.calls for usage in usages] == [1, 1, 1, 1, 0]
    assert arm.context("s", "t").split("\n")[1:-1] == ["- answer 2", "- answer 3", "- answer 4"]
    assert "go 3" in sent_prompts(llm)
    assert "score 0" in sent_prompts(llm)
    assert all(request.temperature == 0.0 for request in llm.requests)


def test_reflections_are_stored_by_task():
    arm = Reflexion(LessonWriter(counting()), success=1.0)
    tell(arm, episode(task="cook"), episode(task="clean"))
    assert "answer 1" in arm.context("s", "cook")
    assert "answer 2" not in arm.context("s", "cook")
    assert "answer 2" in arm.context("s", "a new task")


def test_without_a_threshold_every_episode_is_reflected_on():
    llm = counting()
    tell(Reflexion(LessonWriter(llm)), episode(9.0), episode(0.0))
    assert len(llm.requests) == 2


# ------------------------------------------------------------------------------------- workflows


def test_workflows_are_induced_from_successes_only():
    llm = counting()
    arm = Workflows(LessonWriter(llm), success=1.0)
    usages = tell(arm, episode(0.0), episode(1.0, mark="good"), episode(0.0))
    assert [usage.calls for usage in usages] == [0, 1, 0]
    assert "do good" in sent_prompts(llm)
    assert arm.context("s", "t") == "Workflows that succeeded before, the latest last:\nanswer 1\nNow:"


def test_repeated_workflow_becomes_the_latest():
    llm = ScriptedLLM(["Pay:\n1. confirm", "Go home:\n1. back", "PAY:\n\n1.  Confirm"])
    arm = Workflows(LessonWriter(llm), success=1.0)
    tell(arm, *(episode(1.0) for _ in range(3)))
    assert arm.context("s", "t").split("\n")[1:-1] == ["Go home:", "1. back", "PAY:", "1. Confirm"]


# ------------------------------------------------------------------------------------- evolution


def test_each_episode_uses_the_latest_guide():
    llm = counting()
    arm = Evolution(LessonWriter(llm))
    assert arm.context("s", "t").startswith("Follow this guide:\nExplore")
    first = arm.context("s", "t").split("\n")[1]
    tell(arm, episode(0.0, mark="one"))
    assert arm.context("s", "t").split("\n")[1] == "answer 1"
    assert first in sent_prompts(llm)
    assert "go one" in sent_prompts(llm)


def test_the_parent_is_the_upper_confidence_bound_of_scaled_scores():
    """N = 2: u(first) = 1 + sqrt(log 2 / 2) = 1.59, one child; u(second) = 0 + 0.8 sqrt(log 2) = 0.67, no child."""
    llm = counting()
    arm = Evolution(LessonWriter(llm))
    tell(arm, episode(5.0, mark="first"), episode(0.0, mark="second"))
    assert "go first" in sent_prompts(llm)
    assert "answer 1" not in sent_prompts(llm)
    # Equal scores: 0 + sqrt(log 2 / 2) = 0.59 against 0.8 sqrt(log 2) = 0.67: the one without a child.
    llm = counting()
    tell(Evolution(LessonWriter(llm)), episode(5.0, mark="first"), episode(5.0, mark="second"))
    assert "go second" in sent_prompts(llm)
    assert "answer 1" in sent_prompts(llm)
    # Without exploration the best is always rewritten.
    llm = counting()
    tell(
        Evolution(LessonWriter(llm), exploration=0.0),
        episode(1.0, mark="a"),
        episode(3.0, mark="b"),
        episode(2.0, mark="c"),
    )
    assert "go b" in sent_prompts(llm)


def test_successful_guide_is_repeated_without_a_call():
    llm = counting()
    arm = Evolution(LessonWriter(llm), success=5.0)
    usages = tell(arm, episode(0.0), episode(5.0, mark="won"), episode(5.0))
    assert [usage.calls for usage in usages] == [1, 0, 0]
    assert arm.context("s", "t").split("\n")[1] == "answer 1"
    tell(arm, episode(1.0))  # it lost: evolution goes on
    assert arm.context("s", "t").split("\n")[1] == "answer 2"


def test_known_effects_of_actions_are_shown_in_their_state_only():
    arm = Evolution(LessonWriter(counting()))
    steps = [Step("hall", "kick"), Step("hall", "sing"), Step("hall", "open", 2.0), Step("vault", "wait")]
    tell(arm, Episode("t", steps, final_state="vault"))
    assert arm.context("hall", "t").split("\n")[2:-1] == [
        "Here, open earned +2 before.",
        "Here, kick changed nothing before.",
        "Here, sing changed nothing before.",
    ]
    assert "wait changed nothing" in arm.context("vault", "t")
    assert "Here" not in arm.context("elsewhere", "t")


def test_guides_are_stored_by_task():
    arm = Evolution(LessonWriter(counting()))
    tell(arm, episode(task="cook"), episode(task="clean"))
    assert arm.context("s", "cook").split("\n")[1] == "answer 1"
    assert arm.context("s", "clean").split("\n")[1] == "answer 2"
    assert arm.context("s", "a new task").split("\n")[1] == "answer 2"


# ------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("I'm sorry, but I can't help with that request.", "refused"),
        ("I am unable to assist with this.", "refused"),
        (ModelAnswerError("nonsense", "rule", "step"), "nonsense"),
    ],
)
@pytest.mark.parametrize("kind", [Reflexion, Workflows, Evolution])
def test_unusable_answer_is_no_lesson_and_is_reported(kind, answer, fault):
    writer = LessonWriter(ScriptedLLM([answer, "a lesson"]))
    arm = kind(writer)
    before = arm.context("s", "t")
    (usage,) = tell(arm, episode(1.0, id="e7"))
    assert arm.context("s", "t") == before
    (reported,) = writer.faults
    assert "episode e7" in reported
    assert fault in reported
    assert usage.calls == 1
    tell(arm, episode(1.0))
    assert "a lesson" in arm.context("s", "t")


def test_lesson_that_begins_with_cannot_is_no_refusal():
    lesson = asyncio.run(ask_lesson(ScriptedLLM(["I cannot open the gate."]), "?", max_tokens=9, limit_chars=99))
    assert lesson.text == "I cannot open the gate."


def test_lesson_is_cut_and_made_printable():
    wild = "step one\x1b[31m\n" + "\ud800 go\x00 on\n" * 10_000
    lesson = asyncio.run(ask_lesson(ScriptedLLM([wild]), "?", max_tokens=9, limit_chars=50))
    assert len(lesson.text) <= 50
    lesson.text.encode()
    assert all(line.isprintable() for line in lesson.text.split("\n"))


def test_unavailable_endpoint_raises_an_error():
    arm = Reflexion(writer := LessonWriter(ScriptedLLM([ModelUnavailableError("down", "rule", "step")])))
    with pytest.raises(ModelUnavailableError):
        tell(arm, episode())
    assert writer.faults == []


def test_learning_returns_its_usage():
    (usage,) = tell(Reflexion(LessonWriter(ScriptedLLM(["a b c"]))), episode())
    assert usage.completion_tokens == 3
    assert usage.tokens > 3
    assert tell(Workflows(LessonWriter(ScriptedLLM([])), success=1.0), episode(0.0)) == [Usage()]


def test_lesson_writer_needs_a_model_and_checks_its_limits():
    with pytest.raises(InputError, match=r"asks a model.*Pass an LLM"):
        LessonWriter(UniformReader())
    for name in ("window_tokens", "transcript_tokens", "max_tokens"):
        with pytest.raises(InputError, match=name):
            LessonWriter(ScriptedLLM([]), **{name: 0})
