"""A memory with a redactor: queries are redacted as stored texts are."""

from __future__ import annotations

import pytest

from seasoned import Episode, JitRL, Memory, Selection, Step
from seasoned.errors import StoreBusyError
from seasoned.states import Redactor

TASK = "mail ann@example.com"
STATE = "inbox of ann@example.com"


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "m.db", redact=Redactor()) as memory:
        for number in range(4):
            memory.add(
                Episode(TASK, [Step(STATE, "send", 1.0, {"send": -0.5, "to bob@example.com": -1.0})], f"e{number}")
            )
        yield memory


def test_redacted_texts_do_not_reach_the_file(memory, tmp_path):
    memory.quarantine(Selection(task=TASK), "asked by carl@example.com")
    memory.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"inbox" in stored
    assert b"@example.com" not in stored


def test_tasks_are_redacted_in_queries(memory):
    assert len(memory.episodes(task=TASK)) == 4
    assert memory.selected(Selection(task=TASK)) == (4, 0)
    assert len(memory.search(STATE, threshold=1.0)) == 4
    assert memory.search(STATE, exclude_task=TASK) == []
    decision = JitRL(memory, exclude_same_task=True).decide(STATE, {"send": -0.5, "wait": -1.0}, task=TASK, seed=0)
    assert decision.mode == "base"
    memory.quarantine(Selection(task=TASK), "wrong")
    assert memory.search(STATE) == []


def test_imported_lines_are_redacted(memory, tmp_path):
    with Memory.open(tmp_path / "plain.db") as plain:
        plain.add(Episode("t", [Step("write to dora@example.com", "go")]))
        lines = list(plain.export())
    assert memory.import_lines(lines) == (1, 0)
    assert [e.steps[0].state for e in memory.episodes(task="t")] == ["write to [email]"]


def test_an_export_interrupted_by_an_erasure_is_refused(tmp_path):
    with Memory.open(tmp_path / "m.db") as memory:
        memory.add_many([Episode("t", [Step(f"s{n}", "go")], subject="ann" if n == 90 else None) for n in range(100)])
        lines = memory.export()
        next(lines)
        memory.erase("ann")
        with pytest.raises(StoreBusyError, match="Export again"):
            list(lines)


def test_exception_of_the_encoder_is_raised_unchanged(tmp_path):
    class Failing:
        identity = "test/failing"

        def features(self, state):
            if self.fails:
                raise KeyError(state)
            return frozenset(state.split())

        fails = False

    encoder = Failing()
    with Memory.open(tmp_path / "m.db", encoder=encoder) as memory:
        memory.add(Episode("t", [Step("a b", "go")]))
        encoder.fails = True
        with pytest.raises(KeyError):
            memory.verify()
        encoder.fails = False
        memory.verify()
