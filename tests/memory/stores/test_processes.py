"""Many processes on one file: each sees the others' commits at its next query."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import SeasonedError
from seasoned.types import EvidenceQuery

WRITER = """
import sys, time
from seasoned import Episode, Memory, Step
path, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
sys.stdin.readline()
with Memory.open(path) as memory:
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        steps = [Step(f"shared page {n % 7}", f"click {name}", 1.0), Step(f"own {name} {n}", "go", 2.0)]
        print(memory.add(Episode("t", steps)), flush=True)
        n += 1
"""

READER = """
import sys, time
from seasoned import EvidenceQuery, Memory
path, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
sys.stdin.readline()
with Memory.open(path) as memory:
    end, seen = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        size = len(memory)
        evidence = memory.evidence(EvidenceQuery("shared page 1", k=10**6, unit="states", threshold=0.0))
        found = memory.search("shared page 1", k=10**6)
        assert size <= evidence.n_steps <= len(found), "a commit vanished"
        assert len(found) % 2 == 0, "half an episode was seen"
        assert size >= seen
        seen = len(found)
print(seen)
"""


def start(script, *arguments):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def let_go(processes):
    """Start them at once (each waits for a line); return what they print."""
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate() for process in processes]
    for process, (_, errors) in zip(processes, printed, strict=True):
        assert process.returncode == 0, errors
    return [out.split() for out, _ in printed]


def test_writers_and_readers_share_a_new_file(tmp_path):
    path = tmp_path / "agent.db"
    writers = [start(WRITER, path, n, 1.0) for n in range(4)]
    readers = [start(READER, path, n, 1.0) for n in range(2)]
    printed = let_go(writers + readers)
    ids = [id_ for lines in printed[:4] for id_ in lines]
    assert all(printed[:4])
    with Memory.open(path) as memory:
        stored = memory.episodes()
        assert sorted(e.id for e in stored) == sorted(ids)
        assert all(len(e.steps) == 2 for e in stored)
        assert memory.verify().steps == 2 * len(ids)
        assert len(memory.search("shared page", k=10**6)) == 2 * len(ids)


@pytest.mark.parametrize("attempt", range(3))
def test_several_processes_create_the_same_file_at_once(tmp_path, attempt):
    path = tmp_path / "new.db"
    ids = let_go([start(WRITER, path, n, 0.05) for n in range(4)])
    with Memory.open(path) as memory:
        assert sorted(e.id for e in memory.episodes()) == sorted(id_ for lines in ids for id_ in lines)
        memory.verify()


def test_commit_of_another_connection_is_visible_at_the_next_query(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as one, Memory.open(path) as other:
        for n in range(5):
            (one, other)[n % 2].add(Episode("t", [Step(f"page {n}", "a", 1.0)], id=f"e{n}"))
            for memory in (one, other):
                assert len(memory) == n + 1
                assert {f.experience.episode_id for f in memory.search("page", k=99)} == {f"e{i}" for i in range(n + 1)}
        one.feedback("e0", 5.0)
        assert other.search("page 0", k=1)[0].experience.reward == 6.0
        assert other.evidence(EvidenceQuery("page 0", k=1, unit="states", threshold=1.0)).totals.tolist() == [6.0]


def in_child(work):
    """Run `work` in a forked child; it is a test failure if it raises there."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            os.write(writable, b"fine")
        except BaseException as error:
            os.write(writable, repr(error).encode()[:4000])
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        result = pipe.read()
    os.waitpid(child, 0)
    assert result == "fine"


def test_a_forked_child_uses_the_memory(tmp_path):
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.add(Episode("t", [Step("page one", "a")], id="before"))
        memory.search("page")

        def work():
            assert len(memory.search("page", k=9)) == 1
            memory.add(Episode("t", [Step("page child", "a")], id="child"))
            assert len(memory.search("page", k=9)) == 2
            memory.verify()

        in_child(work)
        assert [n.experience.episode_id for n in memory.search("page", k=9)] == ["child", "before"]
        memory.add(Episode("t", [Step("page parent", "a")], id="after"))
        assert memory.verify().episodes == 3


def test_a_forked_child_sees_what_its_parent_commits_after_the_fork(tmp_path):
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.add(Episode("t", [Step("page one", "a")]))
        memory.search("page")
        told, tell = os.pipe()

        def work():
            os.read(told, 1)
            assert len(memory.search("page", k=9)) == 2

        def parent():
            time.sleep(0.2)
            memory.add(Episode("t", [Step("page two", "a")]))
            os.write(tell, b"x")

        thread = threading.Thread(target=parent)
        thread.start()
        in_child(work)  # forks while the thread sleeps
        thread.join()


def test_forked_child_of_a_memory_in_ram_is_refused(tmp_path):
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("page one", "a")]))

        def work():
            for call in (lambda: memory.search("page"), lambda: len(memory), lambda: memory.add(memory.episodes()[0])):
                with pytest.raises(SeasonedError, match="RAM"):
                    call()

        in_child(work)
        assert len(memory.search("page")) == 1


def test_closing_in_a_child_does_not_close_the_parent(tmp_path):
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.add(Episode("t", [Step("page one", "a")]))
        in_child(memory.close)
        assert len(memory.search("page")) == 1
