"""Erasure removes a subject from every answer, from the file and from its log, byte for byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept_by_definition import OTHERS, PEOPLE, QUARANTINES, QUESTIONS, HashtagBlind, histories, play

from seasoned import Episode, Memory, Selection, Step
from seasoned.errors import InputError, NotFoundError, ReadOnlyStoreError, StoreBusyError
from seasoned.types import EvidenceQuery

ERASURES = st.tuples(st.just("erase"), PEOPLE)


def test_remaining_records_answer_as_defined(share):
    @settings(max_examples=share(30))
    @given(histories(ERASURES, ERASURES, QUARANTINES, OTHERS), QUESTIONS)
    def check(history, questions):
        play(history, questions)

    check()


# ------------------------------------------------------------------------------------------ bytes

SECRET = "Xq7-secret"
SUBJECT = f"{SECRET}-subject"
SHARED = "page cart total:12"


def planted(name):
    """Return a secret text of its own, with the common prefix of all secrets."""
    return f"{SECRET}-{name}"


def plant(memory, *, note=None):
    """Return a memory with others' episodes, and a subject with secrets in every kind of text."""
    # The subject comes first: the first spelling of a shared action is its own.
    memory.add_many(
        Episode(
            planted("task"),
            [
                Step(SHARED, "Click  Pay", 1.0, prior={"Click  Pay": -0.25, planted("candidate"): -2.0}),
                Step(f"page {planted('state')} {number}", planted("action"), 2.0, propensity=0.5),
                Step(f"{'long page ' * 700}{planted('overflow')} {number}", "click pay", 0.0),
            ],
            planted(f"episode-{number}"),
            f"done {planted('final')}",
            model=planted("model"),
            policy=planted("policy"),
            arm=planted("arm"),
            subject=SUBJECT,
        )
        for number in range(3)
    )
    memory.add(Episode("checkout", [], planted("aborted"), ending="aborted", subject=SUBJECT))
    memory.add_many(
        Episode(
            "checkout", [Step(SHARED, "click pay", 4.0, prior={"click pay": -0.5}), Step("page done", "rest")], f"o{n}"
        )
        for n in range(3)
    )
    if note is not None:
        memory.record_copy("export", note)
    memory.feedback(planted("episode-0"), -1.0, source=planted("source"), author="ann")
    memory.feedback("o0", 3.0, 0, author=SUBJECT)
    memory.feedback("o0", 5.0, 0, author=SUBJECT)  # supersedes
    memory.feedback("o1", 8.0, 0, author="ann")
    for selection in ({"subject": SUBJECT}, {"episode": planted("episode-1")}, {"task": planted("task"), "since": 5.0}):
        memory.quarantine(Selection(**selection), planted("reason"))
    memory.release(memory.quarantine(Selection(subject=SUBJECT), planted("lifted")))


def files(path):
    return [file for file in (Path(f"{path}{end}") for end in ("", "-wal", "-shm", "-journal")) if file.exists()]


def leaks(path):
    # The features of a state are stored in lower case.
    return [file.name for file in files(path) if SECRET.lower().encode() in file.read_bytes().lower()]


def whole(memory):
    return "\n".join(
        [
            *memory.export(),
            repr(memory.stats()),
            repr(memory.copies()),
            repr(memory.search(SHARED, 99)),
            repr(memory.evidence(EvidenceQuery(SHARED, k=99, unit="states", threshold=0.0))),
        ]
    ).lower()


