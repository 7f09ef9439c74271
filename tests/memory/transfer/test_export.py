"""An export is the content of one instant, and blocks nobody."""

from __future__ import annotations

import os
import threading

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import StoreError

N = 75  # more than the export reads at once


@pytest.fixture(params=["file", "RAM"])
def memory(request, tmp_path):
    with Memory.open(tmp_path / "agent.db" if request.param == "file" else ":memory:") as opened:
        opened.add_many(Episode("t", [Step(f"page {n}", "go", 1.0)], id=f"e{n}") for n in range(N))
        opened.feedback("e0", 1.0, author="ann")
        opened.feedback("e1", 1.0, author="bob")
        yield opened


def test_export_is_the_content_at_its_first_line(memory):
    before = list(memory.export())
    lines = memory.export()
    seen = [next(lines)]
    memory.add(Episode("t", [Step("late", "go")], id="late"))
    memory.feedback("e0", 2.0, author="ann")  # supersedes
    memory.revoke(memory.events("e1")[0].id)
    memory.feedback("e2", 2.0)
    seen += [next(lines), next(lines)]
    memory.add(Episode("t", [Step("later", "go")], id="later"))
    assert seen + list(lines) == before
    with Memory.open(":memory:") as copy:
        assert copy.import_lines(before) == (N, 2)
    assert len(list(memory.export())) == len(before) + 4


def test_paused_export_blocks_no_other_thread(memory):
    lines = memory.export()
    next(lines)
    results = []

    def work():
        results.append(len(memory))
        memory.add(Episode("t", [Step("late", "go")]))
        lines.close()
        results.append(len(memory))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert results == [N, N + 1]


def test_export_of_a_closed_memory_raises(memory):
    lines = memory.export()
    next(lines)
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        list(lines)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_export_continues_after_a_process_fork(tmp_path):
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.add_many(Episode("t", [Step(f"page {n}", "go", 1.0)]) for n in range(N))
        expected = list(memory.export())
        lines = memory.export()
        seen = [next(lines), next(lines)]
        child = os.fork()
        if not child:
            os._exit(0 if seen + list(lines) == expected else 1)
        assert seen + list(lines) == expected
        assert os.waitpid(child, 0)[1] == 0


def test_export_escapes_what_a_terminal_obeys_and_an_import_reads_it_back_equal():
    hostile = "a\x00b\x1b[2J\x7f\x85\x9b31m\u00ad\u200b\u2028\u202e\u2066\ufeff\U000e0041 \u0645 ö 漢 🙂"
    with Memory.open(":memory:") as memory, Memory.open(":memory:") as copy:
        memory.add(Episode(hostile, [Step(hostile, hostile, 1.0, {hostile: -0.1})], id=hostile, subject=hostile))
        memory.feedback(hostile, 1.0, author=hostile)
        memory.note(hostile, "plan", {hostile: hostile})
        lines = list(memory.export())
        assert all(line.isprintable() for line in lines)
        assert "\\u009b31m" in lines[1] and "\\u202e" in lines[1] and "\\udb40\\udc41 \u0645 ö 漢 🙂" in lines[1]
        copy.import_lines(lines)
        assert copy.verify().hash == memory.verify().hash
        assert copy.get(hostile) == memory.get(hostile)
        assert list(copy.export()) == lines
