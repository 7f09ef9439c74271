"""Typed feedback, in a file and on PostgreSQL: all that follows from it counts, or none, and it can be taken back."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
import uuid

import pytest
from postgres_server import postgres  # noqa: F401
from stored_feedback import stored_feedback

from seasoned import Episode, Memory, Selection, Step
from seasoned.errors import EpisodeConflictError, InputError, NotFoundError
from seasoned.memory.maintenance.diff import diff
from seasoned.memory.transfer.merge import merge
from seasoned.types import Choice, Correction, Edit, FeedbackRecord, Outcome, OwnAnswer, Review, Score, Thumbs

STATE, SHOWN = "where is my order?", "It is lost."
TALK = Episode("support", [Step(STATE, SHOWN), Step("thanks", "bye", 0.25)], "talk", subject="customer-17")


@pytest.fixture
def memory(place):
    with Memory.open(place, namespace=f"n{uuid.uuid4().hex}", gamma=0.5) as opened:
        opened.add(TALK)
        yield opened


def rewards(memory, state=STATE):
    return {n.experience.action: n.experience.reward for n in memory.search(state, 50, 1.0)}


# ------------------------------------------------------------------------------------------ what it is worth


WORTH = {
    Thumbs(True): ({SHOWN: 1.0}, []),
    Thumbs(False, "rude"): ({SHOWN: -1.0}, []),
    Score(0.5): ({SHOWN: 0.5}, []),
    Score(2, low=1, high=5): ({SHOWN: -0.5}, []),
    Choice((SHOWN, "On Monday."), 1): ({SHOWN: -1.0}, [("On Monday.", 1.0)]),
    Choice(("A", "it is  LOST.", "B"), 1): ({SHOWN: 1.0}, [("A", -0.5), ("B", -0.5)]),
    Choice(("A", "B"), 0): ({SHOWN: 0.0}, [("A", 1.0), ("B", -1.0)]),
    Edit("It is late."): ({SHOWN: 1 - 2 * 3 / 11}, [("It is late.", 1.0)]),
    Edit("it is lost."): ({SHOWN: 1 - 2 * 1 / 11}, []),
    Edit("It is late.", None, ("On it.", "it is  lost."), 1): ({SHOWN: 1 - 2 * 5 / 12}, [("It is late.", 1.0)]),
    Edit("On Friday.", "b", ("On Monday.", SHOWN), 0): ({SHOWN: 0.0}, [("On Monday.", 0.4), ("On Friday.", 1.0)]),
    Edit("on  monday.", None, ("On Monday.",), 0): ({SHOWN: 0.0}, [("On Monday.", 1 - 2 * 3 / 11)]),
    OwnAnswer("Tomorrow."): ({SHOWN: 0.0}, [("Tomorrow.", 1.0)]),
    Correction("It is not lost."): ({SHOWN: -1.0}, []),
    Outcome(exit_code=0): ({SHOWN: 1.0}, []),
    Outcome(exit_code=2, built=True): ({SHOWN: -1.0}, []),
    Outcome(built=False): ({SHOWN: -1.0}, []),
    Outcome(passed=3, total=4, exit_code=1): ({SHOWN: 0.5}, []),
    Review("approved"): ({SHOWN: 1.0}, []),
    Review("changes_requested"): ({SHOWN: -1.0}, []),
    Review("comment", "hm"): ({SHOWN: 0.0}, []),
}


def test_each_kind_has_its_rewards(memory):
    for feedback, (own, others) in WORTH.items():
        before = len(memory)
        record = stored_feedback(memory, "talk", feedback, step=0, source="who", author="ann", weight=2.0)
        worth = {action: 2.0 * reward for action, reward in (*own.items(), *others)}
        assert rewards(memory) == pytest.approx(worth), feedback
        assert (len(memory) - before, len(record.episode_ids)) == (len(others), len(others))
        for id_, (text, _) in zip(record.episode_ids, others, strict=True):
            made = memory.get(id_)
            assert (made.task, made.subject, made.arm, made.policy) == ("support", "customer-17", "alternative", "who")
            assert made.steps == (Step(STATE, text),)
        assert (record.feedback, record.step, record.author, record.revoked_at) == (feedback, 0, "ann", None)
        assert memory.feedback_records()[-1] == record
        assert {event.kind for event in memory.events() if event.revoked_at is None} <= {feedback.kind}
        memory.revoke(record.id)
        assert rewards(memory) == {SHOWN: 0.0}, feedback  # what it made is not found any more
        assert memory.excluded_ids()[0] >= set(record.episode_ids)
        assert memory.quarantines() == []
    whole = memory.verify()
    assert whole.notes == len(WORTH) == len(memory.feedback_records())
    assert all(one.revoked_at is not None for one in memory.feedback_records())


def test_typed_feedback_without_a_step_is_on_the_last_step(memory):
    record = stored_feedback(memory, "talk", Thumbs(True))
    assert [(r.episode_id, r.step, r.reward) for r in record.rewards] == [("talk", 1, 1.0)]
    assert record.step is None
    [first] = [n.experience for n in memory.search(STATE, 1, 1.0)]
    assert first.return_ == 0.5 * 1.25


def test_feedback_on_no_episode_stores_its_answers(memory):
    choice = Choice(("yes", "no"), 0)
    record = stored_feedback(
        memory, feedback=choice, task="quiz", state="is it so?", source="web", author="ann", subject="bob"
    )
    assert rewards(memory, "is it so?") == {"yes": 1.0, "no": -1.0}
    assert record.episode_id == record.episode_ids[0]
    assert {memory.get(id_).subject for id_ in record.episode_ids} == {"bob"}
    memory.feedback(feedback=OwnAnswer("maybe"), task="quiz", state="is it so?")
    assert rewards(memory, "is it so?") == {"yes": 1.0, "no": -1.0, "maybe": 1.0}
    memory.revoke(record.id)
    assert rewards(memory, "is it so?") == {"maybe": 1.0}
    memory.verify()


def test_one_author_has_one_choice_at_a_state_without_an_episode(memory):
    def choose(chosen=0, state="s", task="t", **given):
        memory.feedback(feedback=Choice(("A", "B"), chosen), task=task, state=state, **{"author": "ann", **given})

    for _ in range(3):
        choose()
    choose(1)
    choose(author="bob"), choose(source="judge"), choose(state="other"), choose(task="other")
    choose(author=None), choose(author=None)  # two people, perhaps
    memory.feedback(feedback=OwnAnswer("C"), task="t", state="s", author="ann")
    unrevoked = [one for one in memory.feedback_records() if one.revoked_at is None]
    assert [one.feedback.chosen for one in unrevoked[:-1]] == [1, 0, 0, 0, 0, 0, 0]
    assert len(memory.feedback_records()) == len(unrevoked) + 3
    memory.verify()


def test_choices_in_quarantine_replace_each_other_too(memory):
    id_ = memory.quarantine(Selection(source="human"), "a raid")
    for _ in range(3):
        memory.feedback(feedback=Choice(("A", "B"), 0), task="t", state="s", author="ann")
    memory.release(id_)
    assert [one.revoked_at is None for one in memory.feedback_records()] == [False, False, True]
    memory.verify()


def test_choices_at_one_state_replace_each_other_in_imports_and_merges(place, tmp_path):
    folder, exports = tmp_path / "stores", []
    folder.mkdir()
    for name in "ab":
        with Memory.open(folder / f"{name}.db") as one:
            one.feedback(feedback=Choice(("A", "B"), 0), task="t", state="s", author="ann", id=name)
            exports.append(list(one.export()))
    merge(folder / "m.db", folder / "a.db", folder / "b.db")
    with Memory.open(folder / "m.db") as merged:
        assert [one.id for one in merged.feedback_records() if one.revoked_at is None] == ["b"]
        merged.verify()
    with Memory.open(place, namespace=f"n{uuid.uuid4().hex}") as memory:
        for lines in exports:
            memory.import_lines(lines)
        assert [one.id for one in memory.feedback_records() if one.revoked_at is None] == ["b"]
        memory.verify()


def test_edits_are_compared_before_the_transaction():
    long, other = "x" * 60_000, "y" * 60_000
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("s", other)], "e1"))
        record = stored_feedback(memory, "e1", Edit(long, None, (f"{long}z",), 0))
        assert [one.reward for one in record.rewards] == [1 - 2 / 60_001, 1.0]
        locked = []
        memory.session.store.connection.set_trace_callback(
            lambda sql: locked.append(sql) if "IMMEDIATE" in sql else None
        )
        with pytest.raises(InputError, match="60000"):
            memory.feedback("e1", Edit(long, None, (other,), 0))
        assert locked == []
        memory.feedback("e1", Thumbs(True))
        assert len(locked) == 1


# ------------------------------------------------------------------------------------------ who says it again


def test_the_same_author_supersedes_in_one_kind_only(memory):
    first = stored_feedback(memory, "talk", Choice((SHOWN, "A"), 0), step=0, author="ann")
    second = stored_feedback(memory, "talk", Choice((SHOWN, "A", "B"), 2), step=0, author="ann")
    assert rewards(memory) == {SHOWN: -0.5, "A": -0.5, "B": 1.0}
    others = [
        stored_feedback(memory, "talk", Choice((SHOWN, "A"), 0), step=0, author="bob"),  # contradicts: both stand
        stored_feedback(memory, "talk", Thumbs(False), step=0, author="ann"),
        stored_feedback(memory, "talk", Choice(("bye", "ciao"), 0), step=1, author="ann"),
        stored_feedback(memory, "talk", Choice((SHOWN, "A"), 0), step=0, author="ann", source="review"),
    ]
    memory.feedback("talk", 0.125, 0, author="ann")  # a bare reward has no kind
    stand = [one.id for one in memory.feedback_records() if one.revoked_at is None]
    assert stand == [second.id, *(one.id for one in others)]
    assert memory.feedback_records()[0] == dataclasses.replace(first, revoked_at=second.created_at)
    assert rewards(memory)[SHOWN] == -0.5 + 1.0 - 1.0 + 1.0 + 0.125
    memory.revoke(second.id)
    assert rewards(memory)[SHOWN] == 1.0 - 1.0 + 1.0 + 0.125  # what it superseded stays so
    assert [one.id for one in memory.feedback_records("talk") if one.revoked_at is None] == [one.id for one in others]
    memory.verify()


def test_the_last_step_is_the_same_target_by_either_name(memory):
    memory.feedback("talk", Thumbs(True))
    memory.feedback("talk", Thumbs(False), step=1)
    memory.feedback("talk", Review("approved"), step=1)
    memory.feedback("talk", Review("comment"))  # gives nothing, and still takes back
    assert rewards(memory, "thanks") == {"bye": 0.25 - 1.0}
    assert [one.revoked_at is None for one in memory.feedback_records()] == [False, True, False, True]


def test_feedback_with_the_same_id_is_stored_once(memory):
    fields = {"episode_id": "talk", "step": 0, "author": "ann", "id": "mine"}
    record = stored_feedback(memory, feedback=Choice((SHOWN, "A"), 1), **fields)
    hash_ = memory.verify().hash
    assert stored_feedback(memory, feedback=Choice((SHOWN, "A"), 1), **fields) == record
    assert hash(record) == hash(memory.feedback_records()[0])
    for other in ({"author": "bob"}, {"step": 1}, {"weight": 2.0}, {"source": "x"}):
        with pytest.raises(EpisodeConflictError, match=r"'mine' is stored with other content"):
            memory.feedback(feedback=Choice((SHOWN, "A"), 1), **fields | other)
    for feedback in (Thumbs(True), Choice((SHOWN, "A"), 0)):
        with pytest.raises(EpisodeConflictError):
            memory.feedback(feedback=feedback, **fields)
    answer = {"task": "quiz", "state": "really?", "id": "free"}
    assert stored_feedback(memory, feedback=OwnAnswer("A"), **answer) == stored_feedback(
        memory, feedback=OwnAnswer("A"), **answer
    )
    memory.revoke("mine")
    assert (
        stored_feedback(memory, feedback=Choice((SHOWN, "A"), 1), **fields).revoked_at is not None
    )  # it stays taken back
    memory.revoke("mine")
    memory.add(Episode("t", [Step("s", "a")], "taken-0"))
    with pytest.raises(EpisodeConflictError, match=r"'taken-0'"):
        memory.feedback(feedback=OwnAnswer("A"), task="t", state="s", id="taken")
    assert [one.id for one in memory.feedback_records()] == ["mine", "free"]
    assert hash_ != memory.verify().hash


def test_reweighting_and_quarantine_apply_to_typed_feedback(memory):
    record = stored_feedback(memory, "talk", Choice((SHOWN, "A"), 1), step=0, source="crowd")
    memory.feedback("talk", Thumbs(True), step=0, source="staff")
    memory.reweight_source("crowd", 0.5)
    assert rewards(memory) == {SHOWN: 0.5, "A": 0.5}
    assert memory.feedback_records()[0] == record  # what was said is as it was
    held = [
        memory.quarantine(selection, "bought")
        for selection in (Selection(source="crowd"), Selection(policy="crowd", arm="alternative"))
    ]
    assert rewards(memory) == {SHOWN: 1.0}
    assert [note.source for note in memory.notes()] == ["staff"]
    for id_ in held:
        memory.release(id_)
    memory.revoke(record.id)
    assert rewards(memory) == {SHOWN: 1.0}
    memory.verify()


# ------------------------------------------------------------------------------------------ what is refused


BAD = [
    (InputError, lambda m: m.feedback(feedback=Thumbs(True))),
    (InputError, lambda m: m.feedback(feedback=Thumbs(True), task="t", state="s")),
    (InputError, lambda m: m.feedback(feedback=Edit("x"), task="t", state="s")),
    (InputError, lambda m: m.feedback(feedback=OwnAnswer("x"), task="t")),
    (InputError, lambda m: m.feedback(feedback=OwnAnswer("x"), task=" ", state="s")),
    (InputError, lambda m: m.feedback(feedback=OwnAnswer("x"), task="t", state="s", step=0)),
    (InputError, lambda m: m.feedback("talk", OwnAnswer("x"), state="s")),
    (InputError, lambda m: m.feedback("talk", OwnAnswer("x"), subject="s")),
    (InputError, lambda m: m.feedback("talk", "thumbs")),
    (InputError, lambda m: m.feedback("talk", Thumbs)),
    (InputError, lambda m: m.feedback("talk", Thumbs(True), weight=math.nan)),
    (InputError, lambda m: m.feedback("talk", Thumbs(True), weight=1e101)),
    (InputError, lambda m: m.feedback("talk", Thumbs(True), weight=-1)),
    (InputError, lambda m: m.feedback(feedback=OwnAnswer("x"), task="t", state="s", weight=0)),
    (InputError, lambda m: m.feedback("talk", Thumbs(True), weight="much")),
    (InputError, lambda m: m.feedback("talk", Thumbs(True), source=" ")),
    (InputError, lambda m: m.feedback("talk", Thumbs(True), author="\ud800")),
    (InputError, lambda m: m.feedback("talk", Thumbs(True), step=-1)),
    (InputError, lambda m: m.feedback("talk", Thumbs(True), step=0.5)),
    (InputError, lambda m: m.feedback("talk", Thumbs(True), id=" ")),
    (InputError, lambda m: m.feedback("talk", OwnAnswer("x" * 2**20))),
    (InputError, lambda m: m.feedback("talk", Thumbs(True, "x" * 2**20))),
    (InputError, lambda m: m.feedback("long", Edit("x" * 60_000))),
    (NotFoundError, lambda m: m.feedback("nope", Thumbs(True))),
    (NotFoundError, lambda m: m.feedback("talk", Thumbs(True), step=2)),
    (NotFoundError, lambda m: m.feedback("talk", Edit("x"), step=2**70)),
    (NotFoundError, lambda m: m.feedback("empty", Thumbs(True))),
    (NotFoundError, lambda m: m.revoke("nothing")),
]


def test_bad_typed_feedback_is_refused_and_changes_nothing(memory):
    memory.add(Episode("t", [], "empty", ending="aborted"))
    memory.add(Episode("t", [Step("s", "y" * 60_000)], "long"))
    before = memory.verify().hash
    for number, (error, call) in enumerate(BAD):
        with pytest.raises(error) as caught:
            call(memory)
        assert all((caught.value.seen, caught.value.rule, caught.value.next_step)), number
    assert memory.verify().hash == before


def test_feedback_on_erased_and_pruned_episodes_is_refused(memory):
    record = stored_feedback(memory, "talk", Edit("Ask the depot."), step=0, author="ann")
    erased = memory.erase("customer-17")
    assert set(erased.episodes) == {"talk", *record.episode_ids}
    assert (erased.feedback, erased.notes) == (2, 1)
    with pytest.raises(NotFoundError, match=r"erased or pruned"):
        memory.feedback("talk", Thumbs(True))
    with pytest.raises(NotFoundError):
        memory.revoke(record.id)
    assert (memory.feedback_records(), memory.notes(), len(memory)) == ([], [], 0)
    memory.verify()


def test_hostile_text_is_stored_unchanged(memory):
    hostile = "<script>alert(1)</script> {{x}} ' OR 1=1; -- \x1b[31m \u202e" + "🙂" * 1000
    record = stored_feedback(memory, "talk", OwnAnswer(hostile, comment=hostile), step=0, author=hostile)
    assert memory.feedback_records() == [record]
    assert record.feedback == OwnAnswer(hostile, hostile)
    assert memory.get(record.episode_ids[0]).steps[0].action == hostile
    memory.verify()


# ------------------------------------------------------------------------------------------ many at once, and stores


def test_concurrent_feedback_of_two_handles_is_stored_whole(place):
    name = f"n{uuid.uuid4().hex}"
    with Memory.open(place, namespace=name) as one, Memory.open(place, namespace=name) as two:
        one.add(TALK)
        for number, memory in zip(range(6), itertools.cycle((one, two)), strict=False):
            memory.feedback("talk", Choice((SHOWN, f"answer {number}"), 1), step=0, author=f"a{number % 3}")
        assert one.feedback_records() == two.feedback_records()
        assert sum(record.revoked_at is None for record in two.feedback_records()) == 3
        assert rewards(one) == rewards(two) == {SHOWN: -3.0, **{f"answer {n}": 1.0 for n in (3, 4, 5)}}
        assert one.verify() == two.verify()


def test_export_and_merge_copy_typed_feedback(place, memory, tmp_path):
    memory.note("talk", "plan", {"text": "be kind", "n": [1, 2.5, None, True]}, author="ann")
    original = stored_feedback(memory, "talk", Choice((SHOWN, "A"), 1), step=0, author="ann")
    memory.feedback("talk", Edit("B"), step=0)
    memory.revoke(memory.feedback("talk", OwnAnswer("C"), step=0))
    lines, whole = list(memory.export()), memory.verify()
    with Memory.open(":memory:") as other:
        assert other.import_lines(lines) == (4, 5)
        assert other.import_lines(lines) == (0, 0)
        assert other.verify().hash == whole.hash
        assert (other.feedback_records(), other.notes(), rewards(other)) == (
            memory.feedback_records(),
            memory.notes(),
            rewards(memory),
        )
        assert diff(memory, other).equal
        other.feedback("talk", Thumbs(True), author="zoe")
        assert len(diff(memory, other).notes.only_in_b) == 1
    done = merge(tmp_path / "copy.db", place, namespace=memory.namespace)
    assert (done.namespaces[0].notes, done.namespaces[0].episodes) == (4, 4)
    assert merge(tmp_path / "copy.db", place, namespace=memory.namespace).namespaces[0].notes == 0
    with Memory.open(tmp_path / "copy.db", namespace=memory.namespace) as copy:
        assert copy.verify().hash == whole.hash
        copy.revoke(original.id)
        changed = diff(memory, copy)
        assert [(c.id, c.field) for c in changed.notes.changed] == [(original.id, "revoked_at")]
        assert not changed.equal
    assert merge(place, tmp_path / "copy.db").namespaces[0].changed > 0
    assert "A" not in rewards(memory)
    assert {one.id for one in memory.feedback_records() if one.revoked_at is None} == {
        record.id for record in memory.feedback_records() if isinstance(record.feedback, Edit)
    }
    memory.verify()


def test_later_feedback_supersedes_in_a_merge_of_either_direction(place, tmp_path):
    name, files = f"n{uuid.uuid4().hex}", (tmp_path / "a.db", tmp_path / "b.db")
    with Memory.open(files[0], namespace=name) as a:
        a.add(TALK)
    merge(files[1], files[0])
    for file, text in zip(files, ("early", "late"), strict=True):
        with Memory.open(file, namespace=name) as memory:
            memory.feedback("talk", Choice((SHOWN, text), 1), step=0, author="ann")
            memory.feedback("talk", OwnAnswer(f"{text} own"), step=0)
        time.sleep(0.002)
    merge(place, *files)
    merge(files[0], files[1])
    merge(files[1], files[0])
    for where in (place, *files):
        with Memory.open(where, namespace=name) as memory:
            assert rewards(memory) == {SHOWN: -1.0, "late": 1.0, "late own": 1.0}
            assert [one.revoked_at is None for one in memory.feedback_records()] == [False, False, True, True]
            assert memory.excluded_ids()[0] == {id_ for one in memory.feedback_records()[:2] for id_ in one.episode_ids}
            assert memory.quarantines() == []
            memory.verify()
            hashes = memory.feedback_records()
            assert hashes == sorted(hashes, key=lambda one: one.created_at)
        assert (
            sum(
                one.changed + one.notes + one.episodes
                for one in merge(where, *[f for f in files if f != where]).namespaces
            )
            == 0
        )


def test_a_feedback_record_is_hashable(memory):
    record = stored_feedback(memory, "talk", Choice([SHOWN, "A"], 1), step=0)
    assert isinstance(record, FeedbackRecord)
    assert len({record, memory.feedback_records()[0], dataclasses.replace(record)}) == 1
