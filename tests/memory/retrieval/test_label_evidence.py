"""A right label in the evidence: one observation of each option of its decision, whatever was executed."""

from __future__ import annotations

import uuid
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_server import postgres  # noqa: F401

from seasoned import Choice, Episode, EvidenceQuery, JitRL, Label, Memory, Selection, Step, Thumbs
from seasoned.errors import InputError
from seasoned.policies import ShuffledReturns

STATES = ("the lamp is broken", "the lamp is late")
EARLIER = "a customer asks about the lamp"
OPTIONS = ("it", "refunds", "sales", "spare parts")
QUERY = {"k": 50, "unit": "states", "threshold": 0.0, "similarity": "rarity", "labels": True}


def decided(memory, id_, state, options, executed, task="desk", before=()):
    prior = {option: -float(np.log(len(options))) for option in options}
    step = Step(state, executed, 0.0, prior, 1.0)
    return memory.add(Episode(task, [*before, step], id_, awaits_feedback=True))


def observed(memory, state=STATES[0], **changes):
    """Return (number, sum, sum of squares) of the observations by (state, option), and their weight in the end."""
    evidence = memory.evidence(EvidenceQuery(state, **{**QUERY, **changes}))
    sums, texts = evidence.by_state, {}
    for neighbor in evidence.neighbors:
        texts.setdefault(neighbor.similarity, neighbor.experience.state)
    state_of = [texts[similarity] for similarity in evidence.similarities]
    found = {}
    for place, (number, row) in enumerate(zip(sums.states.tolist(), sums.actions.tolist(), strict=True)):
        cell = state_of[number], evidence.actions[row]
        assert cell not in found
        found[cell] = sums.counts[place], sums.totals[place], sums.squares[place], sums.weights[place]
    by_action = Counter()
    for (_, option), (n, *_) in found.items():
        by_action[option] += n
    assert by_action == dict(zip(evidence.actions, evidence.counts.tolist(), strict=True))
    return found, evidence


def by_definition(memory):
    """Return the same from what is stored: each live label tells the reward of each option of its decision.

    Other feedback adds to the reward of the executed option, once; but a label replaces rewards and thumbs where the
    decision is the whole episode.
    """
    stored = {step.episode_id for step in memory.steps()}
    sources = {one.selection.source for one in memory.quarantines() if one.lifted_at is None}
    found, totals, weights = Counter(), Counter(), Counter()
    live = [event for event in memory.events() if event.revoked_at is None and event.source not in sources]
    weight_of = {event.id.partition(".")[0]: event.weight for event in live}
    for episode in memory.episodes():
        *before, step = episode.steps
        given = [event for event in live if event.episode_id == episode.id]
        if episode.id not in stored or (given and step.prior is None and {event.kind for event in given} == {"label"}):
            continue  # a label's own step of the right option
        of_labels = [
            one
            for one in memory.feedback_records(episode.id)
            if one.feedback.kind == "label" and one.revoked_at is None and weight_of.get(one.id)
        ]
        for label in of_labels:
            for option in step.prior:
                found[step.state, option] += 1
                weights[step.state, option] += weight_of[label.id]
                totals[step.state, option] += weight_of[label.id] * (option == label.feedback.right)
        if not of_labels:
            found[step.state, step.action] += 1
            weights[step.state, step.action] += 1
        totals[step.state, step.action] += sum(
            event.weight * event.reward
            for event in given
            if event.kind == "choice" or (event.kind != "label" and (before or not of_labels))
        )
    return {cell: (n, totals[cell], weights[cell]) for cell, n in found.items()}


@st.composite
def acts(draw):
    kind = draw(
        st.sampled_from(
            [
                "decide",
                "decide",
                "label",
                "label",
                "label",
                "thumb",
                "reward",
                "choice",
                "revoke",
                "quarantine",
                "release",
                "reweight",
            ]
        )
    )
    return kind, draw(st.integers(0, 9)), draw(st.integers(0, 9)), draw(st.sampled_from(["ann", "bob"]))


