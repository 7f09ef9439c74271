"""Warnings before decisions by a prior that is far from what the agent did."""

import math

import pytest

from seasoned import Episode, JitRL, Memory, Step
from seasoned.integrations.clients.call_decisions import CallDecisions
from seasoned.integrations.clients.call_modes import CallVotes
from seasoned.integrations.clients.wires.wire_format import RequestMoment
from seasoned.types import Prior

N = 30


@pytest.fixture
def memory():
    """An agent that restarts a service N times, each time another one, and once does not."""
    steps = [Step("alert pool", f'restart({{"service":"s{i}"}})') for i in range(N)]
    with Memory.open(":memory:") as memory:
        memory.add_many([Episode("oncall", [step]) for step in [*steps, Step("alert pool", "All is well.")]])
        memory.add_many([Episode("shop", [Step("cart", "pay")])] * N)
        yield memory


def even(method="label"):
    return Prior({"pay": math.log(0.1), "leave": math.log(0.9)}, method)


def test_wide_prior_is_warned_of_once_before_the_first_decision(memory, caplog):
    policy = JitRL(memory)
    for _ in range(2):
        policy.decide("cart", even(), task="shop")
    assert len(caplog.messages) == 1
    assert f"departs from {N} choices of the agent in 'shop' by a total variation of 0.90" in caplog.messages[0]


@pytest.mark.parametrize(
    ("prior", "task"),
    [
        (Prior({"pay": math.log(0.9), "leave": math.log(0.1)}, "label"), "shop"),  # near
        (even("label, mixed with the agent's choices: weight 0.50"), "shop"),  # was compared by `MixedPrior`
        (even(), "another task"),
        ({"pay": math.log(0.1), "leave": math.log(0.9)}, "shop"),  # read from no model
    ],
)
def test_no_warning_where_nothing_departs(memory, caplog, prior, task):
    JitRL(memory).decide("cart", prior, task=task)
    assert caplog.messages == []


def test_few_votes_depart_by_chance_and_many_do_not(memory, caplog):
    policy = JitRL(memory)
    policy.decide("cart", even("votes, n=4"), task="shop")
    assert caplog.messages == []
    for _ in range(5):
        policy.decide("cart", even("votes, n=4"), task="shop")
    assert len(caplog.messages) == 1


def test_choices_after_a_doubling_are_read(memory, caplog):
    policy = JitRL(memory)
    policy.decide("cart", even(), task="desk")
    memory.add_many([Episode("desk", [Step("cart", "pay")])] * 3 * N)
    for _ in range(64):
        policy.decide("cart", even(), task="desk")
    assert ["'desk'" in one for one in caplog.messages] == [True]


def test_tools_of_a_wrapped_client_are_compared_whatever_their_arguments(memory, caplog):
    mode, moment = CallDecisions(JitRL(memory)), RequestMoment("alert pool", "oncall")
    names = ["restart", "rollback", "answer in text, without a tool"]
    near = Prior(dict(zip(names, map(math.log, (0.9, 0.05, 0.05)), strict=True)), "label")
    mode.choose(near, moment, None)
    assert caplog.messages == []
    far = Prior(dict(zip(names, map(math.log, (0.05, 0.9, 0.05)), strict=True)), "label")
    for _ in range(3):
        mode.choose(far, moment, None)
    assert len(caplog.messages) == 1
    assert f"{N + 1} choices" in caplog.messages[0]


def test_votes_of_a_wrapped_client_are_compared(memory, caplog):
    mode = CallVotes(JitRL(memory), 8)
    for _ in range(4):
        mode.choose(["leave"] * 7 + ["pay"], RequestMoment("cart", "shop"), None)
    assert len(caplog.messages) == 1
