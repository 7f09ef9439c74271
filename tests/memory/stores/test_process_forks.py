"""A fork loses nothing: SQLite's file locks do not cross it, so no connection may."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import StoreError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def episode(id_):
    return Episode("t", [Step(f"page {id_}", "go", 1.0)], id=id_)


class Forked:
    """A child that does `work`; `go` lets it past `wait`, and `end` says how it went."""

    def __init__(self, work):
        self._told, self._tell = os.pipe()
        self._said, say = os.pipe()
        self.pid = os.fork()
        if self.pid:
            return
        signal.alarm(30)  # a deadlock must not outlive the test
        result = b"fine"
        try:
            work(lambda: (os.write(say, b"x"), os.read(self._told, 1)))
        except BaseException as error:
            result = repr(error).encode()[:2000]
        os.write(say, result)
        os._exit(0)

    def until_it_waits(self):
        assert os.read(self._said, 1) == b"x"

    def go(self):
        os.write(self._tell, b"x")

    def end(self):
        assert os.waitpid(self.pid, 0)[1] == 0, "the child hung"
        assert os.read(self._said, 2000) == b"fine"


@pytest.mark.parametrize("fresh", [False, True])
def test_episodes_of_a_child_survive_the_close_of_its_parent(tmp_path, fresh):
    path = tmp_path / "agent.db"
    memory = Memory.open(path)
    memory.add(episode("before"))

    def work(wait):
        own = Memory.open(path) if fresh else memory
        own.add(episode("child 1"))
        wait()
        own.add(episode("child 2"))
        own.close()

    child = Forked(work)
    child.until_it_waits()
    memory.close()
    with Memory.open(path) as other:
        other.add(episode("other"))
    child.go()
    child.end()
    with Memory.open(path) as memory:
        assert [e.id for e in memory.episodes()] == ["before", "child 1", "other", "child 2"]
        memory.verify()


def test_episodes_of_a_parent_survive_the_close_of_its_child(tmp_path):
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.add(episode("before"))

        def work(_):
            memory.add(episode("child"))
            memory.close()
            with pytest.raises(StoreError, match="closed"):
                len(memory)

        for n in range(3):
            child = Forked(work)
            memory.add(episode(f"after {n}"))
            child.end()
        assert sorted(e.id for e in memory.episodes()) == ["after 0", "after 1", "after 2", "before", "child"]
        assert len(memory.search("page", k=9)) == 5
        memory.verify()


class Waiting:
    """An encoder that stops in the middle of a write until it is let go on."""

    identity = "test/waiting"

    def __init__(self):
        self.inside, self.go_on = threading.Event(), threading.Event()

    def features(self, state):
        if state.startswith("slow"):
            self.inside.set()
            assert self.go_on.wait(30)
        return frozenset(state.split())


def test_child_forked_during_a_write_of_another_thread_works(tmp_path):
    encoder = Waiting()
    with Memory.open(tmp_path / "agent.db", encoder=encoder) as memory:
        writer = threading.Thread(target=memory.add, args=(Episode("t", [Step("slow page", "go")]),))
        writer.start()
        assert encoder.inside.wait(30)
        threading.Timer(0.2, encoder.go_on.set).start()

        def work(_):
            assert len(memory) == 1
            memory.add(episode("child"))

        Forked(work).end()
        writer.join()
        assert len(memory) == 2
        memory.verify()


def test_threads_fork_and_write_concurrently(tmp_path):
    failed = []
    with Memory.open(tmp_path / "a.db") as one, Memory.open(tmp_path / "b.db") as other:

        def write(memory):
            for n in range(15):
                memory.add(episode(f"e{n}"))

        def fork(name):
            for n in range(8):
                Forked(lambda _, n=n: [memory.add(episode(f"{name} {n}")) for memory in (one, other)]).end()

        def guarded(work, argument):
            try:
                work(argument)
            except BaseException as error:
                failed.append(error)

        jobs = [(write, one), (write, other), (fork, "x"), (fork, "y")]
        threads = [threading.Thread(target=guarded, args=job) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not failed
        for memory in (one, other):
            assert memory.verify().episodes == 15 + 16


INSIDE = """
import os, sys
from seasoned import Episode, Memory, Step
from seasoned.errors import StoreError

class Forking:
    identity, armed = "test/forking", True
    def features(self, state):
        if Forking.armed and state == "fork here":
            Forking.armed = False
            os.fork()
        return frozenset(state.split())

parent, path = os.getpid(), sys.argv[1]
memory = Memory.open(path, encoder=Forking())
memory.add(Episode("t", [Step("first", "go")], id="first"))
def says(call):
    try:
        call()
        return "went through"
    except StoreError as error:
        return "refused" if "forked" in str(error) else str(error)
add = says(lambda: memory.add(Episode("t", [Step("fork here", "go")], id="second")))
if os.getpid() != parent:
    print("child", add, says(lambda: len(memory)), says(lambda: Memory.open(path, encoder=Forking())), sep=", ")
    sys.exit()  # with all that Python tidies up at its exit
assert os.wait()[1] == 0
print("parent", add, len(memory), memory.verify().episodes, sep=", ")
memory.add(Episode("t", [Step("third", "go")], id="third"))
memory.close()
"""


def test_fork_inside_a_write_is_refused_in_the_child(tmp_path):
    path = tmp_path / "agent.db"
    done = subprocess.run([sys.executable, "-c", INSIDE, path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["child, refused, refused, refused", "parent, went through, 2, 2"]
    class_ = type("Encoder", (Waiting,), {"identity": "test/forking"})
    with Memory.open(path, encoder=class_()) as memory:
        assert [e.id for e in memory.episodes()] == ["first", "second", "third"]
        memory.verify()


def test_vanished_file_is_not_created_again(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        Forked(lambda _: None).end()
        path.unlink()
        with pytest.raises(StoreError):
            len(memory)
        assert not path.exists()


def test_a_relative_path_means_the_same_file_after_a_fork(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with Memory.open("agent.db") as memory:
        memory.add(episode("before"))
        Forked(lambda _: None).end()
        monkeypatch.chdir("elsewhere")
        assert len(memory) == 1
        assert list(Path().iterdir()) == []
