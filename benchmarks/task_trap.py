"""Actions that say which task is played: how far `default` takes a task's success for the action's.

Run: python benchmarks/task_trap.py [--seeds 10] [--desks airline coding orders oncall] [--desk-seeds 2]

The trap: 20 tasks of success 0.95 to 0.05, 8 runs of each, one step a run, at a state whose words are the same for all,
`cancel` with the order of the task. What is done changes nothing. Goals are

- `none`: the state has no goal;
- `paraphrased`: six of 16 words for each run, whatever its task;
- `of the task`: six of 16 words for each task, the same in all of its runs.

In `choice` each task has two orders, one of which adds 0.3 to its success (rates 0.65 to 0.05): there is something to
learn within tasks. In `shared` all tasks have the same two calls, one of which adds 0.3: tasks teach each other.

Ways: `pooled` compares over all tasks; `goals count` within tasks where states are equal with their goals; `default`
where they are equal apart from their goals. P(easy) is the probability of the easiest task's order against the hardest
one's, of an even model with a goal of its own; P(better) that of the call that adds 0.3, in a task's next run. The AUC
is the share of pairs of runs in which the one that earned more has the higher advantage, by a memory of the other half
of the runs; 0.5 is right for the trap. Pairs are of one half, so that one memory scored both; `across memories` counts
the others too. In `null` a run's score is the rate of its task in the other half, without states, actions or an
estimator: across memories it is below 0.5 although nothing makes a difference, since a run that won is left out of the
memory by which it is scored. Means over seeds, 95 % bootstrap intervals. Desks: `traces.py`, 30 tasks of six
runs, four steps of a run. Writes `benchmarks/results/task_trap.json`.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import traces
from trace_measures import interval
from workload import write_result

from seasoned import Episode, JitRL, Memory, Step
from seasoned.actions import call_action
from seasoned.lab.diagnosis.outcome_checks import OutcomeScores, overall_concordance, within_tasks_concordance
from seasoned.policies.call_evidence import action_rows
from seasoned.protocols import EvidenceSource
from seasoned.states import InputMessage, Transcript
from seasoned.states.encoder_names import named_encoder
from seasoned.types import Evidence, EvidenceQuery

WORDS = "cancel my reservation since I cannot travel because of work family illness weather plans changed today soon"
N_TASKS, N_RUNS, N_DESK_TASKS, MOST_STEPS = 20, 8, 30, 4
WAYS = ("pooled", "goals count", "default")
GOALS = ("none", "paraphrased", "of the task")


class OtherSums:
    """Evidence whose sums by task are left out, or read with goals as a part of states."""

    def __init__(self, memory: EvidenceSource, way: str) -> None:
        self.memory, self.way = memory, way

    def evidence(self, query: EvidenceQuery) -> Evidence:
        found = self.memory.evidence(query)
        if self.way == "default" or found.by_task is None:
            return found
        return replace(found, by_task=None if self.way == "pooled" else replace(found.by_task, situations=None))


def order(number: int) -> str:
    return call_action("cancel", {"order": f"W{100 + number}"})


def trap(world: str, goals: str, seed: int) -> tuple[list[Episode], str, list[str]]:
    """Return the episodes, the state of a next run, and the calls to choose among."""
    numbers, words = np.random.default_rng(seed), random.Random(seed)
    own = [words.sample(WORDS.split(), 6) for _ in range(N_TASKS)]
    rates = np.linspace(0.95 if world == "trap" else 0.65, 0.05, N_TASKS)

    def state(task: int) -> str:
        said = {"none": [], "paraphrased": words.sample(WORDS.split(), 6), "of the task": own[task]}[goals]
        goal = " ".join(["cancel", "it", *said]) if said else ""
        return Transcript([InputMessage("tool find", '{"flights": []}')], ["find"], goal).text

    episodes = []
    for _ in range(N_RUNS):
        for task in numbers.permutation(N_TASKS).tolist():
            better = int(numbers.random() < 0.5)
            number = {"trap": task, "choice": 2 * task + better, "shared": better}[world]
            rate = rates[task] + (0.3 * better if world != "trap" else 0.0)
            episodes.append(Episode(f"task {task}", [Step(state(task), order(number), float(numbers.random() < rate))]))
    if world == "trap":
        new = " ".join(["cancel", "it", *words.sample(WORDS.split(), 6)]) if goals != "none" else ""
        return (
            episodes,
            Transcript([InputMessage("tool find", '{"flights": []}')], ["find"], new).text,
            [order(0), order(N_TASKS - 1)],
        )
    task = N_TASKS // 2
    calls = [order(2 * task + 1), order(2 * task)] if world == "choice" else [order(1), order(0)]
    return episodes, state(task), calls


def scores(episodes: Sequence[Episode], way: str, seed: int) -> OutcomeScores:
    """Return each episode's mean advantage by a memory of the other half, over at most four of its steps."""
    side = np.random.default_rng(seed).permutation(len(episodes)) % 2
    found = np.zeros(len(episodes))
    for half in (0, 1):
        with Memory.open(":memory:", encoder=named_encoder("transcript")) as memory:
            memory.add_many([one for one, at in zip(episodes, side, strict=True) if at != half])
            policy = JitRL(OtherSums(memory, way))
            for at in np.flatnonzero(side == half).tolist():
                steps = list(enumerate(episodes[at].steps))
                steps = steps[:: max(1, math.ceil(len(steps) / MOST_STEPS))]
                found[at] = np.mean([advantage(policy, step, index, episodes[at].task) for index, step in steps])
    totals = np.array([math.fsum(step.reward for step in one.steps) for one in episodes])
    return OutcomeScores(tuple(one.task for one in episodes), totals, found, tuple(side.tolist()), 0, 0)


