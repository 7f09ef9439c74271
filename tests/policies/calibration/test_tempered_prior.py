"""A policy over a tempered prior: what it learns from, what it records, and that it follows the memory."""

import dataclasses
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, JitRL, Memory, ModelAlone, Step
from seasoned.cli.main import cli
from seasoned.memory import Selection
from seasoned.policies import PriorTemperatures, TemperedPrior
from seasoned.types import Label, Prior

SURE = {"sales": math.log(0.95), "refunds": math.log(0.03), "legal": math.log(0.02)}


@pytest.fixture
def memory():
    with Memory.open(":memory:") as memory:
        yield memory


def store(memory, n, *, first=0, task="desk", **fields):
    """Store decisions for `sales` at 95 %, half of which are right."""
    ids = [f"{task}{number}" for number in range(first, first + n)]
    memory.add_many(
        Episode(task, [Step(f"mail {id_}", "sales", number % 2, SURE, 0.95)], id_, **fields)
        for number, id_ in enumerate(ids)
    )
    return ids


def test_without_outcomes_the_decision_is_that_of_the_wrapped_policy(memory):
    plain = JitRL(memory).decide("mail", SURE, task="desk", seed=3)
    found = TemperedPrior(JitRL(memory), memory).decide("mail", SURE, task="desk", seed=3)
    assert found == dataclasses.replace(plain, policy=found.policy)
    assert found.temperature == 1.0


def test_overconfident_prior_is_flattened_and_recorded_as_stated(memory):
    policy = TemperedPrior(ModelAlone(), memory)
    store(memory, 60)
    with memory.episode("desk", id="next") as episode:
        decision = policy.decide("another mail", SURE, task="desk", seed=0)
        episode.record("another mail", decision, 1.0)
    powers = np.exp(np.array(list(SURE.values())) / decision.temperature)
    assert list(decision.base_probs.values()) == pytest.approx((powers / powers.sum()).tolist())
    assert 0.4 < decision.base_probs["sales"] < 0.6
    assert decision.propensity == decision.probs[decision.action]
    assert dict(decision.prior) == pytest.approx(SURE)
    assert dict(memory.get("next").steps[0].prior) == pytest.approx(SURE), "T is fitted to what the model stated"
    assert f"at temperature {decision.temperature:.3g}" in " ".join(decision.explain().split())


def test_outcomes_count_by_family_and_by_model(memory):
    store(memory, 60, model="small")
    store(memory, 3, task="other")
    temperatures = PriorTemperatures(memory)
    assert temperatures.of("desk", "small").is_used
    assert temperatures.of("desk") == temperatures.of("desk", "small"), "an unnamed model is the latest one"
    assert temperatures.of("desk", "large").n == 0
    assert temperatures.of("other").n == 3
    assert temperatures.of(None).n == temperatures.of("unknown").n == 0
    assert PriorTemperatures(memory, family=str.upper).of("Desk", "small").n == 60
    assert PriorTemperatures(memory, family="all").of("any", "small").n == 60


def test_prior_of_another_model_is_not_tempered(memory):
    store(memory, 60, model="small")
    policy = TemperedPrior(ModelAlone(), memory)
    assert policy.decide("mail", Prior(SURE, model="small"), task="desk").temperature > 1.0
    assert policy.decide("mail", Prior(SURE, model="large"), task="desk").temperature == 1.0


def test_steps_without_an_outcome_of_their_own_do_not_count(memory):
    store(memory, 5, awaits_feedback=True)
    store(memory, 5, task="aborted", ending="aborted")
    long = memory.add(Episode("walk", [Step("a", "sales", 0.0, SURE, 0.9), Step("b", "sales", 1.0, SURE, 0.9)]))
    memory.add(Episode("only", [Step("c", "sales", 1.0, {"sales": 0.0})]))
    memory.add(Episode("none", [Step("c", "sales", 1.0)]))
    memory.add(Episode("added", [Step("c", "call a lawyer", 1.0, SURE)]))
    temperatures = PriorTemperatures(memory)
    assert temperatures.all() == {}
    memory.feedback(long, 1.0, 0)
    assert temperatures.of("walk").n == 1
    memory.feedback("desk0", 1.0)
    assert temperatures.of("desk").n == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_temperatures_follow_every_change_of_the_memory(kind, request):
    url = ":memory:" if kind == "sqlite" else request.getfixturevalue("fresh_url")
    with Memory.open(url) as memory:
        follow_changes(memory)


