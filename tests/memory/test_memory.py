"""The memory as a whole: atomic episodes, idempotent ids, namespaces, encoders, returns."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_by_definition import FirstLetters, HashtagBlind, returns

from seasoned import Episode, Memory, Selection, Step
from seasoned.errors import EncoderMismatchError, EpisodeConflictError, InputError, NotFoundError
from seasoned.types import EvidenceQuery


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        yield opened


def episode(id_=None, n=2, **fields):
    return Episode("checkout", [Step(f"page {i}", f"click {i}", float(i)) for i in range(n)], id=id_, **fields)


# ------------------------------------------------------------------------------------------ returns


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=7), st.floats(0, 1), st.floats(0, 1))
def test_returns_follow_their_definition_at_any_gamma(rewards, gamma, other):
    with Memory.open(":memory:", gamma=gamma) as memory:
        memory.add(Episode("t", [Step(f"s {i}", "a", reward) for i, reward in enumerate(rewards)]))
        for passed_gamma, used in ((None, gamma), (other, other)):
            measured = {n.experience.step: n.experience.return_ for n in memory.search("s", k=99, gamma=passed_gamma)}
            expected = [float(value) for value in returns(rewards, used)]
            assert [measured[t] for t in range(len(rewards))] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_namespace_stores_its_gamma(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, gamma=0.5) as memory:
        memory.add(Episode("t", [Step("s", "a", 0.0), Step("s2", "b", 1.0)]))
    with Memory.open(path) as memory:
        assert memory.gamma == 0.5
        assert memory.search("s", k=1)[0].experience.return_ == 0.5
    with Memory.open(path, gamma=0.25) as memory:
        assert memory.search("s", k=1)[0].experience.return_ == 0.25
    with Memory.open(":memory:") as memory:
        assert memory.gamma == 0.95


# ------------------------------------------------------------------------------------------ whole or not at all


def test_added_episodes_are_read_back(memory):
    full = Episode(
        "checkout",
        [Step("page:cart", "click(pay)", -1, {"click(pay)": -0.1, "back": -3.0}, 0.9), Step("é\x00 ✓ 𝒳", "Ö  ö", 2)],
        id="e1",
        final_state="page:done",
        ending="truncated",
        model="m",
        policy="p",
        arm="a",
        subject="s",
    )
    assert memory.add(full) == "e1"
    assert memory.get("e1") == full
    assert memory.episodes() == [full]


def test_episodes_without_an_id_get_one(memory):
    ids = {memory.add(episode()) for _ in range(3)}
    assert len(ids) == 3
    assert len(memory.episodes()) == 3


def test_adding_an_episode_twice_is_a_no_op(memory):
    memory.add(episode("e1"))
    before = memory.verify()
    assert memory.add(episode("e1")) == "e1"
    assert memory.verify() == before


@pytest.mark.parametrize(
    "other",
    [
        episode("e1", n=3),
        episode("e1", ending="truncated"),
        episode("e1", final_state="x"),
        episode("e1", model="m"),
        episode("e1", policy="p"),
        episode("e1", arm="a"),
        episode("e1", subject="s"),
        Episode("other", episode().steps, id="e1"),
    ],
)
def test_one_id_with_two_contents_is_a_conflict(memory, other):
    memory.add(episode("e1"))
    before = memory.verify()
    with pytest.raises(EpisodeConflictError, match="e1"):
        memory.add(other)
    with pytest.raises(EpisodeConflictError):
        memory.add_many([episode("new"), other])
    assert memory.verify() == before


def test_add_many_is_all_or_none(memory):
    memory.add(episode("e1"))
    before = memory.verify()
    for bad in ("no episode", None, Episode("t", [Step("s", "x" * 2_000_000)])):
        with pytest.raises(InputError):
            memory.add_many([episode("e2"), bad])
    assert memory.verify() == before
    assert memory.add_many([episode("e2"), episode("e1"), episode("e3")]) == ["e2", "e1", "e3"]
    assert [e.id for e in memory.episodes()] == ["e1", "e2", "e3"]
    assert memory.add_many([]) == []


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exception_commits_the_episode_as_aborted_and_is_raised(memory, kind):
    thrown = kind("broke off")
    with pytest.raises(kind) as caught, memory.episode(task="t") as running:
        running.record("page", "click", 1.0)
        raise thrown
    assert caught.value is thrown
    stored = memory.get(running.id)
    assert (stored.ending, [s.action for s in stored.steps]) == ("aborted", ["click"])
    assert memory.search("page") == []
    assert memory.evidence(EvidenceQuery("page", k=3, unit="states", threshold=0.0)).n_steps == 0
    assert len(memory) == 1
    memory.verify()


def test_an_aborted_episode_may_have_no_steps(memory):
    with pytest.raises(ValueError), memory.episode(task="t") as running:
        raise ValueError
    assert memory.get(running.id).steps == ()
    assert memory.verify().episodes == 1
    with pytest.raises(NotFoundError):
        memory.feedback(running.id, 1.0)


def test_a_running_episode_is_not_retrieved(memory):
    with memory.episode(task="t", id="e1", arm="a") as running:
        running.record("page", "click", 1.0)
        assert memory.search("page") == []
        assert len(memory) == 0
        assert len(running) == 1
        running.final_state = "done"
        running.ending = "truncated"
    stored = memory.get("e1")
    assert (stored.final_state, stored.ending, stored.arm) == ("done", "truncated", "a")
    assert len(memory.search("page")) == 1
    with pytest.raises(InputError, match="committed once"):
        running.record("page", "click")


def test_an_invalid_step_aborts_a_running_episode_with_its_recorded_steps(memory):
    with pytest.raises(InputError), memory.episode(task="t") as running:
        running.record("page", "click", 1.0)
        running.record("page", "click", float("nan"))
    assert len(memory.get(running.id).steps) == 1
    assert memory.get(running.id).ending == "aborted"


def test_a_finished_episode_without_steps_is_refused(memory):
    with pytest.raises(InputError), memory.episode(task="t"):
        pass
    assert memory.stats().episodes == 0


# ------------------------------------------------------------------------------------------ namespaces and encoders


def test_namespaces_are_separate(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, namespace="shop") as shop, Memory.open(path, namespace="bank") as bank:
        shop.add(episode("e1"))
        assert bank.search("page 0") == []
        assert (len(shop), len(bank), bank.episodes(), bank.events()) == (2, 0, [], [])
        for call in (lambda: bank.get("e1"), lambda: bank.feedback("e1", 1.0)):
            with pytest.raises(NotFoundError):
                call()
        event = shop.feedback("e1", 1.0)
        with pytest.raises(NotFoundError):
            bank.revoke(event)
        bank.add(Episode("other", [Step("page 0", "else", 5.0)], id="e1"))  # the same id, elsewhere
        assert [n.experience.action for n in shop.search("page 0", k=1)] == ["click 0"]
        assert bank.evidence(EvidenceQuery("page 0", k=9, unit="states", threshold=0.0)).actions == ("else",)
        assert shop.verify().episodes == bank.verify().episodes == 1
        assert shop.verify().hash != bank.verify().hash


def test_a_missing_namespace_is_not_made_without_create(tmp_path):
    path = tmp_path / "agent.db"
    Memory.open(path, namespace="shop").close()
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(NotFoundError, match="shop"):
            Memory.open(path, namespace="shpo", **options)


def test_another_encoder_is_refused_or_reindexes(tmp_path):
    path = tmp_path / "agent.db"
    states = ["apple beta", "axe bear", "cat #dog", "#only", "beta"]
    steps = [Step(s, f"act {i}", float(i)) for i, s in enumerate(states)]
    endings = ("terminated", "terminated", "aborted", "truncated")
    episodes = [Episode("t", steps, f"e{n}", "end of it", ending) for n, ending in enumerate(endings)]
    with Memory.open(path, encoder=HashtagBlind()) as memory:
        memory.add_many(episodes)
        memory.feedback("e1", 3.0, step=2)
        memory.evidence(EvidenceQuery("beta", k=1, unit="states", threshold=0.0, gamma=0.3, decay=0.5))
        before = memory.verify()
    with pytest.raises(EncoderMismatchError, match=r"first-letters.*left out, a built-in one is the stored one"):
        Memory.open(path, encoder=FirstLetters())
    with pytest.raises(EncoderMismatchError, match="not built in"):
        Memory.open(path)
    with Memory.open(path, encoder=HashtagBlind()) as memory:
        assert memory.verify() == before
    with (
        Memory.open(path, encoder=FirstLetters(), reindex=True) as again,
        Memory.open(":memory:", encoder=FirstLetters()) as fresh,
    ):
        after = again.verify()
        assert after.hash == before.hash
        assert after.distinct_states == 6 - 1  # "apple beta" and "axe bear" share their letters
        fresh.import_lines(again.export())
        for state in ("a b", "c", "ape bee cat", "#", "zzz"):
            assert again.search(state, k=9) == fresh.search(state, k=9)
            for options in ({"gamma": None}, {"gamma": 0.3, "decay": 0.5}):
                one, other = (
                    m.evidence(EvidenceQuery(state, k=2, unit="states", threshold=0.0, **options))
                    for m in (again, fresh)
                )
                assert one.actions == other.actions
                assert one.totals.tolist() == pytest.approx(other.totals.tolist())
        again.add(Episode("t", [Step("new state", "x")]))
        again.verify()
    with pytest.raises(EncoderMismatchError):
        Memory.open(path, encoder=HashtagBlind())


def test_a_reader_open_during_reindexing_raises_an_encoder_mismatch(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, encoder=HashtagBlind()) as old:
        old.add(episode("e1"))
        old.search("page 0")
        Memory.open(path, encoder=FirstLetters(), reindex=True).close()
        for call in (lambda: old.search("page 0"), lambda: old.add(episode("e2")), old.stats):
            with pytest.raises(EncoderMismatchError):
                call()
    with Memory.open(path, encoder=FirstLetters()) as memory:
        assert memory.verify().episodes == 1


# ------------------------------------------------------------------------------------------ counts and listings


def test_stats_and_len_count_the_stored_content(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, namespace="shop", gamma=0.5) as memory:
        empty = memory.stats()
        assert (empty.episodes, empty.steps, empty.states, empty.spread, len(memory)) == (0, 0, 0, 0.0, 0)
        assert empty.mean_episode_reward is None
        memory.add(Episode("a", [Step("x y", "go", 1.0), Step("y x", "Go", 2.0)], id="e1", final_state="end"))
        memory.add(Episode("b", [Step("x y", "stop", -2.0)], id="e2", ending="truncated"))
        memory.add(Episode("b", [Step("broken", "stop", 50.0)], id="e3", ending="aborted"))
        memory.feedback("e2", 4.0)
        stats = memory.stats()
        assert (stats.path, stats.namespace, stats.gamma) == (str(path), "shop", 0.5)
        assert stats.encoder == memory.encoder.identity
        assert (stats.episodes, stats.aborted, stats.steps, stats.tasks) == (3, 1, 4, 2)
        assert (stats.states, stats.distinct_states, stats.actions, stats.feedback) == (4, 3, 3, 1)
        assert stats.mean_episode_reward == (3.0 + 2.0) / 2
        assert stats.size_bytes is not None
        assert stats.size_bytes > 0
        assert len(memory) == 4


def test_repeated_texts_are_stored_once(memory):
    for _ in range(20):
        memory.add(episode())
    assert (memory.stats().states, memory.stats().actions, len(memory)) == (2, 2, 40)


def test_episodes_lists_by_task_and_the_last_few(memory):
    for n, task in enumerate("ababa"):
        memory.add(Episode(task, [Step("s", "x")], id=str(n)))
    assert [e.id for e in memory.episodes()] == list("01234")
    assert [e.id for e in memory.episodes(task="b")] == ["1", "3"]
    assert [e.id for e in memory.episodes(last=2)] == ["3", "4"]
    assert [e.id for e in memory.episodes(task="a", last=2)] == ["2", "4"]
    assert [e.id for e in memory.episodes(last=99)] == list("01234")
    assert memory.episodes(task="c") == memory.episodes(task="c", last=3) == []


def test_encoder_and_contract_names(memory):
    assert memory.encoder.features("page:Cart  total:12") == frozenset({"page:cart", "total:12"})
    assert memory.namespace == "default"


# ------------------------------------------------------------------------------------------ threads


@pytest.mark.parametrize("on_disk", [False, True])
def test_threads_share_one_memory(tmp_path, on_disk):
    path = tmp_path / "agent.db" if on_disk else ":memory:"
    failed: list[BaseException] = []
    ids: list[str] = []
    with Memory.open(path) as memory:

        def work(name: int) -> None:
            try:
                for i in range(12):
                    added = memory.add(Episode(f"task {name}", [Step(f"thread-{name} step-{i}", "go", float(i))]))
                    ids.append(added)
                    memory.feedback(added, 1.0, author=str(name))
                    neighbor = memory.search(f"thread-{name} step-{i}", k=1)[0]
                    assert (neighbor.experience.episode_id, neighbor.experience.reward) == (added, i + 1.0)
                    memory.evidence(EvidenceQuery("thread", k=3, unit="states", threshold=0.0, gamma=i / 12))
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert sorted(e.id for e in memory.episodes()) == sorted(ids)
        assert memory.verify().feedback == 48


def test_a_path_may_be_any_path_like_and_hold_odd_characters(tmp_path):
    folder = tmp_path / "a b?c#d%20é"
    folder.mkdir()
    with Memory.open(os.fspath(folder / "m.db")) as memory:
        memory.add(episode("e1"))
    with Memory.open(folder / "m.db", read_only=True) as memory:
        assert len(memory) == 2


def test_steps_are_those_of_a_search_for_all(memory):
    memory.add_many(
        [Episode(f"task {n}", [Step(f"x page {n % 3}", f"go {i}", float(i)) for i in range(4)]) for n in range(9)]
    )
    memory.add(Episode("t", [Step("x", "broken off")], ending="aborted"))
    excluded = memory.add(Episode("bad", [Step("x", "wrong")]))
    memory.quarantine(Selection(episode=excluded), "it is wrong")
    memory.feedback(memory.episodes()[0].id, -2.0, 0)
    experiences = {
        (n.experience.episode_id, n.experience.step): n.experience for n in memory.search("x", 1000, gamma=0.5)
    }
    steps = memory.steps(gamma=0.5)
    assert {(step.episode_id, step.step): step for step in steps} == experiences
    order = [one.id for one in reversed(memory.episodes())]
    assert [(step.episode_id, step.step) for step in steps] == sorted(
        experiences, key=lambda place: (order.index(place[0]), -place[1])
    )


def test_a_memory_without_steps_returns_none():
    with Memory.open(":memory:") as empty:
        assert empty.steps() == []


def test_episodes_are_yielded_page_by_page_beside_writes(memory):
    memory.add_many([Episode("shop", [Step("cart", f"a{i}")], f"e{i}", subject=f"s{i}") for i in range(150)])
    memory.erase("s70")
    stored = memory.episodes()
    found = memory.iter_episodes()
    first = next(found)
    memory.add(Episode("shop", [Step("cart", "later")], "later"))
    assert [first, *found] == stored
