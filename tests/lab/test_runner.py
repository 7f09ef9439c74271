"""Experiments run to their end whatever breaks them off, and end as if nothing had been."""

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
    assert all(cell.done and cell.error is None for cell in results.runs)
    assert len(results.runs) == 8
    return outcome(folder)


def test_arms_play_the_same_instances_and_only_memory_differs(unbroken):
    alone, default = unbroken["grid/alone/0"], unbroken["grid/default/0"]
    first = [facts[0][0][0][:2] for facts in (alone, default)]
    assert first[0] == first[1], "without experience, memory is the model alone"
    assert unbroken["grid/alone/0"][1] != unbroken["grid/alone/1"][1], "seeds differ"


def test_a_transfer_is_played_and_not_learned_from(unbroken):
    scores, stored, _, _ = unbroken["grid/default/0"]
    assert [len(played) for played in scores] == [2, 1]
    assert len(stored) == 2


def test_processes_end_as_one_process_does(unbroken, tmp_path):
    told = []
    Experiment.begin(tmp_path / "lab", suite()).run(workers=2, progress=told.append)
    assert outcome(tmp_path / "lab") == unbroken
    assert len(told) == 2 * (2 * 3 + 2 * 3)
    assert not (tmp_path / "lab" / "progress.jsonl").exists()


def test_kill_9_anywhere_and_resume_end_as_if_nothing_had_been(unbroken, tmp_path):
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
        if (folder / "lab.json").exists() and all(cell.done for cell in load_results(folder).runs):
            break
    assert kills >= 3
    assert outcome(folder) == {name: found for name, found in unbroken.items() if name.endswith("/0")}


def test_a_run_that_crashes_stops_no_other_and_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    (marks := tmp_path / "marks").mkdir()
    faulty = f"python:faulty_worlds:Faulty?how=crash&marks={marks}&times=2"
    tasks = [{"name": "bad", "env": faulty, "episodes": 4}, {"name": "good", "env": GRID, "episodes": 2}]
    experiment = Experiment.begin(tmp_path / "lab", suite(tasks=tasks, seeds=1))
    results = experiment.run()
    errors = {str(cell.key): cell.error for cell in results.runs}
    assert errors["good/alone/0"] is errors["good/default/0"] is None
    assert errors["bad/alone/0"] == errors["bad/default/0"] == "ZeroDivisionError: <script>alert(1)</script>"
    assert [cell.done for cell in results.runs] == [False, False, True, True]
    again = experiment.run()
    assert all(cell.done and cell.error is None for cell in again.runs)


@pytest.mark.parametrize(
    ("workers", "times", "done"), [(1, 1, False), (2, 4, False), pytest.param(2, 1, True, marks=pytest.mark.slow)]
)
def test_a_worker_that_dies_is_replaced(tmp_path, monkeypatch, workers, times, done):
    """With one, the guilty run is known at once; of several, each is played again by itself."""
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
        assert all(cell.done for cell in experiment.run().runs), "it is tried again"


def test_a_spent_budget_stops_after_the_episode_in_flight_and_resume_goes_on(unbroken, tmp_path):
    experiment = Experiment.begin(tmp_path, suite())
    told = []
    results = experiment.run(budget=ExperimentBudget(seconds=1e-9), progress=told.append)
    assert told == []
    assert not any(cell.done for cell in results.runs)
    assert results.record["sessions"][0]["stopped"].startswith("seconds")
    experiment.run()
    assert outcome(tmp_path) == unbroken


