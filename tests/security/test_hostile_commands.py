"""Commands with arguments at random: each ends with an exit code of the documentation, none with a traceback."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter

import pytest
from click.testing import CliRunner
from faults_rounds import attack_rounds
from hostile_values import hostile_text

from seasoned import Episode, Memory, Step
from seasoned.cli.main import cli
from seasoned.cli.memory.group import HEADINGS

LONG = "x" * 300
EXIT_CODES = {0, 1, 2, 3, 4, 5}
COMMANDS = sorted(name for names in HEADINGS.values() for name in names if name != "judge")  # it asks a model


OPTIONS = {
    ("memory",): ["--json", "-o", "--dry-run", "--create", "--subject", "--last", "--set", "--yes"],
    ("lift",): ["--json", "--family", "--alpha"],
    ("mcp",): ["--create", "--encoder", "--redact", "--read-only", "--no-holdout", "--choose", "--source"],
    ("serve", "--port", "0", "--stop-with-stdin"): [
        *["--create", "--encoder", "--redact", "--read-only", "--no-holdout", "--choose", "--host", "--token-file"],
        *["--allow-host", "--upstream", "--bounds", "--upstream-timeout", "--episode", "--mode", "--rewards"],
    ],
    ("lab", "run"): ["--json", "--out", "--seeds", "--workers"],
    ("lab", "resume"): ["--json", "--workers"],
    ("lab", "report"): ["--json"],
    ("lab", "compare"): ["--json"],
    ("run", "--env"): ["--json", "--model", "--policy", "--episodes", "--memory", "--encoder", "--seed", "--reader"],
}
"""The commands that take a file or a folder, and some of their options: none that makes a model or a world."""

OTHERS = [command for command in OPTIONS if command != ("memory",)]


def arguments(draw, folder, command):
    """Return the arguments of a command: a memory or something else in its place, then up to four more."""
    memory = draw.choice(["agent.db"] * 4 + ["none.db", "text", "foreign.db", "", ".", LONG])
    own = [draw.choice(COMMANDS)] if command == ("memory",) else []
    found = [*command, *own, str(folder / memory) if len(memory) < 300 else memory]
    options = ["--namespace", "--help", *OPTIONS[command]]
    for _ in range(draw.choice([0, 0, 1, 1, 2, 4])):
        found.append(draw.choice([*options, hostile_text(draw), "e1", "0", "-1", "1.5", str(folder / "text")]))
    return [one.replace("\x00", "") for one in found]


def attack(folder, n_calls, seed):
    """Call commands; return the numbers of calls by exit code."""
    draw, codes, runner = random.Random(seed), Counter(), CliRunner()
    with Memory.open(folder / "agent.db") as memory:
        memory.add_many([Episode("t", [Step(f"page {n}", "go", 1.0, {"go": -0.1})], f"e{n}") for n in range(4)])
    (folder / "text").write_text("no memory\n")
    with sqlite3.connect(folder / "foreign.db") as foreign:
        foreign.execute("CREATE TABLE t (x)")
    for _ in range(n_calls):
        called = arguments(draw, folder, ("memory",) if draw.random() < 0.9 else draw.choice(OTHERS))
        result = runner.invoke(cli, called, input=hostile_text(draw))
        assert result.exception is None or isinstance(result.exception, SystemExit), (called, result.exception)
        assert result.exit_code in EXIT_CODES, (called, result.exit_code, result.output[-300:])
        assert "Traceback" not in result.output, called
        shown = result.output.replace("\n", "")
        assert shown.isprintable(), (called, shown[-300:])
        codes[result.exit_code] += 1
    return codes


def line(codes):
    counts = ", ".join(f"{n} with exit code {code}" for code, n in sorted(codes.items()))
    return f"commands: {codes.total()} at random, {counts}; no traceback, no control character shown"


@pytest.mark.parametrize("command", [*(("memory", name) for name in COMMANDS), *OTHERS], ids=" ".join)
def test_names_that_the_system_does_not_take_are_refused(tmp_path, command):
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.add(Episode("t", [Step("page", "go", 1.0)], "e1"))
    for first, *more in (
        [LONG],
        [LONG, LONG],
        [str(tmp_path / "agent.db"), LONG],
        [str(tmp_path / "agent.db"), "-o", LONG],
    ):
        result = CliRunner().invoke(cli, [*command, first, *more])
        assert isinstance(result.exception, SystemExit | None), (first[:30], result.exception)
        assert "Traceback" not in result.output, first[:30]


def test_commands_at_random_end_with_a_documented_exit_code(tmp_path, monkeypatch, report_line):
    monkeypatch.chdir(tmp_path)
    codes = attack(tmp_path, 40, 1)
    report_line(line(codes), rounds=40)
    assert codes[0] and codes[2]


@pytest.mark.slow
def test_many_commands_at_random_end_with_a_documented_exit_code(tmp_path, monkeypatch, report_line):
    monkeypatch.chdir(tmp_path)
    n_rounds = attack_rounds("commands")
    codes = attack(tmp_path, n_rounds, 2)
    report_line(line(codes), rounds=n_rounds)
    assert n_rounds < 100 or (codes[0] and codes[2])
