"""Notes: what was said or thought beside an episode, kept with it, and gone with it."""

from __future__ import annotations

import json
import math
import uuid

import pytest
from postgres_server import postgres  # noqa: F401
from stored_feedback import stored_feedback

from seasoned import Budget, Episode, Memory, Selection, Step
from seasoned.errors import EpisodeConflictError, InputError, IntegrityError, NotFoundError, ReadOnlyStoreError
from seasoned.memory import Event
from seasoned.states import Redactor
from seasoned.types import Choice, Edit, EvidenceQuery, Note, OwnAnswer, Thumbs
from seasoned.types.notes import response_note_id


@pytest.fixture
def memory(place):
    with Memory.open(place, namespace=f"n{uuid.uuid4().hex}") as opened:
        yield opened


def two_steps(id_="e1", **fields):
    return Episode("shop", [Step("a cart", "pay"), Step("a bill", "sign", 1.0)], id_, **fields)


BODY = {"text": "so it is", "examples": [["e1", 0]], "n": 3, "x": 0.5, "none": None, "yes": True, "deep": {"a": [{}]}}


def test_a_note_is_read_back(memory):
    memory.add(two_steps())
    id_ = memory.note("e1", "reasoning", BODY, step=1, source="model", author="m-7")
    memory.note("e1", "plan", {"text": ""})
    [first, second] = memory.notes()
    assert (first.id, first.episode_id, first.step, first.kind) == (id_, "e1", 1, "reasoning")
    assert (first.body, first.source, first.author, first.revoked_at) == (BODY, "model", "m-7", None)
    assert (second.step, second.kind, second.source, second.author) == (None, "plan", "agent", None)
    assert memory.notes(kind="plan") == [second] == memory.notes(episode_id="e1", kind="plan")
    assert memory.notes(episode_id="e2") == []
    assert memory.search("a cart", 1)[0].experience.reward == 0.0  # it enters no reward
    assert memory.verify().notes == 2
    memory.revoke(id_)
    memory.revoke(id_)
    assert memory.notes() == [second]
    assert memory.verify().notes == 2


def test_a_note_with_an_id_is_stored_once(memory):
    memory.add(two_steps())
    for _ in range(2):
        assert memory.note("e1", "plan", {"a": (1, 2)}, id="mine") == "mine"
    assert len(memory.notes()) == 1
    for other in ({"body": {"a": [1]}}, {"kind": "shown"}, {"step": 0}, {"source": "x"}, {"author": "y"}):
        with pytest.raises(EpisodeConflictError, match=r"'mine' is stored with other content"):
            memory.note(**{"episode_id": "e1", "kind": "plan", "body": {"a": [1, 2]}, "id": "mine"} | other)


def test_a_recorder_commits_its_notes_with_the_episode(memory):
    with memory.episode("shop", id="run") as run:
        run.note("plan", {"text": "buy"})
        run.note("reasoning", {"text": "the total is right"}, step=0)
        run.record("a cart", "pay")
        run.note("shown", {"examples": [["e1", 0]], "mode": "both", "purpose": "act"}, step=1, author="m")
        assert memory.notes() == []
        run.record("a bill", "sign", 1.0)
    notes = memory.notes()
    assert [(n.id, n.episode_id, n.step, n.kind) for n in notes] == [
        ("run/0", "run", None, "plan"),
        ("run/1", "run", 0, "reasoning"),
        ("run/2", "run", 1, "shown"),
    ]
    assert memory.verify().notes == 3
    with memory.episode("shop", id="run") as again:  # the same run, told again by who did not hear the answer
        again.note("plan", {"text": "buy"})
        again.note("reasoning", {"text": "the total is right"}, step=0)
        again.record("a cart", "pay")
        again.note("shown", {"examples": [["e1", 0]], "mode": "both", "purpose": "act"}, step=1, author="m")
        again.record("a bill", "sign", 1.0)
    assert memory.notes() == notes
    other = memory.episode("shop", id="run")
    with pytest.raises(EpisodeConflictError), other:
        other.record("a cart", "pay")
        other.note("plan", {"text": "sell"})
        other.record("a bill", "sign", 1.0)
    assert memory.notes() == notes


class Stop(Exception):
    pass


