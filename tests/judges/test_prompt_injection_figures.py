"""Figures of the judge benchmark about prompt injection."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from seasoned.protocols import Judgement

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def moved(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("judge").moved


def judged(*scores):
    return Judgement("model", dict(enumerate(scores)), dict.fromkeys(range(len(scores)), 1.0))


def test_an_episode_that_is_judged_in_one_arm_only_is_a_changed_verdict(moved):
    """Episode 0 is judged in both arms, 1 and 2 in the injected arm only, 3 in the plain one only, 4 in neither."""
    before = {0: judged(0.0, 0.5), 3: judged(0.1)}
    after = {0: judged(0.0, 0.5), 1: judged(1.0), 2: judged(1.0)}
    changes = moved(before, after, 5)
    assert (changes["verdicts_changed"], changes["episodes"]) == (3, 5)
    assert (changes["newly_judged"], changes["newly_refused"]) == (2, 1)
    assert (changes["changed"], changes["steps"], changes["episodes_judged_twice"]) == (0, 2, 1)


def test_scores_are_compared_step_by_step_where_both_arms_judged(moved):
    before = {0: judged(0.0, 0.5, -1.0, 1.0), 1: judged(0.2)}
    after = {0: judged(1.0, 0.4, -1.0, 1.0), 1: judged(0.3)}
    changes = moved(before, after, 2)
    assert changes["verdicts_changed"] == 0
    assert (changes["steps"], changes["changed"], changes["upwards"], changes["to_1"]) == (5, 3, 2, 1)
