"""What is done at every commit and every decision finds its rows by a key: its cost must not grow with the store."""

from __future__ import annotations

import re

import pytest

from seasoned import Episode, Memory, Step

WHOLE = re.compile(r"SCAN|\(namespace_id=\?\)")
SMALL = {"view", "distribution", "namespace", "quarantine"}  # a few rows, whatever the store holds


def episode(number: int) -> Episode:
    prior = {"go north": -0.5, "go south": -1.0}
    steps = [Step(f"room {number} {i} lamp", f"go {i}", 0.0, prior=prior) for i in range(3)]
    return Episode(f"task {number}", steps, id=f"e{number}", final_state=f"end {number}")


OPERATIONS = {
    "add": lambda memory: memory.add(episode(2)),
    "add_many": lambda memory: memory.add_many([episode(3), episode(4)]),
    "search": lambda memory: memory.search("room 1 lamp", k=3),
    "search outside a task": lambda memory: memory.search("room 1 lamp", k=3, exclude_task="task 1"),
    "evidence": lambda memory: memory.evidence("room 1 lamp", k=3, unit="states", threshold=0.1),
    "feedback": lambda memory: memory.feedback("e1", 1.0, step=0),
    "get": lambda memory: memory.get("e1"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_statement_reads_a_whole_namespace(name):
    with Memory.open(":memory:") as memory:
        memory.add_many([episode(0), episode(1)])
        memory.search("room 1 lamp", k=3)
        connection = memory._store.connection
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        OPERATIONS[name](memory)
        connection.set_trace_callback(None)
        plans = {
            sql: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()]
            for sql in statements
            if re.match(r"SELECT|UPDATE|DELETE", sql)
        }
        assert plans
        whole = {
            sql: plan
            for sql, plan in plans.items()
            for line in plan
            if WHOLE.search(line) and line.split()[1] not in SMALL
        }
        assert not whole