def test_a_note_on_a_step_never_recorded_is_on_the_whole_episode(memory):
    with pytest.raises(Stop), memory.episode("shop", id="broken") as run:
        run.record("a cart", "pay")
        run.note("reasoning", {"text": "what now?"}, step=1)
        raise Stop
    [note] = memory.notes(episode_id="broken")
    assert (note.step, note.body) == (None, {"text": "what now?"})
    assert memory.get("broken").ending == "aborted"
    memory.verify()


def test_note_on_a_pending_episode_is_stored(place):
    """On PostgreSQL an added episode is derived by whoever looks next; a note need not wait for that."""
    name = f"n{uuid.uuid4().hex}"
    with Memory.open(place, namespace=name) as memory, Memory.open(place, namespace=name, read_only=True) as reader:
        with memory.episode("shop", id="e1") as run:
            run.note("plan", {"text": "buy"})
            run.record("a cart", "pay")
        assert [n.body["text"] for n in reader.notes(kind="plan")] == ["buy"]
        before = reader.verify()
        memory.note("e1", "reasoning", {"text": "hm"}, step=0)
        record = stored_feedback(memory, "e1", Thumbs(True))
        assert reader.feedback_records() == [record]
        assert reader.evidence(EvidenceQuery("a cart", k=1, unit="states", threshold=1.0)).totals.tolist() == [1.0]
        assert (before.notes, memory.verify().notes) == (1, 3)
        with memory.episode("shop", id="e2") as run:
            run.record("a cart", "wait", 5.0)
        left = reader.evidence(EvidenceQuery("a cart", k=5, unit="steps", threshold=1.0, shown_steps=[("e2", 0)]))
        assert (left.n_steps, left.n_shown) == (2, 1)
        memory.add(two_steps("e3", subject="ann"))
        reader.quarantines()
        memory.note("e3", "plan", {"text": "of ann"})
        memory.erase("ann")
        assert "of ann" not in str(reader.notes())
        with pytest.raises(ReadOnlyStoreError):
            reader.note("e1", "plan", {})


def test_a_recorder_note_with_a_taken_id_gets_another_id(memory):
    memory.add(two_steps())
    memory.note("e1", "plan", {"text": "mine"}, id="next/0")
    for _ in range(2):  # again is a no-op
        with memory.episode("shop", id="next") as run:
            run.record("a cart", "pay")
            run.note("plan", {"text": "another"})
            run.note("plan", {"text": "and one"})
    mine, first, second = memory.notes()
    assert (mine.id, mine.episode_id, mine.body["text"]) == ("next/0", "e1", "mine")
    assert (first.episode_id, first.body["text"], first.id.startswith("next/0~")) == ("next", "another", True)
    assert (second.episode_id, second.id) == ("next", "next/1")
    with pytest.raises(EpisodeConflictError, match=r"one id names one note"), memory.episode("shop", id="next") as run:
        run.record("a cart", "pay")
        run.note("plan", {"text": "another"})
        run.note("plan", {"text": "changed"})
    assert len(memory.notes()) == 3
    memory.verify()


# ------------------------------------------------------------------------------------------ with the episode, and gone


def test_a_quarantine_excludes_the_notes_of_its_episodes(memory):
    for id_ in ("e1", "e2"):
        memory.add(two_steps(id_, model=id_))
        memory.note(id_, "plan", {"text": id_})
    held = memory.quarantine(Selection(model="e1"), "a claim too many")
    assert [note.body["text"] for note in memory.notes()] == ["e2"]
    assert len(memory.notes(quarantined=True)) == 2
    memory.add(two_steps("e3", model="e1"))  # one that comes later, and waits
    memory.note("e3", "plan", {"text": "e3"})
    assert [note.body["text"] for note in memory.notes()] == ["e2"]
    memory.release(held)
    assert len(memory.notes()) == 3


