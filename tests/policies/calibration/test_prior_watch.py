"""Warnings before decisions by a prior that is far from what the agent did."""

import math
import types

import pytest

from seasoned import Episode, JitRL, Memory, Step
from seasoned.errors import StoreTimeoutError
from seasoned.integrations.clients.call_decisions import CallDecisions
from seasoned.integrations.clients.call_modes import CallVotes
from seasoned.integrations.clients.wires.wire_format import RequestMoment
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.policies import own_choices
from seasoned.policies.calibration import prior_watch
from seasoned.policies.calibration.prior_watch import PriorWatch
from seasoned.types import Prior

N = 30


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    monkeypatch.setattr(prior_watch, "_WITHIN_S", 60.0)


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


class _Watched:
    """A memory whose `episodes` fails, or tells how many were asked for and moves the clock by a second for each."""

    def __init__(self, memory, *, error=None):
        self._memory, self._error = memory, error
        self.encoder, self.notes, self.excluded_ids = memory.encoder, memory.notes, memory.excluded_ids
        self.asked, self.now = [], 0.0

    def __len__(self):
        return len(self._memory)

    def episodes(self, *, task=None, last=None, max_bytes=None):
        self.asked.append(last)
        if self._error is not None:
            raise self._error
        self.now += last
        return self._memory.episodes(last=last, max_bytes=max_bytes)


def test_memory_that_fails_to_return_its_episodes_is_asked_again_after_a_doubling(memory):
    watched = _Watched(memory, error=StoreTimeoutError("no answer", "a call waits at most 0.2 s", "Try again."))
    watch = PriorWatch(watched)
    for _ in range(200):
        assert watch.check(even(), "cart", "shop") == 0.0
    assert watched.asked == [1]
    memory.add_many([Episode("shop", [Step("cart", "pay")])] * 3 * N)
    for _ in range(64):
        watch.check(even(), "cart", "shop")
    assert watched.asked == [1, 1]


def test_as_many_episodes_are_read_as_time_allows(memory, monkeypatch):
    watched = _Watched(memory)
    monkeypatch.setattr(own_choices, "time", types.SimpleNamespace(monotonic=lambda: watched.now))
    monkeypatch.setattr(prior_watch, "_WITHIN_S", 40.0)
    assert PriorWatch(watched).check(even(), "cart", "shop") == pytest.approx(0.9, abs=0.05)
    assert watched.asked == [1, 2, 4, 8, 16]  # 31 s; another 32 do not fit


def test_huge_episode_is_left_out_unread(memory):
    long = "word " * 40_000  # 200 KB a step
    memory.add(Episode("shop", [Step(f"{number} {long}", "leave") for number in range(40)]))
    with memory.session.store.trace() as statements:
        assert PriorWatch(memory).check(even(), "cart", "shop") == pytest.approx(0.9, abs=0.05)
    assert not any("SELECT state.text" in one and f"BETWEEN {2 * N + 2 << STEP_BITS}" in one for one in statements)


def test_decision_does_not_wait_for_one_that_counts(memory):
    watch = PriorWatch(memory)
    with watch._lock:
        assert watch.check(even(), "cart", "shop") == 0.0
    assert watch.check(even(), "cart", "shop") > 0.0
