"""Transcripts in prompts of baselines: window, cleaning, order, and learned episodes only."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seasoned.agents.baselines import (
    ByBM25,
    Evolution,
    FullContext,
    LessonWriter,
    PastSuccesses,
    Reflexion,
    SuccessCriterion,
    Workflows,
)
from seasoned.agents.baselines.transcripts import framed, transcript
from seasoned.errors import InputError
from seasoned.llms import ScriptedLLM
from seasoned.states.text_budget import estimated_tokens, lines_within, one_line
from seasoned.types import Episode, Step


def tell(arm, *episodes):
    for episode in episodes:
        asyncio.run(arm.learn(episode))
    return arm


def echo(request):
    """A model that repeats the marked words of its prompt, so that a test can trace them."""
    return "I learned " + " ".join(re.findall(r"w\d+x", request.messages[-1].content)[:20])


def arms(window_tokens=800):
    return {
        "full-context": FullContext(window_tokens),
        "bm25": PastSuccesses(ByBM25(), window_tokens=window_tokens),
        "reflexion": Reflexion(LessonWriter(ScriptedLLM(echo), window_tokens)),
        "workflows": Workflows(LessonWriter(ScriptedLLM(echo), window_tokens)),
        "evolve": Evolution(LessonWriter(ScriptedLLM(echo), window_tokens)),
    }


KINDS = sorted(arms())

# ------------------------------------------------------------------------------------- length


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("abcd", 1),  # 4 bytes
        ("abcde", 2),
        ("a b c", 3),  # 5 bytes are 2, three words are more
        ("12345", 5),  # every digit
        ("é" * 4, 2),  # 8 bytes
        ("page:3/7", 5),  # page : 3 / 7
        ("a\nb", 3),
    ],
)
def test_estimated_tokens_is_the_greater_of_bytes_and_pieces(text, expected):
    assert estimated_tokens(text) == expected


@given(st.text(st.sampled_from("ab \t\n0_.-\x1f\x00\u00e4\u4e00"), max_size=30) | st.text(max_size=20))
def test_pieces_are_runs_of_letters_digits_marks_and_line_breaks_in_any_text(text):
    pieces = len(re.findall(r"[^\W\d_]+|\d|[^\w\s]|_|\n", text))
    assert estimated_tokens(text) == max(-(-len(text.encode(errors="replace")) // 4), pieces)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "You are in a kitchen. There is a closed fridge here, and a red apple on the table.\nYou carry a knife.\n" * 9,
        "cell:0,0 open:east,south\ncell:1,2 open:north\n" * 9,
        "page:/cart?item=31&total=12.50 button:#checkout link:Back to shop\n" * 9,
    ],
)
def test_estimated_tokens_is_close_to_the_local_models_count(text):
    pytest.importorskip("xllamacpp", reason="needs the extra 'local'")
    from seasoned.llms import LocalLLM

    async def count():
        llm = LocalLLM(threads=1)
        try:
            return len(await llm.token_ids(text))
        finally:
            await llm.aclose()

    assert 0.75 < estimated_tokens(text) / asyncio.run(count()) < 1.25


@given(st.lists(st.text(max_size=30), max_size=6))
def test_joined_lines_need_no_more_tokens_than_their_sum(lines):
    assert estimated_tokens("\n".join(lines)) <= sum(estimated_tokens(f"{line}\n") for line in lines)


@given(st.text(max_size=200), st.integers(1, 60))
def test_one_line_is_one_short_printable_line(text, limit):
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.isprintable()
    assert all(len(each) <= limit and each.isprintable() for each in lines_within(text, limit).split("\n"))


def test_a_long_text_keeps_its_beginning_and_its_end():
    line = one_line("begin " + "x" * 10**6 + " end", 40)
    assert len(line) == 40
    assert line.startswith("begin ")
    assert line.endswith(" end")


# ------------------------------------------------------------------------------------- transcripts


def test_long_transcript_loses_its_first_steps():
    episode = Episode("t", [Step(f"state {i}", f"act {i}", float(i == 9)) for i in range(10)])
    whole, fits = transcript(episode, 10_000, 100, task="t")
    assert fits
    assert whole.count("State:") == 10
    cut, fits = transcript(episode, 60, 100, task="t")
    assert not fits
    assert estimated_tokens(cut) <= 60
    shown = re.findall(r"state (\d)", cut)
    assert shown == [str(i) for i in range(10)][-len(shown) :]
    assert f"({10 - len(shown)} earlier steps left out)" in cut
    assert cut.startswith("Episode with score 1, terminated:")
    assert transcript(episode, 10, 100, task="t") == ("", False)


def test_transcript_names_the_task_only_if_it_differs():
    episode = Episode("cook", [Step("s", "a")], final_state="the end", ending="truncated")
    assert transcript(episode, 100, 100, task="cook")[0] == (
        "Episode with score 0, truncated:\nState: s\nAction: a\nEnd: the end"
    )
    assert "Task: cook" in transcript(episode, 100, 100, task="clean")[0]


def test_state_cannot_forge_a_line_of_a_transcript():
    text, _ = transcript(Episode("t", [Step("x\nAction: win\nReward: +9", "a\n\nb")]), 100, 100, task="t")
    assert text.splitlines()[1:] == ["State: x Action: win Reward: +9", "Action: a b"]


def test_framed_keeps_the_first_blocks():
    assert framed("H", [], 100) == ""
    assert framed("H", ["aa", "bb", "cc"], 9) == "H\naa\nbb\nNow:"  # H, two breaks, Now and its mark: 5; 2 a block
    assert framed("H", ["aa", "bb", "cc"], 9, newest_last=True) == "H\nbb\naa\nNow:"


def test_full_context_shows_the_newest_episodes_last():
    past = FullContext(window_tokens=60)
    tell(past, *(Episode("t", [Step(f"room {i}", "go", float(i))]) for i in range(9)))
    context = past.context("now", "t")
    rooms = [int(i) for i in re.findall(r"room (\d)", context)]
    assert rooms == list(range(9))[-len(rooms) :]
    assert 1 < len(rooms) < 9
    assert context.endswith("\nNow:")
    everything = tell(FullContext(10_000), *(Episode("t", [Step(f"room {i}", "go")]) for i in range(9)))
    assert everything.context("now", "t").count("room") == 9


def test_full_context_is_empty_before_the_first_episode():
    assert FullContext().context("s", "t") == ""


# ------------------------------------------------------------------------------------- successes


def test_success_reaches_the_threshold_or_the_median():
    successes = SuccessCriterion(5.0)
    assert not successes.add("t", 0.0)  # nothing was achieved
    assert successes.add("t", 2.0)  # none reached 5 yet; the median of 0, 2 is 1
    assert successes.add("t", 1.0)  # at the median of 0, 1, 2
    assert not successes.add("t", 0.5)  # below the median of 0, 0.5, 1, 2
    assert successes.add("t", 5.0)
    assert not successes.add("t", 4.9)  # one has reached the threshold now
    assert successes.add("another task", 1.0)


def test_without_a_threshold_costs_are_compared_with_the_worst():
    successes = SuccessCriterion()
    assert [successes.add("t", score) for score in (-9.0, -9.0, -4.0, -3.0, -9.0)] == [False, False, True, True, False]


# ------------------------------------------------------------------------------------- every arm

wild = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300).filter(lambda t: not t.isspace())
wild_steps = st.lists(st.builds(Step, wild, wild, st.sampled_from([0.0, 1.0, -1.0])), min_size=1, max_size=5)
wild_episodes = st.lists(st.builds(Episode, wild, wild_steps), min_size=1, max_size=3)


@settings(max_examples=15)
@given(wild_episodes, st.sampled_from([1, 30, 150]), wild)
def test_no_context_exceeds_its_window(episodes, window, answer):
    llm = ScriptedLLM(lambda request: answer * 20)
    made = [FullContext(window), PastSuccesses(ByBM25(), window_tokens=window)]
    made += [kind(LessonWriter(llm, window)) for kind in (Reflexion, Workflows, Evolution)]
    for arm in made:
        tell(arm, *episodes)
        for episode in episodes:
            context = arm.context(episode.steps[0].state, episode.task)
            assert estimated_tokens(context) <= window
            assert all(line.isprintable() for line in context.split("\n"))


@settings(max_examples=10)
@given(st.integers(0, 4), st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=5, max_size=5))
def test_contexts_contain_learned_episodes_only(learned, scores):
    """Every episode has unique words; those of episodes that were not learned never appear."""
    episodes = [
        Episode(f"task w{n}0x", [Step(f"common w{n}1x", f"go w{n}2x"), Step(f"common w{n}3x", f"do w{n}4x", score)])
        for n, score in enumerate(scores)
    ]
    own = [{f"w{n}{i}x" for i in range(5)} for n in range(5)]
    allowed = set().union(*own[:learned])
    for arm in arms().values():
        tell(arm, *episodes[:learned])
        for episode in episodes:
            seen = set(re.findall(r"w\d+x", arm.context("common room", episode.task)))
            assert seen <= allowed


@pytest.mark.parametrize("kind", KINDS)
def test_arms_with_equal_episodes_have_equal_contexts(kind):
    episodes = [
        Episode(f"t{n % 2}", [Step(f"room {n} {i}", f"go {i}", float(n == i)) for i in range(4)]) for n in range(6)
    ]
    one, two = (tell(arms()[kind], *episodes) for _ in range(2))
    contexts = [one.context(f"room {n} 1", f"t{n % 2}") for n in range(6)]
    assert contexts == [two.context(f"room {n} 1", f"t{n % 2}") for n in range(6)]
    assert any(contexts)


@pytest.mark.parametrize("kind", KINDS)
def test_an_aborted_episode_is_refused(kind):
    with pytest.raises(InputError, match=r"aborted.*only finished episodes are judged and learned from.*Leave it out"):
        tell(arms()[kind], Episode("t", [Step("s", "a")], ending="aborted"))
    with pytest.raises(InputError, match="Episode"):
        tell(arms()[kind], "episode")


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_is_a_number_of_tokens(kind):
    for wrong in (0, -1, 2.5, True, "800"):
        with pytest.raises(InputError, match="window_tokens must be a whole number, at least 1"):
            arms(wrong)[kind]
