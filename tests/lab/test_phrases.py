"""What a page and a summary say beside the numbers: what was not played, asked in vain, or played by other code."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from seasoned.agents import EpisodeResult
from seasoned.lab.analysis.findings import analyze
from seasoned.lab.analysis.phrases import worst_case_sentence
from seasoned.lab.report.html_page import render_page
from seasoned.lab.report.sections import wins_section
from seasoned.lab.results.run_results import ExperimentResults, RunResult
from seasoned.lab.suites.suite_toml import read_suite
from seasoned.protocols import Usage


def experiment(arms=("alone", "default"), *, failed=(), **known):
    suite = read_suite(
        {
            "name": "s",
            "model": "uniform",
            "seeds": 2,
            "arms": [{"name": n, "kind": "alone"} for n in arms],
            "tasks": [{"name": "grid", "env": "grid:S.G", "episodes": 2}],
        }
    )
    episode = EpisodeResult(1.0, 1.0, 2, "terminated", 0, 0.0, 0, 0.0, 1.0, Usage())
    cells = [RunResult(cell, Path("nowhere"), (episode,) * 2, {}, None, True, **known) for cell in suite.runs()]
    for i, cell in enumerate(cells):
        if cell.key.arm in failed:
            cells[i] = dataclasses.replace(cell, episodes=(), error="it broke", done=False)
    return ExperimentResults(suite, tuple(cells), {}, Path("nowhere"))


def page(results):
    return render_page(analyze(results, "none"), {})


def test_an_arm_that_never_played_is_not_given_the_worst_score():
    found = analyze(experiment(failed=("default",)), "none")
    (worst,) = found.worst
    assert worst_case_sentence(worst) == "default was not played: 2 runs failed before an episode ended."
    assert "default was not played" in render_page(found, {})


def test_what_was_asked_in_vain_is_said_and_in_no_other_number():
    text = page(experiment(lost=Usage(calls=3, prompt_tokens=200, completion_tokens=7, cost_usd=0.5)))
    assert "Episodes that broke off had asked the model: 12 calls, 828 tokens, 2.00 dollars." in text
    assert "asked the model" not in page(experiment())


@pytest.mark.parametrize(("hashes", "changed"), [(("a",), False), (("a", "b"), True)])
def test_code_that_changed_is_warned_of(hashes, changed):
    text = page(experiment(code=frozenset(("my_shop", each) for each in hashes)))
    assert ("The code of my_shop changed while this was played" in text) is changed


@pytest.mark.parametrize(("n", "tables"), [(5, 1), (6, 2), (9, 2), (11, 3)])
def test_many_arms_are_compared_in_several_tables(n, tables):
    names = [f"arm{i}" for i in range(n - 1)]
    text = wins_section(analyze(experiment(("alone", *names)), "none"))
    assert text.count("<table>") == tables
    assert text.count("0-2-0") == n * (n - 1), "every pair, in one of them"


def test_numbers_of_one_are_singular():
    text = page(experiment(failed=("default",)))
    assert "2 arms, 1 task, 2 seeds" in text
    assert "1 tasks" not in text
