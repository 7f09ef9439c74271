"""Sums by task and recent returns stay those of a memory that was just opened, whatever was added or erased since."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from seasoned import Episode, EvidenceQuery, Memory, Step, TranscriptEncoder

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
        ]
        for change in work:
            change()
            with Memory.open(path) as fresh:
                assert sums(memory) == sums(fresh)
