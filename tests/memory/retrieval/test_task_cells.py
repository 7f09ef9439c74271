"""Sums by task and recent returns stay those of a memory that was just opened, whatever was added or erased since."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from seasoned import Episode, EvidenceQuery, Memory, Selection, Step, TranscriptEncoder
from seasoned.core import N_RECENT
from seasoned.memory.retrieval import task_cells

QUERY = EvidenceQuery(
    "alert pool", similarity="rarity", unit="states", by_task=True, k=8, threshold=0.0, current_task="night"
)


def sums(memory):
    found = memory.evidence(QUERY)
    by_task = {name: np.asarray(value).tolist() for name, value in dataclasses.asdict(found.by_task).items()}
    return by_task, found.recent  # the moments of the latest returns of the task


@pytest.mark.parametrize("goals", [False, True])
@pytest.mark.parametrize("store", ["file", "two processes"])
def test_sums_by_task_follow_other_tasks_and_erasures(tmp_path, store, goals):
    def episode(task, number, subject=None):
        state = f"goal:\nfind {'abcdefg'[number]}\nuser:\nalert pool" if goals else "alert pool"
        return Episode(task, [Step(state, "restart", float(number % 2))], f"{task}-{number}", subject=subject)

    path, encoder = tmp_path / "a.db", TranscriptEncoder() if goals else None
    latest = Episode("night", [Step("alert pool", "wait", number / 7) for number in range(N_RECENT - 2)], "latest")
    with Memory.open(path, encoder=encoder) as memory, Memory.open(path) as other:
        writer = memory if store == "file" else other
        work = [
            lambda: writer.add(episode("night", 1)),
            lambda: writer.add(episode("night", 2)),
            lambda: writer.add(episode("day", 3, subject="ann")),
            lambda: writer.add(episode("night", 4)),
            lambda: writer.erase("ann"),
            lambda: writer.add(episode("night", 5)),
            lambda: writer.add(episode("noon", 6)),
            lambda: writer.feedback("night-4", 1.0),  # the same step has another return
            lambda: writer.add(latest),  # all but two of the latest returns
            lambda: writer.add(episode("night", 0)),
        ]
        for change in work:
            change()
            with Memory.open(path) as fresh:
                assert sums(memory) == sums(fresh)


def runs_of_night(memory):
    """The number of runs of the current task, of which one state is near, under a goal of its own."""
    query = dataclasses.replace(QUERY, state="goal:\nfind a\nuser:\nalert pool", k=2)
    found = memory.evidence(query)
    assert len(found.by_task.episodes) == 2
    return int(found.by_task.episodes[found.by_task.current])


def test_only_runs_that_count_as_evidence_are_runs_of_a_task(tmp_path):
    """Not one that awaits feedback, also where a later verdict ends that, nor one that aborted or is quarantined."""

    def far(task, **settings):
        return Episode(task, [Step("far away", "wait", 0.0)], **settings)

    path = tmp_path / "a.db"
    with Memory.open(path, encoder=TranscriptEncoder()) as memory, Memory.open(path) as other:

        def now():
            with Memory.open(path) as fresh:
                found = {runs_of_night(each) for each in (memory, other, fresh)}
            assert len(found) == 1
            return found.pop()

        for task in ("night", "day"):
            memory.add(Episode(task, [Step(f"goal:\nfind {task}\nuser:\nalert pool", f"restart {task}", 1.0)]))
        assert now() == 1
        memory.add(far("night", id="waits", awaits_feedback=True))
        memory.add(far("night", ending="aborted"))
        assert now() == 1
        memory.add(far("day"))
        assert now() == 1
        other.feedback("waits", 1.0)
        assert now() == 2
        other.add(far("night", id="more"))
        assert now() == 3
        memory.quarantine(Selection(episode="more"), "wrong")
        assert now() == 2


def test_runs_are_counted_alike_by_an_open_process_and_a_new_one(tmp_path, monkeypatch):
    monkeypatch.setattr(task_cells, "_MOST_COUNTED", 8)
    path, counts = tmp_path / "a.db", []
    with Memory.open(path, encoder=TranscriptEncoder()) as memory:
        for task in ("night", "day"):
            memory.add(Episode(task, [Step(f"goal:\nfind {task}\nuser:\nalert pool", f"restart {task}", 1.0)]))
        memory.add(Episode("night", [Step("far away", "wait", 0.0)], "late", awaits_feedback=True))
        for number in range(12):
            memory.add(Episode(("night", "else")[number > 2], [Step("far away", "wait", 0.0)]))
            if number in (4, 9):  # once among the latest episodes, once before them
                memory.feedback("late", 1.0)
            with Memory.open(path) as fresh:
                counts.append(runs_of_night(memory))
                assert counts[-1] == runs_of_night(fresh)
    assert counts == [2, 3, 4, 4, 5, 4, 4, 3, 2, 1, 1, 1]
