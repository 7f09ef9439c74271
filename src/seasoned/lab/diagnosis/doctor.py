"""The diagnosis of a memory: all checks, with the numbers seen and the advice."""

from __future__ import annotations

import time
from dataclasses import dataclass

from seasoned.lab.diagnosis.action_checks import check_examples, check_prior_departure, check_repeated_failure
from seasoned.lab.diagnosis.check_result import CheckResult
from seasoned.lab.diagnosis.decision_checks import DecisionLog, check_flips, check_loops
from seasoned.lab.diagnosis.drift import task_drifts
from seasoned.lab.diagnosis.fit_checks import check_drift, check_transitions
from seasoned.lab.diagnosis.flip_audit import FlipCounter
from seasoned.lab.diagnosis.outcome_checks import check_held_back, check_identifying_actions, check_outcomes, score
from seasoned.lab.diagnosis.record_checks import (
    check_exclusions,
    check_feedback,
    check_labels,
    check_notes,
    check_priors,
    check_rewards,
)
from seasoned.lab.diagnosis.replay import counted_episodes, replay
from seasoned.lab.diagnosis.state_checks import check_distinctness, check_recurrence, check_speed, encode_states
from seasoned.lab.diagnosis.trace_checks import check_actions_elsewhere, check_coverage, check_task_groups
from seasoned.lab.diagnosis.unjudged_check import check_awaiting, check_rule_failures
from seasoned.memory import Memory
from seasoned.memory.values.derived_ids import ASSIGNMENT_PREFIX, SWITCH_PREFIX
from seasoned.policies import JitRL
from seasoned.types import Episode

__all__ = ["Diagnosis", "diagnose"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Every check of a memory, under the settings of one policy.

    Args:
        policy: the preset.
        n_episodes: finished episodes that are not quarantined and do not await feedback.
        checks: findings first, then the results that are fine, then the checks with too few records.
    """

    policy: str
    n_episodes: int
    checks: tuple[CheckResult, ...]

    @property
    def findings(self) -> tuple[CheckResult, ...]:
        """The checks whose rule is broken."""
        return tuple(check for check in self.checks if check.verdict == "finding")

    @property
    def healthy(self) -> bool:
        """Whether there is no finding."""
        return not self.findings


def diagnose(memory: Memory, *, policy: str = "default", last: int | None = None, seed: int = 0) -> Diagnosis:
    """Check a memory for the usual causes of poor decisions.

    The checks cover records (priors, aborted, quarantined and awaiting episodes, rewards, feedback, notes), actions
    (one that is always taken and fails, examples in prompts), states (recurrence, distinctness, size, speed of
    retrieval), transfer between tasks (alike states and actions, won against lost runs, remembered calls that fit),
    decisions replayed test before train (advantages, abstention, flips, loops), and fit (drift, actions that are gone
    or lead elsewhere). Every result carries its numbers and its rule; a finding adds advice; a check with too few
    records is marked as not checked. Nothing is written.

    Args:
        memory: the memory to check.
        policy: the preset whose settings decide.
        last: replay the decisions of this many latest episodes only; the other checks use all episodes.
        seed: of the policy's draws and of the permutations.

    Raises:
        UnknownNameError: no preset has this name.
        NotFoundError: the namespace holds no episode that counts.
        InputError: `last` breaks its rule.

    Example:
        >>> from seasoned import Episode, Step
        >>> with Memory.open(":memory:") as memory:
        ...     for _ in range(10):
        ...         _ = memory.add(Episode("checkout", [Step("page:pay", "click(confirm)")]))
        ...     diagnosis = diagnose(memory)
        >>> [check.name for check in diagnosis.findings]
        ['rewards']
    """
    episodes = counted_episodes(memory)
    flips, decisions = FlipCounter(memory.gamma), DecisionLog()
    replayed = replay(memory, lambda known: JitRL.preset(policy, known), last=last, seed=seed, episodes=episodes)
    have_priors = any(step.prior is not None for episode in episodes for step in episode.steps)
    if have_priors:  # else no step can be decided
        for episode in replayed:
            flips.add(episode)
            decisions.add(episode)
    settings = JitRL.preset(policy, memory).settings
    gamma = memory.gamma if settings.gamma is None else settings.gamma
    excluded_episodes, excluded_events = memory.excluded_ids()
    stored = [episode for episode in memory.episodes() if not _is_log_entry(episode)]
    n_aborted = sum(episode.ending == "aborted" for episode in stored)
    counted = {str(episode.id) for episode in episodes}
    raw = [episode for episode in stored if str(episode.id) in counted]
    events = [
        event
        for event in memory.events()
        if event.revoked_at is None and event.id not in excluded_events and event.episode_id in counted
    ]
    states = encode_states(memory.encoder, episodes)
    scores = score(memory, episodes, policy=policy, seed=seed)
    shown = memory.impressions(None)
    recurrence = check_recurrence(states, memory.encoder, needed=settings.similarity == "jaccard")
    awaiting = memory.awaiting()
    checks = [
        check_priors(episodes, in_prompts={one.place[0] for one in shown}),
        *check_exclusions(len(stored), n_aborted, len(excluded_episodes)),
        *check_awaiting(len(stored) - n_aborted, awaiting, memory.feedback_rule(), time.time()),
        *check_rule_failures(events, awaiting, memory.feedback_rule()),
        check_rewards(episodes),
        check_repeated_failure(episodes),
        *check_examples(memory, episodes, shown),
        *check_feedback(raw, events),
        *check_labels(raw, events, len(awaiting)),
        *check_notes(memory.notes(quarantined=True)),
        recurrence,
        check_distinctness(states, settings.threshold, settings.similarity),
        check_task_groups(episodes),
        check_actions_elsewhere(episodes),
        check_coverage(memory.encoder, episodes, seed=seed, path=memory.session.store.path, namespace=memory.namespace),
        check_identifying_actions(states, episodes, scores),
        check_outcomes(scores, seed),
        check_held_back(scores),
        check_loops(states, episodes),
        check_drift(task_drifts(episodes, seed=seed)),
        check_transitions(states, episodes, memory.encoder),
        *check_speed(memory, states, k=settings.k, threshold=settings.threshold, similarity=settings.similarity),
    ]
    if have_priors:
        rewarded = any(step.reward for episode in episodes for step in episode.steps)
        final_rewards = all(not any(step.reward for step in episode.steps[:-1]) for episode in episodes)
        checks += [
            check_prior_departure(memory, seed),
            decisions.check_abstention(recurs=recurrence.verdict != "finding", threshold=settings.threshold),
            decisions.check_advantages(gamma, rewarded=rewarded, final_rewards=final_rewards),
            check_flips(flips.audit()),
            decisions.check_offered_actions(),
        ]
    order = ("finding", "fine", "not checked")
    return Diagnosis(policy, len(episodes), tuple(sorted(checks, key=lambda check: order.index(check.verdict))))


def _is_log_entry(episode: Episode) -> bool:
    """Return whether nobody played an episode: it only holds an assignment in advance, or a switch of an operator."""
    return not episode.steps and str(episode.id).startswith((ASSIGNMENT_PREFIX, SWITCH_PREFIX))
