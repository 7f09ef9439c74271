"""`kill -9` at random instants: acknowledged writes are stored whole, and no partial write is."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from faults_content import Content
from faults_evidence import wrong_evidence
from faults_operations import OPERATIONS, WORKLOADS
from faults_rounds import attack_rounds

from seasoned import Memory
from seasoned.errors import SeasonedError

NAMES = tuple(WORKLOADS)


def kill(zygote, path, log, workload, seed, at_byte):
    """Let a child work until it dies, at a random instant or at a random byte of a file; return its log."""
    draw = random.Random(seed)
    limit_bytes = draw.randrange(100_000, 1_500_000) if at_byte else None
    child = zygote.start("faults_children:work", str(path), str(log), workload, seed, limit_bytes)
    if at_byte:
        try:
            ended_by = child.end(20.0)
        except TimeoutError:  # no file grew so long: it was killed then
            ended_by = signal.SIGKILL
        assert ended_by in (signal.SIGXFSZ, signal.SIGKILL), f"ended by {ended_by}: {child.said()}"
    else:
        time.sleep(draw.uniform(0.0, draw.choice([0.02, 0.25, 0.25])))  # while it opens, and while it works
        child.kill()
        assert child.end() == signal.SIGKILL, f"it failed before it was killed: {child.said()}"
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def replay(content, journal):
    """The expected content without and with the operation in flight; the latter is None if there was none."""
    expected, in_flight = content.copy(), None
    for event, *rest in journal:
        if event == "do":
            in_flight = rest
        elif event == "did":
            name, chosen = in_flight
            OPERATIONS[name].follow(expected, chosen, rest[0])
            in_flight = None
    if in_flight is None:
        return expected, None
    landed = expected.copy()
    OPERATIONS[in_flight[0]].follow(landed, in_flight[1], None)
    return expected, landed


class Tally:
    """Counts of kills, phases and operations, and the failures."""

    def __init__(self):
        self.phases, self.operations = Counter(), Counter()
        self.kills = self.at_byte = self.acknowledged = self.lost = self.torn = self.clean = self.recomputed = 0
        self.wrong = []

    def line(self):
        phase = self.phases
        return (
            f"{self.kills} kills ({self.at_byte} at a byte of a file), {phase['lost'] + phase['landed']} with a write "
            f"in flight ({phase['landed']} of them committed), {phase['between']} between writes, {phase['opening']} "
            f"while opening, {self.acknowledged} acknowledged episodes, {self.lost} lost, {self.torn} torn, "
            f"verify clean {self.clean}/{self.kills}, evidence of {self.recomputed} states computed again from exports"
        )

    def counts(self):
        return {"rounds": self.kills, "kills": self.kills, "lost": self.lost, "changed": self.torn}


def rounds(zygote, folder: Path, n_rounds, seed):
    """Kill a writer in each round; every 12 rounds begin with a new store."""
    tally, content, path = Tally(), Content(), folder / "agent.db"
    for n in range(n_rounds):
        if n % 12 == 0:
            content, path = Content(), folder / f"agent-{n}.db"
        at_byte, workload = n % 3 == 2, NAMES[n % len(NAMES)]
        journal = kill(zygote, path, folder / f"log-{n}", workload, seed + n, at_byte)
        expected, landed = replay(content, journal)
        tally.kills += 1
        tally.at_byte += at_byte
        tally.acknowledged += len(expected.episodes.keys() - content.episodes.keys())
        try:
            with Memory.open(path, gamma=0.5) as memory:
                stored = Content.of(memory)
                verified = memory.verify()
                assert verified.episodes == len(stored.episodes)
                assert len(memory) == sum(len(one.steps) for one in stored.episodes.values())
                recomputed, wrong = wrong_evidence(memory, random.Random(n), 5)
                tally.recomputed += recomputed
                tally.wrong += wrong
        except SeasonedError as error:
            tally.wrong.append(f"round {n} ({workload}): {error}")
            content = Content()
            path = folder / f"agent-{n}-new.db"
            continue
        tally.clean += 1
        content = stored
        if not expected.differences(stored):
            tally.phases["opening" if not journal else "lost" if landed else "between"] += 1
        elif landed and not landed.differences(stored):
            tally.phases["landed"] += 1
        else:
            tally.lost += len(expected.lost(stored)) if not landed else len(landed.lost(stored))
            differences = (landed or expected).differences(stored)
            tally.torn += sum(not one.startswith("lost") for one in differences)
            tally.wrong.append(f"round {n} ({workload}), {journal[-1:]}: {differences[:4]}")
        if landed:
            tally.operations[journal[-1][1]] += 1
    return tally


def check(tally, n_rounds):
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.acknowledged >= n_rounds
    # The kit itself must be worth something: kills that hit nothing prove nothing.
    assert tally.phases["lost"] + tally.phases["landed"] >= n_rounds // 4
    assert len(tally.operations) >= min(4, n_rounds // 5)


def test_kill_9_loses_no_acknowledged_write(tmp_path, zygote, report_line):
    tally = rounds(zygote, tmp_path, 20, seed=1000)
    report_line(tally.line(), **tally.counts())
    check(tally, 20)


@pytest.mark.slow
def test_many_kills_lose_no_acknowledged_write(tmp_path, zygote, report_line):
    n_rounds = attack_rounds("kills")
    tally = rounds(zygote, tmp_path, n_rounds, seed=5000)
    in_flight = ", ".join(f"{n} {name}" for name, n in sorted(tally.operations.items()))
    report_line(f"{tally.line()}; in flight: {in_flight}", **tally.counts())
    check(tally, n_rounds)
    if n_rounds < 200:
        return
    assert all(tally.phases[name] for name in ("lost", "landed", "between", "opening")), tally.phases
    # One kind of operation in flight at least for each way to write.
    assert {"add", "add_many", "record", "feedback", "import", "prune", "compact"} <= set(tally.operations)
