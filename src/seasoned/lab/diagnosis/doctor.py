"""A diagnosis of a memory: what users of the method meet, the numbers seen, and what to change."""

from __future__ import annotations

from dataclasses import dataclass

from seasoned.lab.diagnosis.check import Check
from seasoned.lab.diagnosis.decision_checks import DecisionLog, check_flips, check_loops
from seasoned.lab.diagnosis.drift import task_drifts
from seasoned.lab.diagnosis.encoded_states import describe
from seasoned.lab.diagnosis.fit_checks import check_drift, check_transitions
from seasoned.lab.diagnosis.flip_audit import Auditor
from seasoned.lab.diagnosis.record_checks import check_feedback, check_priors, check_rewards, check_set_aside
from seasoned.lab.diagnosis.replay import counted_episodes, replay
from seasoned.lab.diagnosis.similarity_checks import check_likeness
from seasoned.lab.diagnosis.state_checks import check_recurrence, check_speed
from seasoned.memory import Memory
from seasoned.policies import JitRL

__all__ = ["Diagnosis", "diagnose"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Every check of a memory, as a policy would use it.

    Args:
        policy: the preset.
        n_episodes: that count.
        checks: findings first, then what is fine, then what could not be checked.
    """

    policy: str
    n_episodes: int
    checks: tuple[Check, ...]

    @property
    def findings(self) -> tuple[Check, ...]:
        """The checks that found something."""
        return tuple(check for check in self.checks if check.verdict == "finding")

    @property
    def healthy(self) -> bool:
        """Whether no check found anything."""
        return not self.findings


def diagnose(memory: Memory, *, policy: str = "default", last: int | None = None, seed: int = 0) -> Diagnosis:
    """Check a memory for what users of the method meet.

    Records (priors, aborted and quarantined episodes, rewards, feedback), states (whether they come back, are told
    apart, are small, are found quickly), decisions replayed test before train (advantages, abstention, flips, loops),
    and fit (drift, actions that are gone or lead elsewhere). Every check says the numbers that it saw and its rule; one
    that found something says what to change; one that saw too little says so. Nothing is written.

    Args:
        memory: what is checked.
        policy: the preset whose settings decide.
        last: only the decisions of the last so many episodes; the other checks look at all.
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
        ...     found = diagnose(memory)
        >>> [check.name for check in found.findings]
        ['priors and propensities', 'rewards']
    """
    episodes = counted_episodes(memory)
    replayed = replay(memory, lambda known: JitRL.preset(policy, known), last=last, seed=seed, episodes=episodes)
    auditor, log = Auditor(memory.gamma), DecisionLog()
    for one in replayed:
        auditor.see(one)
        log.see(one)
    settings = JitRL.preset(policy, memory).settings
    gamma = memory.gamma if settings.gamma is None else settings.gamma
    gone, silenced = memory.excluded_ids()
    stored = memory.episodes()
    aborted = sum(episode.ending == "aborted" for episode in stored)
    counted = {str(episode.id) for episode in episodes}
    raw = [episode for episode in stored if str(episode.id) in counted]
    events = [e for e in memory.events() if e.revoked_at is None and e.id not in silenced and e.episode_id in counted]
    states = describe(memory.encoder, episodes)
    recurrence = check_recurrence(states, memory.encoder)
    checks = [
        check_priors(episodes),
        *check_set_aside(len(stored), aborted, len(gone)),
        check_rewards(episodes),
        *check_feedback(raw, events),
        recurrence,
        check_likeness(states, settings.threshold),
        log.check_abstention(recurs=recurrence.verdict != "finding", threshold=settings.threshold),
        log.check_advantages(
            gamma,
            rewarded=any(step.reward for episode in episodes for step in episode.steps),
            final_rewards=all(not any(s.reward for s in e.steps[:-1]) for e in episodes),
        ),
        check_flips(auditor.finish()),
        check_loops(states, episodes),
        check_drift(task_drifts(episodes, seed=seed)),
        check_transitions(states, episodes, memory.encoder),
        log.check_strangers(),
        *check_speed(memory, states, k=settings.k, threshold=settings.threshold),
    ]
    order = ("finding", "fine", "not checked")
    return Diagnosis(policy, len(episodes), tuple(sorted(checks, key=lambda check: order.index(check.verdict))))
