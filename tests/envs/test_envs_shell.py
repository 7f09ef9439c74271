"""The shell: every process of a command is killed, and limits hold."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from seasoned.envs.files.file_tree import read_tree
from seasoned.envs.shell.shell import Shell, ShellLimits
from seasoned.errors import EnvError, InputError
from seasoned.sync import Sync

LIMITS = ShellLimits(
    timeout_s=60.0,
    max_output_bytes=1_000,
    max_written_bytes=1 << 20,
    max_disk_bytes=4 << 20,
    max_file_bytes=2 << 20,
    max_files=200,
    max_processes=20,
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="only on Linux every descendant is found")


@pytest.fixture(scope="module")
def shell():
    with Sync(Shell(limits=LIMITS)) as opened:
        yield opened


def sleepers(seconds):
    """The living processes that sleep for this long; each test has its own number."""
    pids = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.info["status"] != psutil.STATUS_ZOMBIE and process.info["cmdline"] == ["sleep", str(seconds)]:
            pids.append(process.pid)
    return pids


def gone(seconds, within_s=10.0):
    deadline = time.monotonic() + within_s
    while sleepers(seconds) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not sleepers(seconds)


# ------------------------------------------------------------------------------------------------ commands


def test_command_runs_in_a_shell(shell):
    seen = shell.run("echo out; echo err >&2; printf 'b\\na\\n' | sort; exit 7")
    assert (seen.output, seen.exit_code, seen.ended, seen.left_running) == ("out\nerr\na\nb\n", 7, "exited", 0)
    assert shell.run("echo x > kept.txt").exit_code == 0
    assert (shell.directory / "kept.txt").read_text() == "x\n"
    assert shell.run("cd /; v=1; cat <<E\none\ntwo\nE").output == "one\ntwo\n"
    assert shell.run("pwd; echo [$v]").output == f"{shell.directory}\n[]\n"  # nothing but files stays
    assert shell.run("cat").output == ""  # the input is empty
    assert shell.run("kill -9 $$").exit_code == 128 + 9
    assert shell.run("yes | head -n 1").output == "y\n"  # and no complaint: a broken pipe ends a command as usual


def test_environment_of_the_program_is_not_inherited(monkeypatch):
    monkeypatch.setenv("MY_SECRET_KEY", "sk-123")
    with Sync(Shell(env={"GREETING": "hi", "TERM": "vt100"})) as shell:
        names = dict(line.split("=", 1) for line in shell.run("env").output.splitlines())
        assert "MY_SECRET_KEY" not in names
        assert names["GREETING"], names["TERM"] == ("hi", "vt100")
        base = shell.directory.parent
        assert {Path(names["HOME"]).parent, Path(names["TMPDIR"]).parent} == {base}
        assert set(names) == {
            "PATH",
            "LANG",
            "LC_ALL",
            "TZ",
            "TERM",
            "HOME",
            "TMPDIR",
            "PWD",
            "GREETING",
            "SEASONED_SHELL",
        }
        assert shell.run("touch ~/a $TMPDIR/b").exit_code == 0
    assert not base.exists()


def test_given_directory_is_not_deleted(tmp_path):
    (tmp_path / "a.txt").write_text("1")
    with Sync(Shell(tmp_path)) as shell:
        assert shell.run("ls; touch b.txt").output == "a.txt\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


# ------------------------------------------------------------------------------------------------ killed whole


@linux
@pytest.mark.parametrize(
    ("command", "seconds", "ended"),
    [
        ("sh -c 'sleep 7001 & sleep 7001'", 7001, "timeout"),
        ("trap '' TERM INT HUP; setsid nohup sleep 7002 & wait", 7002, "timeout"),
        ("(env -i setsid sleep 7003 &) ; exit 0", 7003, "exited"),  # orphaned, another session, no marker left
        ("for i in 1 2 3; do (setsid sh -c 'sleep 7004 & sleep 7004' &) ; done", 7004, "exited"),
    ],
)
def test_no_process_outlives_its_command(shell, command, seconds, ended):
    seen = shell.run(command, timeout_s=0.3 if ended == "timeout" else 60.0)
    assert (seen.ended, seen.left_running) == (ended, 0)
    assert (seen.exit_code is None) == (ended == "timeout")
    assert sleepers(seconds) == []


@linux
def test_too_many_processes_are_killed(shell):
    seen = shell.run("for i in $(seq 60); do sleep 7010 & done; wait")
    assert (seen.ended, sleepers(7010)) == ("processes", [])


@linux
def test_cancelled_command_is_killed():
    async def cancel():
        shell = Shell(limits=LIMITS)
        waiting = asyncio.create_task(shell.run("echo $$; sleep 7020"))
        while not sleepers(7020):
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        after = await shell.run("echo next")
        await shell.aclose()
        return after.output

    assert asyncio.run(cancel()) == "next\n"
    assert sleepers(7020) == []


@linux
def test_killed_supervisor_is_an_error_and_the_shell_cleans_up():
    with Sync(Shell(limits=LIMITS)) as shell:
        base = shell.directory.parent
        with pytest.raises(EnvError, match="supervisor ended"):
            shell.run("setsid sleep 7030 & sleep 0.1; kill -9 $PPID")
        assert gone(7030)
        assert not base.exists()
        with pytest.raises(EnvError, match="closed shell"):
            shell.run("ls")


PROGRAM = """
import os, sys
from seasoned.envs.shell.shell import Shell
from seasoned.sync import Sync
shell = Sync(Shell())
print(shell.directory.parent, flush=True)
if sys.argv[1] == "exit":
    shell.run("setsid sleep 7041 & exit")
