"""The decider: what it decides, what it stores, and what it learns from outcomes."""

from __future__ import annotations

import base64
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seasoned import Decider, FailOpen, Holdout, JitRL, Label, Memory, Outcome, Prior
from seasoned.decisions import NamedOptions
from seasoned.errors import EpisodeConflictError, InputError, NotFoundError, ReadOnlyStoreError
from seasoned.llms import LabelReader, ScriptedLLM
from seasoned.llms.wire.decision_formats import parse_decision_request
from seasoned.types.episode_cost import EpisodeCost

TICKET = "ticket: the lamp is broken"
DESKS = {"sales": 0.7, "refunds": 0.2, "it": 0.1}


@pytest.fixture
def memory():
    with Memory.open(":memory:") as memory:
        yield memory


def taught(memory, right="refunds", n=4, **named):
    desk = Decider(memory, DESKS)
    for seed in range(n):
        desk.learn(desk.decide(TICKET, list(DESKS), seed=seed, **named), right=right)
    return desk


@given(st.permutations(list(DESKS)), st.integers(0, 3))
@settings(max_examples=25)
def test_order_of_options_makes_no_difference(options, seed):
    def decided(options):
        with Memory.open(":memory:") as memory:
            taught(memory, n=2)
            return Decider(memory, DESKS).decide(TICKET, options, seed=seed)

    first, other = decided(list(DESKS)), decided(options)
    assert (other.action, other.probs, other.propensity) == (first.action, first.probs, first.propensity)


def test_order_of_options_is_hidden_from_a_model_that_prefers_the_first_letter(memory):
    reader = LabelReader(ScriptedLLM(lambda request: {"A": -0.1, "B": -3.0, "C": -4.0}))
    with Decider(memory, reader) as desk:
        assert desk.decide(TICKET, ["sales", "it", "refunds"]).base_probs == (
            desk.decide(TICKET, ["refunds", "sales", "it"]).base_probs
        )


def test_the_model_reads_the_question_and_the_descriptions(memory):
    asked = []

    def answer(request):
        asked.append(request.messages[-1].content)
        return {"A": -0.1, "B": -3.0}

    with Decider(memory, ScriptedLLM(answer)) as desk:
        options = {"sales": "new orders", "it": None}
        decision = desk.decide(TICKET, options, question="desk", instructions="Whose ticket is it?")
    assert set(decision.probs) == {"it", "sales"}
    assert all(text in asked[-1] for text in ("Whose ticket is it?", "A) it", "B) sales: new orders", TICKET))


def test_decision_is_stored_with_prior_and_propensity_and_awaits_feedback(memory):
    decision = Decider(memory, DESKS).decide(TICKET, list(DESKS), subject="customer-7", seed=1)
    episode = memory.get(decision.id)
    [step] = episode.steps
    assert (episode.task, episode.subject, step.state, step.action) == (
        "decision",
        "customer-7",
        TICKET,
        decision.action,
    )
    assert step.propensity == decision.propensity == pytest.approx(DESKS[decision.action])
    assert {option: math.exp(logprob) for option, logprob in step.prior.items()} == pytest.approx(DESKS)
    assert [one.id for one in memory.awaiting()] == [decision.id]


def test_unrated_decisions_are_no_evidence(memory):
    desk = Decider(memory, DESKS)
    for seed in range(6):
        desk.decide(TICKET, list(DESKS), seed=seed)
    assert desk.decide(TICKET, list(DESKS)).mode == "base"
    memory.verify()


def test_right_label_is_evidence_about_the_other_options_too(memory):
    desk = taught(memory)
    decision = desk.decide(TICKET, list(DESKS))
    assert decision.mode == "memory"
    assert decision.probs["refunds"] > 0.9 > 0.1 > decision.probs["sales"]
    assert {step.action: step.reward for step in memory.steps()}["refunds"] == 1.0
    assert {step.reward for step in memory.steps() if step.action != "refunds"} <= {0.0}


@pytest.mark.parametrize(
    ("outcome", "reward"), [(0.25, 0.25), (True, 1.0), (False, -1.0), (Outcome(exit_code=1), -1.0)]
)
def test_outcomes_are_rewards_and_can_be_revoked(memory, outcome, reward):
    desk = Decider(memory, DESKS)
    decision = desk.decide(TICKET, list(DESKS))
    feedback_id = desk.learn(decision.id, outcome, source="tests")
    assert [(step.action, step.reward) for step in memory.steps()] == [(decision.action, reward)]
    memory.revoke(feedback_id)
    assert (memory.steps(), len(memory.awaiting())) == ([], 1)


