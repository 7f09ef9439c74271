"""Recalling moments answers alike on both stores, and sees what was committed, revoked and taken away."""

from __future__ import annotations

import pytest
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, Memory, Selection, Step


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
        answers.append(len(memory.shown_after()[1]))
        return answers


def test_what_is_recalled_follows_every_commit(tmp_path):
    empty, *grown = told(tmp_path / "memory.db")
    assert empty == ([], None, None)
    # Every cart is a state of its own; at the one list the best and the worst of the openings are recalled.
    assert [len(moments) for moments, *_ in grown[:5]] == [2, 4, 5, 6, 7]
    assert [highest for _, highest, _ in grown[:5]] == [0.0, 1.0, 2.0, 3.0, 4.0]
    credited, whole, revoked, aside, erased, places, shown = grown[5:]
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
    assert (len(places), shown) == (1, 1)


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