@pytest.mark.parametrize("reindexed", [False, True])
def test_erased_bytes_are_overwritten(tmp_path, reindexed):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        plant(memory)
        memory.search(SHARED)
    settings = {"gamma": 0.5, "encoder": HashtagBlind() if reindexed else None, "reindex": True}
    with Memory.open(path, **settings) as memory, Memory.open(path, **settings) as other:
        memory.evidence(
            EvidenceQuery(SHARED, k=9, unit="states", threshold=0.5, gamma=0.9, decay=0.5)
        )  # views hold some of it too
        other.search(SHARED)
        assert leaks(path)
        assert SECRET.lower() in whole(other)
        planned = memory.erase(SUBJECT, dry_run=True)
        assert leaks(path) and not planned.done
        erased = memory.erase(SUBJECT)
        assert leaks(path) == []
        for handle in (other, memory):
            assert SECRET.lower() not in whole(handle)
            handle.verify()
        assert erased.done
        assert (erased.episodes, erased.steps, erased.feedback, erased.quarantines, erased.copies) == (
            planned.episodes,
            planned.steps,
            planned.feedback,
            planned.quarantines,
            planned.copies,
        )
        assert erased.episodes == (*(planted(f"episode-{n}") for n in range(3)), planted("aborted"))
        assert (erased.steps, erased.feedback, len(erased.quarantines)) == (9, 3, 4)
        # What others have stays, and works.
        assert [episode.id for episode in other.episodes()] == ["o0", "o1", "o2"]
        assert [event.author for event in other.events()] == ["ann"]
        seen = other.evidence(EvidenceQuery(SHARED, k=9, unit="states", threshold=1.0, gamma=0.0))
        assert (seen.actions, seen.counts.tolist(), seen.totals.tolist()) == (("click pay",), [3.0], [20.0])
        other.add(Episode("checkout", [Step(SHARED, "CLICK PAY", 1.0)], "o3"))
        seen = memory.evidence(EvidenceQuery(SHARED, k=9, unit="states", threshold=1.0, gamma=0.0))
        assert (seen.actions, seen.counts.tolist()) == (("click pay",), [4.0])
        memory.verify()
        assert leaks(path) == []
    assert leaks(path) == []


def test_erased_store_equals_one_that_never_had_the_subject(tmp_path):
    with Memory.open(tmp_path / "agent.db", gamma=0.5) as memory, Memory.open(":memory:", gamma=0.5) as fresh:
        plant(memory)
        memory.search(SHARED)
        memory.erase(SUBJECT)
        fresh.import_lines(list(memory.export()))
        assert fresh.verify().hash == memory.verify().hash
        assert fresh.search(SHARED, 99) == memory.search(SHARED, 99)
        one, two = (dict(vars_of(handle.stats())) for handle in (memory, fresh))
        assert one == two


def vars_of(stats):
    return [(name, getattr(stats, name)) for name in stats.__slots__ if name not in ("path", "size_bytes")]


def test_records_shared_with_others_stay():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("page one", "Go")], "a", "page end", subject="ann"))
        memory.add(Episode("t", [Step("page one", "Go"), Step("page end", "go")], "b", subject="bob"))
        memory.erase("ann")
        assert memory.evidence(EvidenceQuery("page one", k=1, unit="states", threshold=1.0)).actions == ("Go",)
        assert (memory.stats().states, memory.stats().actions) == (2, 2)
        memory.erase("bob")
        assert (memory.stats().states, memory.stats().actions, len(memory)) == (0, 0, 0)
        memory.verify()
        memory.add(Episode("t", [Step("page one", "gO")], "a", subject="ann"))
        assert memory.evidence(EvidenceQuery("page one", k=1, unit="states", threshold=1.0)).actions == ("gO",)
        memory.verify()


def test_quarantine_that_covers_others_stays():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("shared task", [Step("page", "go")], subject="ann", model="m"))
        memory.add(Episode("shared task", [Step("page", "go")], subject="bob"))
        memory.add(Episode("ann's own", [Step("page", "go")], subject="ann"))
        remaining = {
            memory.quarantine(Selection(**given), "why") for given in ({"task": "shared task"}, {"model": "m"})
        }
        gone = memory.quarantine(Selection(task="ann's own"), "why")
        assert memory.erase("ann").quarantines == (gone,)
        assert {q.id for q in memory.quarantines()} == remaining
        assert memory.search("page") == []
        memory.verify()


def test_erasure_lists_every_recorded_copy(tmp_path):
    """Copies of before are listed too, since clocks are unreliable."""
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.add(Episode("t", [Step("page", "go")], "o"))
        memory.record_copy("backup", "/backups/before")
        memory.add(Episode("t", [Step("page", "go")], subject="bob"))
        memory.record_copy("export", "/exports/with bob")
        with pytest.raises(InputError):
            memory.record_copy("export", " ")
        listed = [("backup", "/backups/before"), ("export", "/exports/with bob")]
        assert [(c.kind, c.path) for c in memory.copies()] == listed
        assert [(c.kind, c.path) for c in memory.erase("bob").copies] == listed
        memory.verify()


