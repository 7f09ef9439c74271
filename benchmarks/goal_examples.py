"""Examples by goals alone, compared with BM25 of goals, on the traces of our own.

Run: python benchmarks/goal_examples.py [--desks orders oncall] [--seeds 3]

Each successful run of a desk asks for three others with a goal like its own; the runs of its own case are left out. The
precision at 3 is the mean share of a found run's tools that the asking run called too. `Examples` are retrieved for a
plan: from goals alone, over successful runs of one step each; and as an import has them, with the encoder `transcript`,
over all steps of all runs, failed ones too, by goal, and by goal and first state. BM25 ranks the goals of successful
runs, later ones first among equals; `random` draws three successful runs. Intervals: bootstrap over seeds, 95 %; a seed
draws other cases and runs. Writes `benchmarks/results/goal_examples.json`.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import long_texts
import traces
from trace_measures import interval
from workload import write_result

from seasoned import Episode, Memory, Step
from seasoned.agents.baselines.bm25 import BM25
from seasoned.integrations.conversation import InputMessage, episode_of
from seasoned.policies.examples import ExampleQuery, Examples
from seasoned.states import TranscriptEncoder

N_SHOWN, N_ASKED = 3, 40


class Run(NamedTuple):
    """A run: its case, its goal in words, its tools, and its episode as an import stores it."""

    id: str
    case: str
    goal: str
    tools: frozenset[str]
    episode: Episode

    @property
    def won(self) -> bool:
        return self.episode.steps[-1].reward > 0.5


def all_runs(desk: str, seed: int) -> list[Run]:
    """Return the runs with tools, in the order in which they were played."""
    found = []
    for one in (long_texts if desk in long_texts.DESKS else traces).conversations(desk, seed):
        said = [item.text for item in one.items if isinstance(item, InputMessage) and item.speaker == "user"]
        tools = frozenset(call.tool for call in one.calls if call.tool)
        if tools and said:
            episode, _ = episode_of(one.items, id=one.id, reward=one.reward)
            found.append(Run(one.id, one.task, said[0], tools, episode))
    return found


Way = Callable[[Sequence[Run]], Callable[[Run], list[Run]]]


def by_examples(runs: Sequence[Run]) -> Callable[[Run], list[Run]]:
    runs = [run for run in runs if run.won]
    memory = Memory.open(":memory:")
    memory.add_many(Episode(run.goal, [Step(run.id, run.id, 1.0)], run.id) for run in runs)
    examples = Examples(memory, k=N_ASKED, keys={"goal": 1}, diversity=0.0, budget_tokens=10**6, window=0)
    run_of = {run.id: run for run in runs}

    def find(asking: Run) -> list[Run]:
        shown = examples.retrieve(ExampleQuery(asking.goal), purpose="plan")
        return [run_of[one.episode_id] for one in shown]

    return find


def imported(*, with_state: bool) -> Way:
    def way(runs: Sequence[Run]) -> Callable[[Run], list[Run]]:
        memory = Memory.open(":memory:", encoder=TranscriptEncoder())
        memory.add_many(run.episode for run in runs)
        examples = Examples(memory, k=N_ASKED, budget_tokens=10**6, window=0)
        run_of = {run.id: run for run in runs}

        def find(asking: Run) -> list[Run]:
            state = asking.episode.steps[0].state if with_state else None
            shown = examples.retrieve(ExampleQuery(asking.goal, observation=state), purpose="plan")
            return [run_of[one.episode_id] for one in shown]

        return find

    return way


def by_bm25(runs: Sequence[Run]) -> Callable[[Run], list[Run]]:
    runs = [run for run in runs if run.won]
    index = BM25()
    for run in runs:
        index.add(run.goal)

    def find(asking: Run) -> list[Run]:
        scores = index.scores(asking.goal)
        return [runs[number] for number in sorted(scores, key=lambda number: (-scores[number], -number))]

    return find


def by_chance(runs: Sequence[Run]) -> Callable[[Run], list[Run]]:
    won = [run for run in runs if run.won]
    return lambda asking: random.Random(asking.id).sample(won, len(won))


WAYS: dict[str, Way] = {
    "Examples": by_examples,
    "imported, goal": imported(with_state=False),
    "imported, goal and state": imported(with_state=True),
    "BM25": by_bm25,
    "random": by_chance,
}


def precision(runs: Sequence[Run], find: Callable[[Run], list[Run]]) -> float:
    """Return the precision at 3 over the successful runs; a place that is not filled counts as 0."""
    total = 0.0
    asked = [run for run in runs if run.won]
    for asking in asked:
        found = [run for run in find(asking) if run.case != asking.case][:N_SHOWN]
        total += sum(len(run.tools & asking.tools) / len(run.tools) for run in found) / N_SHOWN
    return total / len(asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--desks", nargs="*", default=list(traces.REPORTED), choices=[*traces.DESKS, *long_texts.DESKS])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    results: dict[str, dict[str, tuple[float, float, float]]] = {}
    for desk in options.desks:
        figures: dict[str, list[float]] = defaultdict(list)
        for seed in range(1, options.seeds + 1):
            runs = all_runs(desk, seed)
            for name, way in WAYS.items():
                figures[name].append(precision(runs, way(runs)))
            for name in [name for name in WAYS if name not in ("BM25", "random")]:
                figures[f"{name} - BM25"].append(figures[name][-1] - figures["BM25"][-1])
        results[desk] = {name: interval(values) for name, values in figures.items()}
        print(f"\n{desk}, {options.seeds} seeds, precision at {N_SHOWN} of the tool set, own case left out")
        for name, (mean, low, high) in results[desk].items():
            print(f"{name:<31} {mean:+.3f} [{low:+.3f}, {high:+.3f}]")
    command = f"python benchmarks/goal_examples.py {' '.join(sys.argv[1:])}".strip()
    write_result("goal_examples", {"command": command, "seeds": options.seeds, "results": results})


if __name__ == "__main__":
    main()
