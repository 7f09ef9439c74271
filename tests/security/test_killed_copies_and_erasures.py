"""`kill -9` at random instants of backups and erasures: nothing readable stays behind, and an erasure can be finished.

`SEASONED_ATTACK_ROUNDS` sets how many processes are killed in each test.
"""

from __future__ import annotations

import contextlib
import random
import signal
import stat
import subprocess
import sys
import time

import pytest
from faults_rounds import attack_rounds

from seasoned import Episode, Memory, Step
from seasoned.errors import NotFoundError
from seasoned.memory.stores.partial_folder import partials_of

pytestmark = pytest.mark.slow

ROUNDS = attack_rounds("erasures")
SECRET = b"Quince Marmalade 7741"
RUN = "import sys; from seasoned import Memory; from seasoned.memory.maintenance.backup import backup; import json; "
BACKUP = RUN + "print('begin', flush=True); backup(sys.argv[1], sys.argv[2])"
ERASE = RUN + "m = Memory.open(sys.argv[1]); print('begin', flush=True); m.erase('quince'); m.close()"


def filled(path):
    with Memory.open(path) as memory:
        for start in range(0, 600, 100):
            steps = [Step(f"page {n} " + "x" * 400, "go", 1.0) for n in range(start, start + 100)]
            memory.add_many([Episode("t", [step]) for step in steps])
            memory.add(Episode("t", [Step(f"mail {start} of {SECRET.decode()}", "answer", 1.0)], subject="quince"))
    return path


def killed_after(seconds, program, *arguments):
    """Run a program, and kill it so long after it began; None: let it end. Return how long it ran."""
    child = subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begin\n"
    began = time.monotonic()
    if seconds is not None:
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGKILL)
    child.communicate()
    return time.monotonic() - began


def holding(folder):
    return [path for path in folder.rglob("*") if path.is_file() and SECRET in path.read_bytes()]


def test_killed_backups_leave_nothing_readable_and_nothing_that_an_erasure_misses(tmp_path, report_line):
    source, copies = filled(tmp_path / "agent.db"), tmp_path / "copies"
    copies.mkdir()
    takes_s = killed_after(None, BACKUP, source, copies / "whole.db")
    draw, n_left = random.Random(7), 0
    for number in range(ROUNDS):
        killed_after(draw.uniform(0.0, takes_s), BACKUP, source, copies / f"copy {number}.db")
    for number in range(ROUNDS):
        for left in partials_of(copies / f"copy {number}.db"):
            assert stat.S_IMODE(left.stat().st_mode) == 0o700
            n_left += bool(holding(left))
    assert n_left, "no backup was killed while its copy held anything"
    with Memory.open(source) as memory:
        erased = memory.erase("quince")
    named = {copy.path for copy in erased.copies}
    assert {str(path) for path in holding(tmp_path)} <= named  # whole copies, by name; of killed ones nothing is left
    # One that was killed between the making of its folder and its record leaves the folder, with nothing in it.
    left = [path for path in copies.rglob("*") if ".partial" in str(path) and path.is_file()]
    assert not [(path, path.stat().st_size) for path in left if path.stat().st_size]
    line = f"killed backups: {ROUNDS}, {n_left} with the subject's text in a private folder, all removed by its erasure"
    report_line(line, rounds=ROUNDS, kills=ROUNDS)


def test_killed_erasures_can_be_repeated_until_the_bytes_are_gone(tmp_path, report_line):
    draw, n_unfinished, takes_s = random.Random(8), 0, 0.0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = filled(folder / "agent.db")
        with Memory.open(path) as still_open:  # as a service that never closes: the log stays
            takes_s = max(takes_s, killed_after(draw.uniform(0.0, takes_s) if takes_s else None, ERASE, path))
            n_records = sum(episode.subject == "quince" for episode in still_open.episodes())
            assert n_records in (0, 6)
            n_unfinished += not n_records and bool(holding(folder))
            with contextlib.suppress(NotFoundError):
                still_open.erase("quince")
            assert holding(folder) == []
            with pytest.raises(NotFoundError):
                still_open.erase("quince")
            still_open.verify()
    assert n_unfinished, "no erasure was killed between its commit and the rewriting"
    line = f"killed erasures: {ROUNDS}, {n_unfinished} with the bytes still there, all finished when repeated"
    report_line(line, rounds=ROUNDS, kills=ROUNDS)
