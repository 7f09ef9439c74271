"""Whatever happens in the middle of it: feedback is there with all that follows from it, or not at all."""

from __future__ import annotations

import signal
import sys

import pytest
from dying import dying_at, ended, forked
from postgres_server import postgres, server  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.types import Choice, Thumbs

SHOWN = "It is lost."


def test_kill_9_during_feedback_leaves_all_or_none_of_it(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        memory.add(Episode("support", [Step("where?", SHOWN)], "talk"))
        memory.feedback("talk", Choice((SHOWN, "A"), 1), author="ann", id="first")
        before = memory.verify().hash
    seen = []
    for statement in range(4, 400, 7):

        def work(statement=statement):
            with Memory.open(path) as memory:
                sys.setprofile(dying_at(statement))
                memory.feedback("talk", Choice((SHOWN, "A", "B"), 2), author="ann", id="second")
                sys.setprofile(None)

        code = ended(forked(work))
        assert code in (0, -signal.SIGKILL)
        with Memory.open(path) as memory:
            done = [one.id for one in memory.feedback_records() if one.revoked_at is None]
            rewards = {n.experience.action: n.experience.reward for n in memory.search("where?", 9, 1.0)}
            if done == ["first"]:
                assert (memory.verify().hash, rewards) == (before, {SHOWN: -1.0, "A": 1.0})
            else:
                assert (done, rewards) == (["second"], {SHOWN: -0.5, "A": -0.5, "B": 1.0})
                memory.verify()
        seen.append(code)
        if code == 0:
            break
    assert seen[-1] == 0
    assert len(seen) >= 5


def give_in_a_process(place, author, n):
    def work():
        with Memory.open(place) as memory:
            for number in range(n):
                memory.feedback("talk", Choice((SHOWN, f"{author} {number}"), 1), author=author)
                memory.feedback("talk", Thumbs(number % 2 == 0), author="both")

    return forked(work)


@pytest.mark.parametrize("kind", ["file", pytest.param("server", marks=pytest.mark.slow)])
def test_concurrent_feedback_of_two_processes_is_stored_whole(tmp_path, request, kind):
    place = tmp_path / "agent.db" if kind == "file" else request.getfixturevalue("postgres").fresh()
    with Memory.open(place) as memory:
        memory.add(Episode("support", [Step("where?", SHOWN)], "talk"))
    children = [give_in_a_process(place, author, 4) for author in ("ann", "bob")]
    assert [ended(child) for child in children] == [0, 0]
    with Memory.open(place) as memory:
        whole = memory.verify()
        assert (whole.episodes, whole.notes) == (1 + 8, 16)
        standing = [one for one in memory.feedback_records() if one.revoked_at is None]
        assert sorted((str(one.author), one.feedback.kind) for one in standing) == [
            ("ann", "choice"),
            ("bob", "choice"),
            ("both", "thumbs"),
        ]
        actions = {n.experience.action for n in memory.search("where?", 50, 1.0)}
        assert actions == {SHOWN, "ann 3", "bob 3"}
