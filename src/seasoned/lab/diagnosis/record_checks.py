"""Checks of what was recorded: priors, endings, rewards, feedback."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from seasoned.core import robust_spread
from seasoned.lab.diagnosis.check import Check, Number, finding_if, not_checked, share
from seasoned.memory.values.events import Event
from seasoned.types import Episode

__all__ = ["check_feedback", "check_priors", "check_rewards", "check_set_aside"]

MAX_UNKNOWN = 0.1
MAX_SET_ASIDE = 0.2
MIN_SET_ASIDE = 3
MIN_EPISODES = 5
MIN_PAIRS = 10
MAX_DISAGREEMENT = 0.3
MIN_WEIGHT = 0.1


def check_priors(episodes: Sequence[Episode]) -> Check:
    """Whether steps carry what replay and evaluation need: the model's logprobs and the propensity."""
    steps = [step for episode in episodes for step in episode.steps]
    no_prior = sum(step.prior is None for step in steps)
    no_propensity = sum(step.propensity is None for step in steps)
    return finding_if(
        max(no_prior, no_propensity) > MAX_UNKNOWN * len(steps),
        "priors and propensities",
        f"no prior at {share(no_prior, len(steps), 'steps')}, no propensity at "
        f"{share(no_propensity, len(steps), 'steps')}",
        rule=f"at most {MAX_UNKNOWN:.0%} of the steps lack either; audit and evaluate leave those out",
        next_step="Record the decision itself: episode.record(state, decision, reward). It carries both.",
        numbers={"steps": len(steps), "without_prior": no_prior, "without_propensity": no_propensity},
    )


def check_set_aside(n_episodes: int, aborted: int, quarantined: int) -> list[Check]:
    """Whether much of what is stored is never retrieved."""
    rules = (
        (
            "aborted episodes",
            "aborted",
            aborted,
            "Find out what breaks off: seasoned memory list shows them; a time limit ends an episode as truncated.",
        ),
        (
            "quarantined episodes",
            "quarantined",
            quarantined,
            "See seasoned memory quarantines: lift what was set aside by mistake, prune what is of no use.",
        ),
    )
    return [
        finding_if(
            count >= MIN_SET_ASIDE and count > MAX_SET_ASIDE * n_episodes,
            name,
            share(count, n_episodes, "episodes"),
            rule=f"at most {MAX_SET_ASIDE:.0%} of the episodes, or fewer than {MIN_SET_ASIDE}",
            next_step=next_step,
            numbers={"episodes": n_episodes, key: count},
        )
        for name, key, count, next_step in rules
    ]


def check_rewards(episodes: Sequence[Episode]) -> Check:
    """Whether there is anything to learn: rewards that are not all zero, episodes that did not all earn the same."""
    name, rule = "rewards", "some reward is not 0, and not all episodes earn the same"
    totals = [math.fsum(step.reward for step in episode.steps) for episode in episodes]
    rewarded = sum(step.reward != 0.0 for episode in episodes for step in episode.steps)
    n_steps = sum(len(episode.steps) for episode in episodes)
    spread = robust_spread(totals, np.ones(len(totals)))
    numbers = {
        "episodes": len(totals),
        "steps": n_steps,
        "rewarded_steps": rewarded,
        "mean_total": float(np.mean(totals)) if totals else None,
        "spread_of_totals": spread,
    }
    if len(totals) < MIN_EPISODES:
        return not_checked(name, f"{len(totals)} episodes", f"{rule}; judged from {MIN_EPISODES} on", **numbers)
    seen = f"{share(rewarded, n_steps, 'steps')} have a reward; "
    seen += f"an episode earns {np.mean(totals):.4g} (mean of {len(totals)})"
    if rewarded:
        seen += f", from {min(totals):.4g} to {max(totals):.4g}"
    next_step = (
        "All rewards are 0, so there is nothing to learn: pass reward= when recording, or give feedback (a judge, a "
        "person): memory.feedback(...)."
        if not rewarded
        else "Every episode earns the same, so no action looks better than another: reward what differs (fewer steps, "
        "partial success), or play tasks that sometimes fail."
    )
    return finding_if(not rewarded or spread == 0.0, name, seen, rule=rule, next_step=next_step, numbers=numbers)


