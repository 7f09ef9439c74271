"""The ends of sessions: an interruption is recorded, the end of a killed session is derived."""

import json

import pytest
from small_experiments import suite

from seasoned.errors import UnknownNameError
from seasoned.lab.analysis.findings import analyze
from seasoned.lab.report.html_page import render_page
from seasoned.lab.results.run_results import load_results, write_lab_file
from seasoned.lab.runner.experiment import Experiment
from seasoned.lab.runner.file_lock import LOCK, hold_lock
from seasoned.lab.runner.sessions import INTERRUPTED, KILLED, RUNNING, session_endings


@pytest.fixture
def experiment(tmp_path):
    return Experiment.begin(tmp_path / "lab", suite(seeds=1, arms=[{"name": "alone"}]))


def begin_session(experiment, at, *told):
    """Remove the end of the last session, as if its process was killed or is running."""
    before = load_results(experiment.folder)
    sessions = [*before.record["sessions"], {"at": at, "workers": 1}]
    write_lab_file(experiment.folder, experiment.suite, {**before.record, "sessions": sessions})
    lines = [json.dumps({"begin": {"task": "grid", "arm": "alone", "seed": 0}, "at": each}) + "\n" for each in told]
    (experiment.folder / "progress.jsonl").write_text("".join(lines))


def test_interrupted_session_is_on_the_page(experiment):
    def interrupt(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment.run(progress=interrupt)
    (session,) = load_results(experiment.folder).record["sessions"]
    assert session["stopped"] == INTERRUPTED
    assert session["seconds"] > 0
    page = render_page(analyze(load_results(experiment.folder), "none"), {})
    assert "The last session ended early: interrupted." in page
    assert "budget stopped" not in page


def test_killed_session_counts_until_its_last_journal_entry(experiment):
    begin_session(experiment, 100.0, 101.0, 106.0)
    findings = analyze(load_results(experiment.folder), "none")
    (session,) = findings.record["sessions"]
    assert (session["seconds"], session["at_least"], session["stopped"]) == (6.0, True, KILLED)
    page = render_page(findings, {})
    assert f"<td>6 or more</td><td>{KILLED}</td>" in page
    with hold_lock(experiment.folder / LOCK, "it runs"):
        (session,) = session_endings(load_results(experiment.folder).record["sessions"], experiment.folder)
    assert session["stopped"] == RUNNING
    record = experiment.run().record  # which takes away what the killed one told
    assert [(s["stopped"], s["seconds"] == 6.0) for s in record["sessions"]] == [(KILLED, True), (None, False)]


def test_killed_session_without_an_entry_has_unknown_seconds(experiment):
    begin_session(experiment, 100.0)
    page = render_page(analyze(load_results(experiment.folder), "none"), {})
    assert f'<td class="unknown">unknown</td><td>{KILLED}</td>' in page


def test_refused_experiment_can_be_discarded(tmp_path):
    experiment = Experiment.begin(tmp_path / "made" / "lab", suite(seeds=1, model="lokal"))
    begun = []
    with pytest.raises(UnknownNameError, match="lokal"):
        experiment.run(begins=lambda: begun.append(1))
    assert begun == []
    (tmp_path / "made" / "mine").touch()
    experiment.discard()
    assert [each.name for each in tmp_path.rglob("*")] == ["made", "mine"]


def test_played_or_older_folder_is_not_discarded(experiment):
    experiment.run()
    experiment.discard()
    assert all(run.done for run in load_results(experiment.folder).runs)
    Experiment.find(experiment.folder).discard()
    assert experiment.folder.exists()
