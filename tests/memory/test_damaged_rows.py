"""Reads, plans and verification: a bug in a caller's object is raised as it is, a damaged row is an IntegrityError."""

from __future__ import annotations

import sqlite3

import pytest

from seasoned import Budget, Episode, Memory, Selection, Step
from seasoned.errors import IntegrityError
from seasoned.types import OwnAnswer

EPISODE = Episode("t", [Step("a b", "go", 1.0, {"go": -0.1}, 0.5), Step("b c", "stay", 0.5)], "e", "end", "truncated")


class FailingText(str):
    """A text that fails where the database driver binds it."""

    __slots__ = ()

    def __conform__(self, protocol):
        raise KeyError("a bug")


class FailingSelection(Selection):
    """A selection with a bug in its SQL condition."""

    def episode_condition(self):
        raise TypeError("a bug")


class FailingEncoder:
    """An encoder whose features fail on their way, or are none at all."""

    identity = "test/failing"
    broken = ""

    def features(self, state):
        if self.broken == "generator":
            return ({}["a bug"] for _ in state)
        return None if self.broken else frozenset(state)


def fill(memory):
    memory.add(EPISODE)
    memory.note("e", "plan", {"text": "a plan"}, author="ann")
    memory.feedback("e", OwnAnswer("wait"), 0, author="ann", id="typed")
    memory.feedback("e", 0.5, 1, author="bob", id="bare")
    memory.quarantine(Selection(source="judge"), "under review")
    memory.quarantine(Selection(task="other"), "of episodes, so that notes are compared with theirs")
    memory.record_copy("export", "/backups/a.jsonl")


