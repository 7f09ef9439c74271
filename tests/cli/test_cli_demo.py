"""`seasoned demo`: its result file, plot, table and memory. Tests with the real model are marked slow."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from seasoned import Episode, Memory, Step
from seasoned.agents import compare_curves
from seasoned.cli.demo import demo
from seasoned.cli.format import run_display
from seasoned.errors import ConfigError, ForeignStoreError, InputError, SeasonedError
from seasoned.protocols import Usage

GRID = "grid:S.../...G?max_steps=10"
LONG_GRID = "grid:S..../...../....G?max_steps=30"
SEEDS, EPISODES = 3, 8
PROMISED = {
    "model": str,
    "env": str,
    "seeds": int,
    "episodes": int,
    "with_minus_without": dict,
    "last_minus_first_quarter": dict,
}
BOUNDS = ("mean", "low", "high")
MAIN = "from seasoned.cli import main; main()"


def play(out, *more, env=GRID, seeds=SEEDS, episodes=EPISODES):
    """Run the command in this process; errors are raised."""
    fixed = ["--model", "uniform", "--env", env, "--seeds", str(seeds), "--episodes", str(episodes)]
    done = CliRunner().invoke(demo, [*fixed, "--out", str(out), *more], catch_exceptions=False, standalone_mode=False)
    return done.output


def result(out, name="result"):
    return json.loads((out / f"{name}.json").read_text())


def check_png(path):
    """Return the size of a picture; it must be a whole PNG with more than one colour."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, size, pixels, kinds = 8, None, b"", []
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        size = struct.unpack(">II", body[:8]) if kind == b"IHDR" else size
        pixels += body if kind == b"IDAT" else b""
        kinds.append(kind)
        at += 12 + length
    assert kinds[-1] == b"IEND" and at == len(data)
    assert len(set(zlib.decompress(pixels))) > 16
    return size


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Return the folder and the output of a demo and of its placebo."""
    out = tmp_path_factory.mktemp("demo") / "deep" / "demo"
    return out, {"result": play(out), "placebo": play(out, "--placebo")}


@pytest.mark.parametrize("name", ["result", "placebo"])
def test_results_plot_and_memory_are_written(played, name):
    out, _ = played
    record = result(out, name)
    assert {key: type(record[key]) for key in PROMISED} == PROMISED
    assert (record["model"], record["env"]) == ("uniform", GRID)
    assert (record["seeds"], record["episodes"]) == (SEEDS, EPISODES)
    for key in ("with_minus_without", "last_minus_first_quarter"):
        interval = record[key]
        assert tuple(interval) == BOUNDS and all(type(interval[bound]) is float for bound in BOUNDS)
        assert interval["low"] <= interval["mean"] <= interval["high"]
    assert record["placebo"] == (name == "placebo")
    assert {"versions", "revision", "python", "machine"} <= set(record)
    assert record["calibrate"] is True
    assert record["usage"]["calls"] == 0 and record["usage"]["cost_usd"] == 0.0


@pytest.mark.parametrize(("name", "arm"), [("result", "memory"), ("placebo", "placebo")])
def test_intervals_follow_from_the_recorded_scores(played, name, arm):
    record = result(played[0], name)
    ours, alone = (np.array(record["scores"][key], dtype=float) for key in (arm, "alone"))
    assert ours.shape == alone.shape == (SEEDS, EPISODES)
    assert set(ours.ravel()) | set(alone.ravel()) <= {0.0, 1.0}  # a grid's goal was reached, or not
    last, quarter = slice(EPISODES * 3 // 4, None), slice(0, EPISODES // 4)
    for key, differences in (
        ("with_minus_without", ours[:, last].mean(axis=1) - alone[:, last].mean(axis=1)),
        ("last_minus_first_quarter", ours[:, last].mean(axis=1) - ours[:, quarter].mean(axis=1)),
    ):
        half = 4.302652729911275 * differences.std(ddof=1) / np.sqrt(SEEDS)  # Student's t, 2 degrees of freedom
        wanted = (differences.mean(), differences.mean() - half, differences.mean() + half)
        assert tuple(record[key].values()) == pytest.approx(wanted)


def test_model_alone_has_equal_scores_in_both_demos(played):
    out, _ = played
    assert result(out)["scores"]["alone"] == result(out, "placebo")["scores"]["alone"]
    first = [seed[0] for seed in result(out)["scores"]["memory"]]
    assert first == [seed[0] for seed in result(out)["scores"]["alone"]]  # nothing was known yet


def test_plot_is_a_whole_png(played):
    for name in ("result", "placebo"):
        width, height = check_png(played[0] / f"{name}.png")
        assert width > 400 and height > 200


@pytest.mark.parametrize(("name", "arm"), [("result", "memory"), ("placebo", "placebo")])
def test_output_has_a_table_with_intervals_and_a_curve_without_colour(played, name, arm):
    output = played[1][name]
    assert "\x1b" not in output
    assert f"95 % intervals over {SEEDS} seeds" in output
    assert "1 to 2" in output and "7 to 8" in output and "quarter" in output
    comparison = result(played[0], name)["with_minus_without"]
    assert f"{comparison['mean']:+.2f} [{comparison['low']:+.2f}, {comparison['high']:+.2f}]" in output
    assert "mean score by episode" in output and f"# {arm}" in output and ". alone" in output
    assert "uniform" in output and GRID in output
    assert f"{2 * SEEDS * EPISODES}/{2 * SEEDS * EPISODES} episodes" in output
    assert output.count("\n") < 60


def test_progress_shows_episodes_played_time_and_time_left():
    now, line = 100.0, "seed 0, memory  episode 20: 1 points in 20 steps"
    console = Console(file=io.StringIO(), width=80)
    with run_display.progress(console, 60, clock=lambda: now) as advance:
        for _ in range(60):
            now += 4.5
            advance(line)
    assert console.file.getvalue().splitlines() == [  # after 30 s, or 20 episodes; 4.5 s an episode
        f"7/60 episodes in 32 s, about 3 min 58 s left; {line}",
        f"14/60 episodes in 1 min 3 s, about 3 min 27 s left; {line}",
        f"20/60 episodes in 1 min 30 s, about 3 min 0 s left; {line}",
        f"27/60 episodes in 2 min 2 s, about 2 min 28 s left; {line}",
        f"34/60 episodes in 2 min 33 s, about 1 min 57 s left; {line}",
        f"40/60 episodes in 3 min 0 s, about 1 min 30 s left; {line}",
        f"47/60 episodes in 3 min 32 s, about 58 s left; {line}",
        f"54/60 episodes in 4 min 3 s, about 27 s left; {line}",
        f"60/60 episodes in 4 min 30 s; {line}",
    ]


def test_time_left_follows_the_second_half_and_needs_a_twentieth():
    now = 0.0
    console = Console(file=io.StringIO(), width=80)
    with run_display.progress(console, 400, clock=lambda: now) as advance:
        for number in range(80):
            now += 1.0 if number < 10 else 0.1  # asked of a model at first, found in its cache then
            advance("x")
    assert console.file.getvalue().splitlines() == [
        "20/400 episodes in 11 s, about 38 s left; x",
        "40/400 episodes in 13 s, about 36 s left; x",
        "60/400 episodes in 15 s, about 34 s left; x",
        "80/400 episodes in 17 s, about 32 s left; x",
    ]
    few = Console(file=io.StringIO(), width=80)
    with run_display.progress(few, 800, clock=lambda: now) as advance:
        for _ in range(20):
            now += 1.0
            advance("x")
    assert few.file.getvalue() == "20/800 episodes in 20 s; x\n"


def test_memory_of_the_demo_holds_its_episodes(played):
    for seed in range(SEEDS):
        with Memory.open(played[0] / "memory.db", namespace=f"seed-{seed}", create=False) as memory:
            memory.verify()
            episodes = memory.episodes()
        assert [sum(step.reward for step in e.steps) for e in episodes] == result(played[0])["scores"]["memory"][seed]
        assert {e.arm for e in episodes} == {"memory"}


@pytest.mark.slow
def test_second_demo_has_equal_results(tmp_path, played):
    for name, more, times in (("result", [], 2), ("placebo", ["--placebo"], 1)):
        for _ in range(times):  # into the same folder too
            play(tmp_path, *more)
            assert result(tmp_path, name)["scores"] == result(played[0], name)["scores"]
            for key in PROMISED:
                assert result(tmp_path, name)[key] == result(played[0], name)[key]


def test_other_policies_and_games_can_be_played(tmp_path):
    bandit = 'bandit:{"red":{"a":0.0,"b":-1.0},"blue":{"a":-1.0,"b":0.0}}?rounds=5'
    output = play(tmp_path, "--policy", "seed", env=bandit, seeds=2, episodes=4)
    assert result(tmp_path)["policy"] == "seed"
    assert min(map(min, result(tmp_path)["scores"]["alone"])) < 0.0
    curve = output[output.index("mean score by episode") :]
    assert curve.count("#") >= 5  # negative scores are on the chart


@pytest.mark.parametrize(("env", "episodes"), [(GRID, 8), pytest.param(LONG_GRID, 12, marks=pytest.mark.slow)])
def test_demo_learns_and_its_placebo_does_not(tmp_path, env, episodes):
    """Six seeds on a grid where the model alone finds the goal in about half of the episodes."""
    play(tmp_path, env=env, seeds=6, episodes=episodes)
    play(tmp_path, "--placebo", env=env, seeds=6, episodes=episodes)
    for key in ("with_minus_without", "last_minus_first_quarter"):
        assert result(tmp_path)[key]["low"] > 0.0
        assert result(tmp_path, "placebo")[key]["low"] <= 0.0


def test_piped_demo_succeeds_without_colour(tmp_path):
    arguments = ["demo", "--model", "uniform", "--env", GRID, "--seeds", "2", "--episodes", "4", "--out", "d"]
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert result(tmp_path / "d")["seeds"] == 2


@pytest.mark.parametrize("lines_read", [0, 3])
def test_closed_pipe_is_no_error(tmp_path, lines_read, warm_python):
    arguments = ["demo", "--model", "uniform", "--env", GRID, "--seeds", "8", "--episodes", "40", "--out", "d"]
    reading, writing = os.pipe()
    with os.fdopen(reading) as head:
        process = subprocess.Popen(
            [*warm_python, "-c", MAIN, *arguments], stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path
        )
        os.close(writing)
        for _ in range(lines_read):
            assert head.readline()
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (0, b"")


# ------------------------------------------------------------------------------------------ the user's own files


def files(folder):
    """Return the files of the folder, without the empty log and the index that reading a memory leaves."""
    contents = {file.name: file.read_bytes() for file in folder.iterdir()}
    return {
        name: data for name, data in contents.items() if not name.endswith("-shm") and (data or name[-4:] != "-wal")
    }


def left_alone(folder, error, *more):
    """Check that the demo is refused and the folder is unchanged."""
    before = files(folder)
    with pytest.raises(error) as caught:
        play(folder, *more)
    assert files(folder) == before
    return caught.value


@pytest.mark.parametrize(("kind", "more"), [("memory", []), ("placebo", ["--placebo"])])
@pytest.mark.parametrize("names", [["default"], ["seed-0", "shop"], ["seed-x"], ["seed-1 "]])
def test_memory_of_another_program_is_refused_and_unchanged(tmp_path, kind, more, names):
    for name in names:
        with Memory.open(tmp_path / f"{kind}.db", namespace=name) as memory:
            memory.add(Episode("t", [Step("page", "click", 1.0)]))
    refused = left_alone(tmp_path, InputError, *more)
    assert f"{kind}.db" in refused.seen and repr(names[-1]) in refused.seen
    assert refused.rule and "--out" in refused.next_step


def test_file_that_is_no_memory_is_refused_and_unchanged(tmp_path):
    (tmp_path / "memory.db").write_bytes(b"notes of somebody " * 100)
    left_alone(tmp_path, ForeignStoreError)


def test_memory_of_an_earlier_demo_is_replaced_with_all_its_seeds(tmp_path):
    play(tmp_path, seeds=4, episodes=4)
    play(tmp_path, seeds=2, episodes=4)
    assert set(Memory.namespaces(tmp_path / "memory.db")) == {"seed-0", "seed-1"}


# ------------------------------------------------------------------------------------------ bad input

BAD = [
    ("environment", ["--env", "gird:S.G"], "grid"),
    ("model", ["--model", "locl"], "local"),
    ("episodes", ["--episodes", "10"], "40"),
    ("option", ["--env", "grid:S.G?slipp=1"], "slip"),
    ("address of no model", ["--base-url", "http://127.0.0.1:9/v1"], "uniform"),
    ("price of no model", ["--usd-per-million-completion-tokens", "1"], "uniform"),
]


@pytest.mark.parametrize(("arguments", "advice"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_input_is_refused_with_advice_and_the_earlier_memory_is_unchanged(tmp_path, played, arguments, advice):
    earlier = (played[0] / "memory.db").read_bytes()
    (tmp_path / "memory.db").write_bytes(earlier)
    with pytest.raises(SeasonedError) as caught:
        play(tmp_path, *arguments)
    assert caught.value.seen and caught.value.rule and advice in caught.value.rule + caught.value.next_step
    assert files(tmp_path) == {"memory.db": earlier}


@pytest.mark.parametrize(
    ("value", "error", "advice"), [("shop", ConfigError, "http://"), ("-1", InputError, "at least 0")]
)
def test_model_options_reach_the_model(tmp_path, value, error, advice):
    pytest.importorskip("openai")
    option = "--base-url" if value == "shop" else "--usd-per-million-prompt-tokens"
    with pytest.raises(error, match=advice):
        play(tmp_path, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", option, value)
    assert list(tmp_path.iterdir()) == []


USAGE = [["--policy", "defualt"], ["--seeds", "1"], ["--seeds", "x"], ["--episodes", "0"], ["--out", __file__]]


@pytest.mark.parametrize("arguments", USAGE, ids=lambda pair: pair[0] + pair[1][-8:])
def test_wrong_usage_is_exit_code_2(tmp_path, arguments):
    (tmp_path / "memory.db").write_bytes(b"an earlier one")
    done = CliRunner().invoke(demo, ["--model", "uniform", "--env", GRID, "--out", str(tmp_path), *arguments])
    assert done.exit_code == 2
    assert arguments[0] in done.output
    assert (tmp_path / "memory.db").read_bytes() == b"an earlier one"


# ------------------------------------------------------------------------------------------ on the screen


def printed(thing):
    console = Console(width=100, file=None, record=True, force_terminal=False)
    with console.capture() as capture:
        console.print(thing)
    return capture.get()


@pytest.mark.parametrize(
    ("scores", "top", "bottom"),
    [
        ([[0.0, 1.0, 2.0]], "2.00", "0.00"),
        ([[0.0, 0.0, 0.0]], "1.00", "0.00"),
        ([[-4.0, -3.0, -2.0]], "0.00", "-4.00"),
        ([[-1.0, 0.0, 3.0]], "3.00", "-1.00"),
    ],
)
def test_curve_shows_every_episode_for_any_scores(scores, top, bottom):
    *lines, axis, numbers = run_display.learning_curve({"score": scores}).plain.splitlines()[1:]
    assert set(axis.strip()) == {"+", "-"}
    assert numbers.split() == ["1", "3"]
    assert lines[0].split("|")[0].strip() == top
    assert lines[-1].split("|")[0].strip() == bottom
    assert sum(line.count("#") for line in lines) == 3
    heights = [next(row for row, line in enumerate(lines) if line.split("|")[1][2 * e] == "#") for e in range(3)]
    assert heights == sorted(heights, reverse=True)


def test_table_compares_the_interval_with_zero():
    ones = np.ones((3, 4)) * [[0, 0, 0, 1]]
    for ours, alone, verdict in (
        (ones, 0 * ones, "above zero"),
        (0 * ones, ones, "below zero"),
        (ones, ones, "not different from zero"),
    ):
        text = printed(run_display.comparison_table(compare_curves(ours, alone), "memory", 4.0, 4))
        assert verdict in text and "of 4 points" in text


def test_unknown_price_is_printed_as_unknown():
    assert "unknown price" in run_display.usage_text(Usage(calls=3, cost_usd=None), 1.0)
    assert "0.2500 USD" in run_display.usage_text(Usage(calls=3, cost_usd=0.25), 1.0)


# ------------------------------------------------------------------------------------------ the real thing


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_demo_learns_with_the_local_model_and_its_placebo_does_not(tmp_path):
    pytest.importorskip("textworld")
    pytest.importorskip("xllamacpp")
    for more in ([], ["--placebo"]):
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "demo", *more], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
    learned, placebo = result(tmp_path / "demo"), result(tmp_path / "demo", "placebo")
    assert learned["seeds"] >= 10 and learned["episodes"] >= 20
    assert learned["with_minus_without"]["low"] > 0.0
    assert learned["last_minus_first_quarter"]["low"] > 0.0
    assert placebo["with_minus_without"]["low"] <= 0.0
    check_png(tmp_path / "demo" / "result.png")
