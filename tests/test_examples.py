"""The worked examples run offline, print the same output for the same seed, and show a gain beyond chance."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from seasoned.envs import FileTasks
from seasoned.sync import Sync

EXAMPLES = Path(__file__).parents[1] / "examples"
SIZES = {
    "form_filling.py": "--sessions",
    "rollback.py": "--incidents",
    "closed_api.py": "--tickets",
    "human_choices.py": "--tickets",
    "edits.py": "--requests",
    "coding_agent.py": "--issues",
    "filing_agent.py": "--jobs",
    "repository_chores.py": "--chores",
}
# Shorter runs, with seeds at which the first run shows an effect; the full runs are among the slow tests.
SHORT = {
    "form_filling.py": ("--sessions", "32"),
    "rollback.py": ("--incidents", "60"),
    "closed_api.py": ("--tickets", "60", "--seed", "2"),
    "human_choices.py": ("--tickets", "40"),
    "edits.py": ("--requests", "40", "--seeds", "5"),
    "coding_agent.py": ("--issues", "30", "--seeds", "5"),
    "filing_agent.py": ("--jobs", "24"),
    "repository_chores.py": ("--chores", "16", "--seeds", "5"),
}
MAX_LINES = 150
ROW = re.compile(r"^(\d+)-(\d+) +([\d. ]+?) +([-+]\d\.\d+) \[([-+]\d\.\d+), ([-+]\d\.\d+)\] \(n=(\d+),", re.MULTILINE)


def scripts(*, slow: tuple[str, ...] = ()) -> list[Any]:
    """Return every example, with those in `slow` marked as slow tests."""
    return [pytest.param(name, marks=[pytest.mark.slow] if name in slow else []) for name in SIZES]


@functools.cache
def run(script: str, *options: str, hash_seed: str = "0") -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded(script: str) -> Any:
    spec = importlib.util.spec_from_file_location(script.removesuffix(".py"), EXAMPLES / script)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


@pytest.fixture(scope="module", params=scripts(slow=tuple(SIZES.keys() - {"edits.py", "coding_agent.py"})))
def script(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=["short", pytest.param("whole", marks=pytest.mark.slow)])
def options(request: pytest.FixtureRequest) -> dict[str, tuple[str, ...]]:
    return SHORT if request.param == "short" else dict.fromkeys(SHORT, ())


@pytest.fixture(scope="module")
def output(script: str, options: dict[str, tuple[str, ...]]) -> str:
    return run(script, *options[script])


def test_gain_is_positive_at_the_end_and_grows(script: str, output: str, options: dict[str, tuple[str, ...]]) -> None:
    rows = [match.groups() for match in ROW.finditer(output)]
    assert len(rows) == 4
    assert [int(row[0]) for row in rows[1:]] == [int(row[1]) + 1 for row in rows[:-1]]
    gains = []
    for *_, arms, gain, low, high, n in rows:
        shares = [float(share) for share in arms.split()]
        alone, learned = shares[0], shares[-1]
        assert 0.0 <= alone <= 1.0
        assert 0.0 <= learned <= 1.0
        assert float(gain) == pytest.approx(learned - alone, abs=0.011)
        assert float(low) <= float(gain) <= float(high)
        assert int(n) == (5 if "--seeds" in options[script] else 10)
        gains.append(float(gain))
    assert float(rows[-1][4]) > 0.0, "the interval of the last block is above zero"
    assert gains[-1] > gains[0]


@pytest.mark.parametrize(
    "deciding",
    [
        pytest.param("form_filling.py", marks=pytest.mark.slow),
        pytest.param("rollback.py", marks=pytest.mark.slow),
        pytest.param("human_choices.py", marks=pytest.mark.slow),
        "edits.py",
        "coding_agent.py",
    ],
)
def test_explained_decision_follows_memory(deciding: str, options: dict[str, tuple[str, ...]]) -> None:
    output = run(deciding, *options[deciding])
    explained = output[output.index("\nstate ") :]
    assert re.search(r"^mode +memory: memory spent \d", explained, re.MULTILINE)
    base, shifted = map(float, re.search(r"^\*.* ([\d.]+) +([\d.]+)$", explained, re.MULTILINE).groups())
    assert shifted > base


@pytest.mark.parametrize("script", scripts(slow=tuple(SIZES.keys() - {"closed_api.py"})))
def test_equal_seeds_give_equal_output(script: str) -> None:
    small = ("--seeds", "2", SIZES[script], "16")
    first = run(script, *small, "--seed", "7")
    assert run(script, *small, "--seed", "7", hash_seed="1") == first
    assert run(script, *small, "--seed", "8") != first


@pytest.mark.parametrize("script", SIZES)
def test_too_few_seeds_or_episodes_are_refused(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = loaded(script)
    for options in (["--seeds", "1"], ["--seeds", "0"], [SIZES[script], "3"], ["--seed", "-1"]):
        monkeypatch.setattr(sys, "argv", [script, *options])
        with pytest.raises(SystemExit) as ended:
            example.main()
        output = capsys.readouterr()
        assert (ended.value.code, output.out) == (2, "")
        assert "--seeds at least 2 for an interval" in output.err
        assert f"{SIZES[script]} at least 4 for four blocks" in output.err


@pytest.mark.parametrize(("people", "kind"), [("human_choices.py", "choices"), ("edits.py", "edits")])
def test_choices_and_edits_gain_more_than_thumbs(people: str, kind: str, options: dict[str, tuple[str, ...]]) -> None:
    match = re.search(
        rf"^{kind} - thumbs.*?([-+]\d\.\d+) \[([-+]\d\.\d+), ", run(people, *options[people]), re.MULTILINE
    )
    assert match is not None
    # A choice counts as one comparison, so that ten runs do not tell it from a thumb for sure.
    assert float(match[1 if kind == "choices" else 2]) > 0.0


def test_reviews_gain_more_than_tests_alone(options: dict[str, tuple[str, ...]]) -> None:
    output = run("coding_agent.py", *options["coding_agent.py"])
    match = re.search(r"^review - tests.*\[([-+]\d\.\d+), ", output, re.MULTILINE)
    assert match is not None
    assert float(match[1]) > 0.0
    assert "12 patches were tested in their own processes" in output, "each patch once"


def test_filing_agent_completes_jobs_and_shows_examples_with_returns() -> None:
    output = run("filing_agent.py", "--seeds", "2", "--jobs", "4")
    shares = [float(share) for *_, arms, _, _, _, _ in ROW.findall(output) for share in arms.split()]
    assert len(shares) == 12
    assert 0.0 < sum(shares) < 12.0
    prompt = output[output.index("last prompt:") :]
    example = re.search(r"^Example 1, which earned (\S+) from there:\n(?:.+\n)*?Action: ", prompt, re.MULTILINE)
    assert example is not None
    assert float(example[1]) > 0.0


def test_filing_agent_learns_config_jobs_from_examples() -> None:
    example = loaded("filing_agent.py")
    with ExitStack() as stack:
        jobs = [FileTasks("config", seed=seed, max_steps=example.COMMANDS) for seed in range(example.VARIANTS)]
        for job in jobs:
            stack.enter_context(Sync(job))
        done, prompt = example.clerk(jobs, 0, 16, arm="prompt")
    assert sum(done[8:]) >= sum(done[:8]) + 4, "the curve rises"
    assert re.search(r"^Action: sed -i", prompt, re.MULTILINE), "the prompt shows a command"


def test_repository_chores_are_learned() -> None:
    example = loaded("repository_chores.py")
    done, last = asyncio.run(example.work(0, 9, recalls=True))
    alone, _ = asyncio.run(example.work(0, 9, recalls=False))
    assert all(done[6:])
    assert sum(done) >= sum(alone) + 3
    assert "recalled: " in last and "earned" in last


def test_feedback_gains_more_than_dashboards_alone(options: dict[str, tuple[str, ...]]) -> None:
    output = run("rollback.py", *options["rollback.py"])
    match = re.search(r"^feedback - memory.*\[([-+]\d\.\d+), ", output, re.MULTILINE)
    assert match is not None
    assert float(match[1]) > 0.0


@pytest.mark.slow
def test_votes_gain_over_the_model_alone(options: dict[str, tuple[str, ...]]) -> None:
    output = run("closed_api.py", *options["closed_api.py"])
    match = re.search(r"^votes - alone.*\[([-+]\d\.\d+), ", output, re.MULTILINE)
    assert match is not None
    assert float(match[1]) > 0.0


@pytest.mark.slow
def test_advice_ranks_actions_by_return_and_prints_its_assumptions(options: dict[str, tuple[str, ...]]) -> None:
    output = run("closed_api.py", *options["closed_api.py"])
    lines = re.findall(
        r'^- (prefer|avoid) "(.*)": mean return ([\d.]+) in \d+ tr(?:y|ies)$',
        output[output.index("\nFrom ") :],
        re.MULTILINE,
    )
    returns = {
        verb: [float(value) for line_verb, _, value in lines if line_verb == verb] for verb in ("prefer", "avoid")
    }
    assert returns["prefer"]
    assert min(returns["prefer"]) > max(returns["avoid"], default=0.0)
    assert re.search(r"follows a preference with probability 0\.\d, heeds a warning with 0\.\d", output)


@pytest.mark.parametrize("script", scripts())
def test_example_is_short_and_imports_public_modules_only(script: str) -> None:
    text = (EXAMPLES / script).read_text()
    assert text.count("\n") < MAX_LINES
    assert f"Run: python examples/{script}" in text.split('"""')[1]
    imported = re.findall(r"^(?:from|import) (seasoned[\w.]*)", text, re.MULTILINE)
    assert set(imported) <= {
        "seasoned",
        "seasoned.policies.advice",
        "seasoned.protocols.template_marks",
        *(
            f"seasoned.{part}"
            for part in (
                "actions",
                "agents",
                "chat",
                "core",
                "envs",
                "llms",
                "policies",
                "protocols",
                "states",
                "sync",
                "types",
            )
        ),
    }