def test_later_label_of_one_author_replaces_the_earlier_one(memory):
    desk = Decider(memory, DESKS)
    decision = desk.decide(TICKET, list(DESKS))
    others = [option for option in DESKS if option != decision.action]
    desk.learn(decision, right=others[0], author="ann")
    desk.learn(decision, right=others[1], author="ann")
    assert {step.action: step.reward for step in memory.steps()} == {decision.action: 0.0, others[1]: 1.0}


def test_an_embedded_file_is_stored_as_the_digest_that_the_service_stores(memory):
    image = base64.b64encode(bytes(range(256)) * 4).decode()
    state, read = {"mail": "broken lamp", "image": image}, []

    def model(text, options):
        read.append(text)
        return dict.fromkeys(options, 1 / len(options))

    decision = Decider(memory, model).decide(state, ["it", "sales"])
    question = {"type": "choice", "instructions": "?", "criteria": {"it": None, "sales": None}}
    request = parse_decision_request("systemone", {"state": state, "questions": {"desk": question}})
    assert memory.get(decision.id).steps[0].state == decision.state == request.state
    assert image in read[0] and image not in decision.state


def test_questions_of_other_names_share_no_evidence(memory):
    urgent = Decider(memory, {"yes": 0.5, "no": 0.5})
    for seed in range(5):
        decision = urgent.decide(TICKET, ["yes", "no"], question="urgent", seed=seed)
        urgent.learn(decision, right="yes")
    assert urgent.decide(TICKET, ["yes", "no"], question="urgent").probs["yes"] > 0.9
    other = urgent.decide(TICKET, ["yes", "no"], question="refund")
    assert (other.mode, other.probs) == ("base", {"no": 0.5, "yes": 0.5})
    assert memory.get(other.id).steps[0].action == f"refund: {other.action}"


def test_task_is_the_question_and_a_hash_of_its_instructions(memory):
    desk = Decider(memory)
    tasks = [
        memory.get(desk.decide(TICKET, ["a", "b"], **named).id).task
        for named in (
            {"question": "desk"},
            {"question": "desk", "instructions": "Whose?"},
            {"question": "desk", "instructions": "Whose is it?"},
            {"question": "desk", "instructions": "Whose?", "task": "routing"},
        )
    ]
    assert tasks[0] == "desk" and tasks[3] == "routing"
    assert tasks[1].startswith("desk#") and tasks[2].startswith("desk#") and tasks[1] != tasks[2]


def test_holdout_is_honoured_and_its_lift_is_the_accuracy(memory):
    desk = Decider(memory, DESKS, policy=Holdout(JitRL(memory), memory))
    modes = {}
    for seed in range(24):
        decision = desk.decide(TICKET, list(DESKS), seed=seed)
        modes.setdefault(memory.get(decision.id).arm, set()).add(decision.mode)
        desk.learn(decision, right="refunds")
        if decision.mode == "holdout":
            assert decision.probs == pytest.approx(DESKS)
    assert modes["control"] == {"holdout"} and "memory" in modes["treated"]
    lift = memory.lift("decision")
    assert lift.treated.mean > lift.control.mean and lift.n_treated + lift.n_control == 24
    assert lift.warnings == ()
    memory.verify()


def test_the_wait_for_other_decisions_is_a_cost_of_memory_and_none_of_the_control_group(memory):
    desk = Decider(memory, DESKS, policy=Holdout(JitRL(memory), memory))
    asked = NamedOptions.of("a mail", list(DESKS), name="desk")
    prior = Prior({option: math.log(p) for option, p in DESKS.items()}, "test")
    for number in range(12):
        desk.decide_by(asked, prior, episode=f"e{number}", waited_s=50.0, spent=EpisodeCost(seconds=1.0))
    seconds = {note.episode_id: note.body["seconds"] for note in memory.notes(kind="episode.cost")}
    for arm, (low, high) in {"treated": (51.0, 60.0), "control": (1.0, 10.0)}.items():
        of_arm = [seconds[one.id] for one in memory.episodes() if one.arm == arm]
        assert of_arm and all(low <= one <= high for one in of_arm)