CALLS = {
    "get": lambda memory: memory.get(FailingText("e")),
    "episodes": lambda memory: memory.episodes(task=FailingText("t")),
    "events": lambda memory: memory.events(FailingText("e")),
    "notes": lambda memory: memory.notes(episode_id=FailingText("e")),
    "feedback_records": lambda memory: memory.feedback_records(FailingText("e")),
    "selected": lambda memory: memory.selected(FailingSelection(task="t")),
    "plan of erase": lambda memory: memory.erase(FailingText("s"), dry_run=True),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_exception_of_a_callers_object_is_raised_unchanged(call):
    with Memory.open(":memory:") as memory:
        fill(memory)
        with pytest.raises((KeyError, TypeError), match="a bug"):
            call(memory)
        memory.verify()


@pytest.mark.parametrize(("broken", "error"), [("generator", KeyError), ("none", TypeError)])
def test_exception_of_an_encoder_in_verify_is_raised_unchanged(broken, error):
    encoder = FailingEncoder()
    with Memory.open(":memory:", encoder=encoder) as memory:
        fill(memory)
        encoder.broken = broken
        with pytest.raises(error):
            memory.verify()


READS = {
    "get": lambda memory: memory.get("e"),
    "episodes": lambda memory: memory.episodes(),
    "events": lambda memory: memory.events(),
    "sources": lambda memory: memory.sources(),
    "notes": lambda memory: memory.notes(),
    "quarantined notes": lambda memory: memory.notes(quarantined=True),
    "feedback_records": lambda memory: memory.feedback_records(),
    "quarantines": lambda memory: memory.quarantines(),
    "selected": lambda memory: memory.selected(Selection(since=0.0)),
    "excluded_ids": lambda memory: memory.excluded_ids(),
    "copies": lambda memory: memory.copies(),
    "known_gammas": lambda memory: memory.known_gammas(),
    "prune": lambda memory: memory.prune(Budget(steps=0), dry_run=True),
    "erase": lambda memory: memory.erase("ann", dry_run=True),
    "export": lambda memory: list(memory.export()),
    "verify": lambda memory: memory.verify(),
}
EPISODES = {"get", "episodes", "export", "verify"}
DAMAGE = {
    "UPDATE episode SET created_at = 'x'": EPISODES | {"notes", "selected", "prune"},
    "UPDATE episode SET created_at = 9e999": EPISODES | {"notes", "selected", "prune"},
    "UPDATE episode SET task = x'00'": EPISODES | {"notes", "selected", "erase"},
    "UPDATE episode SET ordinal = ordinal + 4611686018427387904": {"get", "episodes", "prune", "verify"},
    "UPDATE episode SET ending = 'lost'": EPISODES,
    "UPDATE step SET reward = 'x'": EPISODES,
    "UPDATE step SET reward = 1e300": {*EPISODES},
    "UPDATE step SET live = 'x'": {"prune", "verify"},
    "UPDATE step SET propensity = -1.0": EPISODES,
    "UPDATE step SET state_id = 99": {"prune", "verify"},
    "UPDATE prior SET logprobs = '{'": EPISODES,
    "UPDATE state SET text = x'00'": EPISODES,
    "UPDATE feature_set SET tokens = substr(tokens, 1, 3)": {"verify"},
    "UPDATE feedback SET reward = 'x'": {"events", "sources", "feedback_records", "export", "verify"},
    "UPDATE feedback SET weight = 9e999": {"events", "sources", "export", "verify"},
    "UPDATE feedback SET reward = 1e300, weight = 1e300": {"verify"},
    "UPDATE feedback SET source = x'00'": {"events", "sources", "selected", "export", "verify"},
    "UPDATE feedback SET author = x'00'": {"events", "sources", "erase", "export", "verify"},
    "UPDATE feedback SET id = x'00' WHERE id = 'bare'": {"events", "sources", "export", "verify"},
    "UPDATE feedback SET live = 'x'": {"selected", "verify"},
    "UPDATE note SET body = '{'": {"notes", "quarantined notes", "feedback_records", "selected", "prune", "export"},
    "UPDATE note SET body = '[1]'": {"notes", "quarantined notes", "feedback_records", "selected", "prune", "export"},
    "UPDATE note SET created_at = 'x'": {"notes", "quarantined notes", "feedback_records", "export", "verify"},
    "UPDATE note SET step = 'x'": {"notes", "quarantined notes", "feedback_records", "export", "verify"},
    "UPDATE note SET author = x'00'": {"notes", "quarantined notes", "feedback_records", "erase", "export", "verify"},
    "UPDATE note SET episode_id = x'00'": {"notes", "quarantined notes", "prune", "erase", "export", "verify"},
    "UPDATE quarantine SET selection = '{'": {"quarantines", "notes", "erase", "export", "verify"},
    "UPDATE quarantine SET selection = '{\"since\":true}'": {"quarantines", "notes", "erase", "export", "verify"},
    "UPDATE quarantine SET reason = x'00'": {"quarantines", "erase", "export", "verify"},
    "UPDATE copy SET path = x'00'": {"copies", "erase"},
    "UPDATE view SET gamma = 'x'": {"known_gammas", "verify"},
    "UPDATE view SET decay = 7.0": {"verify"},
    "UPDATE evidence SET weight = 'x'": {"verify"},
    "UPDATE OR REPLACE distribution SET mean = 'x'": {"verify"},
    "UPDATE value SET return_ = x'00'": {"verify"},
    "UPDATE namespace SET gamma = 'x'": {"verify"},
    "UPDATE namespace SET states = 'x'": {"verify"},
    "UPDATE namespace SET removed = '[]'": {"verify"},
    'UPDATE namespace SET removed = \'{"notes":"x"}\'': {"verify"},
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_a_damaged_row_is_named_with_its_store(tmp_path, statement):
    path, wrong = tmp_path / "m.db", []
    with Memory.open(path) as memory:
        fill(memory)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        assert connection.execute(statement).rowcount
        connection.close()
        for name, read in READS.items():
            try:
                read(memory)
            except IntegrityError as error:
                if str(path) not in error.seen or not error.rule:
                    wrong.append(f"{name}: {error}")
            else:
                if name in DAMAGE[statement]:
                    wrong.append(f"{name} reads it")
    assert not wrong
