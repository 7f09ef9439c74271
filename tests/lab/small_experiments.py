"""A small experiment and its results, shared by the tests of the runner."""

from pathlib import Path

from seasoned.lab.results.run_results import load_results
from seasoned.lab.suites.suite_toml import read_suite
from seasoned.memory import Memory

HERE = Path(__file__).parent
GRID = "grid:S..#/.#../...G?max_steps=12"


def suite(**changes):
    return read_suite(
        {
            "name": "s",
            "seeds": 2,
            "model": "uniform",
            "tasks": [
                {"name": "stream", "env": [GRID, "grid:S..G?max_steps=9"], "episodes": 3},
                {"name": "grid", "env": GRID, "episodes": 2, "transfer": [{"split": "new slots", "env": GRID}]},
            ],
            "arms": [{"name": "alone"}, {"name": "default", "kind": "jitrl"}],
            **changes,
        }
    )


def outcome(folder):
    """Return the results of an experiment without times and random ids."""
    files = {}
    for run in load_results(folder).runs:
        with Memory.open(run.folder / "memory.db", create=False) as memory:
            stored = [
                (episode.task, episode.ending, [(step.state, step.action, step.reward) for step in episode.steps])
                for episode in memory.episodes()
                if episode.ending != "aborted"
            ]
        played = (run.episodes, *run.transfer.values())
        files[str(run.key)] = (
            [[(r.score, r.steps, r.flips, r.kl_nats, r.ending, r.usage.tokens) for r in each] for each in played],
            stored,
            run.done,
            run.error,
        )
    return files
