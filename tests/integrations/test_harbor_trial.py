"""Real Harbor trials (its Trial, its Verifier) with our agents; only the container is a fake that runs bash."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import ClassVar

import pytest

pytest.importorskip("harbor", reason="needs the extra 'harbor' (Python 3.12 or newer)")

from harbor.agents.base import BaseAgent
from harbor.models.trajectories import Trajectory
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial
from harbor_local_container import CANARY, LocalContainer, ScriptedAgent

from seasoned import Episode, Memory, Step
from seasoned.errors import NotFoundError
from seasoned.integrations.harbor import LearnFromJob, SeasonedAgent, WithExamples, import_job

WORK = ["Thought: make it.\nAction: echo hello > a.txt", "Thought: it is there.\nAction: cat a.txt", "Action: done"]
LOOK = [
    f"Thought: where?\nAction: {command}"
    for command in (
        "cat /tests/secret.txt",
        "cat /te'st's/*",
        "cd / && cat solution/solve.sh",
        "cat /logs/verifier/reward.txt",
        "grep -r CANARY /",
        "cp -r /solution .",
        "ls -R /",
        "cat ../tests/secret.txt",
        "cd .. && cat solution/solve.sh",
    )
]
TEST_SH = """\
if [ "$(cat "${ROOT:?}/app/a.txt")" = hello ]; then reward=1; else reward=0; fi
echo $reward > "${ROOT:?}/logs/verifier/reward.txt"
"""
CONTAINER = "harbor_local_container:LocalContainer"
READ: list[str] = []
_WATCHING: list[bool] = []


def _watch(event, arguments):
    if (
        _WATCHING
        and event in ("open", "os.listdir", "os.scandir")
        and isinstance(arguments[0], str | bytes | os.PathLike)
    ):
        READ.append(str(Path(os.fsdecode(arguments[0])).absolute()))


sys.addaudithook(_watch)


@pytest.fixture
def task(tmp_path):
    folder = tmp_path / "task"
    for name, content in {
        "instruction.md": "Write hello into a.txt.",
        "task.toml": 'version = "1.0"\n',
        "environment/Dockerfile": "FROM scratch\n",
        "tests/test.sh": TEST_SH,
        "tests/canary.txt": CANARY,
        "solution/solve.sh": f"# {CANARY}\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@pytest.fixture
def run(task, tmp_path):
    def run_one(path, script=(), **options):
        ScriptedAgent.script = list(script)
        root = tmp_path / f"root-{len(LocalContainer.made)}"
        config = TrialConfig(
            task=TaskConfig(path=task),
            trials_dir=tmp_path / "job",
            trial_name=f"trial-{len(LocalContainer.made)}",
            agent=AgentConfig(import_path=path, kwargs=options),
            environment=EnvironmentConfig(import_path=CONTAINER, kwargs={"root": str(root)}),
        )

        async def play():
            trial = await Trial.create(config)
            return await trial.run()

        return asyncio.run(play()), LocalContainer.made[-1], tmp_path / "job" / config.trial_name

    return run_one


SCRIPTED = "harbor_local_container:ScriptedAgent"


@pytest.fixture
def memory_path(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path) as memory:
        memory.add(
            Episode("Write hello into b.txt.", [Step("Write hello into b.txt.", "echo hello > b.txt", 1.0)], id="old")
        )
    return path


def test_trial_in_train_mode_is_imported_with_its_reward(run, tmp_path):
    memory = tmp_path / "new.db"
    result, container, folder = run(SCRIPTED, ["Make it.", *WORK], memory=str(memory), mode="train", max_steps=5)
    assert result.exception_info is None, result.exception_info
    assert result.verifier_result.rewards == {"reward": 1.0}
    assert [command for phase, command in container.commands if phase == "agent"] == ["echo hello > a.txt", "cat a.txt"]
    written = Trajectory.model_validate_json((folder / "agent" / "trajectory.json").read_text())
    assert [step.message for step in written.steps[1:]] == ["echo hello > a.txt", "cat a.txt", "done"]
    assert written.steps[2].reasoning_content == "it is there."
    assert not memory.exists()
    plugin = LearnFromJob(str(memory))

    class Job:
        job_dir = folder.parent

    asyncio.run(plugin.on_job_start(Job()))
    asyncio.run(plugin.on_job_end(None))
    assert (plugin.imported.new, dict(plugin.imported.refused)) == (1, {})
    with Memory.open(memory) as learned:
        [episode] = learned.episodes()
        assert [(step.state, step.action, step.reward) for step in episode.steps] == [
            ("Write hello into a.txt.", "echo hello > a.txt", 0.0),
            ("(no output)", "cat a.txt", 0.0),
            ("hello", "done", 1.0),
        ]
    result, _, _ = run(SCRIPTED, ["Again.", *WORK], memory=str(memory), mode="test")
    assert result.exception_info is None, result.exception_info
    assert result.agent_result.cost_usd == 1.0
    first_action = ScriptedAgent.requests[1].messages[-1].content
    _, _, shown = first_action.partition("What went best before")  # the step of this very moment, and what came then
    assert "\nAction: echo hello > a.txt\n" in shown and "\nThen, Action: cat a.txt\n" in shown


def test_agent_in_test_mode_reads_no_grader_files_and_writes_no_memory(run, task, memory_path):
    before = memory_path.read_bytes()
    READ.clear()

    original = ScriptedAgent.run

    async def watched(self, instruction, environment, context):
        _WATCHING.append(True)
        try:
            await original(self, instruction, environment, context)
        finally:
            _WATCHING.clear()

    ScriptedAgent.run = watched
    try:
        result, container, folder = run(SCRIPTED, ["Look.", *LOOK, *WORK], memory=str(memory_path), mode="test")
    finally:
        ScriptedAgent.run = original
    assert result.exception_info is None, result.exception_info
    assert result.agent_result.metadata["refused_commands"] == len(LOOK)
    ran = [command for phase, command in container.commands if phase == "agent"]
    assert ran == ["echo hello > a.txt", "cat a.txt"]
    trajectory = (folder / "agent" / "trajectory.json").read_text()
    seen = trajectory + json.dumps([[one.content for one in each.messages] for each in ScriptedAgent.requests])
    assert CANARY not in seen.replace("grep -r CANARY /", "")
    forbidden = [
        task / "tests",
        task / "solution",
        folder / "verifier",
        container.root / "tests",
        container.root / "solution",
        container.root / "logs" / "verifier",
    ]
    assert READ, "the watch saw nothing"
    assert not [path for path in READ if any(path.startswith(f"{one}") for one in forbidden)]
    assert memory_path.read_bytes() == before
    with Memory.open(memory_path) as memory:
        imported = import_job(memory, folder)
        assert (imported.read, list(imported.refused)) == (0, [folder.name])
        assert "must not learn from" in imported.refused[folder.name]


def test_fake_container_contains_the_grader_files(run, memory_path):
    _, container, _ = run(SCRIPTED, ["Look.", *WORK], memory=str(memory_path))
    shown = asyncio.run(container.exec("cat /tests/secret.txt; cd / && ls; cat /solution/solve.sh"))
    assert shown.stdout.count(CANARY) == 2


def test_killed_agent_leaves_its_trajectory_so_far(run, memory_path):
    result, _, folder = run(SCRIPTED, ["Plan.", WORK[0]], memory=str(memory_path), mode="train")
    assert result.exception_info is not None
    written = Trajectory.model_validate_json((folder / "agent" / "trajectory.json").read_text())
    assert [step.message for step in written.steps[1:]] == ["echo hello > a.txt"]
    with Memory.open(memory_path) as memory:
        assert "no reward" in import_job(memory, folder).refused[folder.name]


def test_calls_without_a_step_are_counted(run, memory_path):
    """An answer for the plan, one for a step, and two unusable ones: all four are counted."""
    replies = ["Plan.", WORK[0], "Thought: only", "Thought: still"]
    result, _, _ = run(SCRIPTED, replies, memory=str(memory_path), mode="train")
    assert result.exception_info.exception_type == "ModelAnswerError"
    spent = result.agent_result
    assert (spent.n_input_tokens, spent.n_output_tokens, spent.cost_usd) == (400, 20, 1.0)


def test_failed_call_has_an_unknown_price(run, memory_path):
    result, _, _ = run(SCRIPTED, ["Plan.", WORK[0], None], memory=str(memory_path), mode="train")
    assert result.exception_info.exception_type == "ModelUnavailableError"
    assert (result.agent_result.n_input_tokens, result.agent_result.cost_usd) == (200, None)


class GraderReader(BaseAgent):
    """A foreign agent that reads the grader's files."""

    instructions: ClassVar[list[str]] = []
    command_results: ClassVar[list] = []

    @staticmethod
    def name():
        return "grader-reader"

    def version(self):
        return "1"

    async def setup(self, environment):
        pass

    async def run(self, instruction, environment, context):
        GraderReader.instructions.append(instruction)
        GraderReader.command_results = [
            await environment.exec(command) for command in ("cat ../tests/secret.txt", "echo hello > a.txt")
        ]
        for call in (
            environment.download_file("/tests/secret.txt", "/dev/null"),
            environment.upload_dir(".", "/tests"),
        ):
            with pytest.raises(PermissionError, match="grader"):
                await call
        assert environment.session_id
        document = {
            "schema_version": "ATIF-v1.7",
            "session_id": "s",
            "agent": {"name": "grader-reader", "version": "1"},
            "steps": [
                {"step_id": 1, "source": "user", "message": instruction},
                {"step_id": 2, "source": "agent", "message": "echo hello > a.txt"},
            ],
        }
        (self.logs_dir / "trajectory.json").write_text(json.dumps(document))