def follow_changes(memory):
    temperatures = PriorTemperatures(memory)
    rng = np.random.default_rng(0)
    ids = store(memory, 40, subject="ann") + store(memory, 20, first=40, model="large")
    ids += store(memory, 10, first=60, awaits_feedback=True)
    events = []

    def feed():
        events.append(memory.feedback(str(rng.choice(ids)), float(rng.choice([-1.0, 1.0])), source=f"s{len(events)}"))

    changes = [
        *[feed] * 12,
        lambda: memory.revoke(events[0]),
        lambda: store(memory, 5, first=70),
        lambda: memory.revoke(events[5]),
        lambda: memory.quarantine(Selection(model="large"), "odd"),
        feed,
        lambda: memory.release(memory.quarantines()[0].id),
        lambda: memory.reweight_source("s3", 0.0),
        lambda: memory.feedback(ids[-1], Label("refunds")),
        lambda: (memory.erase("ann"), ids.__delitem__(slice(40))),
        feed,
    ]
    temperatures.all()
    for change in changes:
        change()
        followed, fresh = temperatures.all(), PriorTemperatures(memory).all()
        assert followed.keys() == fresh.keys()
        for key, one in fresh.items():
            assert (followed[key].n, followed[key].fitted) == (one.n, one.fitted)
            assert followed[key].loss_at_one == pytest.approx(one.loss_at_one)


def test_label_names_the_right_option_whatever_was_executed(memory):
    [id_] = store(memory, 1)
    memory.feedback(id_, Label("refunds"))
    [one] = [option for options in memory.rated_options().by_episode.values() for option in options]
    assert np.exp(one.logprobs[one.option]) == pytest.approx(0.03)
    assert (one.reward, one.propensity) == (None, None)


@pytest.mark.parametrize("end", ["revoke", "quarantine", "weight 0"])
def test_a_label_that_does_not_count_sets_no_temperature(memory, end):
    """The decision has other feedback, by which it stays rated."""
    [id_] = store(memory, 1)
    memory.feedback(id_, 1.0, source="rating")

    def rated():
        [one] = [option for options in memory.rated_options().by_episode.values() for option in options]
        return one.option, one.reward

    before = rated()
    label = memory.feedback(id_, Label("refunds"), source="desk")
    assert rated() != before
    if end == "revoke":
        memory.revoke(label)
    elif end == "quarantine":
        memory.quarantine(Selection(source="desk"), "odd")
    else:
        memory.reweight_source("desk", 0.0)
    assert rated() == before


def test_labels_of_several_people_set_the_temperature_by_the_option_of_the_most_weight(memory):
    [id_] = store(memory, 1)
    for author, right in {"ann": "refunds", "bob": "refunds", "eve": "sales"}.items():
        memory.feedback(id_, Label(right), author=author)
    [one] = [option for options in memory.rated_options().by_episode.values() for option in options]
    assert np.exp(one.logprobs[one.option]) == pytest.approx(0.03)


def test_a_decision_reads_only_what_is_new(memory):
    policy = TemperedPrior(ModelAlone(), memory)

    def statements(n, first):
        store(memory, n, first=first)
        policy.decide("mail", SURE, task="desk")
        store(memory, 1, first=first + n)
        with memory.session.store.trace() as executed:
            policy.decide("mail", SURE, task="desk")
        return len(executed)

    assert statements(500, 1000) == statements(5, 0)


def test_command_line_lists_families(tmp_path):
    path = str(tmp_path / "agent.db")
    with Memory.open(path) as memory:
        store(memory, 60)
        store(memory, 2, task="new")
    shown = CliRunner().invoke(cli, ["memory", "temperature", path])
    assert shown.exit_code == 0, shown.output
    document = json.loads(CliRunner().invoke(cli, ["memory", "temperature", path, "--json"]).output)
    [desk, new] = document["families"]
    assert (desk["family"], desk["n"], desk["is_used"]) == ("desk", 60, True)
    assert desk["low"] < desk["temperature"] < desk["high"]
    assert (new["n"], new["temperature"], new["is_used"]) == (2, 1.0, False)
