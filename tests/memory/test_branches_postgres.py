"""A fork on a server is a namespace beside the live one, and promoting it exchanges two names in one transaction."""

from __future__ import annotations

import pytest
from postgres_server import fresh_url, postgres, server  # noqa: F401

from seasoned import Episode, Memory, Selection, Step
from seasoned.errors import InputError, StoreError
from seasoned.lab.selection import evaluate, fork, promote, roll_back

pytestmark = pytest.mark.slow


def episode(name, reward=1.0):
    return Episode("shop", [Step("cart", "pay", reward)], id=name)


def ids(url, namespace="shop"):
    with Memory.open(url, namespace=namespace, create=False) as memory:
        memory.verify()
        return [one.id for one in memory.episodes()]


def mean_return(memory):
    near = memory.search("cart", k=10)
    return [sum(one.experience.return_ for one in near) / len(near)] * 4


@pytest.fixture
def forked(fresh_url):  # noqa: F811
    with Memory.open(fresh_url, namespace="shop") as memory:
        memory.add_many([episode("good"), episode("bad", -1.0)])
    made = fork(fresh_url, namespace="shop")
    with Memory.open(fresh_url, namespace=made.candidate_namespace) as memory:
        memory.quarantine(Selection(episode="bad"), "taught nothing")
    return made


def test_the_names_are_exchanged_and_what_was_learned_is_carried(forked, tmp_path):
    url, journal = forked.live, tmp_path / "promotions.jsonl"
    open_before = Memory.open(url, namespace="shop")
    open_before.add(episode("late", 0.5))
    done = promote(forked, evaluate(forked, mean_return), journal=journal)
    assert done.carried == 1
    assert ids(url) == ["good", "bad", "late"]
    with Memory.open(url, namespace="shop") as memory:
        assert {one.experience.episode_id for one in memory.search("cart")} == {"good", "late"}
    open_before.add(episode("written by one who had it open"))
    open_before.close()
    assert ids(url, done.retired)[-1] == "written by one who had it open"
    back = roll_back(url, namespace="shop", journal=journal)
    assert ids(url)[-1] == "written by one who had it open"
    with Memory.open(url, namespace="shop") as memory:
        assert len(memory.search("cart")) == 4
    assert set(Memory.namespaces(url)) == {"shop", back.retired}


def test_bad_input_on_a_server(forked, tmp_path):
    with pytest.raises(InputError, match="journal"):
        promote(forked, None, force="a test")
    with Memory.open(forked.live, namespace="shop") as memory:
        memory.revoke(memory.feedback("good", 1.0))
        memory.quarantine(Selection(episode="good"), "x")
    promote(forked, None, force="a test", journal=tmp_path / "j")  # quarantines and revoked feedback are carried
    with Memory.open(forked.live, namespace="shop") as memory:
        assert memory.search("cart") == []
        memory.lift(memory.quarantines()[-1].id)
    with pytest.raises(StoreError, match="nor as it found it"):
        roll_back(forked.live, namespace="shop", journal=tmp_path / "j")
