"""Caps on the feedback of one author on a step: in every process, after a restart, and on delivery from a spool."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from seasoned import Episode, Memory, Step, Thumbs
from seasoned.memory.outage.spool import spools_in
from seasoned.memory.values.author_cap import AuthorCap, AuthorCapError
from seasoned.memory.values.feedback_limits import FeedbackLimits

CAP = AuthorCap(1.0, ("human",))


def give(memory, source, reward=-0.25, **more):
    memory.feedback("e1", reward, source=source, cap=CAP, **{"author": "ann", **more})


def rewards(memory):
    return sorted(event.reward * event.weight for event in memory.events() if event.revoked_at is None)


@pytest.fixture
def memory():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("s", "a", 0.0)] * 2, "e1"))
        yield memory


def test_names_of_one_author_add_up_to_the_cap_on_each_step(memory):
    for number in range(4):
        give(memory, f"name {number}")
    for refused in ({"reward": 0.25}, {"reward": -0.1, "weight": 2.0}, {"reward": Thumbs(True)}):
        with pytest.raises(AuthorCapError, match="at most 1"):
            give(memory, "another", **refused)
    give(memory, "another", 0.0)
    give(memory, "name 0", -0.125)  # it replaces its own
    give(memory, "human", -0.75)  # which is excepted
    give(memory, "name 9", author="bob")
    give(memory, "name 9", step=0)
    assert rewards(memory) == [-0.75, -0.25, -0.25, -0.25, -0.25, -0.25, -0.125, 0.0]
    memory.set_feedback_limits(FeedbackLimits(max_step_feedback=2))
    give(memory, "another", 0.5)


def test_revoked_feedback_counts_no_longer(memory):
    give(memory, "name", -1.0, id="f1")
    memory.revoke("f1")
    give(memory, "another", -1.0)
    assert rewards(memory) == [-1.0]


def test_handles_that_store_at_once_share_one_cap(tmp_path):
    """Each has a connection of its own, as each process has."""
    with Memory.open(tmp_path / "m.db") as memory:
        memory.add(Episode("t", [Step("s", "a", 0.0)], "e1"))

    def give_many(number):
        refused = 0
        with Memory.open(tmp_path / "m.db") as own:
            for name in "abc":
                try:
                    give(own, f"{name}{number}")
                except AuthorCapError:
                    refused += 1
        return refused

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(give_many, range(4))) == 8
    with Memory.open(tmp_path / "m.db") as memory:
        assert rewards(memory) == [-0.25] * 4


@pytest.mark.parametrize("feedback", [-0.75, Thumbs(False)], ids=["a reward", "typed feedback"])
def test_delivery_refuses_what_an_outage_let_pass(tmp_path, feedback):
    with Memory.open(tmp_path / "m.db", timeout_s=0.1, spool=tmp_path / "spool") as memory:
        memory.add(Episode("t", [Step("s", "a", 0.0)], "e1"))
        other = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for source in ("one", "two", "three"):
            give(memory, source, feedback)
        assert memory.spool_stats().entries == 3
        other.close()
    with Memory.open(tmp_path / "m.db") as memory:  # the first one's closing delivered
        [event] = memory.events()
    [spool] = spools_in(tmp_path / "spool")
    assert (event.source, spool.entries, spool.refused) == ("one", 0, 2)
    assert "AuthorCapError" in next((tmp_path / "spool").glob("*/refused.jsonl")).read_text()
