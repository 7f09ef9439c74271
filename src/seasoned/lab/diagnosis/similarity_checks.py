"""Checks of whether states are told apart: one that carries most steps, and pairs that are similar."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from seasoned.core import jaccard
from seasoned.lab.diagnosis.check import Check, Number, finding_if, not_checked, share
from seasoned.lab.diagnosis.encoded_states import States

__all__ = ["Carried", "check_likeness", "most_carried"]

MAX_ALIKE = 0.9
MIN_STATES = 10
MIN_STEPS = 20
SAMPLE = 200
MANY_STEPS = 3
MAX_CARRIED = 0.5


@dataclass(frozen=True, slots=True)
class Carried:
    """How one and the same state carries most of an episode's steps.

    Args:
        text: the state; "" if there is none such.
        episodes: in how many it does.
        long_episodes: how many are long enough to say.
    """

    text: str
    episodes: int
    long_episodes: int

    @property
    def broken(self) -> bool:
        """Whether these are too many."""
        return self.episodes > MAX_CARRIED * self.long_episodes


def most_carried(states: States) -> Carried:
    """Return the state that carries three steps or more, and most of its episode's, in the most episodes."""
    carries: Counter[frozenset[str]] = Counter()
    texts: dict[frozenset[str], str] = {}
    long_episodes = 0
    for written, features in zip(states.texts, states.features, strict=True):
        if len(features) < MANY_STEPS:
            continue
        long_episodes += 1
        state, steps = Counter(features).most_common(1)[0]
        if steps >= MANY_STEPS and 2 * steps > len(features):
            carries[state] += 1
            texts.setdefault(state, written[features.index(state)])
    [(state, episodes)] = carries.most_common(1) or [(frozenset[str](), 0)]
    return Carried(texts.get(state, ""), episodes, long_episodes)


def check_likeness(states: States, threshold: float) -> Check:
    """Whether steps are told apart: one state carries most steps, or nearly everything is similar to everything."""
    name = "states that are told apart"
    rule = f"at most {MAX_ALIKE:.0%} of the pairs of distinct states are similar at threshold {threshold:g}"
    distinct = list(dict.fromkeys(one for features in states.features for one in features))
    carried = most_carried(states)
    numbers: dict[str, Number] = {
        "distinct_states": len(distinct),
        "threshold": threshold,
        "carried_episodes": carried.episodes,
        "long_episodes": carried.long_episodes,
    }
    seen = share(carried.episodes, carried.long_episodes, "episodes")
    if carried.broken and sum(map(len, states.features)) >= MIN_STEPS:
        return Check(
            name,
            "finding",
            f"one state carries over half of the steps in {seen}: {carried.text[:60]!r}; {len(distinct)} are distinct",
            f"no state carries {MANY_STEPS} steps or more, and over half of an episode's, in over {MAX_CARRIED:.0%} of "
            f"the episodes of {MANY_STEPS} steps or more",
            "Steps at one state share all evidence. Say in the state what differs: fewer or narrower masks, a template "
            "that keeps what a decision depends on (docs/how-to/states.md), or what was just done "
            "(seasoned.states.with_recent_actions).",
            numbers,
        )
    if len(distinct) < MIN_STATES:
        return not_checked(name, f"{len(distinct)} distinct states", f"{rule} (from {MIN_STATES} on)", **numbers)
    if len(distinct) > SAMPLE:
        at = np.linspace(0, len(distinct) - 1, SAMPLE).astype(int)
        distinct = [distinct[i] for i in at]
    likeness = np.array([jaccard(a, b) for i, a in enumerate(distinct) for b in distinct[:i]])
    alike = int((likeness >= threshold).sum())
    median = float(np.median(likeness))
    numbers |= {"pairs": len(likeness), "similar_pairs": alike, "median_similarity": median}
    higher = min(0.99, float(np.quantile(likeness, 0.9)))
    return finding_if(
        alike > MAX_ALIKE * len(likeness),
        name,
        f"{share(alike, len(likeness), 'pairs')} of distinct states are similar; the median similarity is {median:.2f}",
        rule=rule,
        next_step="Evidence comes from states that differ. Raise the threshold (one pair in ten is similar at "
        f"{higher:.2f}; seasoned memory evaluate --set threshold={higher:.2f} --one-step says what it would do), or "
        "take out of the description what all states share: a template (docs/how-to/states.md).",
        numbers=numbers,
    )
