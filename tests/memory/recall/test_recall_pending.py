"""Recall of a read-only PostgreSQL reader, which cannot derive pending episodes."""

from __future__ import annotations

import pytest
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.types import RecallQuery


def add(memory, numbers, state, task="shop"):
    for number in numbers:
        memory.add(Episode(task, [Step(f"{state} {number}", "pay", 1.0)], f"e{number}"))


def recalled(memory, **settings):
    query = RecallQuery({"observation": "page cart 99"}, pool=3, **settings)
    return sorted(moment.place for moment in memory.recall(query).moments)


@pytest.mark.parametrize("settings", [{}, {"exclude_task": "other"}], ids=["all tasks", "without a task"])
def test_pending_states_take_no_place_in_the_pool(fresh_url, settings):  # noqa: F811
    with Memory.open(fresh_url) as writer, Memory.open(fresh_url, read_only=True) as reader:
        add(writer, range(4), "page")
        add(writer, [4], "page cart", "other")
        assert len(recalled(writer, **settings)) == 3  # derives the episodes
        before = recalled(reader, **settings)
        add(writer, range(10, 16), "page cart")
        add(writer, [99], "page cart")
        assert reader.search("page cart 99")[0].experience.episode_id == "e99"
        assert recalled(reader, **settings) == before
        assert len(recalled(writer, **settings)) == 3
        assert recalled(reader, **settings) == recalled(writer, **settings) != before
