"""What `seasoned lab` says and leaves behind: where it refuses, where it is interrupted, in a pipe."""

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


def test_what_is_refused_says_nothing_before_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(lab, ["run", "quick", "--model", "lokal", "--seeds", "1"])
    assert isinstance(done.exception, UnknownNameError)
    assert done.output == ""
    assert list(tmp_path.iterdir()) == []


def test_the_last_line_of_an_interrupted_run_goes_on_with_it_and_none_is_wrapped(tmp_path):
    home = tmp_path / ("a-long-name-of-a-folder" * 4)
    command = [sys.executable, "-c", MAIN, "lab", "run", "quick", "--out", home, "--audit", "none", "--seeds", "200"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if line.startswith("20/"):  # of so many that it cannot end before the signal comes
            break
    process.send_signal(signal.SIGINT)
    said = process.stdout.read().splitlines()
    assert process.wait() == 130
    assert said[-1].startswith("interrupted, ")
    assert said[-1].endswith(f"resume with: seasoned lab resume {home}")


def test_two_experiments_say_over_which_episodes_they_are_compared(tmp_path):
    for name, episodes in (("few", "1"), ("more", "3")):
        arguments = ["run", "quick", "--out", str(tmp_path / name), "--seeds", "1", "--arms", "alone"]
        CliRunner().invoke(lab, [*arguments, "--episodes", episodes, "--audit", "none"], catch_exceptions=False)
    done = CliRunner().invoke(lab, ["compare", str(tmp_path / "few"), str(tmp_path / "more")])
    assert done.output.splitlines()[1].endswith(", over the first episode of 3")
