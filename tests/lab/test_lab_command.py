"""The output and the files of `seasoned lab`: after refusals, after interruptions, in a pipe."""

import signal
import subprocess
import sys

from click.testing import CliRunner

from seasoned.cli.lab import lab
from seasoned.errors import UnknownNameError

MAIN = """
import signal
from seasoned.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and their children, ignore it
main()
"""


def test_refusal_prints_and_leaves_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(lab, ["run", "quick", "--model", "lokal", "--seeds", "1"])
    assert isinstance(done.exception, UnknownNameError)
    assert done.output == ""
    assert list(tmp_path.iterdir()) == []


def test_last_line_of_an_interrupted_run_is_the_command_that_resumes_it(tmp_path):
    home = tmp_path / ("a-long-name-of-a-folder" * 4)
    command = [sys.executable, "-c", MAIN, "lab", "run", "quick", "--out", home, "--audit", "none", "--seeds", "200"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if line.startswith("20/"):  # long before the end, so that the signal comes in time
            break
    process.send_signal(signal.SIGINT)
    lines = process.stdout.read().splitlines()
    assert process.wait() == 130
    assert lines[-1].startswith("interrupted, ")
    assert lines[-1].endswith(f"resume with: seasoned lab resume {home}")


def test_comparison_states_the_compared_episodes(tmp_path):
    for name, episodes in (("few", "1"), ("more", "3")):
        arguments = ["run", "quick", "--out", str(tmp_path / name), "--seeds", "1", "--arms", "alone"]
        CliRunner().invoke(lab, [*arguments, "--episodes", episodes, "--audit", "none"], catch_exceptions=False)
    done = CliRunner().invoke(lab, ["compare", str(tmp_path / "few"), str(tmp_path / "more")])
    assert done.output.splitlines()[1].endswith(", over the first episode of 3")