@given(st.lists(acts(), max_size=14))
@settings(max_examples=40, deadline=None)
def test_a_label_is_one_observation_of_each_option_and_none_once_it_is_revoked(history):
    with Memory.open(":memory:") as memory:
        made, given_ids = [], []
        for kind, first, second, author in [("decide", 0, 0, "ann"), ("label", 0, 1, "ann"), *history]:
            if kind == "decide":
                options = OPTIONS[: 2 + second % 3]
                before = [Step(EARLIER, "ask", 0.0)] if second > 4 else []
                id_ = decided(memory, f"d{len(made)}", STATES[first % 2], options, options[first % 2], before=before)
                made.append((id_, options))
            elif kind in ("label", "thumb", "reward", "choice"):
                id_, options = made[first % len(made)]
                value = {
                    "label": Label(options[second % len(options)]),
                    "thumb": Thumbs(bool(second % 2)),
                    "reward": second / 4 - 1.0,
                    "choice": Choice(options, second % len(options)),
                }[kind]
                given_ids.append(memory.feedback(id_, value, author=author, source=f"desk {author}"))
            elif kind == "revoke":
                memory.revoke(given_ids[first % len(given_ids)])
            elif kind == "reweight":
                if f"desk {author}" in memory.sources():
                    memory.reweight_source(f"desk {author}", [0.0, 0.5, 1.0, 2.0][second % 4])
            elif kind == "quarantine":
                memory.quarantine(Selection(source=f"desk {author}"), "a test")
            else:
                for one in memory.quarantines()[:1]:
                    memory.release(one.id)
            found, evidence = observed(memory)
            expected = by_definition(memory)
            assert {cell: (row[0], *row[1::2]) for cell, row in found.items() if cell[0] != EARLIER} == {
                cell: pytest.approx(row) for cell, row in expected.items()
            }
            assert evidence.n_steps == len(memory.steps())
        memory.verify()
        with Memory.open(":memory:") as fresh:
            fresh.import_lines(memory.export())
            assert observed(fresh)[0] == {cell: pytest.approx(row) for cell, row in found.items()}


@pytest.mark.parametrize(("rewards", "total"), [([-3.0], -2.0), ([Choice(OPTIONS, 1)], 2 / 3)])
def test_a_reward_beside_several_labels_counts_once_and_at_once(place, rewards, total):
    with Memory.open(place, namespace=f"n{uuid.uuid4().hex}") as memory:
        decided(memory, "d", STATES[0], OPTIONS, "it", before=[Step(EARLIER, "ask", 0.0)])
        for author, right in (("ann", "it"), ("bob", "sales")):
            memory.feedback("d", Label(right), author=author)
        labels_alone = observed(memory)[0]
        assert labels_alone[STATES[0], "it"] == pytest.approx((2.0, 1.0, 1.0, 2.0))
        given = [memory.feedback("d", reward) for reward in rewards]
        assert observed(memory)[0][STATES[0], "it"][1] == pytest.approx(total)
        with Memory.open(":memory:") as fresh:
            fresh.import_lines(memory.export())
            assert observed(fresh)[0] == observed(memory)[0]
        memory.revoke(given[0])
        assert observed(memory)[0] == labels_alone


def test_a_choice_beside_labels_is_a_comparison_and_no_reward():
    with Memory.open(":memory:") as memory:
        decided(memory, "d", STATES[0], OPTIONS, "it")
        for author in ("ann", "bob"):
            memory.feedback("d", Label("it"), author=author)
        memory.feedback("d", Choice(OPTIONS, 1))
        assert observed(memory, compare_choices=True)[0][STATES[0], "it"] == (2.0, 2.0, 2.0, 2.0)


@pytest.mark.parametrize("executed", ["refunds", "it"])
def test_a_label_is_the_same_in_a_file_and_on_a_server(place, executed):
    with Memory.open(place, namespace=f"n{uuid.uuid4().hex}") as memory:
        decided(memory, "d", STATES[0], OPTIONS, executed)
        label = memory.feedback("d", Label("refunds"))
        right = {(STATES[0], option): (1.0, float(option == "refunds")) for option in OPTIONS}
        assert {cell: row[:2] for cell, row in observed(memory)[0].items()} == right
        assert memory.evidence(EvidenceQuery(STATES[0], **QUERY)).n_steps == len(memory) == 1 + (executed != "refunds")
        assert {cell for cell, _ in observed(memory, labels=False)[0].items()} == {
            (STATES[0], option) for option in {"refunds", executed}
        }
        memory.revoke(label)
        assert not memory.evidence(EvidenceQuery(STATES[0], **QUERY)).counts.any()
        memory.verify()


