"""Recalling moments answers alike on both stores, and sees what was committed, revoked and taken away."""

from __future__ import annotations

import pytest
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, Memory, Selection, Step
from seasoned.types.showing import Beside


def told(path):
    """Play the same few episodes, and return all that recalling says of them."""
    with Memory.open(path, gamma=0.5) as memory, Memory.open(path) as other:
        answers = []
        query = {"goal": "buy a lamp", "plan": "open then pay", "observation": "page cart", "reasoning": "it is full"}

        def ask(**options):
            found = memory.recall(query, **options)
            answers.append((sorted(map(repr, found.moments)), found.highest, memory.median_return()))

        ask()
        for number in range(5):
            with other.episode(f"buy a lamp {number % 2}", id=f"e{number}", subject=f"s{number}") as episode:
                episode.note("plan", {"text": "open then pay" if number % 2 else "wait"})
                episode.record("page list", "open", 0.0)
                episode.record(f"page cart {number}", "pay", float(number))
                episode.note("reasoning", {"text": f"it is {number}"}, step=1)
            ask()
        other.feedback("e4", -9.0, source="human")
        ask(with_credits=True)
        ask(whole=True, exclude_task="buy a lamp 1")
        [plan] = other.notes(kind="plan", episode_id="e3")
        other.revoke(plan.id)
        ask()
        id_ = other.quarantine(Selection(episode="e3"), "a look at it")
        ask()
        other.lift(id_)
        other.erase("s1")
        ask()
        answers.append(sorted(map(repr, memory.experiences([("e0", 1), ("e1", 0), ("e2", 9)]).values())))
        other.note("e0", "shown", {"examples": [["e2", 1]]}, step=0, id="n1")
        other.note("e3", "shown", {"examples": [["e2", 1], ["e0", 0]]}, id="n2")
        answers.append(memory.showings([("e2", 1), ("e4", 0), ("e1", 0)], alike=True))
        other.feedback("e3", 8.0, step=0, source="tests")
        answers.append(memory.showings(None, most=1))
        other.revoke("n2")
        answers.append(memory.showings([("e0", 0)]) + memory.showings([("e2", 1)], exclude_task="buy a lamp 0"))
        answers.append(memory.beside([("e0", 0), ("e0", 1)], exclude_task="buy a lamp 1"))
        answers.append(memory.alongside([("e0", 0)], most=2))
        answers.append(memory.credits(["e3", "e1"]))
        return answers


def test_what_is_recalled_follows_every_commit(tmp_path):
    empty, *grown = told(tmp_path / "memory.db")
    assert empty == ([], None, None)
    # Every cart is a state of its own; at the one list the best and the worst of the openings are recalled.
    assert [len(moments) for moments, *_ in grown[:5]] == [2, 4, 5, 6, 7]
    assert [highest for _, highest, _ in grown[:5]] == [0.0, 1.0, 2.0, 3.0, 4.0]
    credited, whole, revoked, aside, erased, places, *shown, beside, alongside, credits_ = grown[5:]
    assert sum("credits={'human': -9.0}" in text for text in credited[0]) == 2
    assert ["step=0" in text for text in whole[0]] == [True] * 3
    for moments, planned in ((credited[0], ("'e1'", "'e3'")), (revoked[0], ("'e1'",))):
        assert ["plan='open then pay'" in text for text in moments] == [
            any(e in text for e in planned) for text in moments
        ]
        assert any(planned[-1] in text for text in moments)
    assert not any("'e3'" in text for text in aside[0])
    assert any("'e3'" in text for text in erased[0])
    assert not any("'e1'" in text for text in erased[0])
    assert len(places) == 1
    # Of the lists, all with one action and one state, what is alike counts: two steps showed one, or half of one.
    alike, late, left = shown
    assert [(one.example, one.place, one.share, one.beside.n_others) for one in alike] == [
        (("e2", 1), ("e0", 0), 1.0, 3),
        (("e2", 1), ("e3", 0), 0.5, 3),
        (("e4", 0), ("e3", 0), 0.5, 3),
    ]
    assert late[0].beside.return_ == alike[1].beside.return_ + 8.0
    assert [one.place for one in late] == [("e3", 0), ("e3", 0)]
    assert left == []
    # Returns of the lists: e0 0, e2 1, e3 1.5 + 8, e4 2 - 4.5, discounted by a half.
    assert beside[("e0", 0)] == Beside(0.0, 2, pytest.approx((1.0 - 2.5) / 2))
    assert beside[("e0", 1)] == Beside(0.0, 0, None)
    assert alongside == {("e0", 0): [("e4", -2.5), ("e3", 9.5)]}
    assert credits_ == {"e3": {"tests": 8.0}}


@pytest.mark.slow
def test_postgresql_recalls_what_sqlite_does(tmp_path, fresh_url):  # noqa: F811
    assert told(fresh_url) == told(tmp_path / "memory.db")


def test_the_many_visits_to_a_state_do_not_hide_what_else_was_done_there():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("page", "rare but good", 5.0)], "rare"))
        memory.add_many(Episode("t", [Step("page", "usual", float(i % 2))]) for i in range(40))
        found = memory.recall({"observation": "page"}).moments
        tries = {moment.experience.action: (moment.tries, moment.mean_return) for moment in found}
        assert tries == {"rare but good": (1, 5.0), "usual": (40, 0.5)}


def test_a_task_that_is_left_out_takes_no_other_s_place():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("buy a lamp", [Step("elsewhere", "pay", 1.0)], "other"))
        memory.add_many(Episode("buy a red lamp", [Step("page", "pay", 1.0)]) for _ in range(30))
        [found] = memory.recall({"goal": "buy a red lamp"}, exclude_task="buy a red lamp", pool=4).moments
        assert found.place == ("other", 0)
