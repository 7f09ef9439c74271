"""Coverage, next-call accuracy and success AUC of retrieval on the traces of our own, own task left out.

Run: python benchmarks/trace_measures.py [--desks orders oncall] [--seeds 10] [--encoders words masked]

Each step of a desk asks the memory of all the others' steps, those of its own task left out:

- coverage: the share of steps that find at least 3 steps, by who spoke last;
- next-call accuracy, at the tool calls of successful runs: whether the tool that was called next is among those of the
  found steps (`among`), and whether it is the one with the most success among them (`best`); BM25 finds the ten
  steps with the best scores over the same state texts;
- AUC: whether the sum of an episode's advantages tells won from lost, over all episodes and within tasks. The advantage
  of a step is `n_a / (n_a + 1) * (Q(a) - V)` over the found steps, a the exact call or the tool's name. In the shuffled
  control the episodes' rewards are permuted among them first.

Intervals: bootstrap over tasks within each seed, and over seeds, 95 %. Writes `benchmarks/results/traces.json`.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from traces import DESKS, REPORTED, Conversation, conversations
from workload import write_result

from seasoned import Memory
from seasoned.agents.baselines.bm25 import BM25
from seasoned.integrations.conversation import AgentTurn, InputMessage, episode_of
from seasoned.protocols import StateEncoder
from seasoned.states.encoder_names import named_encoder
from seasoned.types import Episode, Step

N_FOUND, LEAST_FOUND, RESAMPLES = 10, 3, 1000


class TraceStep(NamedTuple):
    """A step of a trace: where it is, its state, its exact action and its tool, and who spoke last before it."""

    episode: str
    task: str
    index: int
    state: str
    action: str
    tool: str
    speaker: str
    reward: float  # of the whole episode


Found = Sequence[TraceStep]
Find = Callable[[TraceStep], Found]


def trace_steps(runs: Iterable[Conversation]) -> list[TraceStep]:
    """Return the steps of runs, with the states that an import writes."""
    steps = []
    for run in runs:
        episode = episode_of(run.items, task=run.task, id=run.id, reward=run.reward)[0]
        before = zip(run.items, run.items[1:], strict=False)
        speakers = [
            left.speaker.split()[0]
            for left, right in before
            if isinstance(right, AgentTurn) and isinstance(left, InputMessage)
        ]
        for index, (step, call, speaker) in enumerate(zip(episode.steps, run.calls, speakers, strict=True)):
            tool = call.tool or "respond"
            steps.append(TraceStep(run.id, run.task, index, step.state, step.action, tool, speaker, run.reward))
    return steps


def memory_find(
    steps: Sequence[TraceStep],
    encoder: StateEncoder,
    *,
    threshold: float,
    similarity: str = "jaccard",
    k: int = N_FOUND,
) -> Find:
    """Return the search of a memory with these steps."""
    memory = Memory.open(":memory:", encoder=encoder, gamma=1.0)
    by_episode: dict[str, list[TraceStep]] = defaultdict(list)
    for step in steps:
        by_episode[step.episode].append(step)
    for id_, own in by_episode.items():
        memory.add(Episode(own[0].task, [Step(step.state, step.action, 0.0) for step in own], id_))
    at = {(step.episode, step.index): step for step in steps}

    def find(step: TraceStep) -> Found:
        found = memory.search(step.state, k, threshold, exclude_task=step.task, similarity=similarity)
        return [at[one.experience.episode_id, one.experience.step] for one in found]

    return find


def ladder(finders: Sequence[Find]) -> Find:
    """Return the first answer of at least three steps, else the last finder's."""

    def find(step: TraceStep) -> Found:
        found: Found = []
        for one in finders:
            found = one(step)
            if len(found) >= LEAST_FOUND:
                return found
        return found

    return find


def bm25_find(steps: Sequence[TraceStep], k: int = N_FOUND) -> Find:
    """Return the ten steps of other tasks with the best BM25 scores, later ones first among equals."""
    index = BM25()
    for step in steps:
        index.add(step.state)

    def find(step: TraceStep) -> Found:
        scores = index.scores(step.state)
        best = sorted(scores, key=lambda number: (-scores[number], -number))
        return [steps[number] for number in best if steps[number].task != step.task][:k]

    return find


# ------------------------------------------------------------------------------------------------ measures


def coverage(steps: Sequence[TraceStep], found: Sequence[Found]) -> dict[str, float]:
    """Return the share of steps with at least three found steps: of all, and by who spoke last."""
    covered = defaultdict(list)
    for step, own in zip(steps, found, strict=True):
        for key in ("all", step.speaker):
            covered[key].append(len(own) >= LEAST_FOUND)
    return {key: float(np.mean(values)) for key, values in covered.items()}


def next_call(step: TraceStep, found: Found) -> tuple[bool, bool]:
    """Return whether the tool that was called is among those of the found steps, and whether it is their best one."""
    earned: dict[str, float] = defaultdict(float)
    for one in found:
        earned[one.tool] += one.reward
    return step.tool in earned, bool(earned) and max(earned, key=lambda tool: earned[tool]) == step.tool