else:
    shell.run("echo $$; sleep 7042", timeout_s=100.0)
"""


@linux
@pytest.mark.slow
@pytest.mark.parametrize(("how", "seconds"), [("exit", 7041), ("kill", 7042)])
def test_end_of_the_program_leaves_no_process_or_file(how, seconds):
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, how], stdout=subprocess.PIPE, text=True)
    base = Path(program.stdout.readline().strip())
    if how == "kill":
        assert base.is_dir()
        while not sleepers(seconds):
            time.sleep(0.01)
        program.send_signal(signal.SIGKILL)
    program.wait(timeout=60)
    assert gone(seconds)
    deadline = time.monotonic() + 10.0
    while base.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not base.exists()


# ------------------------------------------------------------------------------------------------ limits


def test_endless_output_is_limited(shell):
    seen = shell.run("yes")
    assert seen.ended == "output"
    assert 1 << 20 < seen.written_bytes < 16 << 20
    assert len(seen.output) < 1_100
    seen = shell.run("seq 1 1000")
    head, notice, tail = seen.output.partition(f"\n[{seen.written_bytes - 1_000} bytes left out]\n")
    assert head.startswith("1\n2\n")
    assert notice
    assert tail.endswith("\n999\n1000\n")
    assert len(head) == len(tail) == 500


def test_binary_output_is_escaped(shell):
    assert shell.run(r"printf '\000\033[31m\377\303\251\tend\n'").output == "\\x00\\x1b[31m\\xffé\tend\n"


def test_file_and_directory_limits_stop_a_command(tmp_path):
    with Sync(Shell(limits=LIMITS)) as shell:
        assert shell.run("head -c 3000000 /dev/zero > big").exit_code != 0
        assert (shell.directory / "big").stat().st_size == 2 << 20
        assert shell.run("i=0; while :; do i=$((i+1)); echo > $i; done").ended == "disk"
        assert shell.run("rm -rf *").ended == "exited"  # what tidies up is let through


def test_memory_is_limited():
    with Sync(Shell(limits=ShellLimits(max_memory_bytes=64 << 20))) as shell:
        seen = shell.run(f"{sys.executable} -I -S -c 'x = bytearray(256 << 20)'")
        assert seen.exit_code == 1
        assert "MemoryError" in seen.output


@pytest.mark.parametrize(
    "command", ["rm -rf ../work", "rm -rf ../work && echo > ../work", "rm -rf ../work && ln -s /etc ../work"]
)
def test_deleted_directory_is_created_again(shell, command):
    shell.run("touch here")
    shell.run(command)
    assert read_tree(shell.directory).listing() == ()
    assert shell.run("ls -A; pwd").output == f"{shell.directory}\n"


@pytest.mark.slow
def test_very_deep_tree_is_stopped_and_removed():
    with Sync(Shell(limits=ShellLimits(max_files=100_000))) as shell:
        base = shell.directory.parent
        assert shell.run("while :; do mkdir d; cd d; done", timeout_s=60.0).ended == "disk"
        assert len(read_tree(shell.directory).folders) == 1_000
        shell.run("chmod 000 . d d/d")
    assert not base.exists()


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("command", ["", "  ", 7, None, "a\0b", "\ud800", "x" * 100_001])
def test_invalid_commands_are_refused(shell, command):
    with pytest.raises(InputError, match="a command is a text"):
        shell.run(command)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ShellLimits(timeout_s=0.0), "above 0"),
        (lambda: ShellLimits(timeout_s=float("nan")), "finite"),
        (lambda: ShellLimits(max_files=0), "at least 1"),
        (lambda: ShellLimits(max_memory_bytes=1.5), "whole number"),
        (lambda: Shell("/no/such/directory"), "exists"),
        (lambda: Shell(limits=3.0), "ShellLimits"),
        (lambda: Shell(env={"A=B": "1"}), "without '='"),
        (lambda: Shell(env={"A": 1}), "texts"),
    ],
)
def test_invalid_settings_are_refused(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert all((caught.value.seen, caught.value.rule, caught.value.next_step))


def test_deleted_given_directory_is_an_error(tmp_path):
    place = tmp_path / "work"
    place.mkdir()
    with Sync(Shell(place)) as shell:
        shell.run("rm -rf ../work")
        with pytest.raises(EnvError, match="was removed"):
            shell.run("ls")
