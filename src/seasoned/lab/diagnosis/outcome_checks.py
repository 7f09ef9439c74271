"""Checks of advantages against outcomes, without priors: won against lost, within tasks and over all episodes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from seasoned.actions import named_call
from seasoned.core import LEAST_IDENTIFYING_SHARE, TaskCells, share_of_identifying_steps
from seasoned.errors import counted
from seasoned.lab.diagnosis.check_result import CheckResult, Number, finding_if, not_checked, share
from seasoned.lab.diagnosis.state_checks import EncodedStates
from seasoned.memory import Memory
from seasoned.policies import JitRL
from seasoned.policies.call_evidence import proposable
from seasoned.states.transcript.goals import apart_from_goal, is_goal
from seasoned.types import Episode, Floats, normalize_action

__all__ = [
    "Concordance",
    "OutcomeScores",
    "check_held_back",
    "check_identifying_actions",
    "check_outcomes",
    "overall_concordance",
    "sample_tasks",
    "score",
    "within_tasks_concordance",
]

_MOST_EPISODES = 160
_RUNS_PER_TASK = 20  # more where there are too few tasks for _MOST_EPISODES
_MOST_STEPS = 4  # of one episode
_MIN_PAIRS = 20
_SHUFFLES = 200
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class OutcomeScores:
    """Each episode's mean advantage of the actions that it took, by a memory without it.

    Two episodes are compared only where one memory scored both. A memory without a run that won knows fewer successes
    of its task than one without a run that lost: across memories any estimate that knows the task ranks the two upside
    down, although actions make no difference (decision 42).

    Args:
        tasks: of the E episodes.
        totals: shape (E,), their total rewards.
        scores: shape (E,), in units of the policy's advantages.
        memories: of the E episodes, the number of the memory that scored each.
        n_calls: the number of times that a remembered call with arguments might have been proposed.
        n_held_back: how many of these fit only elsewhere.
        sampled: which episodes these are, in words.
    """

    tasks: tuple[str, ...]
    totals: Floats
    scores: Floats
    memories: tuple[int, ...]
    n_calls: int
    n_held_back: int
    sampled: str = "all episodes"

    def comparable(self) -> list[list[list[int]]]:
        """Return the episodes of each task, in groups that one memory scored."""
        groups: defaultdict[str, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for at, (task, memory) in enumerate(zip(self.tasks, self.memories, strict=True)):
            groups[task][memory].append(at)
        return [list(of_task.values()) for of_task in groups.values()]


@dataclass(frozen=True, slots=True)
class Concordance:
    """The share of pairs of episodes, both scored by one memory, in which the one that earned more is ahead (AUC).

    Args:
        value: ties count half; None without pairs.
        low, high: 95 % bootstrap interval over tasks, or over episodes.
        shuffled_low, shuffled_high: the 95 % range with the outcomes shuffled.
        n_pairs: number of pairs.
    """

    value: float | None
    low: float
    high: float
    shuffled_low: float
    shuffled_high: float
    n_pairs: int

    def __str__(self) -> str:
        if self.value is None:
            return "nothing to compare (no two of these runs earned differently)"
        shuffled = f"shuffled [{self.shuffled_low:.2f}, {self.shuffled_high:.2f}]"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}] of {self.n_pairs} pairs ({shuffled})"


def score(
    memory: Memory,
    episodes: Sequence[Episode],
    *,
    policy: str,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> OutcomeScores:
    """Return the advantages of the actions of up to 160 episodes, each by a memory without it.

    Of more episodes, whole tasks are drawn (`sample_tasks`), since runs are compared within a task. The episodes are
    dealt into two halves; each half is scored by a memory of the other. Candidates are the action that was taken and
    those at the neighbours, under an even policy.

    Args:
        memory: for its encoder and discount.
        episodes: those that count, in commit order.
        policy: the preset.
        settings: of it, changed.
        seed: of the draw of tasks and of the deal.
    """
    drawn = [episodes[at] for at in sample_tasks([episode.task for episode in episodes], seed=seed)]
    side = np.random.default_rng(seed).permutation(len(drawn)) % 2
    scores = np.zeros(len(drawn))
    n_calls = n_held_back = 0
    for half in (0, 1):
        with Memory.open(
            ":memory:", encoder=memory.encoder, gamma=memory.gamma, max_text_bytes=memory.session.max_text_bytes
        ) as known:
            known.add_many([episode for episode, at in zip(drawn, side, strict=True) if at != half])
            judge = JitRL.preset(policy, known, **(settings or {}))
            for number in np.flatnonzero(side == half).tolist():
                found, calls, held_back = _score_episode(judge, drawn[number], seed)
                scores[number] = found
                n_calls, n_held_back = n_calls + calls, n_held_back + held_back
    totals = np.array([math.fsum(step.reward for step in episode.steps) for episode in drawn])
    tasks = tuple(episode.task for episode in drawn)
    sampled = f"{counted(len(drawn), 'episode')} of {counted(len(set(tasks)), 'task')}"
    if len(drawn) < len(episodes):
        n_tasks = len({episode.task for episode in episodes})
        sampled += f", drawn by task (seed {seed}) from {len(episodes)} episodes of {counted(n_tasks, 'task')}"
    return OutcomeScores(tasks, totals, scores, tuple(side.tolist()), n_calls, n_held_back, sampled)


def sample_tasks(tasks: Sequence[str], *, most: int = _MOST_EPISODES, seed: int = 0) -> list[int]:
    """Return the positions of up to `most` episodes, whole tasks drawn at random, in ascending order.

    Tasks with several runs come first. Of a task with over 20 runs the latest 20 are taken, or more if all tasks
    together would otherwise give fewer than `most`. The last task drawn gives as many as still fit.

    Args:
        tasks: of the episodes, in commit order.
        most: number of episodes.
        seed: of the draw.

    Example:
        >>> sample_tasks(["a", "b", "a", "c", "b", "a"], most=3, seed=1)
        [0, 2, 5]
    """
    runs: defaultdict[str, list[int]] = defaultdict(list)
    for at, task in enumerate(tasks):
        runs[task].append(at)
    most_runs = _RUNS_PER_TASK
    while sum(min(len(of_task), most_runs) for of_task in runs.values()) < min(most, len(tasks)):
        most_runs *= 2
    groups = list(runs.values())
    order = np.random.default_rng(seed).permutation(len(groups)).tolist()
    drawn: list[int] = []
    for number in sorted(order, key=lambda number: len(groups[number]) == 1):
        n_left = most - len(drawn)
        if not n_left:
            break
        drawn += groups[number][-min(most_runs, n_left) :]
    return sorted(drawn)


def _score_episode(judge: JitRL, episode: Episode, seed: int) -> tuple[float, int, int]:
    """Return the mean advantage of the episode's actions, the remembered calls near its steps, and those held back."""
    found, n_calls, n_held_back = [], 0, 0
    stride = max(1, math.ceil(len(episode.steps) / _MOST_STEPS))
    for index in range(0, len(episode.steps), stride):
        step = episode.steps[index]
        evidence = judge.evidence(step.state, step=index, task=episode.task)
        own = normalize_action(step.action)
        actions = (step.action, *(one for one in evidence.actions if normalize_action(one) != own))
        rng = np.random.default_rng(seed)
        estimate = judge.estimate(actions, np.full(len(actions), 1.0 / len(actions)), evidence, rng)
        found.append(float(np.nan_to_num(estimate.advantages[0])))
        for row, action in enumerate(evidence.actions):
            if named_call(action).values:
                n_calls += 1
                n_held_back += not proposable(action, row, evidence, [step.state, episode.task])
    return float(np.mean(found)) if found else 0.0, n_calls, n_held_back


