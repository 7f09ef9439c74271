"""Recall returns the same on both stores, and follows commits, revocations, quarantines and deletions."""

from __future__ import annotations

import math
import random
import re
from collections import Counter

import pytest
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, Memory, Selection, Step
from seasoned.core import jaccard
from seasoned.states import TranscriptEncoder
from seasoned.states.subwords import subword_terms
from seasoned.types import EvidenceQuery, RecallQuery
from seasoned.types.impression import PeerComparison


def results_of(path):
    """Add a few episodes, and return the results of all recall methods."""
    with Memory.open(path, gamma=0.5) as memory, Memory.open(path) as other:
        answers = []
        query = {"goal": "buy a lamp", "plan": "open then pay", "observation": "page cart", "reasoning": "it is full"}

        def ask(**options):
            result = memory.recall(RecallQuery(query, **options))
            answers.append((sorted(map(repr, result.moments)), result.highest, memory.median_return()))

        ask()
        for number in range(5):
            with other.episode(f"buy a lamp {number % 2}", id=f"e{number}", subject=f"s{number}") as episode:
                episode.note("plan", {"text": "open then pay" if number % 2 else "wait"})
                episode.record("page list", "open", 0.0)
                episode.record(f"page cart {number}", "pay", float(number))
                episode.note("reasoning", {"text": f"it is {number}"}, step=1)
            ask()
        other.feedback("e4", -9.0, source="human")
        ask(with_feedback_totals=True)
        ask(whole=True, exclude_task="buy a lamp 1")
        [plan] = other.notes(kind="plan", episode_id="e3")
        other.revoke(plan.id)
        ask()
        id_ = other.quarantine(Selection(episode="e3"), "a look at it")
        ask()
        other.release(id_)
        other.erase("s1")
        ask()
        answers.append(sorted(map(repr, memory.experiences([("e0", 1), ("e1", 0), ("e2", 9)]).values())))
        other.note("e0", "shown", {"examples": [["e2", 1]]}, step=0, id="n1")
        other.note("e3", "shown", {"examples": [["e2", 1], ["e0", 0]]}, id="n2")
        answers.append(memory.impressions([("e2", 1), ("e4", 0), ("e1", 0)], alike=True))
        other.feedback("e3", 8.0, step=0, source="tests")
        answers.append(memory.impressions(None, most=1))
        other.revoke("n2")
        answers.append(memory.impressions([("e0", 0)]) + memory.impressions([("e2", 1)], exclude_task="buy a lamp 0"))
        answers.append(memory.peer_comparisons([("e0", 0), ("e0", 1)], exclude_task="buy a lamp 1"))
        answers.append(memory.peer_returns([("e0", 0)], most=2))
        answers.append(memory.feedback_totals(["e3", "e1"]))
        return answers


def test_recall_follows_every_commit(tmp_path):
    empty, *grown = results_of(tmp_path / "memory.db")
    assert empty == ([], None, None)
    # Every cart is a state of its own; at the one list the best and the worst of the openings are recalled.
    assert [len(moments) for moments, *_ in grown[:5]] == [2, 4, 5, 6, 7]
    assert [highest for _, highest, _ in grown[:5]] == [0.0, 1.0, 2.0, 3.0, 4.0]
    credited, whole, revoked, excluded, erased, places, *shown, compared, peer_returns, totals_ = grown[5:]
    assert sum("feedback_totals={'human': -9.0}" in text for text in credited[0]) == 2
    assert ["step=0" in text for text in whole[0]] == [True] * 3
    for moments, planned in ((credited[0], ("'e1'", "'e3'")), (revoked[0], ("'e1'",))):
        assert ["plan='open then pay'" in text for text in moments] == [
            any(e in text for e in planned) for text in moments
        ]
        assert any(planned[-1] in text for text in moments)
    assert not any("'e3'" in text for text in excluded[0])
    assert any("'e3'" in text for text in erased[0])
    assert not any("'e1'" in text for text in erased[0])
    assert len(places) == 1
    # Of the lists, all with one action and one state, what is alike counts: two steps showed one, or half of one.
    alike, late, left = shown
    assert [(one.example, one.place, one.share, one.peers.n_others) for one in alike] == [
        (("e2", 1), ("e0", 0), 1.0, 3),
        (("e2", 1), ("e3", 0), 0.5, 3),
        (("e4", 0), ("e3", 0), 0.5, 3),
    ]
    assert late[0].peers.return_ == alike[1].peers.return_ + 8.0
    assert [one.place for one in late] == [("e3", 0), ("e3", 0)]
    assert left == []
    # Returns of the lists: e0 0, e2 1, e3 1.5 + 8, e4 2 - 4.5, discounted by a half.
    assert compared[("e0", 0)] == PeerComparison(0.0, 2, pytest.approx((1.0 - 2.5) / 2))
    assert compared[("e0", 1)] == PeerComparison(0.0, 0, None)
    assert peer_returns == {("e0", 0): [("e4", -2.5), ("e3", 9.5)]}
    assert totals_ == {"e3": {"tests": 8.0}}


