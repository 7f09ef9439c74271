"""`seasoned run`: interrupted, killed and resumed runs; refusals; the record."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from seasoned import Episode, Memory, Step
from seasoned.cli.run import run
from seasoned.errors import ConfigError, EncoderMismatchError, InputError, SeasonedError
from seasoned.states.encoder_names import ENCODERS

GRID = "grid:S.../...G?slip=0.2&max_steps=12"
GAME = "textworld:coin_collector?level=3&seed=2&max_steps=15"
MAIN = """
import signal
from seasoned.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and their children, ignore it
main()
"""
BROKEN_OFF = """
import os, pathlib, sys, threading, time
file, at_episode, sign = pathlib.Path(sys.argv.pop(1)), int(sys.argv.pop(1)), int(sys.argv.pop(1))

def watch():
    while not file.exists() or file.read_bytes().count(b"\\n") < at_episode:
        time.sleep(0.002)
    os.kill(os.getpid(), sign)

threading.Thread(target=watch, daemon=True).start()
"""


def command(folder, *more, env=GRID, episodes=24, model="uniform"):
    fixed = ["--model", model, "--episodes", str(episodes), "--out", str(folder / "run")]
    return ["--env", env, *fixed, *more]


def in_process(folder, *more, **options):
    """Run the command in this process; errors are raised."""
    done = CliRunner().invoke(run, command(folder, *more, **options), catch_exceptions=False, standalone_mode=False)
    return done.output


def shell(folder, *more, before=(), **options):
    """Start the command as a process in the folder."""
    main = [BROKEN_OFF + MAIN, *map(str, before)] if before else [MAIN]
    return subprocess.Popen(
        [sys.executable, "-c", *main, "run", *command(folder, *more, **options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )


def lines(folder):
    file = folder / "run" / "episodes.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def record(folder):
    return json.loads((folder / "run" / "run.json").read_text())


def broken_off(folder, sign, at_episode, **options):
    """Send the signal once so many episodes are recorded, from within, so that it is not late on a busy machine.

    Returns the exit code and the output.
    """
    process = shell(folder, before=(folder / "run" / "episodes.jsonl", at_episode, int(sign)), **options)
    output = "".join(process.communicate(timeout=120))
    return process.returncode, output


def stored(folder):
    with Memory.open(folder / "run" / "memory.db", create=False) as memory:
        memory.verify()
        return memory.episodes()


@pytest.fixture(scope="module", autouse=True)
def games(tmp_path_factory):
    """Make the games once, in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", params=[GRID, pytest.param(GAME, marks=pytest.mark.slow)], ids=["grid", "textworld"])
def unbroken(request, tmp_path_factory):
    """Return a spec, a number of episodes, and the scores of an unbroken run."""
    if request.param == GAME:
        pytest.importorskip("textworld")
    episodes = 24 if request.param == GRID else 12
    folder = tmp_path_factory.mktemp("unbroken")
    in_process(folder, env=request.param, episodes=episodes)
    return request.param, episodes, record(folder)["scores"]


# ------------------------------------------------------------------------------------------ breaking off


