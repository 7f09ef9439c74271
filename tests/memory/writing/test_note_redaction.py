"""A redactor and notes: what people write is redacted; ids and digests stay, so that what they name is found."""

from __future__ import annotations

import re

import pytest
from postgres_server import postgres  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.errors import InputError
from seasoned.types import Choice, Correction, Edit, OwnAnswer, Review

ID, OTHER = "5550000001", "5550000002"  # ids that look like telephone numbers


def without_numbers(text):
    return re.sub(r"\d{7,}", "[phone]", text)


@pytest.fixture(params=["file", "server"])
def memory(request, tmp_path):
    place = tmp_path / "m.db" if request.param == "file" else request.getfixturevalue("postgres").fresh()
    with Memory.open(place, redact=without_numbers) as memory:
        memory.add(Episode("call 5551234567", [Step("ask 5551234567", "dial 5551234567")], ID))
        yield memory


def test_texts_are_redacted_and_ids_and_digests_are_not(memory):
    memory.note(ID, "shown", {"examples": [[ID, 0]], "mode": "prompt", "purpose": "act"}, step=0)
    memory.note(
        ID,
        "question",
        {
            "digest": "1" * 64,
            "prompt": "call 5551234567?",
            "episode_id": OTHER,
            "step": None,
            "candidates": [{"text": "5551234567", "logprob": -1.0, "model": "m-20240806"}],
        },
    )
    memory.note(ID, "mine", {"text": "5551234567", "deep": {"comment": ["5551234567"]}, "5551234567": 1})
    shown, question, mine = (note.body for note in memory.notes())
    assert shown == {"examples": [[ID, 0]], "mode": "prompt", "purpose": "act"}
    assert question == {
        "digest": "1" * 64,
        "prompt": "call [phone]?",
        "episode_id": OTHER,
        "step": None,
        "candidates": [{"text": "[phone]", "logprob": -1.0, "model": "m-20240806"}],
    }
    assert mine == {"text": "[phone]", "deep": {"comment": ["[phone]"]}, "[phone]": 1}
    memory.verify()


def test_imported_feedback_equals_added_feedback(memory, tmp_path):
    records = [
        Choice(("dial 5551234567", "wait"), 1, "5551234567"),
        Edit("dial 5557654321"),
        OwnAnswer("hm 5551234567"),
        Correction("not 5551234567"),
        Review("approved", "5551234567"),
        Edit("wait", "5551234567", ("on", "try 5551234567"), 1),
    ]
    with Memory.open(tmp_path / "plain.db") as plain:
        plain.add(Episode("call 5551234567", [Step("ask 5551234567", "dial 5551234567")], ID))
        for number, one in enumerate(records):
            plain.feedback(ID, one, id=f"{OTHER}{number}")
        lines = list(plain.export())
    memory.import_lines(lines)
    came = memory.feedback_records()
    assert [one.episode_ids for one in came] == [one.episode_ids for one in plain_given(lines)]
    assert "5551234567" not in str([one.feedback for one in came])
    for one in came:
        memory.revoke(one.id)
    assert {n.experience.episode_id for n in memory.search("ask [phone]")} == {ID}
    for number, one in enumerate(records):
        memory.feedback(ID, one, id=f"again{number}")
    assert [one.feedback for one in memory.feedback_records()[len(records) :]] == [one.feedback for one in came]
    memory.verify()


def plain_given(lines):
    with Memory.open(":memory:") as plain:
        plain.import_lines(lines)
        return plain.feedback_records()


def test_candidates_made_equal_by_redaction_are_refused(memory, tmp_path):
    choice = Choice(("dial 5551234567", "dial 5557654321"), 0)
    before = memory.verify().hash
    with pytest.raises(InputError, match="differ"):
        memory.feedback(feedback=choice, task="t", state="s")
    with Memory.open(tmp_path / "plain.db") as plain:
        plain.feedback(feedback=choice, task="t", state="s")
        lines = list(plain.export())
    with pytest.raises(InputError, match=r"^line 6.*differ"):
        memory.import_lines(lines)
    assert memory.verify().hash == before