def advantage(step: TraceStep, found: Found, rewards: dict[str, float], *, by_name: bool) -> float:
    """Return the shrunk advantage of what the step did over what was done at the found steps."""
    if not found:
        return 0.0
    returns = [rewards[one.episode] for one in found]
    same = [
        value
        for one, value in zip(found, returns, strict=True)
        if (one.tool == step.tool if by_name else one.action == step.action)
    ]
    return sum(same) / (len(same) + 1) - len(same) / (len(same) + 1) * sum(returns) / len(returns)


def auc(scores: np.ndarray, won: np.ndarray) -> float:
    """Return the share of pairs of a won and a lost episode in which the won one has the higher score, ties half."""
    high, low = scores[won > 0.5], scores[won <= 0.5]
    if not len(high) or not len(low):
        return float("nan")
    differences = high[:, None] - low[None, :]
    return float(np.mean(differences > 0) + 0.5 * np.mean(differences == 0))


def aucs(scores: dict[str, float], rewards: dict[str, float], task_of: dict[str, str]) -> tuple[float, float]:
    """Return the AUC over all episodes, and the mean of those within tasks that have both."""
    ids = list(scores)
    whole = auc(np.array([scores[id_] for id_ in ids]), np.array([rewards[id_] for id_ in ids]))
    groups = defaultdict(list)
    for id_ in ids:
        groups[task_of[id_]].append(id_)
    within = [auc(np.array([scores[i] for i in g]), np.array([rewards[i] for i in g])) for g in groups.values()]
    return whole, float(np.nanmean(within))


def measured(steps: Sequence[TraceStep], find: Find, seed: int) -> dict[str, float]:
    """Return every figure of one finder on one desk and seed."""
    found = [find(step) for step in steps]
    figures = {f"coverage {key}": value for key, value in coverage(steps, found).items()}
    calls = [(s, f) for s, f in zip(steps, found, strict=True) if s.reward and s.tool != "respond"]
    among, best = zip(*(next_call(step, own) for step, own in calls), strict=True)
    figures |= {"among": float(np.mean(among)), "best": float(np.mean(best))}
    rewards = {step.episode: step.reward for step in steps}
    task_of = {step.episode: step.task for step in steps}
    shuffled = list(rewards.values())
    random.Random(seed).shuffle(shuffled)
    for label, credited in (("", rewards), (" shuffled", dict(zip(rewards, shuffled, strict=True)))):
        for level, by_name in (("name", True), ("exact", False)):
            total: dict[str, float] = defaultdict(float)
            for step, own in zip(steps, found, strict=True):
                total[step.episode] += advantage(step, own, credited, by_name=by_name)
            whole, within = aucs(total, credited, task_of)
            figures |= {f"auc {level}{label}": whole, f"auc within {level}{label}": within}
    return figures


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """Return the mean over seeds and its 95 % bootstrap interval."""
    array = np.array(values)
    draws = np.random.default_rng(seed).choice(array, (RESAMPLES, len(array))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(array.mean()), float(low), float(high)


def finders(steps: Sequence[TraceStep], encoders: Sequence[str]) -> dict[str, Find]:
    """Return what is compared: words at 0.8, each encoder at 0.8, 0.6 and 0.4 in turn and by rarity, and BM25."""
    found: dict[str, Find] = {}
    for name in encoders:
        encoder = named_encoder(name)
        at = {level: memory_find(steps, encoder, threshold=level) for level in (0.8, 0.6, 0.4)}
        found[f"{name} 0.8"] = at[0.8]
        found[f"{name} 0.4"] = at[0.4]
        found[f"{name} ladder"] = ladder([at[0.8], at[0.6], at[0.4]])
        found[f"{name} rarity 0.4"] = memory_find(steps, encoder, threshold=0.4, similarity="rarity")
    found["bm25"] = bm25_find(steps)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--desks", nargs="*", default=list(REPORTED), choices=list(DESKS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--encoders", nargs="*", default=["words", "masked"])
    options = parser.parse_args()
    results: dict[str, dict[str, dict[str, tuple[float, float, float]]]] = {}
    for desk in options.desks:
        collected: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            steps = trace_steps(conversations(desk, seed))
            for name, find in finders(steps, options.encoders).items():
                for key, value in measured(steps, find, seed).items():
                    collected[name][key].append(value)
        results[desk] = {name: {key: interval(v) for key, v in rows.items()} for name, rows in collected.items()}
        print(f"\n{desk}, {options.seeds} seeds, own task left out")
        columns = ["coverage all", "coverage user", "coverage tool", "among", "best", "auc name", "auc within name"]
        columns += ["auc name shuffled", "auc exact", "auc within exact"]
        print(f"{'':<22}" + "".join(f"{column.replace('coverage', 'cov'):>18}" for column in columns))
        for name, figures in results[desk].items():
            cells = [figures.get(column, (float("nan"),) * 3) for column in columns]
            print(f"{name:<22}" + "".join(f"{m:>6.2f} {lo:.2f}-{hi:.2f}".rjust(18) for m, lo, hi in cells))
    command = f"python benchmarks/trace_measures.py {' '.join(sys.argv[1:])}".strip()
    write_result("traces", {"command": command, "seeds": options.seeds, "results": results})


if __name__ == "__main__":
    main()
