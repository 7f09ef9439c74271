"""Ctrl-C inside the commit keeps the episode, whole and once; a recorder records one episode."""

from __future__ import annotations

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import InputError
from seasoned.memory import EpisodeRecorder


class Interrupted:
    """An encoder in whose middle the user presses Ctrl-C, once."""

    identity = "test/interrupted"

    def __init__(self, kind):
        self.kind = kind

    def features(self, state):
        if self.kind and state == "second":
            kind, self.kind = self.kind, None
            raise kind
        return frozenset(state.split())


def play(recorder):
    with recorder as running:
        running.record("first", "go", 1.0)
        running.record("second", "go", 2.0)
        running.ending = "truncated"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("id_", [None, "e1"])
def test_interrupt_during_the_commit_does_not_lose_the_episode(kind, id_):
    with Memory.open(":memory:", encoder=Interrupted(kind)) as memory:
        recorder = memory.episode("t", id=id_)
        with pytest.raises(kind):
            play(recorder)
        [stored] = memory.episodes()
        assert (stored.id, stored.ending, [s.state for s in stored.steps]) == (
            recorder.id,
            "truncated",
            ["first", "second"],
        )
        assert id_ in (None, stored.id)
        assert len(memory.search("second", k=9)) == 2
        memory.verify()


def test_an_interrupt_after_the_commit_adds_nothing_twice():
    with Memory.open(":memory:") as memory:
        calls = []

        def add(episode, notes, is_new):
            memory.add(episode)
            calls.append(episode.id)
            if len(calls) == 1:
                raise KeyboardInterrupt
            return episode.id

        recorder = EpisodeRecorder(add, "t", {}, lambda note: note)
        with pytest.raises(KeyboardInterrupt):
            play(recorder)
        assert calls == [recorder.id] * 2
        assert [e.ending for e in memory.episodes()] == ["truncated"]


def test_a_failed_commit_is_not_repeated():
    calls = []

    def add(episode, notes, is_new):
        calls.append(episode)
        raise OSError("the disk is gone")

    recorder = EpisodeRecorder(add, "t", {}, lambda note: note)
    with pytest.raises(OSError, match="gone"):
        play(recorder)
    assert len(calls) == 1
    assert recorder.id == calls[0].id


def test_a_recorder_is_entered_once():
    with Memory.open(":memory:") as memory:
        recorder = memory.episode("t")
        play(recorder)
        with pytest.raises(InputError, match="one episode"), recorder:
            pass
        assert [len(e.steps) for e in memory.episodes()] == [2]
        running = memory.episode("t")
        with running:
            running.record("third", "go")
            with pytest.raises(InputError), running:
                pass
        assert memory.get(running.id) == Episode("t", [Step("third", "go")], id=running.id)
