"""A note of a kind that other programs read has that kind's form; one that is stored already breaks no reader."""

from __future__ import annotations

import json

import pytest

from seasoned import Episode, Memory, Step
from seasoned.canonical_json import canonical_json
from seasoned.errors import InputError
from seasoned.lab.diagnosis.doctor import diagnose
from seasoned.memory.transfer.merge import merge
from seasoned.memory.writing.note_records import note_digest
from seasoned.service import AnswerCandidate, Question, QuestionAnswer, Questions
from seasoned.types import Note

DIGEST = "0" * 64
MALFORMED = [
    ("question", {}),
    ("question", {"digest": DIGEST, "candidates": [], "prompt": None, "episode_id": "e1", "step": "x"}),
    ("question", {"digest": DIGEST, "candidates": [{"text": 7}], "prompt": None, "episode_id": None, "step": None}),
    ("question", {"digest": DIGEST, "candidates": [{"text": "a", "x": 1}], "episode_id": None, "step": None}),
    ("shown", {"examples": ["e1"]}),
    ("decided", {"by": 7}),
]
UNREADABLE = {"digest": DIGEST, "candidates": [{"text": "only one"}], "prompt": None, "episode_id": None, "step": None}
"""Of the form, but no question that could be asked."""


def stored(memory, kind, body, id_="bad"):
    """Store a note as an earlier version did: by SQL."""
    note = Note(id_, "e1", None, kind, body, "agent", None, 1.0)
    store, namespace_id = memory.session.store, memory.session.namespace_id

    def change():
        from seasoned.memory.values.row_checksum import row_checksum

        content = note_digest(note)
        row = (namespace_id, id_, "e1", None, kind, canonical_json(body), "agent", None, 1.0, None)
        store.insert("note", [(*row, content, row_checksum("note", content, None))])
        store.execute("UPDATE namespace SET notes = notes + 1 WHERE id = ?", (namespace_id,))

    memory.session.write(change)


@pytest.fixture
def memory():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("page", "pay", 1.0)], "e1"))
        yield memory


@pytest.mark.parametrize(("kind", "body"), MALFORMED)
def test_malformed_note_is_refused_when_it_is_written_imported_or_merged(memory, tmp_path, kind, body):
    with pytest.raises(InputError, match=r".+: .+\. .+"):
        memory.note("e1", kind, body)
    with pytest.raises(InputError), memory.episode("t") as episode:
        episode.note(kind, body)
    line = {"type": "note", "id": "n", "episode_id": "e1", "kind": kind, "body": body, "source": "a", "created_at": 1.0}
    with pytest.raises(InputError, match=r"line 1: "):
        memory.import_lines([json.dumps(line)])
    assert memory.notes() == []
    path = tmp_path / "old.db"
    with Memory.open(path) as old:
        old.add(Episode("t", [Step("page", "pay", 1.0)], "e1"))
        stored(old, kind, body)
    with pytest.raises(InputError, match=r"note 'bad' of kind"):
        merge(tmp_path / "new.db", path)
    assert not (tmp_path / "new.db").exists()
    with Memory.open(path) as old:
        old.revoke("bad")
    merge(tmp_path / "new.db", path)


@pytest.mark.parametrize("body", [*(body for kind, body in MALFORMED if kind == "question"), UNREADABLE])
def test_stored_malformed_question_breaks_no_queue_and_verify_names_it(memory, body):
    questions = Questions(memory)
    id_ = questions.add(Question([AnswerCandidate("a"), AnswerCandidate("b")], task="t", state="mail"))
    stored(memory, "question", body)
    queue = questions.queue(author="ann")
    assert [question.id for question, _ in queue.questions] == [id_]
    assert queue.n_open == 1
    questions.answer(id_, QuestionAnswer("choice", "ann", chosen=0))
    assert questions.positions() == {"2": [1, 0]}
    whole = memory.verify()
    assert whole.malformed_notes == (() if body is UNREADABLE else ("bad",))
    memory.revoke("bad")
    assert memory.verify().malformed_notes == ()


def test_doctor_names_malformed_notes_until_they_are_revoked(memory):
    memory.note("e1", "plan", {"text": "p"})
    assert "notes" not in {check.name for check in diagnose(memory).findings}
    for number in range(7):
        stored(memory, "question", {}, f"bad {number}")
    [found] = [check for check in diagnose(memory).findings if check.name == "notes"]
    assert found.numbers == {"notes": 8, "malformed": 7}
    assert "'bad 0'" in found.seen and "revoke" in found.next_step
    for number in range(7):
        memory.revoke(f"bad {number}")
    assert "notes" not in {check.name for check in diagnose(memory).findings}


def label_lines(note_kind):
    event = {"type": "feedback", "id": "n.0", "episode_id": "e1", "step": 0, "reward": 1.0, "weight": 1.0}
    note = {"type": "note", "id": "n", "episode_id": "e1", "step": 0, "kind": note_kind, "body": {}}
    both = [{**event, "kind": "label"}, note]
    return [json.dumps({**line, "source": "a", "created_at": 1.0}) for line in both]


def offering(memory, id_="e1"):
    memory.add(Episode("t", [Step("page", "pay", 1.0, {"pay": -0.1, "stop": -2.3})], id_))
    return memory


def test_imported_label_whose_note_is_of_another_kind_is_refused(tmp_path):
    event, note = label_lines("my.kind")
    with offering(Memory.open(tmp_path / "a.db")) as memory:
        for lines, number in (([event, note], 1), ([note, event], 2)):
            with pytest.raises(InputError, match=rf"line {number}: .*(?s:.*)of kind 'label' is of kind 'my.kind'"):
                memory.import_lines(lines)
        assert memory.notes() == memory.events() == []


def test_stored_label_whose_note_is_of_another_kind_breaks_no_reader(tmp_path):
    event, note = label_lines("my.kind")
    with offering(Memory.open(tmp_path / "a.db")) as memory:
        memory.import_lines([event])
        memory.import_lines([note])  # on its own: no event in the same lines tells what it should be
        options = memory.rated_options().by_episode
        assert [one.reward for episode in options.values() for one in episode] == [2.0]


def test_imported_label_of_a_negative_weight_is_refused():
    """Labels count by their weighted mean: of the weights 1 and -1 there is none."""
    event = {"episode_id": "e1", "step": 0, "reward": 1.0, "source": "human", "created_at": 1.0, "kind": "label"}
    lines = [
        json.dumps({"type": "feedback", **event, "id": f"{author}.0", "author": author, "weight": weight})
        for author, weight in (("ann", 1.0), ("bob", -1.0))
    ]
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("cart", "pay")], "e1"))
        with pytest.raises(InputError, match=r"line 2: .*(?s:.*)typed feedback has a weight of at least 0"):
            memory.import_lines(lines)
        assert memory.import_lines(lines[:1]) == (0, 1)
        assert memory.search("cart")[0].experience.reward == 1.0
