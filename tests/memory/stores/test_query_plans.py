"""What is done at every commit and every decision finds its rows by a key: its cost must not grow with the store."""

from __future__ import annotations

import re

import pytest
from postgres_server import fresh_url, postgres  # noqa: F401
from stored_feedback import stored_feedback

from seasoned import Episode, Memory, Step
from seasoned.memory.stores.postgres.schema import FIRST_ARRIVAL
from seasoned.memory.stores.postgres.watermark import VERSION
from seasoned.memory.stores.postgres.wire import translate
from seasoned.types import Choice, EvidenceQuery, OwnAnswer

WHOLE = re.compile(r"SCAN|\(namespace_id=\?\)|note_by_kind \(namespace_id=\? AND kind=\?\)")
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
    "evidence": lambda memory: memory.evidence(EvidenceQuery("room 1 lamp", k=3, unit="states", threshold=0.1)),
    "feedback": lambda memory: memory.feedback("e1", 1.0, step=0),
    "typed feedback twice": lambda memory: [
        stored_feedback(memory, "e1", Choice(("go", "stay", "wait"), n), step=0, author="ann") for n in range(2)
    ],
    "typed feedback and revoke": lambda memory: memory.revoke(
        memory.feedback(feedback=OwnAnswer("x"), task="t", state="room 1")
    ),
    "notes of an episode": lambda memory: memory.notes(episode_id="e1"),
    "get": lambda memory: memory.get("e1"),
    "response": lambda memory: memory.response_step("chatcmpl-1"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_statement_reads_a_whole_namespace(name):
    with Memory.open(":memory:") as memory:
        memory.add_many([episode(0), episode(1)])
        memory.feedback("e0", 1.0)  # the first of a namespace looks once whether its environment gave rewards
        memory.search("room 1 lamp", k=3)
        with memory.session.store.trace() as statements:
            OPERATIONS[name](memory)
        plans = {
            sql: [row[3] for row in memory.session.store.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()]
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


@pytest.mark.parametrize("plan", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("analyzed", [False, True])
def test_scan_for_pending_episodes_reads_no_derived_episode(postgres, fresh_url, plan, analyzed):  # noqa: F811
    with Memory.open(fresh_url) as memory, postgres.connect(fresh_url) as owner:
        memory.add_many([Episode("t", [Step("a room", "go")], id=f"e{number}") for number in range(5_000)])
        if analyzed:
            owner.execute("VACUUM ANALYZE seasoned.episode")
        owner.execute(f"SET search_path = seasoned_1; SET plan_cache_mode = {plan}")
        owner.execute("PREPARE look (bigint, bigint, bigint) AS " + translate(VERSION))
        namespace_id = memory.session.namespace_id
        explain = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE look({namespace_id}, {FIRST_ARRIVAL}, {namespace_id})"
        scans = [
            node
            for node in nodes(owner.execute(explain).fetchone()[0][0]["Plan"])
            if node.get("Relation Name") == "episode"
        ]
        assert scans
        for scan in scans:
            assert (scan["Actual Rows"], scan.get("Rows Removed by Filter", 0)) == (0, 0)
            assert "ordinal < 0" in scan["Index Cond"]


def nodes(plan):
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)
