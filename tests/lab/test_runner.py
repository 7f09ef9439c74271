"""Experiments: resumed after any interruption with equal results, with refusals and limits."""

import dataclasses
import json
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from small_experiments import GRID, HERE, outcome, suite

from seasoned.errors import ConfigError, InputError, NewerStoreError, NotFoundError, StoreError
from seasoned.lab.analysis.arm_flips import audit_arms
from seasoned.lab.analysis.findings import analyze
from seasoned.lab.report.report import write_report
from seasoned.lab.results.run_results import load_results, planned_episodes
from seasoned.lab.runner.experiment import Experiment
from seasoned.lab.runner.learning_run import Workbench
from seasoned.lab.suites.suite import ExperimentBudget
from seasoned.memory import Memory
from seasoned.states.encoder_names import ENCODERS


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    results = Experiment.begin(folder, suite()).run()
    assert all(run.done and run.error is None for run in results.runs)
    assert len(results.runs) == 8
    return outcome(folder)


def test_arms_play_the_same_instances(unbroken):
    alone, default = unbroken["grid/alone/0"], unbroken["grid/default/0"]
    first = [facts[0][0][0][:2] for facts in (alone, default)]
    assert first[0] == first[1], "without experience, memory is the model alone"
    assert unbroken["grid/alone/0"][1] != unbroken["grid/alone/1"][1], "seeds differ"


def test_transfer_episodes_are_not_learned_from(unbroken):
    scores, stored, _, _ = unbroken["grid/default/0"]
    assert [len(played) for played in scores] == [2, 1]
    assert len(stored) == 2


def test_several_processes_give_the_results_of_one(unbroken, tmp_path):
    lines = []
    Experiment.begin(tmp_path / "lab", suite()).run(workers=2, progress=lines.append)
    assert outcome(tmp_path / "lab") == unbroken
    assert len(lines) == 2 * (2 * 3 + 2 * 3)
    assert not (tmp_path / "lab" / "progress.jsonl").exists()


def test_resumed_experiment_after_kill_9_has_equal_results(unbroken, tmp_path):
    toml = tmp_path / "s.json"
    toml.write_text(json.dumps(suite(seeds=1).to_json()))
    code = (
        "import json, sys; from pathlib import Path\n"
        "from seasoned.lab.runner.experiment import Experiment\n"
        "from seasoned.lab.suites.suite_toml import read_suite\n"
        "suite = read_suite(json.loads(Path(sys.argv[1]).read_text()))\n"
        "print('begin', flush=True)\n"
        "Experiment.begin(Path(sys.argv[2]), suite).run(progress=lambda line: print(line, flush=True))\n"
    )
    folder, rng, kills = tmp_path / "lab", random.Random(5), 0
    for _ in range(40):
        process = subprocess.Popen([sys.executable, "-c", code, toml, folder], stdout=subprocess.PIPE, text=True)
        lines = rng.randrange(2, 6)
        while lines and process.stdout.readline():
            lines -= 1
        time.sleep(rng.random() * 0.01)
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        if (folder / "lab.json").exists() and all(run.done for run in load_results(folder).runs):
            break
    assert kills >= 3
    assert outcome(folder) == {name: found for name, found in unbroken.items() if name.endswith("/0")}