def check_feedback(raw: Sequence[Episode], events: Sequence[Event]) -> list[Check]:
    """Whether feedback agrees with itself and with the environment, and is heard.

    Args:
        raw: episodes that count, with the environment's rewards alone.
        events: those that count.
    """
    if not events:
        return [not_checked("feedback", "no feedback event counts", "sources agree, and are heard")]
    by_step: defaultdict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    by_source: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        voice = event.source if event.author is None else f"{event.source}/{event.author}"
        by_step[event.episode_id, event.step][voice] = event.reward
        by_source[event.source].append(event)
    checks = [_contradictions(list(by_step.values())), *(_heard(s, said) for s, said in sorted(by_source.items()))]
    checks += [_environment(source, said, raw) for source, said in sorted(by_source.items())]
    return checks


def _contradictions(said: Sequence[dict[str, float]]) -> Check:
    name = "feedback on one step"
    rule = f"where two speak of one step, at most {MAX_DISAGREEMENT:.0%} differ in sign (from {MIN_PAIRS} such on)"
    pairs = [[np.sign(reward) for reward in voices.values() if reward] for voices in said]
    spoken = [signs for signs in pairs if len(signs) >= 2]
    differ = sum(len(set(signs)) > 1 for signs in spoken)
    numbers = {"steps": len(spoken), "contradictory": differ}
    if len(spoken) < MIN_PAIRS:
        return not_checked(name, f"{len(spoken)} steps with two opinions", rule, **numbers)
    return finding_if(
        differ > MAX_DISAGREEMENT * len(spoken),
        name,
        f"opinions contradict one another on {share(differ, len(spoken), 'steps')}",
        rule=rule,
        next_step="Look at some: seasoned memory show. Weigh the less reliable one down (feedback(..., weight=0.3)), "
        "or set it aside: seasoned memory quarantine --source NAME.",
        numbers=numbers,
    )


def _heard(source: str, said: Sequence[Event]) -> Check:
    weight = float(np.median([abs(event.weight) for event in said]))
    return finding_if(
        weight < MIN_WEIGHT,
        f"weight of {source!r}",
        f"{len(said)} events with a median weight of {weight:.3g}",
        rule=f"a source's median weight is at least {MIN_WEIGHT:g}",
        next_step="Its votes hardly count: judges that are unsure weigh little. Ask a better model or more votes, or "
        "give a higher weight.",
        numbers={"source": source, "events": len(said), "median_weight": weight},
    )


def _environment(source: str, said: Sequence[Event], raw: Sequence[Episode]) -> Check:
    """A source against the environment: signs step by step, and correlation episode by episode."""
    name = f"{source!r} against the environment"
    rule = (
        f"at most {MAX_DISAGREEMENT:.0%} differ in sign where both reward a step, and episode by episode the two rise "
        f"together (from {MIN_PAIRS} on)"
    )
    earned = {str(episode.id): [step.reward for step in episode.steps] for episode in raw}
    known = [event for event in said if event.episode_id in earned]
    both = [(event.reward, earned[event.episode_id][event.step]) for event in known]
    both = [(ours, theirs) for ours, theirs in both if ours and theirs]
    differ = sum((ours > 0.0) != (theirs > 0.0) for ours, theirs in both)
    sums: defaultdict[str, float] = defaultdict(float)
    for event in known:
        sums[event.episode_id] += event.reward
    judged = np.array(list(sums.values()))
    true = np.array([math.fsum(earned[episode_id]) for episode_id in sums])
    varied = len(judged) >= MIN_PAIRS and judged.std() > 0.0 and true.std() > 0.0
    correlation = float(np.corrcoef(judged, true)[0, 1]) if varied else None
    numbers: dict[str, Number] = {
        "source": source,
        "steps": len(both),
        "disagreeing": differ,
        "episodes": len(judged),
        "correlation": correlation,
    }
    if len(both) < MIN_PAIRS and correlation is None:
        seen = f"{len(both)} steps that both reward, {len(judged)} episodes that both speak of and that differ"
        return not_checked(name, seen, rule, **numbers)
    said_so = []
    if len(both) >= MIN_PAIRS:
        said_so.append(f"they differ in sign on {share(differ, len(both), 'steps')}")
    if correlation is not None:
        said_so.append(f"correlation {correlation:+.2f} over {len(judged)} episodes")
    contradicts = len(both) >= MIN_PAIRS and differ > MAX_DISAGREEMENT * len(both)
    return finding_if(
        contradicts or (correlation is not None and correlation <= 0.0),
        name,
        "; ".join(said_so),
        rule=rule,
        next_step="One of the two is wrong. Read what it scored (seasoned memory show); then mend the judge's "
        f"instructions, or set it aside: seasoned memory quarantine --source {source}.",
        numbers=numbers,
    )