@pytest.mark.slow
def test_a_borrowed_budget_needs_the_run_that_it_is_of(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    pytest.importorskip("xllamacpp", reason="the extra local is not installed")
    (marks := tmp_path / "marks").mkdir()
    tasks = [{"name": "bad", "env": f"python:faulty_worlds:Faulty?how=raise&marks={marks}&at=2", "episodes": 2}]
    arms = [{"name": "tries", "kind": "retries", "budget_of": "alone"}, {"name": "alone"}]
    asked = suite(tasks=tasks, arms=arms, seeds=1)
    with pytest.raises(InputError, match=r"arm tries, budget_of = 'alone'.*a budget of tokens needs a model"):
        Experiment.begin(tmp_path / "lab", asked).run()
    results = Experiment.begin(tmp_path / "lab", dataclasses.replace(asked, model="local")).run()
    cells = {cell.key.arm: cell for cell in results.runs}
    assert cells["alone"].error.startswith("the world: it ended")
    assert "bad/alone/0 has 0 of 2 episodes" in cells["tries"].error
    assert cells["alone"].episodes == ()
    assert cells["alone"].lost.calls + cells["alone"].lost.cached_calls >= 2, "what was asked for nothing is counted"
    assert cells["alone"].lost.tokens > 0
    assert cells["tries"].lost.calls == 0


def test_a_finished_experiment_is_left_alone(tmp_path):
    experiment = Experiment.begin(tmp_path, suite(seeds=1))
    experiment.run()
    before = outcome(tmp_path)
    told = []
    Experiment.find(tmp_path).run(progress=told.append)
    assert told == []
    assert outcome(tmp_path) == before


def test_two_at_once_in_one_folder_are_refused(tmp_path):
    experiment = Experiment.begin(tmp_path, suite(seeds=1))
    seen = []

    def other(line):
        if not seen:
            seen.append(line)
            with pytest.raises(ConfigError, match=r"being run.*one process at a time"):
                Experiment.find(tmp_path).run()

    experiment.run(progress=other)
    assert seen


def test_a_suite_that_could_not_be_played_can_be_corrected(tmp_path):
    tasks = [{"name": "grid", "env": "gird:S.G", "episodes": 1}]
    with pytest.raises(InputError, match=r"task grid: environment 'gird:S.G'.*Did you mean 'grid'"):
        Experiment.begin(tmp_path, suite(tasks=tasks, seeds=1)).run()
    right = Experiment.begin(tmp_path, suite(tasks=[{**tasks[0], "env": "grid:S.G"}], seeds=1)).run()
    assert all(cell.done and cell.error is None for cell in right.runs)


def test_a_folder_is_of_one_experiment(tmp_path):
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
        ('{"format": "1", "suite": {}}', InputError, "own file"),
        ('{"format": true, "suite": {}}', InputError, "own file"),
        ("{", InputError, "own file"),
        ("[]", InputError, "own file"),
        ('{"format": 1, "suite": {"name": "x"}}', InputError, "has tasks"),
        ("[" * 100_000, InputError, "own file"),
    ],
)
def test_a_file_from_elsewhere_is_refused(tmp_path, content, error, rule):
    (tmp_path / "lab.json").write_text(content)
    with pytest.raises(error, match=rule):
        load_results(tmp_path)


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "many", None])
def test_workers_are_a_number_or_ray(tmp_path, workers):
    with pytest.raises(InputError, match=r"workers = .*number of processes"):
        Experiment.begin(tmp_path, suite()).run(workers=workers)


def test_a_typo_ends_it_at_once(tmp_path):
    """Nothing is played, and no model is asked: not for the task that opens either."""
    grid, typo = {"name": "grid", "env": GRID, "episodes": 1}, {"name": "typo", "env": "grid:", "episodes": 1}
    with pytest.raises(InputError, match=r"^task typo: .*") as refused:
        Experiment.begin(tmp_path / "a", suite(tasks=[grid, typo, {**typo, "name": "more", "env": "gird:S.G"}])).run()
    assert "Nothing was played. Also in trouble: task more: environment 'gird:S.G'" in refused.value.next_step
    later = {**grid, "transfer": [{"split": "new slots", "env": "textworld:nowhere.z8"}]}
    with pytest.raises(InputError, match=r"^task grid: .*nowhere"):
        Experiment.begin(tmp_path / "b", suite(tasks=[later])).run()
    with pytest.raises(ConfigError, match=r"model 'locale'.*Did you mean 'local'"):
        Experiment.begin(tmp_path / "c", suite(tasks=[grid], model="locale")).run()
    assert not list(tmp_path.rglob("episodes.jsonl"))


def test_what_opens_no_more_is_the_trouble_of_its_own_runs(tmp_path, monkeypatch):
    """An environment that was played once is not a typo: the others go on."""
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


def test_code_that_changed_between_two_parts_of_a_run_is_known(tmp_path, monkeypatch):
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


def test_dollars_need_a_price(tmp_path):
    experiment = Experiment.begin(tmp_path, suite(model="openai:some-model"))
    with pytest.raises(InputError, match=r"budget of 2.*prices"):
        experiment.run(budget=ExperimentBudget(usd=2.0))


def test_a_session_is_in_the_record_while_it_runs_and_the_first_command_stays(tmp_path):
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


