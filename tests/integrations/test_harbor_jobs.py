"""Import of Harbor jobs: trials that allow learning, without retrieved text."""

from __future__ import annotations

import json
import os

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import NotFoundError
from seasoned.integrations.harbor import import_job, read_job
from seasoned.integrations.harbor.job_import import EXAMPLES_MARK
from seasoned.policies.examples import Examples

ID = "594025f3-7d65-4655-8576-4bee95002eae"


def trajectory(**fields):
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "seasoned", "version": "1", "model_name": "m"},
        "extra": {"mode": "train"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Make a.txt."},
            {
                "step_id": 2,
                "source": "agent",
                "message": "ls",
                "observation": {"results": [{"content": "b.txt"}]},
                "extra": {"plan": "Look, then make it."},
            },
            {
                "step_id": 3,
                "source": "agent",
                "message": "touch a.txt",
                "reasoning_content": "It is missing.",
                "observation": {"results": [{"content": "(no output)"}]},
            },
        ],
        **fields,
    }


def result(**fields):
    return {
        "id": ID,
        "task_name": "make-a",
        "config": {"agent": {"kwargs": {"mode": "train"}}},
        "verifier_result": {"rewards": {"reward": 1.0}},
        "finished_at": "2026-01-02T03:04:05Z",
        **fields,
    }


def write(folder, result_text=None, document=None, inside="agent"):
    (folder / inside).mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "result.json").write_text(json.dumps(result() if result_text is None else result_text))
    if document is not False:
        (folder / inside / "trajectory.json").write_text(json.dumps(document or trajectory()))
    return folder


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "result.json").write_text('{"n_total_trials": 1}')
    (folder / "config.json").write_text("{}")
    return folder


def test_trial_is_read_as_the_expected_episode(job):
    write(job / "make-a__x")
    [trial] = read_job(job)
    episode = trial.episode
    assert [(step.state, step.action, step.reward) for step in episode.steps] == [
        ("Make a.txt.", "ls", 0.0),
        ("b.txt", "touch a.txt", 1.0),
    ]
    assert (episode.id, episode.task, episode.model, episode.policy) == (ID, "Make a.txt.", "m", "seasoned")
    assert (trial.name, trial.created_at, trial.refusal) == ("make-a__x", 1767323045.0, None)


def test_second_import_changes_nothing(job):
    write(job / "make-a__x")
    with Memory.open(":memory:") as memory:
        assert import_job(memory, job, dry_run=True).new == 1
        assert len(memory) == 0
        assert (import_job(memory, job).new, import_job(memory, job / "make-a__x").new, len(memory)) == (1, 0, 2)
        assert [(note.kind, note.step, note.body["text"]) for note in memory.notes(episode_id=ID)] == [
            ("plan", None, "Look, then make it."),
            ("reasoning", 1, "It is missing."),
        ]
        assert memory.search("b.txt", k=1)[0].experience.return_ == 1.0


def shown_steps(*shown):
    document = trajectory()
    document["steps"][2]["extra"] = {"shown": list(shown)}
    return document


def test_impressions_are_imported_as_notes_and_value_the_examples(job):
    by = [{"purpose": "reason", "examples": [["old", 0]]}, {"purpose": "act", "examples": [["old", 0], ["gone", 2]]}]
    write(job / "t", document=shown_steps(*by))
    with Memory.open(":memory:") as memory:
        memory.add(Episode("Make b.txt.", [Step("Make b.txt.", "touch b.txt", 1.0)], id="old"))
        import_job(memory, job)
        import_job(memory, job)
        notes = memory.notes(kind="shown")
        assert [(note.episode_id, note.step, note.body) for note in notes] == [
            (ID, 1, {**one, "mode": "prompt"}) for one in by
        ]
        [value] = [one for one in Examples(memory).values() if (one.episode_id, one.step) == ("old", 0)]
        assert value.n_shown == 1


@pytest.mark.parametrize(
    "shown",
    [
        {"purpose": "act", "examples": [["old"]]},
        {"purpose": "act", "examples": [["old", True]]},
        {"purpose": "look", "examples": []},
        "act",
    ],
)
def test_malformed_impressions_are_refused(job, shown):
    write(job / "bad", document=shown_steps(shown))
    [trial] = read_job(job)
    assert trial.episode is None and "shown" in trial.refusal