def test_an_excluded_task_and_a_decay_apply_to_labels_too():
    with Memory.open(":memory:") as memory:
        for number, task in enumerate(["desk", "desk", "shop"]):
            decided(memory, f"d{number}", STATES[0], OPTIONS, "refunds", task)
            memory.feedback(f"d{number}", Label("refunds"))
        counts = dict(zip(*[(e := observed(memory, exclude_task="desk")[1]).actions, e.counts], strict=True))
        assert counts == dict.fromkeys(OPTIONS, 1.0)
        faded = memory.evidence(EvidenceQuery(STATES[0], **QUERY, decay=0.5))
        assert faded.weights.tolist() == [1.75] * 4
        assert faded.counts.tolist() == [3.0] * 4
        assert faded.n_steps == 3


@pytest.mark.parametrize(("step", "known"), [(0, {"it", "refunds"}), (1, set(OPTIONS))])
def test_a_label_before_the_last_step_tells_nothing_of_what_other_options_return(step, known):
    with Memory.open(":memory:") as memory:
        prior = dict.fromkeys(OPTIONS, -1.4)
        memory.add(Episode("desk", [Step(state, "it", 0.0, prior) for state in STATES], "d", awaits_feedback=True))
        memory.feedback("d", Label("refunds"), step=step)
        assert set(memory.evidence(EvidenceQuery(STATES[step], **QUERY)).actions) == known


def test_labels_need_plain_sums_by_state():
    for changes in ({"propensity_floor": 0.1}, {"unit": "steps", "similarity": "jaccard"}):
        with pytest.raises(InputError, match="labels = True"):
            EvidenceQuery(STATES[0], **{**QUERY, **changes})


def test_a_label_lowers_options_that_were_neither_right_nor_taken_and_a_placebo_does_not_know_them():
    with Memory.open(":memory:") as memory:
        for number in range(4):
            decided(memory, f"d{number}", STATES[0], OPTIONS, "it")
            memory.feedback(f"d{number}", Label("refunds"))
        prior = {"it": np.log(0.4), **dict.fromkeys(OPTIONS[1:], np.log(0.2))}
        decision = JitRL(memory).decide(STATES[0], prior)
        assert decision.probs["refunds"] > 0.9
        assert decision.probs["sales"] < 0.05
        assert dict(decision.counts) == dict.fromkeys(OPTIONS, 4)
        assert decision.n_steps == 8
        placebo = JitRL(ShuffledReturns(memory, 0)).decide(STATES[0], prior)
        assert placebo.counts["sales"] == 0


def test_an_option_that_becomes_right_is_found_as_soon_with_labels_as_before():
    """Labels on an option before a change fade with their decisions."""
    with Memory.open(":memory:") as memory:
        for number in range(40):
            right = "refunds" if number < 30 else "sales"
            decided(memory, f"d{number}", STATES[0], OPTIONS, "refunds")
            memory.feedback(f"d{number}", Label(right))
        decision = JitRL(memory).decide(STATES[0], dict.fromkeys(OPTIONS, np.log(0.25)))
        assert max(decision.probs, key=decision.probs.get) == "sales"


@pytest.mark.parametrize("end", ["revoke", "quarantine"])
def test_a_label_that_no_longer_counts_is_gone_where_other_feedback_keeps_the_step(end):
    with Memory.open(":memory:") as memory:
        decided(memory, "d", STATES[0], OPTIONS, "refunds")
        memory.feedback("d", Thumbs(True), source="tests")
        label = memory.feedback("d", Label("refunds"), source="human")
        assert set(observed(memory)[1].actions) == set(OPTIONS)
        if end == "revoke":
            memory.revoke(label)
        else:
            memory.quarantine(Selection(source="human"), "a test")
        assert set(observed(memory)[1].actions) == {"refunds"}


def test_a_label_of_weight_0_is_no_observation_of_the_right_option_either():
    with Memory.open(":memory:") as memory, Memory.open(":memory:") as copy:
        decided(memory, "d", STATES[0], OPTIONS, "it")
        memory.feedback("d", Label("refunds"), source="human")
        before = observed(memory)[0]
        memory.reweight_source("human", 0.0)
        assert observed(memory)[0] == {}
        memory.verify()
        copy.import_lines(memory.export())
        assert observed(copy)[0] == {}
        copy.verify()
        memory.reweight_source("human", 1.0)
        assert observed(memory)[0] == before
        memory.verify()