@pytest.mark.slow
def test_postgresql_recalls_the_same_as_sqlite(tmp_path, fresh_url):  # noqa: F811
    assert results_of(fresh_url) == results_of(tmp_path / "memory.db")


def test_many_visits_of_one_action_do_not_hide_other_actions():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("t", [Step("page", "rare but good", 5.0)], "rare"))
        memory.add_many(Episode("t", [Step("page", "usual", float(i % 2))]) for i in range(40))
        moments = memory.recall(RecallQuery({"observation": "page"})).moments
        tries = {moment.experience.action: (moment.tries, moment.mean_return) for moment in moments}
        assert tries == {"rare but good": (1, 5.0), "usual": (40, 0.5)}


def test_excluded_task_takes_no_place_in_the_pool():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("buy a lamp", [Step("elsewhere", "pay", 1.0)], "other"))
        memory.add_many(Episode("buy a red lamp", [Step("page", "pay", 1.0)]) for _ in range(30))
        [moment] = memory.recall(RecallQuery({"goal": "buy a red lamp"}, exclude_task="buy a red lamp", pool=4)).moments
        assert moment.place == ("other", 0)


def test_excluding_the_task_of_most_notes_reads_none_of_its_notes():
    with Memory.open(":memory:") as memory:

        def say(task, name):
            memory.add(Episode(task, [Step("page", "pay", 1.0)], name))
            memory.note(name, "reasoning", {"text": f"it is {name}"}, step=0, id=f"said by {name}")

        def recalled_places(task):
            return sorted(
                m.place[0]
                for m in memory.recall(RecallQuery({"reasoning": "it is"}, exclude_task=task, pool=4)).moments
            )

        for number in range(30):
            say("most", f"most{number}")
        say("few", "few0")
        assert recalled_places("most") == ["few0"]
        say("few", "few1")
        say("most", "most30")
        say("other", "other0")
        assert recalled_places("most") == ["few0", "few1", "other0"]
        assert recalled_places("few") == ["most28", "most29", "most30", "other0"]
        with memory.session.store.trace() as statements:
            assert recalled_places("most") == ["few0", "few1", "other0"]
        assert any("said by few0" in sql for sql in statements)
        assert not any("said by most" in sql for sql in statements)


def texts_of(memory, key, *, exclude_task):
    """Return the texts of a key by definition: of every live step, the latest active text."""
    excluded = {"e7", "e11"}  # see below
    counting = [
        e for e in memory.episodes() if e.ending != "aborted" and e.id not in excluded and e.model != "poisoned"
    ]
    task_of = {e.id: e.task for e in counting if e.task != exclude_task}
    if key == "goal":
        return task_of
    return {note.episode_id: note.body["text"] for note in memory.notes(kind=key) if note.episode_id in task_of}


def by_rarity(left, right, goals):
    """The definition: the cosine of the terms of both, each by how rare it is among the distinct live goals."""
    terms = [Counter(term for word in set(text.split()) for term in subword_terms(word)) for text in (left, right)]
    held = Counter(term for goal in goals for word in set(goal.split()) for term in subword_terms(word))
    squared = {term: math.log1p((len(goals) + 1) / (held[term] + 1)) ** 2 for own in terms for term in own}
    product, *norms = (sum(a[t] * b[t] * squared[t] for t in a) for a, b in (terms, terms[:1] * 2, terms[1:] * 2))
    return product / math.sqrt(norms[0] * norms[1])


def test_goal_is_recalled_by_rare_words_and_parts_of_words():
    goals = ("please cancel the order of a lamp", "please track the order of a lamp", "please track the order of a bed")
    with Memory.open(":memory:") as memory:
        for goal in goals:
            memory.add(Episode(goal, [Step("page", "pay", 1.0)]))
        [moment] = memory.recall(RecallQuery({"goal": "my order: cancellation of a bed"}, pool=1)).moments
        assert moment.experience.task == goals[0]