def test_the_outcome_of_a_decision_that_several_people_label_is_their_mean(memory):
    desk = Decider(memory, DESKS, policy=Holdout(JitRL(memory), memory), choose="argmax")
    decision = desk.decide(TICKET, list(DESKS), question="desk")
    for author, right in {"ann": "sales", "bob": "sales", "eve": "sales", "joe": "it"}.items():
        desk.learn(decision, right=right, author=author)
    desk.learn(decision, 0.5, source="rating")
    found = memory.lift("desk")
    arm = found.treated if found.n_treated else found.control
    assert (arm.mean, found.n_out_of_bounds) == (0.75, 0)


def test_argmax_takes_the_most_probable_option_or_the_default_of_another_party(memory):
    desk = Decider(memory, DESKS, choose="argmax")
    decision = desk.decide(TICKET, list(DESKS))
    assert (decision.action, decision.propensity) == ("sales", 1.0)
    asked = NamedOptions.of(TICKET, ["b", "a", "c"])
    prior = Prior({"a": math.log(0.4), "b": math.log(0.4), "c": math.log(0.2)})
    executed = {default: desk.decide_by(asked, prior, default=default) for default in (None, "b", "c")}
    assert {default: (one.action, round(one.propensity, 6)) for default, one in executed.items()} == {
        None: ("a", 1.0),
        "b": ("b", 1.0),
        "c": ("c", 0.2),
    }
    taught(memory, n=5)
    assert (
        desk.decide_by(
            NamedOptions.of(TICKET, list(DESKS)), Prior({k: math.log(p) for k, p in DESKS.items()}), default="it"
        ).action
        == "refunds"
    )


def test_shadow_of_argmax_is_the_most_probable_option_with_memory(memory):
    taught(memory, right="it", n=2)
    desk = Decider(memory, DESKS, policy=Holdout(JitRL(memory), memory), choose="argmax")
    shadows = [shadow for seed in range(40) if (shadow := desk.decide(TICKET, list(DESKS), seed=seed).shadow)]
    assert shadows
    assert all(shadow.action == max(dict(shadow.probs), key=dict(shadow.probs).get) for shadow in shadows)


def test_bad_input_is_refused_before_anything_is_stored(memory):
    desk = Decider(memory, DESKS)
    wrong = [
        lambda: desk.decide("", list(DESKS)),
        lambda: desk.decide({}, list(DESKS)),
        lambda: desk.decide({"x": math.nan}, list(DESKS)),
        lambda: desk.decide(TICKET, []),
        lambda: desk.decide(TICKET, ["a", "a"]),
        lambda: desk.decide(TICKET, ["a", " "]),
        lambda: desk.decide(TICKET, "sales"),
        lambda: desk.decide(TICKET, ["sales", "refunds"]),  # the model knows another option
        lambda: Decider(memory, {"a": math.nan, "b": 1.0}).decide(TICKET, ["a", "b"]),
        lambda: Decider(memory, {"a": 0.0, "b": 0.0}).decide(TICKET, ["a", "b"]),
        lambda: Decider(memory, {"a": 2.0, "b": -1.0}).decide(TICKET, ["a", "b"]),
        lambda: Decider(memory, lambda state, options: None).decide(TICKET, ["a", "b"]),
        lambda: Decider(memory, 7),
        lambda: Decider("agent.db"),
    ]
    for call in wrong:
        with pytest.raises(InputError):
            call()
    assert len(memory) == 0


def test_wrong_outcomes_are_refused(memory):
    desk = Decider(memory, DESKS)
    decision = desk.decide(TICKET, list(DESKS), episode="ticket-1")
    for outcome in (
        {},
        {"outcome": 1.0, "right": "it"},
        {"right": "refund"},
        {"outcome": math.nan},
        {"outcome": "good"},
    ):
        with pytest.raises(InputError):
            desk.learn(decision, **outcome)
    with pytest.raises(NotFoundError):
        desk.learn("none", 1.0)
    with pytest.raises(NotFoundError):
        desk.learn("none", right="it")
    with pytest.raises(EpisodeConflictError):
        Decider(memory).decide(TICKET, ["of others", "other"], episode="ticket-1")
    assert len(memory.awaiting()) == 1


