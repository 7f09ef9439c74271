"""Checks of traces without priors: tasks, actions that occur in other tasks, coverage by states of other tasks."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seasoned.actions import named_calls
from seasoned.core import jaccard
from seasoned.errors import counted
from seasoned.lab.diagnosis.check_result import CheckResult, Number, finding_if, not_checked, share
from seasoned.protocols import StateEncoder
from seasoned.states import SubwordEncoder, TokenEncoder, TranscriptEncoder, parse_transcript
from seasoned.types import Episode, Step

__all__ = ["action_names", "check_actions_elsewhere", "check_coverage", "check_task_groups"]

_MIN_EPISODES = 20
_MIN_STEPS = 20
_MANY_TASKS = 0.8
_FEW_ELSEWHERE = 0.2
_THRESHOLDS = (0.8, 0.6, 0.4)
_LEAST = _THRESHOLDS[-1]
_NEIGHBORS = 3
_MIN_COVERED = 0.75
_QUERIES = 80
_STORED = 1000  # steps that the queries are compared with, the latest
_ENCODERS: Mapping[str, StateEncoder] = {
    "tokens": TokenEncoder(),
    "subwords": SubwordEncoder(),
    "transcript": TranscriptEncoder(),
}
_CLASSES = {"tokens": "TokenEncoder", "subwords": "SubwordEncoder", "transcript": "TranscriptEncoder"}


def action_names(actions: Sequence[str]) -> list[str]:
    """Return the name of each action: a call's tool, the text before a bracket, or the first word.

    Example:
        >>> action_names(['find({"id":"W7"})', "click('b1')", "go north"])
        ['find', 'click', 'go']
    """
    calls = named_calls(actions)
    words = (re.split(r"[\s(]", action.strip(), maxsplit=1)[0].casefold() for action in actions)
    return [call.name if call.shape else word for call, word in zip(calls, words, strict=True)]


def check_task_groups(episodes: Sequence[Episode]) -> CheckResult:
    """Check that tasks have several episodes, without which nothing can be compared within a task or left out."""
    name = "episodes of one task"
    rule = f"there are at most {_MANY_TASKS:.0%} as many tasks as episodes (from {_MIN_EPISODES} episodes on)"
    n_tasks = len({episode.task for episode in episodes})
    numbers = {"episodes": len(episodes), "tasks": n_tasks}
    seen = f"{counted(n_tasks, 'task')} in {counted(len(episodes), 'episode')}"
    if len(episodes) < _MIN_EPISODES:
        return not_checked(name, seen, rule, **numbers)
    return finding_if(
        n_tasks > _MANY_TASKS * len(episodes),
        name,
        seen,
        rule=rule,
        next_step="The guard that leaves a task out then leaves out one episode, and no two runs are compared. "
        "If tasks are paraphrased goals, import again with a name for each task: seasoned memory import --task FIELD.",
        numbers=numbers,
    )


def check_actions_elsewhere(episodes: Sequence[Episode]) -> CheckResult:
    """Check that the actions of a task occur in other tasks, as they are or by name, so that tasks can teach others."""
    name = "actions that occur in other tasks"
    rule = f"at least {_FEW_ELSEWHERE:.0%} of the steps take an action, or one of its name, that another task took"
    steps = [(episode.task, step.action) for episode in episodes for step in episode.steps]
    n_tasks = len({task for task, _ in steps})
    if n_tasks < 2 or len(steps) < _MIN_STEPS:
        return not_checked(name, f"{len(steps)} steps of {n_tasks} tasks", rule)
    calls = named_calls(action for _, action in steps)
    n_exact = _n_elsewhere([(task, call.key) for (task, _), call in zip(steps, calls, strict=True)])
    names = action_names([action for _, action in steps])
    n_named = _n_elsewhere([(task, one) for (task, _), one in zip(steps, names, strict=True)])
    return finding_if(
        n_named < _FEW_ELSEWHERE * len(steps),
        name,
        f"as they are {share(n_exact, len(steps), 'steps')}, by name {share(n_named, len(steps), 'steps')}",
        rule=rule,
        next_step="Name actions by their effect, and put what differs from task to task into named arguments: "
        'book({"to":"Rome"}).',
        numbers={"steps": len(steps), "exact_elsewhere": n_exact, "name_elsewhere": n_named},
    )


def _n_elsewhere(of_tasks: Sequence[tuple[str, str]]) -> int:
    tasks: defaultdict[str, set[str]] = defaultdict(set)
    for task, key in of_tasks:
        tasks[key].add(task)
    return sum(len(tasks[key]) > 1 for _, key in of_tasks)


@dataclass(frozen=True, slots=True)
class _Covered:
    """What an encoder finds for each query: the similarity of its third neighbour, and whether most take its name."""

    similarity: tuple[float, ...]
    right: tuple[bool, ...]
    duplicates: int

    def share_at(self, threshold: float) -> float:
        """Return the share of the queries with three neighbours at this similarity."""
        return sum(similarity >= threshold for similarity in self.similarity) / len(self.similarity)


def check_coverage(encoder: StateEncoder, episodes: Sequence[Episode], *, seed: int = 0) -> CheckResult:
    """Check how many steps have three alike steps in other tasks, and whether another encoder would find better ones.

    Up to 80 of the latest 1,000 steps are compared with the others by the share of common features, the own task left
    out. An encoder is better if more queries have three neighbours at 0.4 of which most took an action of the query's
    name, by the 95 % interval of the paired difference.

    Args:
        encoder: of the memory.
        episodes: those that count, in commit order.
        seed: of the draw.
    """
    name = "steps alike in other tasks"
    rule = (
        f"{_MIN_COVERED:.0%} of the steps have {_NEIGHBORS} steps of other tasks at similarity {_LEAST:g}, or no other "
        "encoder finds better ones"
    )
    stored = [(episode.task, step) for episode in episodes for step in episode.steps][-_STORED:]
    tasks = {task for task, _ in stored}
    if len(tasks) < 2 or len(stored) < _MIN_STEPS:
        return not_checked(name, f"{len(stored)} steps of {counted(len(tasks), 'task')}", f"{rule} (of two tasks on)")
    order = np.random.default_rng(seed).permutation(len(stored))[:_QUERIES].tolist()
    names = action_names([step.action for _, step in stored])
    own = _covered(encoder, stored, names, order)
    by_speaker = Counter(_speaker(stored[at][1].state) for at in order)
    numbers: dict[str, Number] = {"queries": len(order), "stored": len(stored), "duplicates": own.duplicates}
    shares = {threshold: own.share_at(threshold) for threshold in _THRESHOLDS}
    numbers |= {f"covered_at_{threshold:g}": part for threshold, part in shares.items()}
    seen = f"of {len(order)} steps, " + ", ".join(f"{part:.0%} at {threshold:g}" for threshold, part in shares.items())
    if len(by_speaker) > 1:
        parts = []
        for speaker, n in by_speaker.most_common(4):
            at_speaker = [at for at, query in enumerate(order) if _speaker(stored[query][1].state) == speaker]
            part = sum(own.similarity[at] >= _LEAST for at in at_speaker) / n
            parts.append(f"{part:.0%} of {n} after {speaker}")
            numbers[f"covered_after_{speaker.split()[0]}"] = part
        seen += f" (at {_LEAST:g}: {', '.join(parts)})"
    seen += f"; {share(own.duplicates, len(order), 'nearest states')} are the same text"
    seen += f"; most of the three took the step's tool at {sum(own.right)}"
    better = _better_encoder(encoder, own, stored, names, order)
    if better is not None:
        label, found, low = better
        seen += f" (with {label}: {sum(found.right)}, covered {found.share_at(_LEAST):.0%})"
        numbers |= {"better_encoder": label, "better_right": sum(found.right), "gain_low": low}
    numbers["right"] = sum(own.right)
    if shares[_LEAST] < _MIN_COVERED and better is None:
        seen += "; no other encoder here finds better ones"
    return finding_if(
        better is not None,
        name,
        seen,
        rule=rule,
        next_step=""
        if better is None
        else f'Encode the states anew: python -c "import seasoned.states as s; '
        f"from seasoned import Memory; Memory.open('FILE', encoder=s.{_CLASSES[better[0]]}(), reindex=True).close()\"; "
        "or import again with --encoder.",
        numbers=numbers,
    )


def _speaker(state: str) -> str:
    """Return who spoke last, "" where the state is no conversation."""
    transcript = parse_transcript(state)
    if transcript is not None:
        return transcript.messages[-1].speaker.split()[0]
    lines = [line for line in state.splitlines() if line.strip()]
    word = lines[-1].partition(":")[0].split()[0] if lines and ":" in lines[-1] and lines[-1][0] != "{" else ""
    return word if word in ("user", "tool", "assistant", "system") else "other text"


def _covered(
    encoder: StateEncoder, stored: Sequence[tuple[str, Step]], names: Sequence[str], queries: Sequence[int]
) -> _Covered:
    known: dict[str, frozenset[str]] = {}
    for _, step in stored:
        if step.state not in known:
            known[step.state] = encoder.features(step.state)
    similarity, right, duplicates = [], [], 0
    for query in queries:
        task, step = stored[query]
        features = known[step.state]
        alike: dict[str, float] = {}  # by text: states repeat
        scored = []
        for at in range(len(stored) - 1, -1, -1):
            other_task, other = stored[at]
            if other_task == task:
                continue
            if other.state not in alike:
                alike[other.state] = jaccard(features, known[other.state])
            scored.append((-alike[other.state], -at, at))
        nearest = sorted(scored)[:_NEIGHBORS]
        enough = len(nearest) == _NEIGHBORS
        similarity.append(-nearest[-1][0] if enough else 0.0)
        duplicates += bool(nearest) and stored[nearest[0][2]][1].state == step.state
        agree = sum(names[at] == names[query] for _, _, at in nearest)
        right.append(enough and similarity[-1] >= _LEAST and 2 * agree > _NEIGHBORS)
    return _Covered(tuple(similarity), tuple(right), duplicates)


def _better_encoder(
    encoder: StateEncoder,
    own: _Covered,
    stored: Sequence[tuple[str, Step]],
    names: Sequence[str],
    queries: Sequence[int],
) -> tuple[str, _Covered, float] | None:
    """Return the encoder that finds clearly better neighbours, and the low end of its gain; None if there is none."""
    best = None
    for label, other in _ENCODERS.items():
        if other.identity == encoder.identity:
            continue
        found = _covered(other, stored, names, queries)
        gains = np.array(found.right, dtype=float) - np.array(own.right, dtype=float)
        low = float(gains.mean() - 1.96 * gains.std(ddof=1) / math.sqrt(len(gains)))
        if low > 0.0 and (best is None or sum(found.right) > sum(best[1].right)):
            best = (label, found, low)
    return best
