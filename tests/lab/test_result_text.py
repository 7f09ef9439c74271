"""Notes of the page: arms that were not played, usage of aborted episodes, changed code."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from seasoned.agents import EpisodeResult
from seasoned.lab.analysis.findings import analyze
from seasoned.lab.analysis.result_text import worst_case_sentence
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
    runs = [RunResult(run, Path("nowhere"), (episode,) * 2, {}, None, True, **known) for run in suite.runs()]
    for i, run in enumerate(runs):
        if run.key.arm in failed:
            runs[i] = dataclasses.replace(run, episodes=(), error="it broke", done=False)
    return ExperimentResults(suite, tuple(runs), {}, Path("nowhere"))


def page(results):
    return render_page(analyze(results, "none"), {})


def test_arm_without_episodes_has_no_worst_case():
    findings = analyze(experiment(failed=("default",)), "none")
    (worst,) = findings.worst
    assert worst_case_sentence(worst) == "default was not played: 2 runs failed before an episode ended."
    assert "default was not played" in render_page(findings, {})


def test_usage_of_aborted_episodes_is_listed():
    text = page(experiment(lost=Usage(calls=3, prompt_tokens=200, completion_tokens=7, cost_usd=0.5)))
    assert "Aborted episodes used 12 calls, 828 tokens, 2.00 dollars of the model." in text
    assert "Aborted episodes" not in page(experiment())


@pytest.mark.parametrize(("hashes", "changed"), [(("a",), False), (("a", "b"), True)])
def test_changed_code_is_warned_of(hashes, changed):
    text = page(experiment(code=frozenset(("my_shop", each) for each in hashes)))
    assert ("The code of my_shop changed while this was played" in text) is changed


@pytest.mark.parametrize(("n", "tables"), [(5, 1), (6, 2), (9, 2), (11, 3)])
def test_many_arms_are_split_into_several_tables(n, tables):
    names = [f"arm{i}" for i in range(n - 1)]
    text = wins_section(analyze(experiment(("alone", *names)), "none"))
    assert text.count("<table>") == tables
    assert text.count("0-2-0") == n * (n - 1), "every pair is in one table"


def test_counts_of_one_are_singular():
    text = page(experiment(failed=("default",)))
    assert "2 arms, 1 task, 2 seeds" in text
    assert "1 tasks" not in text