def test_what_is_left_counts_the_transfers(tmp_path, unbroken):
    experiment = Experiment.begin(tmp_path, suite())
    assert (
        load_results(tmp_path).left
        == sum(planned_episodes(experiment.suite, cell) for cell in experiment.suite.runs())
        == 24
    )
    told = []

    def stop(line):
        told.append(line)
        if len(told) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment.run(progress=stop)
    assert load_results(tmp_path).left == 24 - 9
    assert experiment.run().left == 0
    assert outcome(tmp_path) == unbroken


def test_a_begin_that_was_killed_or_is_not_alone_does_no_harm(tmp_path):
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


def test_every_memory_is_filled_with_the_same_first_and_no_score_counts_it(tmp_path):
    filling = suite(fill_episodes=4, tasks=[{"name": "grid", "env": GRID, "episodes": 2}])
    cells = Experiment.begin(tmp_path / "whole", filling).run().runs
    assert [len(cell.episodes) for cell in cells] == [2, 2, 2, 2]
    whole = outcome(tmp_path / "whole")
    filled = {name: stored[:4] for name, (_, stored, _, _) in whole.items()}
    assert all(len(stored) == 6 for _, stored, _, _ in whole.values())
    assert filled["grid/alone/0"] == filled["grid/default/0"] != filled["grid/alone/1"]
    bare = Experiment.begin(tmp_path / "bare", dataclasses.replace(filling, fill_episodes=0)).run()
    first = {
        (name, str(cell.key)): cell.episodes[0]
        for name, each in (("whole", cells), ("bare", bare.runs))
        for cell in each
    }
    assert first["whole", "grid/alone/0"].score == first["bare", "grid/alone/0"].score
    assert first["whole", "grid/default/0"].memory_steps > 0 == first["bare", "grid/default/0"].memory_steps
    [flips], _ = audit_arms(load_results(tmp_path / "whole"), lambda arm: True)
    decided = [episode.steps for cell in cells if cell.key.arm == "default" for episode in cell.episodes]
    assert flips.total.decisions == sum(decided), "what was drawn at random was nobody's decision"

    def breaks_off(*_):
        raise KeyboardInterrupt

    broken = Experiment.begin(tmp_path / "broken", filling)
    with pytest.raises(KeyboardInterrupt):
        broken.run(progress=breaks_off)
    Experiment.begin(tmp_path / "broken", filling).run()
    assert outcome(tmp_path / "broken") == whole


def test_states_that_never_come_back_need_an_encoder_and_the_report_says_so(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    tasks = [{"name": "desk", "env": "python:faulty_worlds:Desk", "episodes": 12}]
    arms = [{"name": "alone"}, {"name": "default", "kind": "jitrl"}]
    found, record = {}, {}
    for name, changes in (("words", {}), ("masked", {"encoder": "masked"})):
        experiment = Experiment.begin(tmp_path / name, suite(tasks=tasks, arms=arms, seeds=1, **changes))
        bench = Workbench(experiment.folder, tmp_path / "answers.db")
        assert all(bench.play(cell, lambda *_: None) for cell in experiment.suite.runs())
        bench.close()
        home = tmp_path / name / "runs" / "desk" / "default" / "0"
        assert Memory.namespaces(home / "memory.db") == {"default": ENCODERS[name].identity}
        record[name] = json.loads((home / "run.json").read_text())["settings"]
        found[name] = analyze(load_results(tmp_path / name))
        assert found[name].unread == (), "its memory is audited with the encoder that made it"
        assert found[name].flips[0].total.decisions > 0
    assert set(record["masked"]) - set(record["words"]) == {"encoder"}, "a run from before there was a choice goes on"
    (remark,) = found["words"].caveats_of("default").remarks
    command = f"seasoned memory doctor {tmp_path}/words/runs/desk/default/0/memory.db"
    assert remark.startswith("memory shifted 0 of ") and remark.endswith(f" decisions: see `{command}`")
    assert found["masked"].caveats_of("default").remarks == found["words"].caveats_of("alone").remarks == ()
    monkeypatch.setattr("seasoned.lab.report.report.draw_pictures", lambda *_: {})
    written = write_report(load_results(tmp_path / "words"), tmp_path / "words", width=None)
    assert f"  {remark}\n" in f"{written.summary}\n"
    assert f"M{remark[1:]}." in written.html.read_text(encoding="utf-8")


def test_a_filling_is_a_number_and_a_cascade_has_its_own(tmp_path):
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