def advantage(policy: JitRL, step: Step, index: int, task: str) -> float:
    """Return the advantage of the step's action over those at the neighbours, under an even policy."""
    evidence = policy.evidence(step.state, step=index, task=task)
    own = int(action_rows([step.action], evidence)[0])
    actions = (step.action, *(one for row, one in enumerate(evidence.actions) if row != own))
    even = np.full(len(actions), 1.0 / len(actions))
    estimate = policy.estimate(actions, even, evidence, np.random.default_rng(0))
    return float(np.nan_to_num(estimate.advantages[0]))


def measured(episodes: Sequence[Episode], way: str, seed: int) -> dict[str, float]:
    return concordances(scores(episodes, way, seed), seed)


def concordances(found: OutcomeScores, seed: int) -> dict[str, float]:
    """Return the AUC of pairs that one memory scored, and of all pairs of a task."""
    across = replace(found, memories=(0,) * len(found.memories))
    values = {
        "AUC within tasks": within_tasks_concordance(found, seed).value,
        "across memories": within_tasks_concordance(across, seed).value,
        "AUC over episodes": overall_concordance(found, seed).value,
    }
    return {name: 0.5 if value is None else value for name, value in values.items()}


def of_null(seed: int) -> dict[str, float]:
    """Return the AUC of scores that are a task's rate in the other half of its runs; what is done changes nothing."""
    draw = np.random.default_rng(seed)
    won = draw.random((N_TASKS, N_RUNS)) < np.linspace(0.95, 0.05, N_TASKS)[:, None]
    side = np.array([draw.permutation(N_RUNS) % 2 for _ in range(N_TASKS)])
    rates = np.array([[one[half == other].mean() for other in (0, 1)] for one, half in zip(won, side, strict=True)])
    found = np.take_along_axis(rates, 1 - side, axis=1).ravel()
    tasks = tuple(f"task {at // N_RUNS}" for at in range(won.size))
    return concordances(OutcomeScores(tasks, won.ravel() * 1.0, found, tuple(side.ravel().tolist()), 0, 0), seed)


def of_trap(world: str, goals: str, way: str, seed: int) -> dict[str, float]:
    episodes, state, calls = trap(world, goals, seed)
    with Memory.open(":memory:", encoder=named_encoder("transcript")) as memory:
        memory.add_many(episodes)
        task = "new" if world == "trap" else f"task {N_TASKS // 2}"
        decision = JitRL(OtherSums(memory, way)).decide(state, dict.fromkeys(calls, -0.7), task=task, seed=0)
    name = "P(easy)" if world == "trap" else "P(better)"
    return {name: decision.probs[calls[0]], **measured(episodes, way, seed)}


def summary(values: Sequence[dict[str, float]]) -> dict[str, tuple[float, float, float]]:
    return {name: interval([one[name] for one in values]) for name in values[0]}


def line(cells: dict[str, tuple[float, float, float]]) -> str:
    return ", ".join(f"{name} {mean:.2f} [{low:.2f}, {high:.2f}]" for name, (mean, low, high) in cells.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--desks", nargs="*", default=[*traces.DESKS], choices=[*traces.DESKS])
    parser.add_argument("--desk-seeds", type=int, default=2)
    options = parser.parse_args()
    figures = {"null": summary([of_null(seed) for seed in range(options.seeds)])}
    print(f"null: {line(figures['null'])}", flush=True)
    for world in ("trap", "choice", "shared"):
        for goals in GOALS:
            for way in WAYS:
                found = summary([of_trap(world, goals, way, seed) for seed in range(options.seeds)])
                figures[f"{world}, goals {goals}, {way}"] = found
                print(f"{world}, goals {goals}, {way}: {line(found)}", flush=True)
    for desk in options.desks:
        by_seed = [list(traces.episodes(desk, 11 + seed, tasks=N_DESK_TASKS)) for seed in range(options.desk_seeds)]
        for way in WAYS:
            found = summary([measured(episodes, way, seed) for seed, episodes in enumerate(by_seed)])
            figures[f"desk {desk}, {way}"] = found
            print(f"desk {desk}, {way}: {line(found)}", flush=True)
    write_result(
        "task_trap",
        {
            "command": " ".join(["python", *sys.argv]),
            "seeds": options.seeds,
            "desk_seeds": options.desk_seeds,
            "figures": figures,
        },
    )


if __name__ == "__main__":
    main()
