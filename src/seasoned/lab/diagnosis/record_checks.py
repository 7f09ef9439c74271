"""Checks of the records: priors, endings, rewards, feedback."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np

from seasoned.core import robust_spread
from seasoned.errors import InputError, counted, excerpt
from seasoned.lab.diagnosis.check_result import CheckResult, Number, finding_if, not_checked, share
from seasoned.memory.values.events import Event
from seasoned.types import ALTERNATIVE, Episode, Label, Note
from seasoned.types.notes import check_known_body

__all__ = ["check_exclusions", "check_feedback", "check_labels", "check_notes", "check_priors", "check_rewards"]

_MAX_UNKNOWN = 0.1
_MAX_EXCLUDED = 0.2
_MIN_EXCLUDED = 3
_MIN_EPISODES = 5
_MIN_PAIRS = 10
_MAX_DISAGREEMENT = 0.3
_MIN_WEIGHT = 0.1
_LISTED_NOTES = 5
_MIN_LABELS = 20
_MIN_RIGHT = 0.05
_MIN_EXPECTED = 0.25
_MIN_UNLABELLED = 0.2


def check_priors(episodes: Sequence[Episode], *, in_prompts: Collection[str] = ()) -> CheckResult:
    """Check that steps have the model's logprobs and the propensity, which replay and evaluation need.

    An import mostly has neither at any step: that is no finding, since its user cannot change it. Left out are the
    answers of people (arm `ALTERNATIVE`), which nobody decided. So are episodes without any prior of an agent whose
    memory is in the prompt, and of the control group of a wrapped client, whose priors are read for memory only.

    Args:
        episodes: those that count.
        in_prompts: the ids of those whose prompts showed examples.
    """
    name = "priors and propensities"
    rule = (
        f"at most {_MAX_UNKNOWN:.0%} of the steps lack either: what memory changes there, and what another policy "
        "would earn, cannot be computed"
    )
    decided = [episode for episode in episodes if episode.arm != ALTERNATIVE]
    without = [episode for episode in decided if all(step.prior is None for step in episode.steps)]
    by_prompt = [episode for episode in without if str(episode.id) in in_prompts]
    left_out = {episode.id for episode in without if episode.arm == "control" or str(episode.id) in in_prompts}
    decided = [episode for episode in decided if episode.id not in left_out]
    steps = [step for episode in decided for step in episode.steps]
    no_prior = sum(step.prior is None for step in steps)
    no_propensity = sum(step.propensity is None for step in steps)
    numbers = {"steps": len(steps), "without_prior": no_prior, "without_propensity": no_propensity}
    if by_prompt and not decided:
        seen = f"none of {counted(len(by_prompt), 'episode')} with examples in the prompt: see 'examples in prompts'"
        return not_checked(name, seen, rule, **numbers)
    if not steps:
        return not_checked(name, "no step that a policy decided", rule, **numbers)
    if no_prior == no_propensity == len(steps):
        return not_checked(
            name,
            f"none of {len(steps)} steps has them, as is usual in an import, so decisions are not replayed "
            "(neighbours, advantages, flips). An agent that records its decisions, "
            "episode.record(state, decision), stores both, and so does seasoned.wrap(..., mode='decisions')",
            rule,
            **numbers,
        )
    return finding_if(
        max(no_prior, no_propensity) > _MAX_UNKNOWN * len(steps),
        name,
        f"no prior at {share(no_prior, len(steps), 'steps')}, no propensity at "
        f"{share(no_propensity, len(steps), 'steps')}",
        rule=rule,
        next_step="Record the decision itself: episode.record(state, decision, reward). It carries both. A client of "
        "seasoned.wrap has them in the modes votes and decisions, at steps whose states memory knew.",
        numbers=numbers,
    )


def check_exclusions(n_episodes: int, n_aborted: int, n_quarantined: int) -> list[CheckResult]:
    """Check that few of the stored episodes are excluded from retrieval."""
    rules = (
        (
            "aborted episodes",
            "aborted",
            n_aborted,
            "Find the cause of the aborts: seasoned memory list shows them; a time limit ends an episode as truncated.",
        ),
        (
            "quarantined episodes",
            "quarantined",
            n_quarantined,
            "See seasoned memory quarantines: lift those made by mistake, prune useless episodes.",
        ),
    )
    return [
        finding_if(
            count >= _MIN_EXCLUDED and count > _MAX_EXCLUDED * n_episodes,
            name,
            share(count, n_episodes, "episodes"),
            rule=f"at most {_MAX_EXCLUDED:.0%} of the episodes, or fewer than {_MIN_EXCLUDED}",
            next_step=next_step,
            numbers={"episodes": n_episodes, key: count},
        )
        for name, key, count, next_step in rules
    ]


def check_rewards(episodes: Sequence[Episode]) -> CheckResult:
    """Check that there is something to learn: some reward is not 0, and episodes earn different totals."""
    name, rule = "rewards", "some reward is not 0, and not all episodes earn the same"
    totals = [math.fsum(step.reward for step in episode.steps) for episode in episodes]
    rewarded = sum(step.reward != 0.0 for episode in episodes for step in episode.steps)
    rewarded_episodes = sum(any(step.reward != 0.0 for step in episode.steps) for episode in episodes)
    n_steps = sum(len(episode.steps) for episode in episodes)
    spread = robust_spread(totals, np.ones(len(totals)))
    numbers = {
        "episodes": len(totals),
        "steps": n_steps,
        "rewarded_steps": rewarded,
        "rewarded_episodes": rewarded_episodes,
        "mean_total": float(np.mean(totals)) if totals else None,
        "spread_of_totals": spread,
    }
    if len(totals) < _MIN_EPISODES:
        return not_checked(name, f"{len(totals)} episodes", f"{rule} (from {_MIN_EPISODES} episodes on)", **numbers)
    seen = f"{share(rewarded_episodes, len(totals), 'episodes')} have a reward other than 0; "
    seen += f"an episode earns {np.mean(totals):.4g} (mean of {len(totals)})"
    if rewarded:
        seen += f", from {min(totals):.4g} to {max(totals):.4g}"
    next_step = (
        "All rewards are 0, so there is nothing to learn: pass reward= when recording, or give feedback (a judge, a "
        "person): memory.feedback(...)."
        if not rewarded
        else "Every episode earns the same, so no action looks better than another: reward differences (fewer "
        "steps, partial success), or play tasks that sometimes fail."
    )
    return finding_if(not rewarded or spread == 0.0, name, seen, rule=rule, next_step=next_step, numbers=numbers)


def check_notes(notes: Sequence[Note]) -> list[CheckResult]:
    """Check that each unrevoked note of a kind with a form has it: what reads such notes skips the others."""
    if not notes:
        return []
    malformed = [note.id for note in notes if not _has_its_form(note)]
    return [
        finding_if(
            bool(malformed),
            "notes",
            f"{share(len(malformed), len(notes), 'notes')} are not of their kind's form"
            + (f": {', '.join(excerpt(id_) for id_ in malformed[:_LISTED_NOTES])}" if malformed else ""),
            rule="each note of a kind that other programs read has that kind's form; their readers skip the others",
            next_step="Revoke each: seasoned memory revoke MEMORY NOTE; seasoned memory verify lists them all.",
            numbers={"notes": len(notes), "malformed": len(malformed)},
        )
    ]


def _has_its_form(note: Note) -> bool:
    try:
        check_known_body(note.kind, note.body)
    except InputError:
        return False
    return True


def check_feedback(raw: Sequence[Episode], events: Sequence[Event]) -> list[CheckResult]:
    """Check that feedback agrees with itself and with the environment, and has enough weight.

    Args:
        raw: the episodes that count, with the environment's rewards only.
        events: the feedback events that count.
    """
    if not events:
        return [not_checked("feedback", "no feedback event counts", "sources agree, and have weight")]
    by_step: defaultdict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    by_source: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        author = event.source if event.author is None else f"{event.source}/{event.author}"
        by_step[event.episode_id, event.step][author] = event.reward
        by_source[event.source].append(event)
    sources = sorted(by_source.items())
    return [
        _check_contradictions(list(by_step.values())),
        *(_check_weight(source, source_events) for source, source_events in sources),
        *(_check_agreement(source, source_events, raw) for source, source_events in sources),
    ]


def check_labels(raw: Sequence[Episode], events: Sequence[Event], n_awaiting: int) -> list[CheckResult]:
    """Check that labels are of right answers too, and not of wrong ones alone; nothing without labels of decisions.

    Where only wrong answers are labelled, the option that is right most of the time is seen as wrong whenever it is
    judged. A model that is never right looks alike; so the labels must be of a part of the decisions, and the model
    must have expected to be right.

    Args:
        raw, events: as for `check_feedback`.
        n_awaiting: the number of episodes that await feedback.
    """
    steps = {(str(one.id), at): step for one in raw for at, step in enumerate(one.steps) if step.prior is not None}
    right: dict[tuple[str, int], bool] = {}
    for event in events:
        place = event.episode_id, event.step
        if event.kind == Label.kind and place in steps:
            right[place] = right.get(place, False) or event.reward > 0.0
    if not right:
        return []
    n, n_right = len(right), sum(right.values())
    logprobs = [(steps[place].prior or {}).get(steps[place].action, -math.inf) for place in right]
    expected = math.fsum(map(math.exp, logprobs)) / n
    name = "labels of right answers"
    rule = (
        f"at least {_MIN_RIGHT:.0%} of the labelled decisions were right, where the model expected {_MIN_EXPECTED:.0%} "
        f"and {_MIN_UNLABELLED:.0%} as many wait for a label (from {_MIN_LABELS} labels on)"
    )
    numbers: dict[str, Number] = {"labelled": n, "right": n_right, "expected": expected, "awaiting": n_awaiting}
    if n < _MIN_LABELS:
        return [not_checked(name, f"{n} labelled decisions", rule, **numbers)]
    return [
        finding_if(
            n_right < _MIN_RIGHT * n and expected >= _MIN_EXPECTED and n_awaiting >= _MIN_UNLABELLED * n,
            name,
            f"the executed option was right in {share(n_right, n, 'labelled decisions')}, where the model expected "
            f"{expected:.0%}; {n_awaiting} episodes wait for feedback",
            rule=rule,
            next_step="If labels come for wrong answers only, the choice drifts away from what is right most of the "
            "time: send the label of confirmed answers too (right=...), or of a random share.",
            numbers=numbers,
        )
    ]


def _check_contradictions(rewards: Sequence[dict[str, float]]) -> CheckResult:
    name = "feedback on one step"
    rule = f"of the steps with two opinions, at most {_MAX_DISAGREEMENT:.0%} differ in sign (from {_MIN_PAIRS} such on)"
    signs = [[np.sign(reward) for reward in by_author.values() if reward] for by_author in rewards]
    shared = [opinions for opinions in signs if len(opinions) >= 2]
    differ = sum(len(set(opinions)) > 1 for opinions in shared)
    numbers = {"steps": len(shared), "contradictory": differ}
    if len(shared) < _MIN_PAIRS:
        return not_checked(name, f"{len(shared)} steps with two opinions", rule, **numbers)
    return finding_if(
        differ > _MAX_DISAGREEMENT * len(shared),
        name,
        f"opinions contradict one another on {share(differ, len(shared), 'steps')}",
        rule=rule,
        next_step="Read some: seasoned memory show. Lower the weight of the less reliable source (feedback(..., "
        "weight=0.3)), or quarantine it: seasoned memory quarantine --source NAME.",
        numbers=numbers,
    )


def _check_weight(source: str, events: Sequence[Event]) -> CheckResult:
    weight = float(np.median([abs(event.weight) for event in events]))
    return finding_if(
        weight < _MIN_WEIGHT,
        f"weight of {source!r}",
        f"{len(events)} events with a median weight of {weight:.3g}",
        rule=f"a source's median weight is at least {_MIN_WEIGHT:g}",
        next_step="Its votes hardly count: unsure judges have a low weight. Use a better model or more votes, or "
        "give a higher weight.",
        numbers={"source": source, "events": len(events), "median_weight": weight},
    )


def _check_agreement(source: str, events: Sequence[Event], raw: Sequence[Episode]) -> CheckResult:
    """Compare a source with the environment: signs step by step, and correlation episode by episode."""
    name = f"{source!r} against the environment"
    rule = (
        f"at most {_MAX_DISAGREEMENT:.0%} of the steps that both reward differ in sign, and the correlation over "
        f"episodes is positive (from {_MIN_PAIRS} on)"
    )
    earned = {str(episode.id): [step.reward for step in episode.steps] for episode in raw}
    known = [event for event in events if event.episode_id in earned]
    both = [(event.reward, earned[event.episode_id][event.step]) for event in known]
    both = [(ours, theirs) for ours, theirs in both if ours and theirs]
    differ = sum((ours > 0.0) != (theirs > 0.0) for ours, theirs in both)
    sums: defaultdict[str, float] = defaultdict(float)
    for event in known:
        sums[event.episode_id] += event.reward
    judged = np.array(list(sums.values()))
    true = np.array([math.fsum(earned[episode_id]) for episode_id in sums])
    varied = len(judged) >= _MIN_PAIRS and judged.std() > 0.0 and true.std() > 0.0
    correlation = float(np.corrcoef(judged, true)[0, 1]) if varied else None
    numbers: dict[str, Number] = {
        "source": source,
        "steps": len(both),
        "disagreeing": differ,
        "episodes": len(judged),
        "correlation": correlation,
    }
    if len(both) < _MIN_PAIRS and correlation is None:
        seen = f"{len(both)} steps that both reward, {len(judged)} episodes with feedback, too few or all alike"
        return not_checked(name, seen, rule, **numbers)
    findings = []
    if len(both) >= _MIN_PAIRS:
        findings.append(f"they differ in sign on {share(differ, len(both), 'steps')}")
    if correlation is not None:
        findings.append(f"correlation {correlation:+.2f} over {len(judged)} episodes")
    contradicts = len(both) >= _MIN_PAIRS and differ > _MAX_DISAGREEMENT * len(both)
    return finding_if(
        contradicts or (correlation is not None and correlation <= 0.0),
        name,
        "; ".join(findings),
        rule=rule,
        next_step="One of the two is wrong. Read its feedback (seasoned memory show); then correct the judge's "
        f"instructions, or quarantine it: seasoned memory quarantine --source {source}.",
        numbers=numbers,
    )