def test_examples_in_an_instruction_are_not_stored(job):
    document = trajectory()
    document["steps"][0]["message"] = f"Make a.txt.\n\n{EXAMPLES_MARK}\nSeen: SECRET"
    write(job / "t", document=document)
    [trial] = read_job(job)
    assert trial.episode.task == trial.episode.steps[0].state == "Make a.txt."


REFUSED = [
    (result(config={"agent": {"kwargs": {"mode": "test"}}}), trajectory(), "test.*must not learn from"),
    (result(), trajectory(extra={"mode": "test"}), "test.*must not learn from"),
    (
        result(config={"agent": {"kwargs": {}}}, agent_result={"metadata": {"mode": "test"}}),
        trajectory(extra={}),
        "test.*must not learn from",
    ),
    (result(verifier_result=None), trajectory(), "no reward"),
    (result(verifier_result={"rewards": {"a": 1, "b": 0}}), trajectory(), "only one reward can be the episode's"),
    (result(verifier_result={"rewards": {"reward": "1"}}), trajectory(), "reward"),
    (result(exception_info={"exception_type": "SandboxBuildFailedError"}), trajectory(), "it failed"),
    (result(id=None), trajectory(), "without an id"),
    (result(), trajectory(steps=[]), "needs at least one step"),
    (result(), trajectory(continued_trajectory_ref="trajectory.cont-1.json"), "continues in another file"),
    (result(), {"schema_version": "OTHER"}, "ATIF"),
    (result(), False, "no agent/trajectory.json"),
    (["not a result"], trajectory(), "JSON object"),
]


@pytest.mark.parametrize(("reason", "document", "why"), REFUSED)
def test_unusable_trials_are_refused_with_reasons(job, reason, document, why):
    write(job / "bad", reason, document)
    write(job / "good")
    with Memory.open(":memory:") as memory:
        imported = import_job(memory, job)
        assert (imported.read, imported.new, list(imported.refused)) == (1, 1, ["bad"])
    import re

    assert re.search(why, imported.refused["bad"])


def test_reward_key_selects_the_reward_and_timeouts_truncate(job):
    write(
        job / "t",
        result(
            verifier_result={"rewards": {"a": 0.25, "b": 0}}, exception_info={"exception_type": "AgentTimeoutError"}
        ),
    )
    [trial] = read_job(job, reward_key="a")
    assert (trial.episode.steps[-1].reward, trial.episode.ending) == (0.25, "truncated")


def test_steps_of_a_trial_are_separate_episodes(job):
    record = result(
        verifier_result=None,
        step_results=[
            {"step_name": "one", "verifier_result": {"rewards": {"reward": 1}}},
            {"step_name": "../../up", "verifier_result": {"rewards": {"reward": 1}}},
            {
                "step_name": "two",
                "verifier_result": {"rewards": {"reward": 1}},
                "agent_result": {"metadata": {"mode": "test"}},
            },
        ],
    )
    write(job / "t", record, inside="steps/one/agent")
    first, second, third = read_job(job)
    assert (first.name, first.episode.id) == ("t/one", f"{ID}/one")
    assert "outside the trial" in second.refusal
    assert "must not learn from" in third.refusal


def test_links_and_pipes_are_not_followed(job, tmp_path):
    elsewhere = write(tmp_path / "elsewhere")
    trial = write(job / "t", document=False)
    (trial / "agent" / "trajectory.json").symlink_to(elsewhere / "agent" / "trajectory.json")
    assert "outside" in next(read_job(job)).refusal
    (trial / "agent" / "trajectory.json").unlink()
    os.mkfifo(trial / "agent" / "trajectory.json")
    assert "a file may have" in next(read_job(job)).refusal
    (trial / "agent" / "trajectory.json").unlink()
    (trial / "agent" / "trajectory.json").write_text("{" * 100_000)
    assert "JSON" in next(read_job(job)).refusal or "nested" in next(read_job(job)).refusal


def test_missing_job_is_refused(job, tmp_path):
    for path, why in ((tmp_path / "none", "a job must be a folder"), (job, "holds trials")):
        with pytest.raises(NotFoundError, match=why):
            list(read_job(path))