def test_erasure_is_limited_to_its_namespace(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, namespace="one") as one, Memory.open(path, namespace="two") as two:
        plant(one)
        plant(two)
        before = two.verify().hash
        one.erase(SUBJECT)
        assert two.verify().hash == before
        assert SECRET.lower() not in whole(one)
        two.erase(SUBJECT)
        assert leaks(path) == []


# ------------------------------------------------------------------------------------------ what does not go as planned

READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM episode").fetchone()
print("reading", flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow  # a writer waits half a minute before it says that somebody is in its way
def test_open_snapshot_is_reported_and_a_later_compaction_finishes(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        plant(memory, note="/exports/one")
        reader = subprocess.Popen(
            [sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert reader.stdout.readline() == "reading\n"
        with pytest.raises(StoreBusyError, match=r"compact"):
            memory.erase(SUBJECT)
        assert SECRET.lower() not in whole(memory)  # gone from every answer, not yet from the log
        reader.communicate("\n")
        memory.compact()
        assert leaks(path) == []
        memory.verify()


def test_unknown_subject_is_refused_and_nothing_is_written(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        plant(memory)
        before = [file.read_bytes() for file in files(path) if file.suffix != ".db-shm"], memory.verify().hash
        for subject in ("nobody", SUBJECT.upper(), SUBJECT[:-1], "%", "ann%"):
            for dry_run in (True, False):
                with pytest.raises(NotFoundError, match=r".+: .+\. .+"):
                    memory.erase(subject, dry_run=dry_run)
        for subject in ("", " ", None, 7, "a\udc80b"):
            with pytest.raises(InputError, match=r".+: .+\. .+"):
                memory.erase(subject)
        with Memory.open(path, read_only=True) as reader:
            assert reader.erase(SUBJECT, dry_run=True).steps == 9
            with pytest.raises(ReadOnlyStoreError):
                reader.erase(SUBJECT)
        after = [file.read_bytes() for file in files(path) if file.suffix != ".db-shm"], memory.verify().hash
        assert after == before


def test_quarantine_alone_may_name_a_subject():
    with Memory.open(":memory:") as memory:
        id_ = memory.quarantine(Selection(subject="ann"), "in case she comes")
        erased = memory.erase("ann")
        assert (erased.episodes, erased.feedback, erased.quarantines, memory.quarantines()) == ((), 0, (id_,), [])
        memory.verify()


def test_second_erasure_finds_nothing():
    with Memory.open(":memory:") as memory:
        plant(memory)
        memory.erase(SUBJECT)
        with pytest.raises(NotFoundError):
            memory.erase(SUBJECT)


def test_byte_search_finds_plainly_deleted_rows(tmp_path):
    """A file with plainly deleted rows still contains their bytes."""
    import sqlite3

    path = tmp_path / "plain.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute("CREATE TABLE kept (text TEXT)")
    connection.executemany("INSERT INTO kept VALUES (?)", [(planted(str(n)),) for n in range(50)])
    connection.commit()
    connection.execute("DELETE FROM kept")
    connection.commit()
    connection.close()
    assert leaks(path) == ["plain.db"]


def test_folders_in_which_a_service_left_calls_are_listed(tmp_path):
    path = tmp_path / "agent.db"
    for file in ("calls/refused/1.call", "calls/7/2.call", "decisions/refused/3.call", "decisions/8/lock"):
        place = tmp_path / f"agent.db.{file}"
        place.parent.mkdir(parents=True)
        place.write_bytes(b"")
    with Memory.open(path) as memory:
        memory.add(Episode("t", [Step("s", "a")], subject="ann"))
        planned, erased = memory.erase("ann", dry_run=True), memory.erase("ann")
    for listed in (planned.copies, erased.copies):
        assert [(one.kind, one.path) for one in listed] == [
            ("calls", str(tmp_path / folder))
            for folder in ("agent.db.calls/7", "agent.db.calls/refused", "agent.db.decisions/refused")
        ]
    assert (tmp_path / "agent.db.calls/refused/1.call").exists()
