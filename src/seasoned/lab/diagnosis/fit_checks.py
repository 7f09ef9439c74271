"""Checks of whether memory still fits the environment."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from seasoned.lab.diagnosis.check import Check, finding_if, not_checked, share
from seasoned.lab.diagnosis.drift import LEVEL, MIN_EPISODES, TaskDrift
from seasoned.lab.diagnosis.encoded_states import States
from seasoned.protocols import StateEncoder
from seasoned.types import Episode, normalize_action

__all__ = ["check_drift", "check_transitions"]

MIN_TRANSITIONS = 10
MAX_CHANGED = 0.5
MIN_VISITS = 5
MOSTLY = 0.9
SHOWN = 3


def check_drift(tasks: Sequence[TaskDrift]) -> Check:
    """Whether the recent episodes of a task earn less than its older ones."""
    name = "recent against older returns"
    rule = (
        f"no task's recent episodes earn less (permutation test at {LEVEL:.0%}, {MIN_EPISODES} or more against as many)"
    )
    tested = [task for task in tasks if task.p_value is not None]
    fell = [task for task in tested if task.verdict == "fell"]
    rose = sum(task.verdict == "rose" for task in tested)
    numbers = {"tasks": len(tasks), "tested": len(tested), "fell": len(fell), "rose": rose}
    if not tested:
        most = max((task.n_older + task.n_recent for task in tasks), default=0)
        return not_checked(name, f"{len(tasks)} tasks with up to {most} episodes", rule, **numbers)
    seen = f"{len(tested)} of {len(tasks)} tasks tested: {len(fell)} fell, {rose} rose"
    for task in fell[:SHOWN]:
        seen += f"; {task.task[:40]!r} by {task.difference} (adjusted p = {task.adjusted:.2g})"
    return finding_if(
        bool(fell),
        name,
        seen,
        rule=rule,
        next_step="Something changed: the environment, the model or the feedback. Forget faster (decay=0.99), or set "
        "aside what was before (seasoned memory quarantine --until TIME).",
        numbers=numbers,
    )


def check_transitions(states: States, episodes: Sequence[Episode], encoder: StateEncoder) -> Check:
    """Whether actions still lead where they led: those that nearly always led to one state before the last third."""
    name = "actions that lead where they led"
    rule = (
        f"at most {MAX_CHANGED:.0%} of the recent steps lead elsewhere than the same action at the same state did in "
        f"{MOSTLY:.0%} of {MIN_VISITS} or more earlier visits (from {MIN_TRANSITIONS} such steps on)"
    )
    first_recent = 2 * len(episodes) // 3
    led: defaultdict[tuple[frozenset[str], str], list[frozenset[str]]] = defaultdict(list)
    comparable = elsewhere = 0
    for number, (features, episode) in enumerate(zip(states.features, episodes, strict=True)):
        after = list(features[1:])
        if episode.final_state is not None:
            after.append(encoder.features(episode.final_state))
        for feature, step, next_ in zip(features, episode.steps, after, strict=False):
            before = led[feature, normalize_action(step.action)]
            if number < first_recent:
                before.append(next_)
            elif len(before) >= MIN_VISITS:
                usual, times = Counter(before).most_common(1)[0]
                if times >= MOSTLY * len(before):
                    comparable += 1
                    elsewhere += next_ != usual
    numbers = {"comparable_steps": comparable, "elsewhere": elsewhere}
    if comparable < MIN_TRANSITIONS:
        return not_checked(name, f"{comparable} recent steps can be compared", rule, **numbers)
    return finding_if(
        elsewhere > MAX_CHANGED * comparable,
        name,
        f"{share(elsewhere, comparable, 'recent steps')} lead elsewhere",
        rule=rule,
        next_step="The environment changed: forget faster (decay=0.99), or set aside what was before (seasoned memory "
        "quarantine --until TIME).",
        numbers=numbers,
    )