def test_erasure_removes_notes_on_and_by_the_subject(memory):
    for id_, subject in (("e1", "ann"), ("e2", None)):
        memory.add(two_steps(id_, subject=subject))
        memory.note(id_, "reasoning", {"text": f"thought of {id_}"})
        memory.note(id_, "remark", {"text": f"ann on {id_}"}, author="ann")
    memory.feedback("e2", Thumbs(False, "says bob"), author="bob")
    own = stored_feedback(memory, "e2", OwnAnswer("as ann would put it"), step=0, author="ann")
    dry = memory.erase("ann", dry_run=True)
    done = memory.erase("ann")
    assert (dry.notes, done.notes, done.episodes) == (4, 4, ("e1", own.episode_ids[0]))
    assert [note.body.get("text") for note in memory.notes()] == ["thought of e2", None]
    assert "ann" not in "\n".join(memory.export())
    memory.verify()
    memory.note("e2", "remark", {"text": "zoe's"}, author="zoe")  # a note is all that there is of her
    assert (memory.erase("zoe").notes, memory.erase("bob").notes) == (1, 1)
    with pytest.raises(NotFoundError):
        memory.erase("zoe")


def test_answers_are_erased_with_the_episode_of_their_feedback(memory):
    """With the note of its feedback nobody could take it back; so also an answer to an answer."""
    memory.add(two_steps())
    memory.add(Episode("other", [Step("elsewhere", f"go {n}") for n in range(9)], "kept"))
    first = stored_feedback(memory, "e1", OwnAnswer("as ann would put it"), step=0, author="ann")
    second = stored_feedback(memory, first.episode_ids[0], Edit("as bob would"), author="bob")
    memory.feedback(second.episode_ids[0], Thumbs(True), author="bob")
    gone = {"e1", *first.episode_ids, *second.episode_ids}
    planned = memory.prune(Budget(steps=9), dry_run=True)
    assert (set(planned.episodes), planned.steps, sum(planned.reasons.values())) == (gone, 4, 3)
    erased = memory.erase("ann", dry_run=True)
    assert set(erased.episodes) == {*first.episode_ids, *second.episode_ids}
    assert (erased.notes, erased.feedback) == (3, 4)
    assert memory.erase("bob", dry_run=True).episodes == second.episode_ids
    assert memory.prune(Budget(steps=9)).done
    assert [one.id for one in memory.episodes()] == ["kept"]
    assert (memory.notes(), memory.feedback_records()) == ([], [])
    with pytest.raises(NotFoundError):
        memory.revoke(second.id)
    memory.verify()


def test_the_answers_of_one_feedback_are_pruned_together(memory):
    record = stored_feedback(memory, feedback=Choice(("a", "b", "c"), 1), task="t", state="s", author="ann")
    assert set(memory.prune(Budget(steps=2)).episodes) == set(record.episode_ids)
    assert (len(memory), memory.feedback_records()) == (0, [])
    memory.verify()


def test_pruning_removes_notes_and_counts_their_bytes(memory):
    memory.add(two_steps())
    before = memory.prune(Budget(steps=99), dry_run=True).bytes_before
    memory.note("e1", "plan", {"text": "x" * 1000})
    after = memory.prune(Budget(steps=99), dry_run=True).bytes_before
    assert after - before == len('{"text":""}') + 1000
    memory.add(two_steps("e2"))
    assert memory.prune(Budget(bytes=1200)).episodes == ("e1",)
    assert memory.notes() == []
    memory.verify()


def test_notes_survive_reindexing_and_compaction(place, memory):
    from seasoned.states import NUMBERS, TokenEncoder

    memory.add(two_steps())
    memory.note("e1", "plan", {"text": "x"})
    memory.compact()
    hash_ = memory.verify().hash
    encoder = TokenEncoder(masks=[NUMBERS])
    with Memory.open(place, namespace=memory.namespace, encoder=encoder, reindex=True) as reindexed:
        assert (reindexed.verify().hash, len(reindexed.notes())) == (hash_, 1)


