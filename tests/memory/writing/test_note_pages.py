"""Notes and feedback in pages: each page begins where the one before ended, and reads nothing before it."""

from __future__ import annotations

import uuid

import pytest
from postgres_server import postgres  # noqa: F401

from seasoned import Episode, Memory, Selection, Step
from seasoned.errors import InputError
from seasoned.types import Score, Thumbs


def filled(memory, n):
    """Feedback of two kinds and notes in turn, on two episodes; every fifth note is quarantined, and one is revoked."""
    memory.add_many([Episode("t", [Step("page", "go")], f"e{k}") for k in range(2)])
    for number in range(n):
        feedback = Thumbs(True) if number % 3 else Score(2, low=1, high=3)
        memory.feedback(f"e{number % 2}", feedback, author=f"author {number}")
        source = "wrong" if number % 5 == 4 else "agent"
        memory.note(f"e{number % 2}", "plan", {"text": f"plan {number}"}, source=source, id=f"n{number:04}")
    memory.revoke("n0002")
    memory.quarantine(Selection(source="wrong"), "a test")


def pages(read, size):
    """Read all pages of this size, and return them."""
    found = [read(after=None, limit=size)]
    while len(found[-1]) == size:
        last = found[-1][-1]
        found.append(read(after=(last.created_at, last.id), limit=size))
    return found


def test_pages_together_are_the_whole_list(place):
    with Memory.open(place, namespace=uuid.uuid4().hex) as memory:
        filled(memory, 12)
        for size in (1, 4, 100):
            for which in ({}, {"episode_id": "e1"}, {"kinds": ["score"]}):
                every = memory.feedback_records(**which)
                listed = pages(lambda which=which, **page: memory.feedback_records(**which, **page), size)
                assert [one for page in listed for one in page] == every
            for which in ({"kind": "plan"}, {"episode_id": "e1"}, {"kind": "plan", "quarantined": True}):
                every = memory.notes(**which)
                listed = pages(lambda which=which, **page: memory.notes(**which, **page), size)
                assert [one for page in listed for one in page] == every
                assert all(len(page) == size for page in listed[:-1])


def test_late_page_takes_no_more_steps_of_the_database_than_an_early_one(tmp_path):
    with Memory.open(tmp_path / "a.db") as memory:
        filled(memory, 300)

        def steps(read):
            counted = [0]

            def count():
                counted[0] += 1
                return 0

            memory.session.store.connection.set_progress_handler(count, 1)
            read()
            memory.session.store.connection.set_progress_handler(None, 1)
            return counted[0]

        for read in (memory.feedback_records, lambda **page: memory.notes(kind="plan", **page)):
            early, late = ((one[4].created_at, one[4].id) for one in (read(), read()[-20:]))
            assert steps(lambda read=read, at=late: read(after=at, limit=10)) < 1.5 * steps(
                lambda read=read, at=early: read(after=at, limit=10)
            )
            assert steps(lambda read=read, at=early: read(after=at, limit=10)) < 0.2 * steps(read)


@pytest.mark.parametrize("wrong", [{"after": 1.0}, {"after": ("a", "b")}, {"after": (1.0, "")}, {"limit": 0}])
def test_wrong_page_is_refused(wrong):
    with Memory.open(":memory:") as memory:
        for read in (memory.notes, memory.feedback_records):
            with pytest.raises(InputError):
                read(**wrong)
