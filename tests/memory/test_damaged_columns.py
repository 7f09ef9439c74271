"""A value of another type in each column: every call raises IntegrityError, or answers as without the damage.

Columns by which SQL selects rows are listed as exceptions: a row with another value there is not found. `verify` counts
the rows, and reports it.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import uuid

import pytest

from seasoned import Episode, EvidenceQuery, JitRL, Memory, RecallQuery, Step
from seasoned.errors import IntegrityError, NotFoundError
from seasoned.memory import Selection
from seasoned.memory.stores.sqlite_schema import COLUMNS
from seasoned.types import Choice, Thumbs

AT_S = {"k": 1, "unit": "states", "threshold": 0.0}
KEYS = {"observation": "s", "plan": "hello", "goal": "t", "reasoning": "because"}
PRIOR = {"a": -0.3, "b": -1.4}

READS = {
    "search": lambda memory: memory.search("s"),
    "evidence": lambda memory: memory.evidence(EvidenceQuery("s", **AT_S)),
    "evidence outside a task": lambda memory: memory.evidence(EvidenceQuery("s", **AT_S, exclude_task="t2")),
    "evidence by propensity": lambda memory: memory.evidence(EvidenceQuery("s", **AT_S, propensity_floor=0.1)),
    "decide": lambda memory: JitRL(memory, backup=4.0).decide("s", PRIOR, seed=0),
    "recall": lambda memory: memory.recall(RecallQuery(KEYS, with_feedback_totals=True)),
    "impressions": lambda memory: memory.impressions([("e", 0)]),
    "peer_comparisons": lambda memory: memory.peer_comparisons([("e", 0)]),
    "peer_returns": lambda memory: memory.peer_returns([("e", 0)]),
    "feedback_totals": lambda memory: memory.feedback_totals(["e", "f"]),
    "step_feedback": lambda memory: memory.step_feedback(["e", "f"]),
    "median_return": lambda memory: memory.median_return(),
    "feedback_records": lambda memory: memory.feedback_records(),
    "notes": lambda memory: memory.notes(),
    "events": lambda memory: memory.events(),
    "quarantines": lambda memory: memory.quarantines(),
    "sources": lambda memory: memory.sources(),
    "episodes": lambda memory: memory.episodes(),
    "export": lambda memory: list(memory.export()),
    "excluded_ids": lambda memory: memory.excluded_ids(),
    "selected": lambda memory: memory.selected(Selection(task="t")),
    "known_gammas": lambda memory: memory.known_gammas(),
    "copies": lambda memory: memory.copies(),
    "stats": lambda memory: memory.stats().mean_episode_reward,
    "verify": lambda memory: memory.verify(),
}
WRITES = {
    "add": lambda memory: memory.add(Episode("t", [Step("s", "a", 1.0)])),
    "note": lambda memory: memory.note("e", "remark", {"a": 1}),
    "feedback": lambda memory: memory.feedback("e", 1.0, 0),
    "typed feedback": lambda memory: memory.feedback("f", Thumbs(True), author="bob"),
    "revoke": lambda memory: memory.revoke("bare"),
    "reweight_source": lambda memory: memory.reweight_source("human", 0.5),
    "quarantine": lambda memory: memory.quarantine(Selection(task="t"), "a reason"),
    "release": lambda memory: [memory.release(one.id) for one in memory.quarantines()],
    "erase": lambda memory: memory.erase("u"),
    "search at a new gamma": lambda memory: memory.search("s", gamma=0.123),
}


def fill(memory):
    steps = [Step("s", "a", 1.0, {"a": -0.1, "b": -2.0}, 0.5), Step("s2 x", "b", 0.0)]
    memory.add(Episode("t", steps, id="e", subject="u", final_state="z"))
    memory.add(Episode("t2", [Step("s", "b", 1.0)], id="f", model="m"))
    memory.feedback("f", 0.5, author="ann", id="bare")
    memory.feedback("e", Choice(("a", "b"), 1), author="bob", id="typed")
    memory.note("e", "plan", {"text": "hello"})
    memory.note("f", "shown", {"examples": [["e", 0]], "mode": "prompt", "purpose": "act"}, step=0)
    memory.note("e", "reasoning", {"text": "because"}, step=0)
    memory.quarantine(Selection(task="zzz"), "a reason")
    memory.record_copy("export", "/backups/a.jsonl")


SELECTED_BY = {
    **dict.fromkeys(
        [
            "token.namespace_id",
            "feature_set.namespace_id",
            "episode.namespace_id",
            "step.namespace_id",
            "feedback.namespace_id",
            "value.namespace_id",
            "evidence.namespace_id",
            "distribution.namespace_id",
            "quarantine.namespace_id",
            "copy.namespace_id",
            "note.namespace_id",
        ],
        "the row belongs to no namespace then",
    ),
    **dict.fromkeys(["value.view_id", "evidence.view_id", "distribution.view_id"], "the row belongs to no view then"),
    **dict.fromkeys(["step.live", "feedback.live"], "SQL takes a text for false"),
    **dict.fromkeys(["step.visit", "feedback.visit", "episode.ordinal"], "the row belongs to no episode then"),
    "step.set_id": "the step is at no state then",
    "feedback.seq": "the event is later than every number then",
    "episode.id": "no episode has the id then",
    "feedback.id": "no event has the id then",
    "evidence.set_id": "the row is at no state then",
    "episode.task": "a selection of the task does not find it",
    "episode.subject": "an erasure of the subject does not find it",
    "note.kind": "the note is of no kind that a call reads",
    "note.revoked_at": "SQL takes every value but NULL for a time of revocation",
}
"""The columns by which rows are selected, each with a reason why the row is not found."""

UNCHANGEABLE = {"namespace.id"}
"""The columns that hold only whole numbers, whatever is written: SQLite's row numbers."""