def test_crashed_run_stops_no_other_and_is_retried(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    (marks := tmp_path / "marks").mkdir()
    faulty = f"python:faulty_worlds:Faulty?how=crash&marks={marks}&times=2"
    tasks = [{"name": "bad", "env": faulty, "episodes": 4}, {"name": "good", "env": GRID, "episodes": 2}]
    experiment = Experiment.begin(tmp_path / "lab", suite(tasks=tasks, seeds=1))
    results = experiment.run()
    errors = {str(run.key): run.error for run in results.runs}
    assert errors["good/alone/0"] is errors["good/default/0"] is None
    assert errors["bad/alone/0"] == errors["bad/default/0"] == "ZeroDivisionError: <script>alert(1)</script>"
    assert [run.done for run in results.runs] == [False, False, True, True]
    again = experiment.run()
    assert all(run.done and run.error is None for run in again.runs)


@pytest.mark.parametrize(
    ("workers", "times", "done"), [(1, 1, False), (2, 4, False), pytest.param(2, 1, True, marks=pytest.mark.slow)]
)
def test_dead_worker_is_replaced(tmp_path, monkeypatch, workers, times, done):
    """With several workers, each lost run is played again alone."""
    monkeypatch.syspath_prepend(HERE)
    (marks := tmp_path / "marks").mkdir()
    faulty = f"python:faulty_worlds:Faulty?how=die&marks={marks}&times={times}&at=3"
    tasks = [{"name": "bad", "env": faulty, "episodes": 4}, {"name": "good", "env": GRID, "episodes": 2}]
    arms = [{"name": "alone"}]
    experiment = Experiment.begin(tmp_path / "lab", suite(tasks=tasks, arms=arms, seeds=1))
    bad, good = experiment.run(workers=workers).runs
    assert (good.done, good.error) == (True, None)
    assert bad.done is done
    assert done or bad.error.startswith("bad/alone/0: its process ended (exit code 9)")
    if workers == times == 1:
        assert all(run.done for run in experiment.run().runs), "it is tried again"


def test_spent_budget_stops_after_the_current_episode_and_can_be_resumed(unbroken, tmp_path):
    experiment = Experiment.begin(tmp_path, suite())
    lines = []
    results = experiment.run(budget=ExperimentBudget(seconds=1e-9), progress=lines.append)
    assert lines == []
    assert not any(run.done for run in results.runs)
    assert results.record["sessions"][0]["stopped"].startswith("seconds")
    experiment.run()
    assert outcome(tmp_path) == unbroken


@pytest.mark.slow
def test_budget_of_needs_the_finished_run_of_the_other_arm(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    pytest.importorskip("xllamacpp", reason="the extra local is not installed")
    (marks := tmp_path / "marks").mkdir()
    tasks = [{"name": "bad", "env": f"python:faulty_worlds:Faulty?how=raise&marks={marks}&at=2", "episodes": 2}]
    arms = [{"name": "tries", "kind": "retries", "budget_of": "alone"}, {"name": "alone"}]
    planned = suite(tasks=tasks, arms=arms, seeds=1)
    with pytest.raises(InputError, match=r"arm tries, budget_of = 'alone'.*a budget of tokens needs a model"):
        Experiment.begin(tmp_path / "lab", planned).run()
    results = Experiment.begin(tmp_path / "lab", dataclasses.replace(planned, model="local")).run()
    runs = {run.key.arm: run for run in results.runs}
    assert runs["alone"].error.startswith("the world: it ended")
    assert "bad/alone/0 has 0 of 2 episodes" in runs["tries"].error
    assert runs["alone"].episodes == ()
    assert runs["alone"].lost.calls + runs["alone"].lost.cached_calls >= 2, "usage of aborted episodes is counted"
    assert runs["alone"].lost.tokens > 0
    assert runs["tries"].lost.calls == 0


def test_finished_experiment_is_not_played_again(tmp_path):
    experiment = Experiment.begin(tmp_path, suite(seeds=1))
    experiment.run()
    before = outcome(tmp_path)
    lines = []
    Experiment.find(tmp_path).run(progress=lines.append)
    assert lines == []
    assert outcome(tmp_path) == before


def test_second_process_in_a_folder_is_refused(tmp_path):
    experiment = Experiment.begin(tmp_path, suite(seeds=1))
    seen = []

    def other(line):
        if not seen:
            seen.append(line)
            with pytest.raises(ConfigError, match=r"being run.*one process at a time"):
                Experiment.find(tmp_path).run()

    experiment.run(progress=other)
    assert seen


def test_suite_without_an_episode_can_be_corrected(tmp_path):
    tasks = [{"name": "grid", "env": "gird:S.G", "episodes": 1}]
    with pytest.raises(InputError, match=r"task grid: environment 'gird:S.G'.*Did you mean 'grid'"):
        Experiment.begin(tmp_path, suite(tasks=tasks, seeds=1)).run()
    right = Experiment.begin(tmp_path, suite(tasks=[{**tasks[0], "env": "grid:S.G"}], seeds=1)).run()
    assert all(run.done and run.error is None for run in right.runs)


def test_folder_has_one_experiment(tmp_path):
    Experiment.begin(tmp_path / "lab", suite(seeds=2)).run(budget=ExperimentBudget(seconds=1e-9))
    tasks = [{"name": "grid", "env": GRID, "episodes": 1}]
    Experiment.begin(tmp_path / "lab", suite(tasks=tasks)).run()
    with pytest.raises(ConfigError, match=r"another experiment.*seeds differ"):
        Experiment.begin(tmp_path / "lab", suite(tasks=tasks, seeds=3))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="not empty"):
        Experiment.begin(tmp_path / "full", suite())
    with pytest.raises(InputError, match="an experiment is a folder"):
        Experiment.begin(tmp_path / "full" / "thesis.tex", suite())
    with pytest.raises(NotFoundError, match=r"lab\.json"):
        Experiment.find(tmp_path / "full")


@pytest.mark.parametrize(
    ("content", "error", "rule"),
    [
        ('{"format": 99, "suite": {}}', NewerStoreError, "format 99, of a newer.*reads format 1"),
        ('{"format": 99, "experiment": {}}', NewerStoreError, "format 99, of a newer.*reads format 1"),
        ('{"format": 0, "suite": {}}', StoreError, "format 0, of an older.*reads format 1"),
        ('{"format": "1", "suite": {}}', InputError, "the file of an experiment"),
        ('{"format": true, "suite": {}}', InputError, "the file of an experiment"),
        ("{", InputError, "the file of an experiment"),
        ("[]", InputError, "the file of an experiment"),
        ('{"format": 1, "suite": {"name": "x"}}', InputError, "has tasks"),
        ("[" * 100_000, InputError, "the file of an experiment"),
    ],
)
def test_damaged_or_foreign_lab_file_is_refused(tmp_path, content, error, rule):
    (tmp_path / "lab.json").write_text(content)
    with pytest.raises(error, match=rule):
        load_results(tmp_path)


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "many", None])
def test_other_workers_than_a_number_or_ray_are_refused(tmp_path, workers):
    with pytest.raises(InputError, match=r"workers = .*number of processes"):
        Experiment.begin(tmp_path, suite()).run(workers=workers)