@pytest.mark.parametrize("signalled", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_ctrl_c_stores_the_episode_in_flight_as_aborted_and_the_run_resumes(tmp_path, unbroken, signalled):
    env, episodes, scores = unbroken
    code, output = broken_off(tmp_path, signalled, 2, env=env, episodes=episodes)
    assert code == 130, output
    assert "interrupted" in output and "Traceback" not in output
    stored_episodes = stored(tmp_path)
    assert [episode.ending == "aborted" for episode in stored_episodes] == [False] * (len(stored_episodes) - 1) + [True]
    assert 2 <= lines(tmp_path) == len(stored_episodes) - 1 < episodes
    in_process(tmp_path, env=env, episodes=episodes)
    assert record(tmp_path)["scores"] == scores
    assert sum(episode.ending == "aborted" for episode in stored(tmp_path)) == 1


def test_run_killed_twice_ends_with_the_scores_of_an_unbroken_run(tmp_path, unbroken):
    env, episodes, scores = unbroken
    for at in (1, 4):
        code, _ = broken_off(tmp_path, signal.SIGKILL, at, env=env, episodes=episodes)
        assert code == -signal.SIGKILL
        assert at <= lines(tmp_path) < episodes
    in_process(tmp_path, env=env, episodes=episodes)
    assert record(tmp_path)["scores"] == scores
    finished = stored(tmp_path)
    assert len(finished) == episodes and all(episode.ending != "aborted" for episode in finished)
    assert [sum(step.reward for step in episode.steps) for episode in finished] == pytest.approx(scores)


def test_run_with_more_episodes_continues_and_is_recorded(tmp_path):
    in_process(tmp_path / "whole", episodes=8)
    first, then = (in_process(tmp_path, episodes=episodes) for episodes in (4, 8))
    assert "not played again" not in first
    assert "holds this run, with 4 episodes: shown as recorded, not played again" in " ".join(then.split())
    assert record(tmp_path)["scores"] == record(tmp_path / "whole")["scores"]
    assert len(record(tmp_path)["sessions"]) == 1 and "sessions" not in record(tmp_path / "whole")
    assert {episode.id.partition("-")[0] for episode in stored(tmp_path)} == {record(tmp_path)["run_id"]}


def test_another_folder_is_another_run_in_the_same_memory(tmp_path):
    path = tmp_path / "m.db"
    for name in "ab":
        in_process(tmp_path / name, "--memory", str(path), episodes=4)
    with Memory.open(path) as memory:
        assert len(memory.episodes()) == 8
    assert all(json.loads(line)["seconds"] > 0 for line in (tmp_path / "b/run/episodes.jsonl").open())


@pytest.mark.parametrize("other", ["no file", "another memory", "another namespace", "in RAM"])
def test_run_is_not_resumed_without_its_memory(tmp_path, other):
    path = ":memory:" if other == "in RAM" else str(tmp_path / "m.db")
    in_process(tmp_path, "--memory", path, episodes=4)
    if other != "in RAM":
        Path(path).unlink()
    if other.startswith("another"):
        with Memory.open(path, namespace="default" if other == "another memory" else "x") as memory:
            memory.add(Episode("t", [Step("page", "click", 1.0)]))
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    with pytest.raises(ConfigError) as caught:
        in_process(tmp_path, "--memory", path, episodes=8)
    assert caught.value.seen and "memory" in caught.value.rule and "another folder" in caught.value.next_step
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()} == before
    assert Path(path).exists() == other.startswith("another")
    if other.startswith("another"):
        assert sum(len(Memory.open(path, namespace=name).episodes()) for name in Memory.namespaces(path)) == 1


# ------------------------------------------------------------------------------------------ a model


