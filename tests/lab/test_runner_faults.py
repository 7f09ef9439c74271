"""Faults of environments, processes and disks: each affects its own run only."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import faulty_worlds
import pytest
from small_experiments import GRID, HERE, outcome, suite

from seasoned.lab.results.run_results import load_results, run_folder
from seasoned.lab.runner.child_processes import open_processes
from seasoned.lab.runner.experiment import Experiment
from seasoned.lab.runner.file_lock import hold_lock
from seasoned.lab.runner.schedule import Schedule
from seasoned.lab.runner.workers import Job


def faulty(how, marks, **settings):
    """Return the specification of a faulty environment, and its counter file."""
    marks.mkdir(parents=True, exist_ok=True)
    return "&".join(
        [f"python:faulty_worlds:Faulty?how={how}", f"marks={marks}", *(f"{k}={v}" for k, v in settings.items())]
    )


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def deaf():
    """Ignore Ctrl-C, as a shell does for background jobs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("number", "whole_group", "before", "code"),
    [
        (signal.SIGKILL, False, None, -signal.SIGKILL),
        pytest.param(signal.SIGTERM, False, None, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, True, None, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, True, deaf, 130, marks=pytest.mark.slow, id="deaf"),
    ],
)
def test_workers_end_with_their_experiment_and_resuming_gives_equal_results(
    request, tmp_path, number, whole_group, before, code
):
    """Both workers hang in an episode, so a worker that is not interrupted would never end."""
    marks, folder = tmp_path / "marks", tmp_path / "lab"
    planned = suite(
        tasks=[{"name": "a", "env": faulty("hang", marks, times=2, at=20), "episodes": 4}], arms=[{"name": "alone"}]
    )
    Experiment.begin(folder, planned)
    process = subprocess.Popen(
        [sys.executable, "-c", "from seasoned.cli import main; main()", "lab", "resume", folder, "--workers", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        start_new_session=True,
        preexec_fn=before,  # noqa: PLW1509 - nothing else runs in this process yet
    )
    request.addfinalizer(process.kill)  # whatever fails here, it does not hang on
    until = time.monotonic() + 60
    while len(list(marks.iterdir())) < 2 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    pids = [int(mark.name.partition("-")[0]) for mark in marks.iterdir()]
    assert len(set(pids)) == 2, process.poll()
    assert all(map(is_alive, pids))
    (os.killpg if whole_group else os.kill)(process.pid, number)
    assert process.wait(60) == code

    sys.path.insert(0, str(HERE))
    try:
        Experiment.find(folder).run()  # at once: it waits until the workers of the other have gone
        assert not any(map(is_alive, pids))
        Experiment.begin(tmp_path / "unbroken", planned).run()
    finally:
        sys.path.remove(str(HERE))
    assert outcome(folder) == outcome(tmp_path / "unbroken")
    for run in planned.runs():
        lines = (run_folder(folder, run) / "episodes.jsonl").read_text().splitlines()
        assert [json.loads(line)["episode"] for line in lines] == list(range(4))


@pytest.mark.slow
def test_worker_that_ignores_the_interrupt_is_killed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    with pytest.raises(KeyboardInterrupt), open_processes(1) as processes:
        future = processes.submit(faulty_worlds.stubborn, str(tmp_path / "mark"))
        while not (tmp_path / "mark").exists():
            time.sleep(0.02)
        raise KeyboardInterrupt
    assert isinstance(future.exception(10), BrokenProcessPool)


def test_run_locked_by_another_process_is_waited_for(tmp_path):
    experiment = Experiment.begin(tmp_path, suite(seeds=1, arms=[{"name": "alone"}]))
    home = run_folder(tmp_path, experiment.suite.runs()[0])
    home.mkdir(parents=True)
    held, ended = threading.Event(), []

    def other():
        with hold_lock(home / "lock", "test"):
            held.set()
            time.sleep(0.5)
            ended.append(time.monotonic())

    thread = threading.Thread(target=other)
    thread.start()
    held.wait()
    first = []
    results = experiment.run(progress=lambda line: first.append(time.monotonic()))
    thread.join()
    assert first[0] >= ended[0]
    assert all(run.done for run in results.runs)


FAULTS = {
    "raise": "the world: it ended. Begin another.",
    "exit": "SystemExit: 3",
    "exit-beside": "SystemExit: 4",
    "cancel": "CancelledError",
    "generator": "GeneratorExit",
    "long": "ValueError: " + "x" * (2000 - len("ValueError: ")),
    "surrogate": r"ValueError: no file \udcff" + "\x1b[2J",
    "unspeakable": "Unspeakable: (the error has no readable message)",
    "timeout": "TimeoutError: of its own",
    "hang": "Faulty?how=hang: episode 2 has not ended: an episode has at most 0.5 seconds",
    "nan": "= nan: reward of python:faulty_worlds:Faulty?how=nan must be finite",
    "infinite": "= inf: reward of python:faulty_worlds:Faulty?how=infinite must be finite",
    "text": "= '1': reward of python:faulty_worlds:Faulty?how=text must be a number",
}


def test_faulty_environment_fails_its_own_run_only(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    tasks = [{"name": how, "env": faulty(how, tmp_path / how, at=14), "episodes": 3} for how in FAULTS]
    tasks.append({"name": "spoiled", "env": "python:faulty_worlds:Spoiled", "episodes": 1})
    tasks.append({"name": "close", "env": faulty("close", tmp_path / "close", at=99), "episodes": 1})
    tasks.append({"name": "good", "env": GRID, "episodes": 1})
    planned = suite(tasks=tasks, arms=[{"name": "alone"}], seeds=1, budget={"episode_seconds": 0.5})
    experiment = Experiment.begin(tmp_path / "lab", planned)
    results = {run.key.task: run for run in experiment.run().runs}
    assert results["good"].done
    assert results["close"].done, "all of it was played"
    for how, message in FAULTS.items():
        assert message in results[how].error, how
        assert len(results[how].episodes) == 2, how
        text = (results[how].folder / "error.json").read_text()
        assert len(text) < 50_000, how
        json.loads(text)["traceback"].encode()
    assert "= nan: score of " in results["spoiled"].error and "must be finite" in results["spoiled"].error
    again = {run.key.task: run for run in experiment.run().runs}
    assert all(again[how].done and again[how].error is None for how in FAULTS)


def test_episode_that_blocks_its_thread_is_ended_with_its_process(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    tasks = [
        {"name": "busy", "env": faulty("spin", tmp_path / "marks", at=14), "episodes": 3},
        {"name": "good", "env": GRID, "episodes": 1},
    ]
    planned = suite(tasks=tasks, arms=[{"name": "alone"}], seeds=1, budget={"episode_seconds": 0.5})
    experiment = Experiment.begin(tmp_path / "lab", planned)
    busy, good = experiment.run().runs
    assert good.done
    assert len(busy.episodes) == 2
    assert "an episode has not ended, and could not be interrupted: faulty_worlds.py, line" in busy.error
    assert "in _fail: an episode ends within 0.5 seconds" in busy.error
    assert "faulty_worlds.py" in json.loads((busy.folder / "error.json").read_text())["traceback"]
    busy, _ = experiment.run().runs
    assert busy.done and busy.error is None


DAMAGE = {
    "episodes.jsonl": (b'{"episode": 0}\n', "intact record"),
    "run.json": (b"{", None),
    "memory.db": (b"not a database, and longer than its header", "SQLite"),
    "error.json": (b"\x00", "error.json cannot be read"),
}


@pytest.mark.parametrize(("name", "content", "message"), [(name, *how) for name, how in DAMAGE.items()])
def test_damaged_file_fails_one_run(tmp_path, name, content, message):
    experiment = Experiment.begin(
        tmp_path, suite(seeds=3, arms=[{"name": "alone"}], tasks=[{"name": "grid", "env": "grid:S.G", "episodes": 2}])
    )
    experiment.run()
    _, broken, last = (run_folder(tmp_path, run) for run in experiment.suite.runs())
    record = (
        broken / "episodes.jsonl"
    ).read_bytes()  # as a kill in the second run leaves it: one episode, and no third run
    (broken / "episodes.jsonl").write_bytes(record[: record.index(b"\n") + 1])
    shutil.rmtree(last)
    (broken / name).write_bytes(content)
    runs = load_results(tmp_path).runs
    assert [run.done for run in runs] == [True, False, False]
    assert message is None or message in runs[1].error
    runs = experiment.run().runs
    mended = name == "error.json"  # the run is resumed without this file
    assert [run.done for run in runs] == [True, mended, True]
    assert [run.error is None for run in runs] == [True, mended, True]


def test_empty_error_file_is_reported(tmp_path):
    experiment = Experiment.begin(tmp_path, suite(seeds=1, arms=[{"name": "alone"}]))
    before = experiment.run().runs[0]
    file = before.folder / "episodes.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    for content in ("", '{"episode": 2, "sc', "[" * 100_000):
        file.write_text("".join(lines[:2]))
        (before.folder / "prepared.json").write_text(content)
        after = experiment.run().runs[0]
        assert after.done and after.error is None
        assert [episode.score for episode in after.episodes] == [episode.score for episode in before.episodes]
        assert after.episodes[2].usage.cost_usd is None


def test_older_records_are_read_and_newer_ones_refused(tmp_path):
    experiment = Experiment.begin(tmp_path, suite(seeds=1, arms=[{"name": "alone"}]))
    before = experiment.run().runs[0]
    file = before.folder / "episodes.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]

    def rewritten(change):
        file.write_text("".join(json.dumps(change(line)) + "\n" for line in lines))
        return load_results(tmp_path).runs[0]

    earlier = rewritten(lambda line: {k: v for k, v in line.items() if k not in ("late_rewards", "environment_s")})
    assert [episode.score for episode in earlier.episodes] == [episode.score for episode in before.episodes]
    assert {(episode.late_rewards, episode.environment_s) for episode in earlier.episodes} == {((), 0.0)}
    for change in (lambda line: line | {"mood": 1}, lambda line: line | {"usage": line["usage"] | {"joules": 1}}):
        later = rewritten(change)
        assert (later.done, later.episodes) == (False, ())
        assert "a newer seasoned wrote this field" in later.error
    spoiled = rewritten(lambda line: line | {"score": float("nan")})
    assert "score = nan" in spoiled.error


def test_pool_that_breaks_between_runs_loses_none(tmp_path):
    """The only worker ends before the run is submitted."""
    experiment = Experiment.begin(tmp_path, suite(seeds=1, arms=[{"name": "alone"}]))
    runs = experiment.suite.runs()
    job = Job(str(tmp_path), str(tmp_path / "answers.db"))
    schedule = Schedule(tmp_path, experiment.suite, job, lambda *episode: None)

    class Local:
        def submit(self, function, *arguments):
            return processes.submit(print, *arguments)

    with open_processes(1) as processes:
        with pytest.raises(BrokenProcessPool):
            processes.submit(os._exit, 7).result(60)
        left = list(runs)
        assert schedule._play_with(Local(), left, {}) is True
    assert left == runs


def test_workers_resolve_a_relative_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(HERE)
    tasks = [
        {"name": "a", "env": faulty("move", tmp_path / "marks", at=2), "episodes": 2},
        {"name": "b", "env": GRID, "episodes": 2},
    ]
    results = Experiment.begin(Path("lab"), suite(tasks=tasks, arms=[{"name": "alone"}], seeds=1)).run(workers=2)
    assert [(run.done, run.error) for run in results.runs] == [(True, None)] * 2


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_main_program_needs_no_guard(tmp_path, workers):
    """A worker does not import the main program."""
    Experiment.begin(tmp_path / "lab", suite())
    program = tmp_path / "program.py"
    program.write_text(
        "from pathlib import Path\n"
        "from seasoned.lab.runner.experiment import Experiment\n"
        f"Experiment.find(Path({str(tmp_path / 'lab')!r})).run(workers={workers})\n"
        "print('once')\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "once\n"), done.stderr
    assert all(run.done for run in load_results(tmp_path / "lab").runs)
