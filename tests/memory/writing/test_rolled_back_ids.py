"""What a failed transaction numbered is never taken for stored."""

from __future__ import annotations

import json
import threading
import time

import pytest
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.errors import InputError, StoreError, StoreFullError
from seasoned.types import EvidenceQuery


def episode(name: str, state: str, action: str) -> Episode:
    return Episode("t", [Step(state, action, 1.0)], id=name)


def lines_that_fail(memory: Memory) -> list[str]:
    """An episode with a new state, and then an event that cannot be."""
    first = json.dumps(
        {
            "type": "episode",
            "id": "lost",
            "task": "t",
            "ending": "terminated",
            "steps": [{"state": "state A", "action": "act A", "reward": 0.0}],
        }
    )
    event = {
        "type": "feedback",
        "id": "f",
        "episode_id": "nowhere",
        "step": 0,
        "reward": 1.0,
        "weight": 1.0,
        "source": "human",
        "created_at": 1.0,
    }
    return [first, json.dumps(event)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_adds_after_a_failed_import_get_valid_numbers(kind, tmp_path, request):
    url = tmp_path / "m.db" if kind == "sqlite" else request.getfixturevalue("fresh_url")
    with Memory.open(url) as memory:
        memory.add(episode("e0", "state 0", "act 0"))
        with pytest.raises(InputError):
            memory.import_lines(lines_that_fail(memory))
        memory.add(episode("e0", "state 0", "act 0"))  # stored already: numbers nothing
        memory.add_many([])
        memory.add(episode("eC", "state C gamma", "act C"))
        memory.add(episode("eA", "state A", "act A"))
        assert memory.get("eA") == episode("eA", "state A", "act A")
        memory.verify()


def test_adds_after_failed_imports_and_commits_of_another_process_get_valid_numbers(tmp_path):
    path = tmp_path / "m.db"
    with Memory.open(path) as memory, Memory.open(path) as other:
        for number in range(3):
            with pytest.raises(InputError):
                memory.import_lines(lines_that_fail(memory))
            other.add(episode(f"o{number}", f"other {number}", f"do {number}"))
            memory.add(episode("o0", "other 0", "do 0"))
            memory.add(episode(f"a{number}", f"state A {number}", "act A"))
            memory.add(episode(f"b{number}", "state A", "act A"))
        for name, state in (("a0", "state A 0"), ("b2", "state A"), ("o2", "other 2")):
            assert memory.get(name).steps[0].state == state
        assert memory.verify().hash == other.verify().hash


def counted(memory, state):
    evidence = memory.evidence(EvidenceQuery(state, k=1, unit="states", threshold=1.0))
    return dict(zip(evidence.actions, evidence.counts.tolist(), strict=True))


def test_episode_refused_by_a_full_disk_is_added_after_another_process_used_its_states(tmp_path):
    states = [f"state {number} " + f"w{number} " * 5 + "x" * 300 for number in range(400)]
    with Memory.open(tmp_path / "m.db") as memory, Memory.open(tmp_path / "m.db") as other:
        memory.add(episode("e0", "start", "go"))
        connection = memory.session.store.connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        long = Episode("t", [Step(state, "go", 1.0) for state in states], id="long")
        with pytest.raises(StoreFullError):
            memory.add(long)
        connection.execute("PRAGMA max_page_count = 1000000")
        other.add(Episode("t", [Step(state, "go", 5.0) for state in states], id="other"))
        memory.add(long)
        assert counted(memory, states[3]) == {"go": 2.0}
        memory.verify()


def test_episode_of_a_lost_connection_is_added_after_another_host_used_its_state(postgres, fresh_url):  # noqa: F811
    lost = []
    with Memory.open(fresh_url) as memory, Memory.open(fresh_url) as other, postgres.connect(fresh_url) as admin:
        memory.add_many([episode("e0", "start", "go")])
        memory.session.store.retry_s = 0.0

        def add():
            try:
                memory.add_many([episode("e1", "x y z", "a new action")])
            except StoreError as error:
                lost.append(error)

        with admin.transaction():
            admin.execute("LOCK TABLE seasoned.action")  # states are numbered before actions
            thread = threading.Thread(target=add, daemon=True)
            thread.start()
            pid = memory.session.store._live.info.backend_pid
            waits = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s"
            deadline = time.monotonic() + 30.0
            while admin.execute(waits, [pid]).fetchone() != ("Lock",) and time.monotonic() < deadline:
                admin.execute("SELECT pg_stat_clear_snapshot()")
                time.sleep(0.01)
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        thread.join(30.0)
        assert len(lost) == 1
        other.add_many([episode("quick", "x y z", "go")])
        memory.add_many([episode("e1", "x y z", "go")])
        assert counted(memory, "x y z") == {"go": 2.0}
        memory.verify()
