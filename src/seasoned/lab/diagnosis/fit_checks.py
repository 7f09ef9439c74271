"""Checks of the fit between memory and the environment: drift of returns, changed transitions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from seasoned.errors import counted
from seasoned.lab.diagnosis.check_result import CheckResult, finding_if, not_checked, share
from seasoned.lab.diagnosis.drift import LEVEL, MIN_DRIFT_EPISODES, TaskDrift
from seasoned.lab.diagnosis.state_checks import EncodedStates
from seasoned.protocols import StateEncoder
from seasoned.types import Episode, normalize_action

__all__ = ["check_drift", "check_transitions"]

_MIN_TRANSITIONS = 10
_MAX_CHANGED = 0.5
_MIN_VISITS = 5
_MOSTLY = 0.9
_SHOWN = 3


def check_drift(tasks: Sequence[TaskDrift]) -> CheckResult:
    """Check that the recent episodes of a task do not earn less than its older ones."""
    name = "recent against older returns"
    rule = (
        f"no task's recent episodes earn less (permutation test at {LEVEL:.0%}, {MIN_DRIFT_EPISODES} or more against "
        "as many)"
    )
    tested = [task for task in tasks if task.p_value is not None]
    fell = [task for task in tested if task.verdict == "fell"]
    rose = sum(task.verdict == "rose" for task in tested)
    numbers = {"tasks": len(tasks), "tested": len(tested), "fell": len(fell), "rose": rose}
    if not tested:
        most = max((task.n_older + task.n_recent for task in tasks), default=0)
        return not_checked(name, f"{len(tasks)} tasks with up to {most} episodes", rule, **numbers)
    seen = f"{len(fell)} fell, {rose} rose, of {counted(len(tested), 'test')}"
    pooled = sum(task.pooled for task in tested)
    if pooled:
        seen += f" (one of them is of {counted(pooled, 'small task')} together)"
    for task in fell[:_SHOWN]:
        seen += f"; {task.task[:40]!r} by {task.difference} (adjusted p = {task.adjusted:.2g})"
    return finding_if(
        bool(fell),
        name,
        seen,
        rule=rule,
        next_step="The environment, the model or the feedback changed. Forget faster (decay=0.99), or quarantine the "
        "episodes before the change (seasoned memory quarantine --until TIME).",
        numbers=numbers,
    )


def check_transitions(states: EncodedStates, episodes: Sequence[Episode], encoder: StateEncoder) -> CheckResult:
    """Check that actions still lead to the same next state.

    Compared are the steps of the last third of the episodes whose action had nearly always one next state before.
    """
    name = "actions that lead where they led"
    rule = (
        f"at most {_MAX_CHANGED:.0%} of the recent steps lead to another state than the same action at the same state "
        f"did in {_MOSTLY:.0%} of {_MIN_VISITS} or more earlier visits (from {_MIN_TRANSITIONS} such steps on)"
    )
    first_recent = 2 * len(episodes) // 3
    next_states: defaultdict[tuple[frozenset[str], str], list[frozenset[str]]] = defaultdict(list)
    comparable = elsewhere = 0
    for number, (features, episode) in enumerate(zip(states.features, episodes, strict=True)):
        after = list(features[1:])
        if episode.final_state is not None:
            after.append(encoder.features(episode.final_state))
        for feature, step, next_ in zip(features, episode.steps, after, strict=False):
            earlier = next_states[feature, normalize_action(step.action)]
            if number < first_recent:
                earlier.append(next_)
            elif len(earlier) >= _MIN_VISITS:
                usual, times = Counter(earlier).most_common(1)[0]
                if times >= _MOSTLY * len(earlier):
                    comparable += 1
                    elsewhere += next_ != usual
    numbers = {"comparable_steps": comparable, "elsewhere": elsewhere}
    if comparable < _MIN_TRANSITIONS:
        return not_checked(name, f"{comparable} recent steps repeat an action at a state of before", rule, **numbers)
    return finding_if(
        elsewhere > _MAX_CHANGED * comparable,
        name,
        f"{share(elsewhere, comparable, 'recent steps')} lead to another state",
        rule=rule,
        next_step="The environment changed: forget faster (decay=0.99), or quarantine the episodes before the change "
        "(seasoned memory quarantine --until TIME).",
        numbers=numbers,
    )
