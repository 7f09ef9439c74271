"""`seasoned lab`: run, resume, report and compare; refusals."""

import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from seasoned.cli.lab import lab
from seasoned.errors import InputError, NotFoundError
from seasoned.lab.results.run_results import load_results

MAIN = "from seasoned.cli import main; main()"


ESCAPING = """
from seasoned.envs import Grid


class Escaping(Grid):
    def __init__(self):
        super().__init__(["S.G"], max_steps=4)

    async def step(self, action):
        raise ValueError("boo \\x1b[2J\\x1b]0;pwn\\x07")


class Hanging(Grid):
    def __init__(self):
        super().__init__(["S.G"], max_steps=4)

    async def step(self, action):
        import asyncio

        await asyncio.sleep(3600)
"""


def run(*arguments):
    done = CliRunner().invoke(lab, [str(a) for a in arguments], catch_exceptions=False, standalone_mode=False)
    return done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("lab") / "quick"
    output = run("run", "quick", "--out", home, "--seeds", 2, "--episodes", 3, "--audit", "none")
    assert "6 runs, 18 episodes to play" in " ".join(output.split())
    assert f"report in {home}" in output.replace("\n", "")
    return home


def test_list_names_every_suite_with_its_size():
    output = " ".join(run("list").split())
    assert "quick: Does memory" in output
    assert "1 task, 3 arms, 10 seeds; 600 episodes, model uniform" in output


def test_repeated_command_plays_nothing_and_another_experiment_is_refused(folder):
    before = load_results(folder).runs
    output = run("run", "quick", "--out", folder, "--seeds", 2, "--episodes", 3, "--audit", "none")
    assert "0 episodes to play" in " ".join(output.split())
    assert load_results(folder).runs == before
    with pytest.raises(Exception, match="another experiment"):
        run("run", "quick", "--out", folder, "--seeds", 3)


def test_budget_stops_an_experiment_and_resume_continues_it(tmp_path):
    home = tmp_path / "x"
    output = run("run", "quick", "--out", home, "--seeds", 1, "--episodes", 2, "--max-seconds", 1e-9, "--audit", "none")
    assert "3 of 3 runs are not finished" in " ".join(output.split())
    output = run("resume", home, "--audit", "none")
    assert "3 of 3 runs finished" in output
    assert all(cell.done for cell in load_results(home).runs)


def test_arms_and_tasks_can_be_selected_but_not_without_the_reference(tmp_path):
    run("run", "quick", "--out", tmp_path / "x", "--arms", "alone, default", "--seeds", 1, "--episodes", 1)
    assert {cell.key.arm for cell in load_results(tmp_path / "x").runs} == {"alone", "default"}
    with pytest.raises(InputError, match=r"--arms plcebo.*Did you mean 'placebo'"):
        run("run", "quick", "--out", tmp_path / "y", "--arms", "alone,plcebo")
    with pytest.raises(InputError, match="reference 'alone'"):
        run("run", "quick", "--out", tmp_path / "y", "--arms", "default")
    assert not (tmp_path / "y").exists()


def test_report_and_compare(folder, tmp_path):
    assert "report in" in run("report", folder, "--out", tmp_path, "--audit", "none")
    page = (tmp_path / "report.html").read_text()
    assert "seasoned" in page
    assert json.loads((tmp_path / "report.json").read_text())
    comparison = json.loads(run("compare", folder, folder, "--json"))
    assert {change["difference"]["mean"] for change in comparison["changes"]} == {0.0}
    assert "0.000" in run("compare", folder, folder)


def test_missing_suite_or_folder_is_refused(tmp_path):
    for command in ("resume", "report"):
        with pytest.raises(NotFoundError, match=r"no lab\.json"):
            run(command, tmp_path)
    with pytest.raises(InputError, match=r"--workers many.*number of processes"):
        run("run", "quick", "--out", tmp_path / "x", "--workers", "many")
    assert not (tmp_path / "x").exists()


def test_equal_failures_are_printed_once_and_other_runs_continue(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "escaping_world.py").write_text(ESCAPING)
    suite = tmp_path / "mine.toml"
    suite.write_text(
        'name = "mine"\nmodel = "uniform"\nseeds = 2\n'
        '[[tasks]]\nname = "story"\nenv = "python:escaping_world:Escaping"\nepisodes = 1\n'
        '[[tasks]]\nname = "grid"\nenv = "grid:S.G"\nepisodes = 1\n'
        '[[arms]]\nname = "alone"\n'
    )
    command = [sys.executable, "-c", MAIN, "lab", "run", suite, "--out", tmp_path / "x", "--audit", "none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    output = " ".join(done.stdout.split())
    assert output.count("failed: story/alone/0 and 1 more:") == 1
    assert "2 of 4 runs are not finished" in output
    assert done.returncode == 1, done.stderr


def test_error_text_of_an_environment_is_escaped_and_a_hang_is_ended(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "escaping_world.py").write_text(ESCAPING)
    suite = tmp_path / "mine.toml"
    suite.write_text(
        'name = "mine"\nabout = "a\\u001b[2Jb"\nmodel = "uniform"\nseeds = 1\n'
        '[[tasks]]\nname = "esc"\nenv = "python:escaping_world:Escaping"\nepisodes = 1\n'
        '[[tasks]]\nname = "hang"\nenv = "python:escaping_world:Hanging"\nepisodes = 1\n'
        '[[arms]]\nname = "alone"\n'
    )
    done = CliRunner().invoke(
        lab, ["run", str(suite), "--out", str(tmp_path / "x"), "--max-episode-seconds", "0.5", "--audit", "none"]
    )
    assert done.exit_code == 1
    assert not set(done.output) & set(map(chr, range(32))) - {"\n"}
    assert r"boo \x1b[2J\x1b]0;pwn\x07" in done.output
    assert "episode 0 has not ended: an episode has at most 0.5 seconds" in " ".join(done.output.split())


def test_episodes_to_play_include_transfer_episodes(tmp_path):
    suite = tmp_path / "mine.toml"
    suite.write_text(
        'name = "mine"\nmodel = "uniform"\nseeds = 2\n[[arms]]\nname = "alone"\n'
        '[[tasks]]\nname = "grid"\nenv = "grid:S.G"\nepisodes = 3\n'
        'transfer = [{ split = "new slots", env = "grid:S..G", episodes = 2 }]\n'
    )
    output = run("run", suite, "--out", tmp_path / "x", "--audit", "none")
    assert "2 runs, 10 episodes to play" in " ".join(output.split())
    assert "10/10 episodes" in output
    assert "0 episodes to play" in " ".join(run("resume", tmp_path / "x", "--audit", "none").split())


def test_compare_lists_arms_and_tasks_of_only_one_experiment(folder, tmp_path):
    run(
        "run",
        "quick",
        "--out",
        tmp_path / "x",
        "--seeds",
        2,
        "--episodes",
        3,
        "--arms",
        "alone,default",
        "--audit",
        "none",
    )
    assert "arms, placebo: only in the first" in " ".join(run("compare", folder, tmp_path / "x").split())
    assert "arms, placebo: only in the second" in " ".join(run("compare", tmp_path / "x", folder).split())


def test_more_seeds_than_a_suite_may_have_are_refused(tmp_path):
    with pytest.raises(click.BadParameter, match="1<=x<=1000"):
        run("run", "quick", "--seeds", 10**11, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