@pytest.mark.parametrize("executed", ["it", "sales", "refunds"])
def test_labels_of_several_people_are_votes(place, executed):
    """Nine people name one option and one names another: the means are 0.9, 0.1 and 0, whichever was executed."""
    with Memory.open(place, namespace=f"n{uuid.uuid4().hex}") as memory:
        decided(memory, "d", STATES[0], OPTIONS, executed)
        for number in range(10):
            memory.feedback("d", Label("refunds" if number == 4 else "sales"), author=f"person {number}")
            found, evidence = observed(memory)  # what was read before grows with each label
        expected = dict.fromkeys(OPTIONS, 0.0) | {"sales": 9.0, "refunds": 1.0}
        assert found == {(STATES[0], option): pytest.approx((10.0, n, n, 10.0)) for option, n in expected.items()}
        assert evidence.n_steps == len(memory)
        assert memory.get("d").steps[0].reward == 0.0
        memory.verify()
        with Memory.open(":memory:") as copy:
            copy.import_lines(memory.export())
            assert observed(copy)[0] == found
        decision = JitRL(memory).decide(STATES[0], dict.fromkeys(OPTIONS, np.log(0.25)))
        assert decision.advantages["sales"] > 0.0 > max(decision.advantages[one] for one in ("it", "spare parts"))


def test_a_label_weighs_as_much_as_its_source():
    with Memory.open(":memory:") as memory:
        decided(memory, "d", STATES[0], OPTIONS, "it")
        memory.feedback("d", Label("sales"), source="novices", weight=0.25)
        memory.feedback("d", Label("refunds"), source="experts", weight=0.75)
        evidence = memory.evidence(EvidenceQuery(STATES[0], **QUERY))
        means = dict(zip(evidence.actions, (evidence.totals / evidence.weights).tolist(), strict=True))
        assert means == pytest.approx({"it": 0.0, "sales": 0.25, "refunds": 0.75, "spare parts": 0.0})
        assert evidence.weights.tolist() == pytest.approx([1.0] * 4)
        assert evidence.counts.tolist() == [2.0] * 4
        memory.reweight_source("experts", 0.0)
        assert dict(
            zip(*[(e := memory.evidence(EvidenceQuery(STATES[0], **QUERY))).actions, e.totals / e.weights], strict=True)
        ) == {"it": 0.0, "sales": 1.0, "refunds": 0.0, "spare parts": 0.0}


def test_a_label_replaces_a_reward_and_a_thumb_beside_it():
    with Memory.open(":memory:") as memory:
        decided(memory, "d", STATES[0], OPTIONS, "it")
        memory.feedback("d", 0.7, source="rating")
        memory.feedback("d", Thumbs(True), source="page")
        assert memory.steps()[0].reward == pytest.approx(1.7)
        label = memory.feedback("d", Label("it"))
        assert [step.reward for step in memory.steps()] == [1.0]
        assert observed(memory)[0] == {
            (STATES[0], one): (1.0, float(one == "it"), float(one == "it"), 1.0) for one in OPTIONS
        }
        memory.revoke(label)
        assert memory.steps()[0].reward == pytest.approx(1.7)
        memory.verify()


def test_what_labels_tell_of_the_latest_steps_is_what_they_add_to_the_sums():
    """So the labels of a decision fade with it where the state has changed, however many people gave them."""
    with Memory.open(":memory:") as memory:
        for number in range(5):
            decided(memory, f"d{number}", STATES[0], OPTIONS, "it" if number % 2 else "sales")
            for author, right in {"ann": "refunds", "bob": "sales", "eve": "refunds"}.items():
                memory.feedback(
                    f"d{number}", Label(right), author=author, source=author, weight=0.5 + (author == "eve")
                )
        evidence = memory.evidence(EvidenceQuery(STATES[0], **QUERY))
        sums, latest, n = evidence.by_state, evidence.latest, len(evidence.actions)
        labels = latest.labels
        assert np.bincount(labels.actions, labels.weights, n) == pytest.approx(sums.labelled[np.argsort(sums.actions)])
        for power, told in ((1, labels.totals), (2, labels.squares)):
            of_all = (sums.totals, sums.squares)[power - 1][np.argsort(sums.actions)]
            of_steps = np.bincount(latest.actions, latest.returns**power, n)
            assert np.bincount(labels.actions, told, n) == pytest.approx(of_all - of_steps)
            assert told.any()