def within_tasks_concordance(found: OutcomeScores, seed: int = 0) -> Concordance:
    """Return the concordance over pairs of one task."""
    units = [[np.array(group) for group in of_task if len(group) > 1] for of_task in found.comparable()]
    units = [unit for unit in units if unit]
    rng = np.random.default_rng(seed)
    counts = np.array([_counted(found.scores, found.totals, unit) for unit in units])

    def drawn() -> Floats:
        return np.asarray(counts[rng.integers(len(units), size=len(units))].sum(axis=0))

    return _concordance(found, [group for unit in units for group in unit], drawn, rng)


def overall_concordance(found: OutcomeScores, seed: int = 0) -> Concordance:
    """Return the concordance over all pairs of episodes."""
    memories = np.array(found.memories)
    groups = [np.flatnonzero(memories == memory) for memory in sorted(set(found.memories))]
    rng = np.random.default_rng(seed)

    def drawn() -> Floats:
        return _counted(found.scores, found.totals, [rng.choice(group, size=len(group)) for group in groups])

    return _concordance(found, groups, drawn, rng)


def _concordance(
    found: OutcomeScores, groups: Sequence[np.ndarray], drawn: Callable[[], Floats], rng: np.random.Generator
) -> Concordance:
    """Return the concordance over pairs within groups; `drawn` gives the pairs that agree, and all, of a resample."""
    agree, pairs = _counted(found.scores, found.totals, groups)
    if not pairs:
        return Concordance(None, 0.0, 1.0, 0.0, 1.0, 0)
    shuffled = []
    for _ in range(_SHUFFLES):
        totals = found.totals.copy()
        for group in groups:
            totals[group] = rng.permutation(totals[group])
        one, other = _counted(found.scores, totals, groups)
        shuffled.append(float(one / other))
    resampled = [float(n / of) if of else 0.5 for n, of in (drawn() for _ in range(_SHUFFLES))]
    low, high = np.quantile(resampled, [0.025, 0.975]).tolist()
    shuffled_low, shuffled_high = np.quantile(shuffled, [0.025, 0.975]).tolist()
    return Concordance(float(agree / pairs), low, high, shuffled_low, shuffled_high, int(pairs))