def call_results(path, calls):
    """Return by name the answer or the exception of each call, in one memory."""
    results = {}
    try:
        memory = Memory.open(path, create=False)
    except Exception as error:
        return dict.fromkeys(calls, error)
    with memory:
        for name, call in calls.items():
            try:
                results[name] = repr(call(memory))
            except Exception as error:
                results[name] = error
    return results


def copy_store(source, folder):
    """Copy a store to a new path: SQLite's side files of another store never lie beside it."""
    target = folder / f"{uuid.uuid4()}.db"
    shutil.copy(source, target)
    return target


def damage(path, table, column, kind):
    """Put bytes into a column of text, and a text into any other; return whether SQLite stores it."""
    value = "x'ff'" if kind == "TEXT" else "'x'"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for rows in ("", f" WHERE {column} = (SELECT min({column}) FROM {table})"):  # a unique column in one row
            with contextlib.suppress(sqlite3.IntegrityError):
                return connection.execute(f"UPDATE {table} SET {column} = {value}{rows}").rowcount > 0
    return False


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return the path of an undamaged store, and the answers of the reads."""
    path = tmp_path_factory.mktemp("damage") / "m.db"
    with Memory.open(path) as memory:
        fill(memory)
    answers = call_results(copy_store(path, path.parent), READS)
    assert not [name for name, answer in answers.items() if isinstance(answer, Exception)]
    return path, answers


def wrong_results(results, answers, column):
    """Return the results that are neither an IntegrityError nor the answer without the damage."""
    wrong = []
    for name, result in results.items():
        if isinstance(result, IntegrityError) or (column in SELECTED_BY and isinstance(result, NotFoundError | str)):
            continue
        if isinstance(result, Exception) or result != answers.get(name, result):
            wrong.append(f"{column}: {name}: {str(result)[:60]}")
    return wrong


@pytest.mark.parametrize("table", ["namespace", *(table for table in COLUMNS)])
def test_value_of_another_type_raises_integrity_error_or_changes_no_answer(tmp_path, store, table):
    path, answers = store
    with contextlib.closing(sqlite3.connect(path)) as connection:
        columns = [(name, kind) for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})")]
    wrong = []
    for name, kind in columns:
        column = f"{table}.{name}"
        damaged = copy_store(path, tmp_path)
        if not damage(damaged, table, name, kind):
            assert column in UNCHANGEABLE
            continue
        # In both orders: a call may answer from the cache of another one.
        for calls in (READS, dict(reversed(READS.items()))):
            results = call_results(copy_store(damaged, tmp_path), calls)
            wrong += wrong_results(results, answers, column)
            if column in SELECTED_BY and not isinstance(results["verify"], IntegrityError):
                wrong.append(f"{column}: verify does not report it")
        for write, call in WRITES.items():
            wrong += wrong_results(call_results(copy_store(damaged, tmp_path), {write: call}), answers, column)
    assert not wrong
