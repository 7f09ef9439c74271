"""What a failed transaction numbered is never taken for stored."""

from __future__ import annotations

import json

import pytest
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.errors import InputError


def episode(name: str, state: str, action: str) -> Episode:
    return Episode("t", [Step(state, action, 1.0)], id=name)


def lines_that_fail(memory: Memory) -> list[str]:
    """An episode with a new state, and then an event that cannot be."""
    first = json.dumps({"type": "episode", "id": "lost", "task": "t", "ending": "terminated",
                        "steps": [{"state": "state A", "action": "act A", "reward": 0.0}]})  # fmt: skip
    event = {"type": "feedback", "id": "f", "episode_id": "nowhere", "step": 0, "reward": 1.0, "weight": 1.0,
             "source": "human", "created_at": 1.0}  # fmt: skip
    return [first, json.dumps(event)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_failed_import_and_an_idle_add_in_between(kind, tmp_path, request):
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


def test_a_failed_commit_and_another_process_in_between(tmp_path):
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