def _counted(scores: Floats, totals: Floats, groups: Sequence[np.ndarray]) -> Floats:
    """Return how many pairs within groups agree, and how many there are."""
    counts: Floats = np.array([_agreeing(scores[group], totals[group]) for group in groups]).reshape(-1, 2)
    return np.asarray(counts.sum(axis=0))


def _agreeing(scores: Floats, totals: Floats) -> tuple[float, float]:
    """Return how many pairs agree in the order of score and total, ties of the score as one half, and all pairs."""
    better = totals[:, None] > totals + _ROUNDING
    ahead = scores[:, None] - scores
    agree = (ahead > _ROUNDING) + 0.5 * (np.abs(ahead) <= _ROUNDING)
    return float(agree[better].sum()), float(better.sum())


def check_outcomes(found: OutcomeScores, seed: int = 0) -> CheckResult:
    """Check that within a task the run that earned more has no lower advantages."""
    name = "won against lost"
    rule = f"within tasks the run that earned more has no lower advantages (from {_MIN_PAIRS} pairs on)"
    within, overall = within_tasks_concordance(found, seed), overall_concordance(found, seed)
    numbers: dict[str, Number] = {
        "within_tasks": within.value,
        "within_low": within.low,
        "within_high": within.high,
        "pairs_within": within.n_pairs,
        "over_episodes": overall.value,
        "over_low": overall.low,
        "over_high": overall.high,
    }
    seen = (
        "share of pairs in which the run that earned more has the higher advantages: "
        f"of one task {within}; of all {overall}. Scored were {found.sampled}"
    )
    if within.value is None or within.n_pairs < _MIN_PAIRS:
        return not_checked(name, seen, rule, **numbers)
    return finding_if(
        within.value < within.shuffled_low and within.high < 0.5,
        name,
        seen,
        rule=rule,
        next_step="Advantages tell easy tasks from hard ones, not good actions from bad ones: see 'actions that name "
        "their task'. Put the goal into the state, and give the runs of one task one name.",
        numbers=numbers,
    )