def test_pool_has_the_most_similar_live_moments():
    """Many aborted, quarantined, revoked or excluded moments are nearer."""
    rng = random.Random(5)

    def text():
        return " ".join(rng.sample(["red", "lamp", "bed", "page", "blue", "sofa", "pay"], 4))

    with Memory.open(":memory:") as memory:
        for number in range(60):
            ending, model = rng.choice(["terminated", "aborted"]), rng.choice(["poisoned", "sound"])
            if number in (7, 11):
                ending, model = "terminated", "sound"
            memory.add(Episode(text(), [Step("page", "pay", 1.0)], f"e{number}", ending=ending, model=model))
            for kind, step in (("plan", None), ("reasoning", 0)):
                for _ in range(rng.randint(1, 3)):
                    memory.note(f"e{number}", kind, {"text": text()}, step=step, source=rng.choice(["agent", "bad"]))

        def check():
            for key in ("goal", "plan", "reasoning"):
                for task in (None, memory.get("e3").task):
                    query = text()
                    moments = memory.recall(RecallQuery({key: query}, pool=5, exclude_task=task)).moments
                    features = memory.encoder.features
                    live = texts_of(memory, key, exclude_task=None).values()
                    near = [
                        by_rarity(query, text_, set(live))
                        if key == "goal"
                        else jaccard(features(query), features(text_))
                        for text_ in texts_of(memory, key, exclude_task=task).values()
                    ]
                    found = sorted((m.similarities[key] for m in moments), reverse=True)
                    assert found == pytest.approx(sorted(near, reverse=True)[:5])

        held = [
            memory.quarantine(selection, "a look at it")
            for selection in (Selection(model="poisoned"), Selection(episode="e7"), Selection(episode="e11"))
        ]
        check()
        memory.quarantine(Selection(source="bad"), "a liar")
        for note in memory.notes(kind="plan")[::2]:
            memory.revoke(note.id)
        check()  # what fell since it was indexed
        memory.release(held[1])
        assert "e7" in {
            m.place[0] for m in memory.recall(RecallQuery({"goal": memory.get("e7").task}, pool=60)).moments
        }


def test_alternative_answers_do_not_crowd_out_episodes():
    with Memory.open(":memory:") as memory:
        memory.add(Episode("buy a red bed", [Step("page", "pay", 1.0)], "other"))
        memory.add(Episode("buy a red lamp", [Step("page", "pay", 1.0)], "played"))
        memory.add(Episode("buy a red sofa", [Step("page", "pay", 1.0)], "lost", ending="aborted"))
        for task, name in (("buy a red lamp", "a"), ("buy a red sofa", "b")):
            memory.add_many(
                Episode(task, [Step("page", f"say {n}", 1.0)], f"{name}{n:02}", arm="alternative") for n in range(20)
            )

        def places(pool):
            return sorted(m.place[0] for m in memory.recall(RecallQuery({"goal": "buy a red lamp"}, pool=pool)).moments)

        assert places(2) == ["a19", "played"]
        assert places(4) == ["a19", "b19", "other", "played"]
        assert places(6) == ["a17", "a18", "a19", "b19", "other", "played"]  # nothing else is left
        assert len(places(100)) == 42


def test_recall_looks_episodes_up_by_id_and_ordinal():
    with Memory.open(":memory:") as memory:
        for number in range(3):
            with memory.episode("buy a lamp", id=f"e{number}") as episode:
                episode.note("plan", {"text": "open then pay"})
                episode.note("reasoning", {"text": "it is full"}, step=0)
                episode.record("page cart", "pay", 1.0)
        places = [("e0", 0), ("e1", 0)]
        query = {"goal": "buy a lamp", "plan": "open then pay", "observation": "page", "reasoning": "it is full"}
        memory.recall(RecallQuery(query))
        store = memory.session.store
        with store.trace() as statements:
            memory.recall(RecallQuery(query, with_feedback_totals=True))
            memory.experiences(places)
            memory.impressions([("e2", 0)], alike=True)
            memory.peer_comparisons(places)
            memory.evidence(EvidenceQuery("page cart", k=3, unit="states", threshold=0.5, shown_steps=places))
        plans = {
            sql: [row[3] for row in store.execute(f"EXPLAIN QUERY PLAN {sql}")]
            for sql in statements
            if re.match("SELECT", sql)
        }
        every = re.compile(r"SCAN|episode USING PRIMARY KEY \(namespace_id=\?( AND ordinal>\?)?\)")
        assert len(plans) > 8
        assert not {sql for sql, plan in plans.items() if any(every.search(line) for line in plan)}


def test_tasks_without_word_features_are_compared_by_their_own_texts():
    with Memory.open(":memory:", encoder=TranscriptEncoder()) as memory:
        assert not memory.encoder.features("5512")
        memory.add_many([Episode(task, [Step("user: hello there", "wait", 1.0)]) for task in ("5512", "8803", "7746")])
        moments = memory.recall(RecallQuery({"goal": "5512"})).moments
        alike = {moment.experience.episode_id: moment.similarities["goal"] for moment in moments}
        task_of = {episode.id: episode.task for episode in memory.episodes()}
        assert {task_of[id_]: near for id_, near in alike.items()}["5512"] == 1.0
        assert all(near < 0.5 for id_, near in alike.items() if task_of[id_] != "5512")