@pytest.fixture
def server(monkeypatch):
    """Return the address of a model that always prefers A; every call costs 1000 prompt and 10 other tokens."""
    pytest.importorskip("openai")
    top = [{"token": token, "logprob": logprob} for token, logprob in (("A", -0.1), ("B", -2.5), ("C", -5.0))]
    choice = {"message": {"content": "A"}, "logprobs": {"content": [{**top[0], "top_logprobs": top}]}}
    usage = {"prompt_tokens": 1000, "completion_tokens": 10}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            data = json.dumps({"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=serving.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_address[1]}/v1"
    serving.shutdown()
    serving.server_close()


PRICES = ["--usd-per-million-prompt-tokens", "2", "--usd-per-million-completion-tokens", "100"]
CORRIDOR = "grid:S..G?max_steps=6"


@pytest.mark.parametrize(("prices", "usd_per_call"), [(PRICES, 0.003), (PRICES[:2], None), ([], None)])
def test_cost_is_recorded_if_both_prices_are_given(tmp_path, server, prices, usd_per_call):
    output = in_process(tmp_path, "--base-url", server, *prices, env=CORRIDOR, episodes=2, model="openai:m")
    usage = record(tmp_path)["usage"]
    assert usage["calls"] > 0 and usage["prompt_tokens"] == 1000 * usage["calls"]
    assert not (tmp_path / "run" / "answers.db-wal").exists()  # the model was closed
    if usd_per_call is None:
        assert usage["cost_usd"] is None and "unknown price" in output
    else:
        assert usage["cost_usd"] == pytest.approx(usd_per_call * usage["calls"]) and "USD" in output


def test_record_names_the_model_and_another_model_is_refused(tmp_path, server):
    def play(url, *more):
        in_process(tmp_path, "--base-url", url, *more, env=CORRIDOR, episodes=2, model="openai:m")

    play(server)
    before = record(tmp_path)
    assert before["settings"]["model"] == f"openai:m@{server}" and before["settings"]["calibrate"] is True
    assert {episode.model for episode in stored(tmp_path)} == {f"openai:m@{server}"}
    with pytest.raises(ConfigError, match="another run"):
        play("http://127.0.0.1:9/v1")
    assert record(tmp_path) == before
    play(server, *PRICES)  # a price changes no score
    assert record(tmp_path)["scores"] == before["scores"]


def test_default_folder_depends_on_the_server(tmp_path, server, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url in (server, server.replace("127.0.0.1", "localhost"), server):
        arguments = ["--env", CORRIDOR, "--model", "openai:m", "--episodes", "1", "--base-url", url]
        CliRunner().invoke(run, arguments, catch_exceptions=False, standalone_mode=False)
    assert len(list((tmp_path / "runs").iterdir())) == 2


@pytest.mark.parametrize(
    ("model", "options", "advice"),
    [
        ("uniform", PRICES[:2], "usd_per_million_prompt_tokens"),
        ("uniform", ["--base-url", "http://127.0.0.1:9/v1"], "base_url"),
        ("local", ["--base-url", "http://127.0.0.1:9/v1"], "base_url"),
        ("openai:m", ["--base-url", "shop"], "http://"),
        ("openai:m", ["--base-url", "http://127.0.0.1:9/v1", PRICES[0], "-1"], "at least 0"),
        ("openai:m", ["--base-url", "http://127.0.0.1:9/v1", PRICES[0], "nan"], "finite"),
    ],
)
def test_setting_of_another_kind_of_model_is_refused(tmp_path, model, options, advice):
    pytest.importorskip("openai")
    with pytest.raises((ConfigError, InputError)) as caught:
        in_process(tmp_path, *options, model=model)
    assert caught.value.seen and caught.value.rule and caught.value.next_step and advice in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------ what it writes


def test_record_holds_all_settings_that_affect_scores(tmp_path):
    in_process(tmp_path, "--seed", "4", "--policy", "seed", episodes=8)
    run_record = record(tmp_path)
    assert run_record["settings"] == {
        "env": GRID,
        "model": "uniform",
        "policy": "seed",
        "seed": 4,
        "memory": None,
        "namespace": None,
        "calibrate": True,
    }
    assert {"numpy", "seasoned"} <= set(run_record["versions"])
    assert {"revision", "python", "machine", "started_at", "finished_at"} <= set(run_record)
    assert len(run_record["scores"]) == 8
    assert run_record["usage"]["calls"] == 0 and run_record["usage"]["cost_usd"] == 0.0
    episodes = stored(tmp_path)
    assert [sum(step.reward for step in e.steps) for e in episodes] == pytest.approx(run_record["scores"])
    assert {(e.model, e.policy, e.arm) for e in episodes} == {("uniform", "seed", "seed")}
    ids = [episode.id for episode in episodes]
    assert ids == sorted(ids) and len(set(ids)) == 8 and all(id_.endswith(f"-{n:05d}") for n, id_ in enumerate(ids))


def test_piped_run_prints_a_curve_and_a_summary_without_colour(tmp_path):
    output = in_process(tmp_path, episodes=20)
    assert "\x1b" not in output
    scores = record(tmp_path)["scores"]
    assert f"mean score {sum(scores) / 20:.2f} of 1 over 20 episodes" in output
    assert "0 model calls" in output and "20/20 episodes" in output
    assert output.count("#") == 21  # one mark an episode, and the legend's


def test_stdout_with_json_is_one_document(tmp_path):
    process = shell(tmp_path, "--json", episodes=5)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    printed = json.loads(out)
    assert printed["scores"] == record(tmp_path)["scores"]
    assert printed["settings"]["seed"] == 0 and Path(printed["folder"]) == tmp_path / "run"


def test_named_memory_is_shared_by_two_runs(tmp_path):
    path = tmp_path / "shop.db"
    with Memory.open(path, namespace="shop") as memory:
        memory.add(Episode("t", [Step("page", "click", 1.0)], id="mine"))
    for seed in ("1", "2"):
        in_process(tmp_path / seed, "--memory", str(path), "--seed", seed, episodes=4)
    with Memory.open(path, namespace="shop") as memory:
        ids = [episode.id for episode in memory.episodes()]
        assert ids[0] == "mine" and len(ids) == len(set(ids)) == 9
    assert not (tmp_path / "1" / "run" / "memory.db").exists()


LONG = "bandit:" + json.dumps({f"context {n}": {"left": 0.0, "right": 1.0} for n in range(12)})


@pytest.mark.parametrize("changed", [["--seed", "1"], ["--policy", "base"], ["--no-calibrate"]])
def test_other_settings_make_another_run_even_with_long_names(tmp_path, changed):
    path = tmp_path / "m.db"
    in_process(tmp_path / "a", "--memory", str(path), env=LONG, episodes=2)
    in_process(tmp_path / "b", "--memory", str(path), *changed, env=LONG, episodes=2)
    with Memory.open(path) as memory:
        assert len(memory.episodes()) == 4


def test_default_folder_of_the_record_is_under_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in ("0", "1", "0"):
        arguments = ["--env", GRID, "--model", "uniform", "--episodes", "2", "--seed", seed]
        CliRunner().invoke(run, arguments, catch_exceptions=False, standalone_mode=False)
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_new_memory_gets_the_named_encoder_and_another_is_refused(tmp_path):
    path = tmp_path / "m.db"
    for _ in range(2):  # the same command goes on
        in_process(tmp_path, "--memory", str(path), "--encoder", "masked", episodes=2)
    assert Memory.namespaces(path) == {"default": ENCODERS["masked"].identity}
    assert record(tmp_path)["settings"]["encoder"] == "masked"
    in_process(tmp_path / "other", "--memory", str(path), episodes=2)  # without a word: the one that made it
    assert "encoder" not in record(tmp_path / "other")["settings"]
    with pytest.raises(EncoderMismatchError, match="never mixed"):
        in_process(tmp_path / "third", "--memory", str(path), "--encoder", "words", episodes=2)


# ------------------------------------------------------------------------------------------ bad input

BAD = [
    ("environment", ["--env", "gird:S.G"], "grid"),
    ("environment without a colon", ["--env", "grid"], "grid"),
    ("option of an environment", ["--env", "grid:S.G?max_step=3"], "max_steps"),
    ("encoder", ["--encoder", "maskd"], "masked"),
    ("challenge", ["--env", "textworld:coking"], "cooking"),
    ("grid without a way", ["--env", "grid:S#G"], "goal"),
    ("model", ["--model", "locl"], "local"),
    ("model without a name", ["--model", "openai"], "openai:MODEL"),
]


@pytest.mark.parametrize(("arguments", "advice"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_unknown_names_are_refused_with_advice_before_anything_is_written(tmp_path, arguments, advice):
    with pytest.raises(SeasonedError) as caught:
        in_process(tmp_path, *arguments)
    assert caught.value.seen and caught.value.rule and advice in caught.value.rule + caught.value.next_step
    assert list(tmp_path.iterdir()) == []


USAGE = [["--policy", "defualt"], ["--episodes", "0"], ["--episodes", "x"], ["--seed", "-1"], ["--no-such-option"]]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_wrong_usage_is_exit_code_2(tmp_path, arguments):
    done = CliRunner().invoke(run, command(tmp_path, *arguments))
    assert done.exit_code == 2
    assert arguments[0] in done.output
    assert list(tmp_path.iterdir()) == []


def test_other_settings_in_the_same_folder_are_refused(tmp_path):
    in_process(tmp_path, episodes=2)
    before = record(tmp_path)
    with pytest.raises(SeasonedError, match="another run") as caught:
        in_process(tmp_path, "--seed", "1", episodes=2)
    assert caught.value.next_step
    assert record(tmp_path) == before


def test_refused_memory_leaves_the_folder_free(tmp_path):
    foreign = tmp_path / "notes.txt"
    foreign.write_text("not a memory " * 100)
    with pytest.raises(SeasonedError):
        in_process(tmp_path, "--memory", str(foreign), episodes=2)
    assert foreign.read_text() == "not a memory " * 100
    in_process(tmp_path, episodes=2)  # the same folder, another memory
    assert len(record(tmp_path)["scores"]) == 2


def test_refusal_in_a_shell_is_one_line_and_an_exit_code(tmp_path):
    process = shell(tmp_path, env="gird:S.G")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert "'grid'" in err and "Traceback" not in err