def check_identifying_actions(states: EncodedStates, episodes: Sequence[Episode], found: OutcomeScores) -> CheckResult:
    """Check that actions do not say which task is played where states, apart from their goals, do not.

    Goals in other words make a state of every run, although they need not say which task is played.
    """
    name = "actions that name their task"
    rule = (
        f"under {LEAST_IDENTIFYING_SHARE:.0%} of the steps are of a task with several runs, and take an action of that "
        "task alone at a state of several tasks"
    )
    runs = Counter(episode.task for episode in episodes)
    if len(runs) < 2 or max(runs.values()) < 2:
        return not_checked(name, f"{counted(len(runs), 'task')}, none of several with several runs", rule)
    without_goals = [[apart_from_goal(state) for state in run] for run in states.features]
    part = _identifying_share(without_goals, episodes, runs)
    within = within_tasks_concordance(found)
    has_goals = any(map(is_goal, chain.from_iterable(chain.from_iterable(states.features))))
    repeated = counted(sum(n > 1 for n in runs.values()), "task")
    seen = f"{part:.0%} of all steps are of {repeated} with several runs and take an action of that task alone"
    if part >= LEAST_IDENTIFYING_SHARE:
        seen += (
            "; there Q is the task's success rate, not the action's. Share of pairs of one task in which the run that "
            f"earned more has the higher advantages: {within}. Scored were {found.sampled}"
        )
    return finding_if(
        part >= LEAST_IDENTIFYING_SHARE,
        name,
        seen,
        rule=rule,
        next_step="The preset default compares returns within tasks there, so that only runs of one task teach. So "
        f"that tasks teach each other: {'' if has_goals else 'put the goal into the state, and '}mask ids in actions.",
        numbers={"share": part, "tasks": len(runs), "within_tasks": within.value, "pairs_within": within.n_pairs},
    )


def _identifying_share(
    states: Sequence[Sequence[frozenset[str]]], episodes: Sequence[Episode], runs: Mapping[str, int]
) -> float:
    """Return the share of the steps that say by their action alone, at a state of several tasks, which is played."""
    numbers_of: tuple[dict[object, int], ...] = ({}, {}, {name: number for number, name in enumerate(runs)})
    cells: defaultdict[tuple[int, int, int], float] = defaultdict(float)
    for features, episode in zip(states, episodes, strict=True):
        for feature, step in zip(features, episode.steps, strict=True):
            state = numbers_of[0].setdefault(feature, len(numbers_of[0]))
            action = numbers_of[1].setdefault(named_call(step.action).key, len(numbers_of[1]))
            cells[state, action, numbers_of[2][episode.task]] += 1.0
    states_of, actions, tasks = np.array(list(cells), dtype=np.int64).T
    counts = np.array(list(cells.values()))
    n_runs = np.array(list(runs.values()), dtype=np.int64)
    return share_of_identifying_steps(TaskCells(states_of, actions, tasks, counts, np.zeros(len(counts)), n_runs))


def check_held_back(found: OutcomeScores) -> CheckResult:
    """Count the remembered calls whose arguments fit only elsewhere: memory proposes none of them."""
    name = "remembered calls that fit"
    rule = "a call is proposed where its arguments occur in the state or goal, or several tasks took it"
    numbers = {"calls": found.n_calls, "held_back": found.n_held_back}
    if not found.n_calls:
        return not_checked(name, "no remembered calls with arguments", rule, **numbers)
    seen = (
        f"{share(found.n_held_back, found.n_calls, 'remembered calls near a step')} are not proposed there: their "
        "arguments, such as ids of other runs, are not in the state or goal"
    )
    return finding_if(False, name, seen, rule=rule, next_step="", numbers=numbers)