def test_store_that_fails_raises_unless_the_policy_goes_without_it(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        taught(memory)
    with Memory.open(path, read_only=True) as memory:
        with pytest.raises(ReadOnlyStoreError):
            Decider(memory, DESKS).decide(TICKET, list(DESKS))
        decision = Decider(memory, DESKS, policy=FailOpen(JitRL(memory), timeout_s=20.0)).decide(TICKET, list(DESKS))
        assert (decision.id, decision.mode) == (None, "memory") and "not stored" in decision.reason
        with pytest.raises(InputError, match="without an id"):
            Decider(memory).learn(decision, 1.0)


def test_ten_thousand_options_are_decided_and_learned_from(memory):
    options = [f"intent {number}" for number in range(10_000)]
    desk = Decider(memory)
    desk.learn(desk.decide(TICKET, options), right="intent 77")
    decision = desk.decide(TICKET, options)
    assert max(decision.probs, key=decision.probs.get) == "intent 77"


def test_options_that_differ_in_case_alone_are_kept_apart(memory):
    desk = Decider(memory)
    for seed in range(6):
        desk.learn(desk.decide(TICKET, ["us", "US", "eu"], question="region", seed=seed), right="US")
    decision = desk.decide(TICKET, ["us", "US", "eu"], question="region")
    assert decision.probs["US"] > 0.5 > decision.probs["us"]


def test_a_refused_label_lists_the_options_as_they_were_named(memory):
    desk = Decider(memory)
    decision = desk.decide(TICKET, ["Sales", "sales", "room #0123abcd"], question="Desk: A")
    with pytest.raises(InputError, match=r"Known are: Sales, room #0123abcd, sales\.$"):
        desk.learn(decision, right="refunds")


def test_label_rewards():
    assert Label("Refunds").rewards(" refunds ").executed == 1.0
    assert Label("refunds").rewards("sales") == (0.0, (("refunds", 1.0),))


def test_temperature_is_fitted_to_what_the_model_stated(memory):
    desk = Decider(memory, {"sales": 0.98, "refunds": 0.01, "it": 0.01}, temperature=True)
    for number in range(40):
        decision = desk.decide(f"mail{number}", list(DESKS), seed=number)
        desk.learn(decision, right=("sales", "refunds")[number % 2])
    decision = desk.decide("unlike", list(DESKS), seed=0)
    assert decision.temperature > 1.5
    assert decision.base_probs["sales"] < 0.9
    assert math.exp(decision.prior["sales"]) == pytest.approx(0.98)
    assert math.exp(max(memory.get(decision.id).steps[0].prior.values())) == pytest.approx(0.98)
    assert Decider(memory, DESKS).decide("unlike", list(DESKS)).temperature == 1.0


@pytest.mark.parametrize("wrap", [lambda own, memory: own, lambda own, memory: FailOpen(own, timeout_s=5.0)])
@pytest.mark.parametrize("whole_task", [True, False])
def test_a_paused_question_is_decided_by_the_model_alone_whatever_the_policy(memory, wrap, whole_task):
    asked = {"question": "desk", "instructions": "Whose ticket is it?"}
    taught(memory, **asked)
    desk = Decider(memory, DESKS, policy=wrap(JitRL(memory), memory))
    before = desk.decide(TICKET, list(DESKS), **asked)
    assert before.mode == "memory"
    memory.pause(memory.get(before.id).task if whole_task else "desk", "new rules", author="ann")
    paused = desk.decide(TICKET, list(DESKS), **asked)
    assert paused.mode == "base" and "paused" in paused.reason and "'ann'" in paused.reason
    assert paused.probs == pytest.approx(DESKS)
    assert desk.decide(TICKET, list(DESKS), question="other").reason != paused.reason


@pytest.mark.parametrize(
    ("taught_as", "asked_as"),
    [(("Urgent", "yes", "no"), ("urgent", "yes", "no")), (("desk", "eu: it", "eu: hr"), ("desk: eu", "it", "hr"))],
)
def test_questions_whose_names_differ_share_no_evidence_and_a_label_names_an_option(memory, taught_as, asked_as):
    name, *options = taught_as
    desk = Decider(memory)
    for seed in range(4):
        decision = desk.decide(TICKET, options, question=name, seed=seed)
        desk.learn(decision, right=options[0])
    assert desk.decide(TICKET, options, question=name).probs[options[0]] > 0.5
    other, *its_options = asked_as
    assert set(desk.decide(TICKET, its_options, question=other).probs.values()) == {0.5}
    with pytest.raises(InputError, match="is an option of the decision"):
        desk.learn(decision, right=options[0].rpartition("u: ")[2] if ":" in options[0] else "Yes")
    named = desk.decide(TICKET, options, question=name, task="a task of mine")
    desk.learn(named, right=options[0])