def test_typo_is_refused_before_the_first_episode(tmp_path):
    """No task is played, and no model request is sent."""
    grid, typo = {"name": "grid", "env": GRID, "episodes": 1}, {"name": "typo", "env": "grid:", "episodes": 1}
    with pytest.raises(InputError, match=r"^task typo: .*") as refused:
        Experiment.begin(tmp_path / "a", suite(tasks=[grid, typo, {**typo, "name": "more", "env": "gird:S.G"}])).run()
    assert "Nothing was played. Other errors: task more: environment 'gird:S.G'" in refused.value.next_step
    later = {**grid, "transfer": [{"split": "new slots", "env": "textworld:nowhere.z8"}]}
    with pytest.raises(InputError, match=r"^task grid: .*nowhere"):
        Experiment.begin(tmp_path / "b", suite(tasks=[later])).run()
    with pytest.raises(ConfigError, match=r"model 'locale'.*Did you mean 'local'"):
        Experiment.begin(tmp_path / "c", suite(tasks=[grid], model="locale")).run()
    assert not list(tmp_path.rglob("episodes.jsonl"))


def test_environment_that_no_longer_opens_fails_its_own_runs_only(tmp_path, monkeypatch):
    """An environment that was played before is not checked before the first episode."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "vanishing_world.py").write_text("from seasoned.envs import Grid\nmake = lambda: Grid(['S.G'])\n")
    tasks = [
        {"name": "gone", "env": "python:vanishing_world:make", "episodes": 2},
        {"name": "grid", "env": GRID, "episodes": 2},
    ]
    experiment = Experiment.begin(tmp_path / "lab", suite(tasks=tasks, arms=[{"name": "alone"}], seeds=1))
    record = experiment.run().runs[0].folder / "episodes.jsonl"
    record.write_text(record.read_text().splitlines(keepends=True)[0])
    (tmp_path / "vanishing_world.py").unlink()
    gone, grid = experiment.run().runs
    assert (gone.done, len(gone.episodes)) == (False, 1)
    assert "vanishing_world" in gone.error
    assert grid.done


def test_changed_code_of_an_environment_is_detected(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    code = tmp_path / "changing_world.py"
    code.write_text("from seasoned.envs import Grid\nmake = lambda: Grid(['S.G'])\n")
    tasks = [{"name": "mine", "env": "python:changing_world:make", "episodes": 2}]
    experiment = Experiment.begin(tmp_path / "lab", suite(tasks=tasks, arms=[{"name": "alone"}], seeds=2))
    before = experiment.run().runs
    assert len({each.code for each in before}) == 1
    assert [[module for module, _ in each.code] for each in before] == [["changing_world"]] * 2
    record = before[1].folder / "episodes.jsonl"
    record.write_text(record.read_text().splitlines(keepends=True)[0])
    code.write_text(code.read_text() + "# mended\n")
    after = experiment.run().runs
    assert after[0].code == before[0].code
    assert after[1].done and after[1].code > before[1].code


def test_budget_in_dollars_needs_a_price(tmp_path):
    experiment = Experiment.begin(tmp_path, suite(model="openai:some-model"))
    with pytest.raises(InputError, match=r"budget of 2.*prices"):
        experiment.run(budget=ExperimentBudget(usd=2.0))


def test_session_is_recorded_at_its_start_and_the_first_command_is_kept(tmp_path):
    experiment = Experiment.begin(tmp_path, suite(seeds=1, arms=[{"name": "alone"}]))
    seen = []

    def look(line):
        seen.append(load_results(tmp_path).record)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment.run(command="lab run", progress=look)
    assert [(s["command"], "seconds" in s) for s in seen[0]["sessions"]] == [("lab run", False)]
    record = experiment.run(command="lab resume").record
    assert record["command"] == "lab run"
    assert [(s["command"], s["seconds"] >= 0) for s in record["sessions"]] == [("lab run", True), ("lab resume", True)]


def test_remaining_episodes_include_transfers(tmp_path, unbroken):
    experiment = Experiment.begin(tmp_path, suite())
    assert (
        load_results(tmp_path).remaining_episodes
        == sum(planned_episodes(experiment.suite, run) for run in experiment.suite.runs())
        == 24
    )
    lines = []

    def stop(line):
        lines.append(line)
        if len(lines) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment.run(progress=stop)
    assert load_results(tmp_path).remaining_episodes == 24 - 9
    assert experiment.run().remaining_episodes == 0
    assert outcome(tmp_path) == unbroken


def test_killed_or_concurrent_begin_is_harmless(tmp_path):
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "lab.json.tmp").write_text('{"format": 1, "su')
    (tmp_path / "killed" / "lock").touch()
    Experiment.begin(tmp_path / "killed", suite())
    barrier = threading.Barrier(8)

    def begin(number):
        barrier.wait()
        return Experiment.begin(tmp_path / "lab", suite()).suite

    with ThreadPoolExecutor(8) as pool:
        assert set(map(str, pool.map(begin, range(8)))) == {str(suite())}


def test_memories_are_filled_with_equal_episodes_outside_the_scores(tmp_path):
    filling = suite(fill_episodes=4, tasks=[{"name": "grid", "env": GRID, "episodes": 2}])
    runs = Experiment.begin(tmp_path / "whole", filling).run().runs
    assert [len(run.episodes) for run in runs] == [2, 2, 2, 2]
    whole = outcome(tmp_path / "whole")
    filled = {name: stored[:4] for name, (_, stored, _, _) in whole.items()}
    assert all(len(stored) == 6 for _, stored, _, _ in whole.values())
    assert filled["grid/alone/0"] == filled["grid/default/0"] != filled["grid/alone/1"]
    bare = Experiment.begin(tmp_path / "bare", dataclasses.replace(filling, fill_episodes=0)).run()
    first = {
        (name, str(run.key)): run.episodes[0] for name, each in (("whole", runs), ("bare", bare.runs)) for run in each
    }
    assert first["whole", "grid/alone/0"].score == first["bare", "grid/alone/0"].score
    assert first["whole", "grid/default/0"].memory_steps > 0 == first["bare", "grid/default/0"].memory_steps
    [flips], _ = audit_arms(load_results(tmp_path / "whole"), lambda arm: True)
    decided = [episode.steps for run in runs if run.key.arm == "default" for episode in run.episodes]
    assert flips.total.decisions == sum(decided), "what was drawn at random was nobody's decision"

    def breaks_off(*_):
        raise KeyboardInterrupt

    broken = Experiment.begin(tmp_path / "broken", filling)
    with pytest.raises(KeyboardInterrupt):
        broken.run(progress=breaks_off)
    Experiment.begin(tmp_path / "broken", filling).run()
    assert outcome(tmp_path / "broken") == whole


def test_report_remarks_on_states_that_never_recur(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    tasks = [{"name": "desk", "env": "python:faulty_worlds:Desk", "episodes": 12}]
    arms = [{"name": "alone"}, {"name": "means", "kind": "jitrl", "settings": {"preset": "means"}}]
    found, record = {}, {}
    for name, changes in (("words", {}), ("masked", {"encoder": "masked"})):
        experiment = Experiment.begin(tmp_path / name, suite(tasks=tasks, arms=arms, seeds=1, **changes))
        bench = Workbench(experiment.folder, tmp_path / "answers.db")
        assert all(bench.play(run, lambda *_: None) for run in experiment.suite.runs())
        bench.close()
        home = tmp_path / name / "runs" / "desk" / "means" / "0"
        assert Memory.namespaces(home / "memory.db") == {"default": ENCODERS[name].identity}
        record[name] = json.loads((home / "run.json").read_text())["settings"]
        found[name] = analyze(load_results(tmp_path / name))
        assert found[name].unread == (), "its memory is audited with the encoder that made it"
        assert found[name].flips[0].total.decisions > 0
    assert set(record["masked"]) - set(record["words"]) == {"encoder"}, "older runs can be resumed"
    (remark,) = found["words"].caveats_of("means").remarks
    command = f"seasoned memory doctor {tmp_path}/words/runs/desk/means/0/memory.db"
    assert remark.startswith("memory shifted 0 of ") and remark.endswith(f" decisions: see `{command}`")
    assert found["masked"].caveats_of("means").remarks == found["words"].caveats_of("alone").remarks == ()
    written = write_report(load_results(tmp_path / "words"), tmp_path / "words", width=None)
    assert f"  {remark}\n" in f"{written.summary}\n"
    assert f"M{remark[1:]}." in written.html.read_text(encoding="utf-8")


def test_fill_episodes_is_a_number_and_excludes_that_of_a_cascade(tmp_path):
    for value in (-1, 1.5, True, "4"):
        with pytest.raises(InputError, match="fill_episodes"):
            suite(fill_episodes=value)
    cascade = {
        "name": "taught",
        "kind": "cascade",
        "settings": {"teacher": "uniform", "mode": "logits", "fill_episodes": 1},
    }
    with pytest.raises(InputError, match="the suite's fill_episodes = 2"):
        Experiment.begin(tmp_path / "lab", suite(fill_episodes=2, arms=[{"name": "alone"}, cascade]))
    assert not (tmp_path / "lab").exists()