def test_wrapped_agent_gets_examples_that_are_not_stored_again(run, memory_path):
    options = {"agent": f"{GraderReader.__module__}:GraderReader", "memory": str(memory_path), "mode": "train"}
    result, _, folder = run("seasoned.integrations.harbor:WithExamples", **options)
    assert result.exception_info is None, result.exception_info
    assert "echo hello > b.txt" in GraderReader.instructions[-1]
    assert [one.return_code for one in GraderReader.command_results] == [126, 0]
    assert (result.agent_result.metadata["refused_commands"], result.agent_result.metadata["shown"]) == (
        3,
        [["old", 0]],
    )
    with Memory.open(memory_path) as memory:
        assert import_job(memory, folder).new == 1
        assert [step.state for step in memory.episodes()[-1].steps] == ["Write hello into a.txt."]


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("seasoned.integrations.harbor:WithExamples", {"agent": f"{GraderReader.__module__}:GraderReader"}),
        (SCRIPTED, {}),
    ],
)
def test_default_mode_of_a_trial_is_test(run, memory_path, path, options):
    result, _, folder = run(path, ["Make it.", *WORK], memory=str(memory_path), **options)
    assert result.exception_info is None, result.exception_info
    assert "mode" not in result.config.agent.kwargs and result.agent_result.metadata["mode"] == "test"
    with Memory.open(memory_path) as memory:
        assert "must not learn from" in import_job(memory, folder).refused[folder.name]
        assert [episode.id for episode in memory.episodes()] == ["old"]


def test_bad_options_are_refused(tmp_path, run):
    for options, message in (
        ({}, "memory"),
        ({"memory": "x", "mode": "tset"}, "mode"),
        ({"memory": "x", "k2": 1}, "k2"),
    ):
        with pytest.raises(ValueError, match=message):
            SeasonedAgent(tmp_path, "openai/x", **options)
    result, _, _ = run(SCRIPTED, WORK, memory=str(tmp_path / "none.db"), mode="test")
    assert result.exception_info.exception_type == NotFoundError.__name__


def test_harbor_loads_the_agents_by_import_path():
    assert SeasonedAgent.import_path() == "seasoned.integrations.harbor:SeasonedAgent"
    assert (SeasonedAgent.name(), WithExamples.name()) == ("seasoned", "seasoned-with-examples")
    assert {"memory", "mode", "max_steps"} <= set(SeasonedAgent.options_schema()["properties"])
    assert issubclass(SeasonedAgent, BaseAgent)
