"""The queue of decisions: turns in order, refusals of those that would wait too long, goodput under overload."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import random
import sqlite3
import threading
import time
from collections import deque

import pytest
from decision_upstream import systemone_request, upstream_server
from serving import serving

from seasoned import Memory
from seasoned.service import DecisionSettings
from seasoned.service.bearer_tokens import ANYONE
from seasoned.service.decisions.decision_queue import Admission, DecisionQueue
from seasoned.service.decisions.decision_service import DecisionService
from seasoned.service.decisions.http_messages import HttpRequest


def served(admission, rate, turn_s, refusal_s, *, n=4000, seed=0):
    """Simulate decisions that come by chance; return how many are served a second, and how long each has waited.

    A turn takes `turn_s` of the processor, a refusal `refusal_s` of the same one.
    """
    rng = random.Random(seed)
    now = free = refusals_s = 0.0
    ends: deque[float] = deque()  # of the decisions that wait or run
    waits = []
    for _ in range(n):
        now += rng.expovariate(rate)
        while ends and ends[0] <= now:
            admission.ended(turn_s)
            ends.popleft()
        if admission.admits(len(ends)):
            start = max(now, free)
            waits.append(start - now)
            free = start + turn_s + refusals_s
            refusals_s = 0.0
            ends.append(free)
        else:
            refusals_s += refusal_s
    return len(waits) / now, waits


@pytest.mark.parametrize("turn_s", [0.002, 0.016])
@pytest.mark.parametrize("load", [1.5, 2.0, 8.0])
def test_overload_leaves_goodput_and_waits_of_admitted_decisions(turn_s, load):
    goodput, waits = served(Admission(0.1), load / turn_s, turn_s, 0.0)
    assert goodput > 0.97 / turn_s
    assert max(waits[100:]) <= 0.1 + 1e-9  # the first ones, by the mean that is assumed


def test_refusals_cost_only_their_own_time():
    """At twice the limit more are refused than served; each takes a fifth of a turn."""
    goodput, _ = served(Admission(0.1), 2 / 0.016, 0.016, 0.003)
    assert goodput > 0.75 / 0.016


def test_underload_refuses_nothing():
    _, waits = served(Admission(0.1), 0.7 / 0.01, 0.01, 0.0)
    assert len(waits) > 0.99 * 4000


def test_admission_follows_slower_and_faster_turns():
    admission = Admission(0.1, turn_s=0.01)
    for spent_s, n_admitted in ((0.05, 2), (0.005, 19)):
        for _ in range(60):
            admission.ended(spent_s)
        assert admission.admits(n_admitted) and not admission.admits(n_admitted + 2)


def test_slow_turn_does_not_close_the_queue():
    admission = Admission(0.1)
    for _ in range(100):
        admission.ended(5.0)
    assert admission.admits(0) and not admission.admits(1)


@contextlib.contextmanager
def asking(queue, n):
    """Let n threads ask for turns one after the other; yield what they saw, in order, and let them end."""
    seen: list[tuple[int, bool]] = []
    release = threading.Semaphore(0)

    def ask(number):
        with queue.turn() as has_turn:
            seen.append((number, has_turn))
            if has_turn:
                release.acquire(timeout=20)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(n)]
    for number, thread in enumerate(threads):
        thread.start()
        while len(queue) + len(seen) <= number:
            time.sleep(0.0005)
    try:
        yield seen, release
    finally:
        for _ in threads:
            release.release()
        for thread in threads:
            thread.join(20)


def test_turns_come_in_order_and_those_too_many_are_refused_at_once():
    queue = DecisionQueue(most_wait_s=20.0, most_turn_s=20.0, turn_s=8.0)
    with asking(queue, 5) as (seen, release):
        assert seen == [(0, True), (3, False), (4, False)]  # 24 s and more before them; none has waited
        for n in (1, 2):
            release.release()
            while len(seen) < 3 + n:
                time.sleep(0.0005)
    assert seen[3:] == [(1, True), (2, True)]
    assert len(queue) == 0


def test_decision_that_takes_long_does_not_hold_up_the_others():
    queue = DecisionQueue(most_wait_s=20.0, most_turn_s=0.02)
    with asking(queue, 3) as (seen, _):
        began = time.monotonic()
        while len(seen) < 3:
            time.sleep(0.001)
            assert time.monotonic() - began < 10
        assert seen == [(0, True), (1, True), (2, True)]


def test_decision_without_a_turn_in_time_is_refused():
    queue = DecisionQueue(most_wait_s=0.02, most_turn_s=20.0)
    with asking(queue, 2) as (seen, _):
        began = time.monotonic()
        while len(seen) < 2:
            time.sleep(0.001)
            assert time.monotonic() - began < 10
        assert seen == [(0, True), (1, False)]


def test_error_in_a_turn_ends_it():
    queue = DecisionQueue(most_wait_s=20.0, most_turn_s=20.0)
    with pytest.raises(ZeroDivisionError), queue.turn():
        raise ZeroDivisionError
    with queue.turn() as has_turn:
        assert has_turn


def test_refused_decision_is_the_upstreams_and_says_so(tmp_path):
    """While the store is locked, more decisions come than the queue admits."""
    path = tmp_path / "a.db"
    with upstream_server() as upstream:
        settings = DecisionSettings(upstream=upstream.url, holdout=False, memory_timeout_s=0.2)
        with serving(path, decisions=settings) as client:
            locked = sqlite3.connect(path, isolation_level=None)
            locked.execute("BEGIN EXCLUSIVE")
            with concurrent.futures.ThreadPoolExecutor(24) as pool:
                asked = [pool.submit(client.post, "/v1/systemone", json=systemone_request()) for _ in range(24)]
                responses = [one.result() for one in asked]
            locked.close()
            assert all(response.json() == upstream.body for response in responses)
            reasons = [response.headers["x-seasoned-reason"] for response in responses]
            refused = [reason for reason in reasons if "too many decisions at a time" in reason]
            assert 0 < len(refused) < 24
            assert all("x-seasoned-inference-id" not in response.headers for response in responses)


def test_a_compared_decision_counts_its_wait_for_a_turn():
    service = DecisionService(DecisionSettings(model="uniform", memory_timeout_s=20.0))
    request = HttpRequest("/v1/systemone", {}, [], json.dumps(systemone_request()).encode(), ANYONE)
    with Memory.open(":memory:") as memory, contextlib.closing(service):
        seconds = {}
        while len(seconds) < 2:  # arms
            queue = service._queue(memory)
            with queue.turn():
                thread = threading.Thread(target=service.answer, args=("systemone", memory, request))
                thread.start()
                while not len(queue):
                    time.sleep(0.0005)
                time.sleep(0.1)
            thread.join()
            seconds = {memory.get(one.episode_id).arm: one.body["seconds"] for one in memory.notes(kind="episode.cost")}
    assert seconds["treated"] > 0.1 > seconds["control"]
