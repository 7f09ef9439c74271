"""A new kind of feedback in the store, the service and the texts, after its registration alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from seasoned import Episode, Memory, Step
from seasoned.cli.memory.feedback import note_text
from seasoned.errors import InputError
from seasoned.service.feedback_json import feedback_from_json
from seasoned.service.schemas import feedback_schema
from seasoned.types import FEEDBACK_KINDS, AnswerRewards, Feedback, feedback_from_record, feedback_kind, feedback_record

SECRET = "hunter2"
KIND = "test_kind_rating"  # no shipped kind has this name


@pytest.fixture
def rating():
    before = dict(FEEDBACK_KINDS)

    @feedback_kind
    @dataclass(frozen=True, slots=True)
    class Rating(Feedback):
        kind: ClassVar[str] = KIND
        stars: int
        reason: str
        better: tuple[str, ...] = ()
        comment: str | None = None

        def rewards(self, executed: str | None) -> AnswerRewards:
            executed_reward = None if executed is None else (self.stars - 3) / 2
            return AnswerRewards(executed_reward, tuple((text, 1.0) for text in self.better))

        def words(self) -> str:
            return f"{self.stars} stars because {self.reason}"

    yield Rating
    FEEDBACK_KINDS.clear()
    FEEDBACK_KINDS.update(before)


def redact(text):
    return text.replace(SECRET, "[password]")


def test_a_new_kind_is_stored_redacted(rating, tmp_path):
    feedback = rating(1, f"it shows {SECRET}", (f"hide {SECRET}",), f"never {SECRET}")
    with Memory.open(tmp_path / "plain.db") as plain:
        plain.add(Episode("t", [Step("s", "a")], "e1"))
        plain.feedback("e1", feedback, id="f1")
        lines = list(plain.export())
    with Memory.open(tmp_path / "m.db", redact=redact) as memory:
        memory.import_lines(lines)
        memory.add(Episode("t", [Step("s", "a")], "e2"))
        memory.feedback("e2", feedback, id="f2")
        expected = rating(1, "it shows [password]", ("hide [password]",), "never [password]")
        assert [one.feedback for one in memory.feedback_records()] == [expected, expected]
        assert memory.feedback_records(id="f2")[0].rewards[0].reward == -1.0
        memory.verify()
    for path in tmp_path.glob("m.db*"):
        assert SECRET.encode() not in path.read_bytes()


def test_new_kind_is_superseded_and_revoked_like_others(rating):
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("s", "a")], "e1"))
        memory.feedback("e1", rating(5, "good"), author="ann")
        id_ = memory.feedback("e1", rating(1, "bad", ("b",)), author="ann")
        assert {n.experience.action: n.experience.reward for n in memory.search("s")} == {"a": -1.0, "b": 1.0}
        memory.revoke(id_)
        assert {n.experience.action: n.experience.reward for n in memory.search("s")} == {"a": 0.0}
        memory.verify()


@pytest.mark.parametrize(("stars", "better_reward"), [(9, 1.0), (0, 1.0), (3, 1.5), (3, float("nan")), (3, "1")])
def test_a_reward_outside_its_range_is_refused_before_anything_is_written(rating, stars, better_reward):
    class Generous(rating):
        """The same kind with another reward of each better answer."""

        __slots__ = ()

        def rewards(self, executed: str | None) -> AnswerRewards:
            return AnswerRewards(super().rewards(executed).executed, tuple((b, better_reward) for b in self.better))

    FEEDBACK_KINDS[KIND] = Generous
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("s", "a")], "e1"))
        memory.feedback("e1", Generous(2, "so-so"), author="ann")
        before = list(memory.export())
        with pytest.raises(InputError, match=f"a reward of {KIND} must be .*Correct a field"):
            memory.feedback("e1", Generous(stars, "great", ("b",)), author="ann")
        assert list(memory.export()) == before
        memory.verify()


def test_a_kind_that_needs_an_episode_is_refused_without_one(rating):
    with Memory.open(":memory:") as memory, pytest.raises(InputError, match=r"without one: choice, own_answer"):
        memory.feedback(feedback=rating(1, "bad"), task="t", state="s")


def test_a_kind_that_needs_no_episode_is_stored_without_one(rating):
    rating.needs_episode = False
    with Memory.open(":memory:") as memory:
        memory.feedback(feedback=rating(1, "bad", ("b",)), task="t", state="s")
        assert [n.experience.action for n in memory.search("s")] == ["b"]


def test_feedback_without_answers_needs_an_episode(rating):
    rating.needs_episode = False
    with Memory.open(":memory:") as memory, pytest.raises(InputError, match=r"episode"):
        memory.feedback(feedback=rating(1, "bad"), task="t", state="s")


def test_a_new_kind_is_in_the_schema_of_the_service(rating):
    properties = feedback_schema()["properties"]
    assert KIND in properties["kind"]["enum"]
    assert properties["stars"] == {"type": "integer", "description": KIND}
    assert properties["reason"]["type"] == "string"
    assert properties["better"]["type"] == "array"
    assert rating.json_schema()["required"] == ["kind", "stars", "reason"]
    body = {"kind": KIND, "stars": 1, "reason": "bad", "episode_id": "e1"}
    assert feedback_from_json(body) == (rating(1, "bad"), {"episode_id": "e1"})
    assert feedback_from_json({**body, "better": ["b"]})[0] == rating(1, "bad", ("b",))


def test_note_text_of_a_new_kind_has_its_words(rating):
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("s", "a")], "e1"))
        memory.feedback("e1", rating(1, "it is slow", comment="really"), weight=2.0)
        assert note_text(memory.notes()[0]) == "1 stars because it is slow (weight 2): really"


def test_new_kind_is_read_back_from_its_record(rating):
    record = feedback_record(rating(1, "bad", ("b",)))
    assert record == {"stars": 1, "reason": "bad", "better": ["b"]}
    assert feedback_from_record(KIND, record) == rating(1, "bad", ("b",))


def test_kind_with_a_taken_name_is_refused(rating):
    @dataclass(frozen=True)
    class Other(rating):
        comment: str | None = None

    with pytest.raises(InputError, match="name of its own"):
        feedback_kind(Other)


def test_a_kind_with_a_reserved_field_is_refused():
    @dataclass(frozen=True)
    class Weighted(Feedback):
        kind: ClassVar[str] = "weighted"
        weight: float
        comment: str | None = None

    with pytest.raises(InputError, match="weight"):
        feedback_kind(Weighted)
    assert "weighted" not in FEEDBACK_KINDS


def test_kind_without_rewards_cannot_be_instantiated():
    @dataclass(frozen=True)
    class Silent(Feedback):
        kind: ClassVar[str] = "silent"
        comment: str | None = None

    with pytest.raises(TypeError, match="rewards"):
        Silent()