def test_erased_notes_leave_no_bytes_in_the_file(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        memory.add(two_steps("e1", subject="ann"))
        memory.add(two_steps("e2"))
        memory.note("e1", "reasoning", {"text": "UNHEARD-OF" * 1000})
        memory.feedback("e2", OwnAnswer("UNHEARD-OF answer"), author="ann")
        assert b"UNHEARD-OF" in path.read_bytes() + path.with_name("agent.db-wal").read_bytes()
        memory.erase("ann")
        files = [file.read_bytes() for file in tmp_path.iterdir()]
    assert not any(b"UNHEARD-OF" in data for data in files)


def test_every_text_of_a_note_is_redacted():
    with Memory.open(":memory:", redact=Redactor(["emails"])) as memory:
        memory.add(two_steps())
        memory.note("e1", "plan", {"to": ["ann@x.org", {"cc bob@x.org": "zoe@x.org"}], "n": 1}, author="ann@x.org")
        with memory.episode("shop") as run:
            run.note("plan", {"text": "ask ann@x.org"})
            run.record("s", "a")
        memory.feedback(
            feedback=OwnAnswer("mail ann@x.org", "as bob@x.org says"), task="ann@x.org", state="to ann@x.org"
        )
        memory.feedback("e1", OwnAnswer("mail ann@x.org"))
        texts = json.dumps([dict(note.body) for note in memory.notes()])
        assert "x.org" not in texts
        assert memory.notes()[0].body == {"to": ["[email]", {"cc [email]": "[email]"}], "n": 1}
        assert memory.notes()[0].author == "ann@x.org"  # by which it is erased
        assert "x.org" not in str([e for e in memory.episodes() if e.arm == "alternative"])
        with pytest.raises(InputError, match=r"keys"):
            memory.note("e1", "plan", {"ann@x.org": 1, "bob@x.org": 2})
        lines = list(memory.export())
    with Memory.open(":memory:") as clear, Memory.open(":memory:", redact=Redactor(["emails"])) as redacting:
        clear.add(two_steps())
        clear.note("e1", "plan", {"text": "ann@x.org"})
        redacting.import_lines(clear.export())
        assert redacting.notes()[0].body == {"text": "[email]"}
        clear.import_lines(line for line in lines if '"header"' not in line)


# ------------------------------------------------------------------------------------------ what is refused, or damaged


DEEP = {"a": None}
for _ in range(40):
    DEEP = {"a": DEEP}
BODIES = [
    "text",
    None,
    ["a"],
    {"x": math.nan},
    {"x": math.inf},
    {1: "a"},
    {"x": {2: 3}},
    {"x": object()},
    {"x": b"bytes"},
    {"x": "\ud800"},
    {"\udfff": 1},
    {"x": {1, 2}},
    DEEP,
    {"x": "y" * 2**20},
]


def test_bad_notes_are_refused(memory):
    memory.add(two_steps())
    before = memory.verify().hash
    bad = [(InputError, {"body": body}) for body in BODIES]
    bad += [(InputError, {"kind": kind}) for kind in ("", "Plan", "a b", "x" * 65, None, 3, "thumbs", "choice")]
    bad += [(InputError, {"step": step}) for step in (-1, 0.5, True, "0")]
    bad += [(InputError, fields) for fields in ({"source": ""}, {"author": 3}, {"id": " "}, {"episode_id": None})]
    bad += [(NotFoundError, fields) for fields in ({"episode_id": "e2"}, {"step": 2}, {"step": 2**70})]
    for error, fields in bad:
        with pytest.raises(error) as caught:
            memory.note(**{"episode_id": "e1", "kind": "plan", "body": {}} | fields)
        assert all((caught.value.seen, caught.value.rule, caught.value.next_step)), fields
    for fields in ({"kind": "A"}, {"episode_id": ""}):
        with pytest.raises(InputError):
            memory.notes(**fields)
    run = memory.episode("shop")
    run.record("s", "a")
    for fields in ({"step": 2}, {"kind": "thumbs"}, {"body": {"x": math.nan}}, {"body": {"x": "y" * 2**20}}):
        with pytest.raises(InputError):
            run.note(**{"kind": "plan", "body": {}} | fields)
    assert memory.verify().hash == before


def test_hostile_texts_are_stored_unchanged(memory):
    memory.add(two_steps())
    hostile = "<img onerror=x> \x00 \x7f \u2028 '; DROP TABLE note; --" + "é" * 400_000
    memory.note("e1", "plan", {"text": hostile, "\x00": 1}, source="<b>", author="'\"")
    assert memory.notes()[0].body == {"text": hostile, "\x00": 1}
    memory.verify()


DAMAGE = {
    "UPDATE note SET body = '{}'": "differs from its hash",
    "UPDATE note SET body = '{'": "damaged rows",
    "UPDATE note SET kind = 'reasoning'": "differs from its hash",
    "UPDATE note SET step = 7": "differs from its hash",
    "DELETE FROM note": "0 notes are stored; 1 were counted",
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_damaged_notes_are_found(tmp_path, statement):
    with Memory.open(tmp_path / "a.db") as memory:
        memory.add(two_steps())
        memory.note("e1", "plan", {"text": "x"})
        memory.session.store.connection.execute(statement)
        with pytest.raises(IntegrityError, match=DAMAGE[statement]):
            memory.verify()


def test_an_import_names_the_line_of_a_bad_note():
    with Memory.open(":memory:") as memory:
        memory.add(two_steps())
        memory.note("e1", "plan", {"text": "x"})
        memory.feedback("e1", Thumbs(True))
        lines = [json.loads(line) for line in memory.export()]
    assert [line["type"] for line in lines] == ["header", "episode", "feedback", "note", "note"]
    assert lines[0]["notes"] == 2
    for change in (
        {"kind": "Plan"},
        {"body": 3},
        {"step": -1},
        {"more": 1},
        {"episode_id": "e2"},
        {"step": 9},
        {"created_at": None},
        {"kind": "thumbs"},
    ):
        with Memory.open(":memory:") as other:
            changed = [*lines[:3], lines[3] | change, *lines[4:]]
            with pytest.raises(InputError, match=r"line 4: "):
                other.import_lines(json.dumps(line) for line in changed)
            assert len(other) == 0
    for body in ({"up": 1}, {"up": True, "weight": 1.0}, {"up": True, "weight": 1.0, "alternatives": [], "x": 0}):
        with Memory.open(":memory:") as other, pytest.raises(InputError, match=r"line 5: "):
            other.import_lines(json.dumps(line) for line in [*lines[:4], lines[4] | {"body": body}])
    with Memory.open(":memory:") as other, pytest.raises(InputError, match=r"the header announces .*2 notes"):
        other.import_lines(json.dumps(line) for line in lines[:4])


def test_a_memory_without_notes_keeps_its_hash_and_export():
    with Memory.open(":memory:") as memory:
        memory.add(two_steps())
        memory.feedback("e1", 1.0)
        [header, *_] = memory.export()
        assert "notes" not in json.loads(header)
        [event] = memory.events()
        assert "kind" not in event.record()
        assert event == Event(event.id, "e1", 1, 1.0, 1.0, "human", None, event.created_at)


def test_a_note_with_a_bad_value_is_refused():
    good = {
        "id": "n",
        "episode_id": "e",
        "step": 0,
        "kind": "plan",
        "body": {},
        "source": "s",
        "author": None,
        "created_at": 0.0,
    }
    assert Note(**good).revoked_at is None
    for change in ({"id": ""}, {"created_at": math.nan}, {"revoked_at": "now"}, {"author": ""}, {"step": -1}):
        with pytest.raises(InputError):
            Note(**good | change)


def test_latest_of_many_responses_with_one_id_is_found_whatever_was_erased(memory):
    given = []
    for number in range(1, 13):
        memory.add(Episode("t", [Step("s", "a")], f"e{number}", subject="ann" if number in (1, 5) else None))
        given.append(memory.next_response_note_id("chatcmpl-1"))
        memory.note(f"e{number}", "response", {}, step=0, id=given[-1])
    memory.note("e1", "response", {}, step=0, id="response:chatcmpl-1 5 more")  # those of other ids
    memory.note("e2", "plan", {}, id="response:chatcmpl-1 :99")
    assert given == sorted(set(given))
    memory.erase("ann")
    assert memory.response_step("chatcmpl-1") == ("e12", 0)
    assert memory.next_response_note_id("chatcmpl-1") == "response:chatcmpl-1 :13"
    assert memory.response_step("chatcmpl-1 5") is None


def test_next_id_of_a_response_takes_as_many_statements_after_many_as_after_two():
    with Memory.open(":memory:") as memory:
        memory.add(two_steps())
        counts = []
        for number in range(1, 60):
            with memory.session.store.trace() as statements:
                id_ = memory.next_response_note_id("chatcmpl-1")
            counts.append(len(statements))
            assert id_ == response_note_id("chatcmpl-1", number)
            memory.note("e1", "response", {}, step=0, id=id_)
        assert len(set(counts[1:])) == 1
