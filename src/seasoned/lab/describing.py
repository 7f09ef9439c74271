"""Checks of how states are described: whether they come back, are told apart, and are found quickly."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seasoned.core import jaccard
from seasoned.lab.checks import Check, Number, finding_if, not_checked, share
from seasoned.memory import Memory
from seasoned.protocols import StateEncoder
from seasoned.states import ALL_MASKS, Mask, TemplateEncoder, TokenEncoder
from seasoned.types import Episode

__all__ = ["States", "check_likeness", "check_recurrence", "check_speed", "describe"]

MIN_RECURRENCE = 0.2
MIN_STEPS = 20
MAX_ALIKE = 0.9
MIN_STATES = 10
MAX_FEATURES = 2000
MAX_QUERY_S = 0.02
SAMPLE = 200
QUERIES = 30
MASK_GAIN = 0.2
SHOWN = 5


@dataclass(frozen=True, slots=True)
class States:
    """The states of the episodes that count, as feature sets; one list per episode, in commit order."""

    texts: tuple[tuple[str, ...], ...]
    features: tuple[tuple[frozenset[str], ...], ...]


def describe(encoder: StateEncoder, episodes: Sequence[Episode]) -> States:
    """Return every step's state as text and as features."""
    known: dict[str, frozenset[str]] = {}
    shared: dict[frozenset[str], frozenset[str]] = {}  # equal sets once: comparing them is then quick

    def features(text: str) -> frozenset[str]:
        if text not in known:
            found = encoder.features(text)
            known[text] = shared.setdefault(found, found)
        return known[text]

    texts = tuple(tuple(step.state for step in episode.steps) for episode in episodes)
    return States(texts, tuple(tuple(features(text) for text in one) for one in texts))


def check_recurrence(states: States, encoder: StateEncoder) -> Check:
    """Whether states come back from one episode to the next; if not, which tokens change, and which mask would help."""
    name = "states that come back"
    rule = (
        f"from the middle of the log on, {MIN_RECURRENCE:.0%} of the steps are at a state that an earlier episode met"
    )
    met: set[frozenset[str]] = set()
    steps = again = 0
    for number, features in enumerate(states.features):
        if 2 * number >= len(states.features):
            steps += len(features)
            again += sum(one in met for one in features)
        met.update(features)
    numbers: dict[str, Number] = {"steps": steps, "met_before": again, "distinct_states": len(met)}
    seen = f"{share(again, steps, 'steps')}; {len(met)} distinct states in all"
    if steps < MIN_STEPS:
        return not_checked(name, f"{steps} steps", f"{rule} (from {MIN_STEPS} steps on)", **numbers)
    if again >= MIN_RECURRENCE * steps:
        return finding_if(False, name, seen, rule=rule, next_step="", numbers=numbers)
    volatile = _volatile(states)
    if volatile:
        seen += f"; met in one episode only: {', '.join(volatile)}"
        numbers["volatile"] = ", ".join(volatile)
    masks = _helpful_masks(states, encoder)
    advice = "Describe a state by what a decision depends on: a template (seasoned.states.TemplateEncoder)"
    if masks is not None:
        helpful, distinct = masks
        numbers |= {"masks": ", ".join(mask.name for mask in helpful), "distinct_with_masks": distinct}
        listed = ", ".join(mask.name.upper() for mask in helpful)
        advice = (
            f"Mask what changes: TokenEncoder(masks=[{listed}]) from seasoned.states leaves {distinct} of {len(met)} "
            "distinct states; open the memory with it and reindex=True"
        )
    return Check(name, "finding", seen, rule, f"{advice}. See docs/how-to/states.md.", numbers)


def _volatile(states: States) -> list[str]:
    """Tokens of the latest states that no other episode has; first those that most states of their episode have."""
    episodes: Counter[str] = Counter()
    for features in states.features:
        episodes.update(frozenset().union(*features))
    latest = [one for features in reversed(states.features) for one in features][:SAMPLE]
    uses = Counter(token for features in latest for token in features if episodes[token] == 1)
    return [token[:40] for token, _ in uses.most_common(SHOWN)]


def _helpful_masks(states: States, encoder: StateEncoder) -> tuple[list[Mask], int] | None:
    """The fewest ready masks that merge what all of them merge, and how many states they leave; None if none helps."""
    texts = sorted({text for one in states.texts for text in one})

    def distinct(masks: Sequence[Mask]) -> int:
        masked = _with_masks(encoder, masks)
        return len(texts) if masked is None else len({masked.features(text) for text in texts})

    if _with_masks(encoder, ALL_MASKS) is None:
        return None
    kept = list(ALL_MASKS)
    best = distinct(kept)
    if best > (1.0 - MASK_GAIN) * distinct([]):
        return None
    for mask in ALL_MASKS:
        fewer = [one for one in kept if one is not mask]
        if distinct(fewer) <= 1.05 * best:
            kept = fewer
    return kept, distinct(kept)


def _with_masks(encoder: StateEncoder, masks: Sequence[Mask]) -> StateEncoder | None:
    """The encoder with more masks, where it is one that has masks."""
    if isinstance(encoder, TokenEncoder):
        return dataclasses.replace(encoder, masks=[*encoder.masks, *masks])
    if isinstance(encoder, TemplateEncoder):
        tokens = dataclasses.replace(encoder.tokens, masks=[*encoder.tokens.masks, *masks])
        return dataclasses.replace(encoder, tokens=tokens)
    return None


def check_likeness(states: States, threshold: float) -> Check:
    """Whether nearly everything is similar to everything, so that nothing is told apart."""
    name = "states that are told apart"
    rule = f"at most {MAX_ALIKE:.0%} of the pairs of distinct states are similar at threshold {threshold:g}"
    distinct = list(dict.fromkeys(one for features in states.features for one in features))
    numbers: dict[str, Number] = {"distinct_states": len(distinct), "threshold": threshold}
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


def check_speed(memory: Memory, states: States, *, k: int, threshold: float) -> list[Check]:
    """Whether states are small and evidence is found quickly; the latest states are asked for."""
    sizes = [len(features) for one in states.features for features in one]
    middle = float(np.median(sizes))
    small = finding_if(
        middle > MAX_FEATURES,
        "size of states",
        f"a state has {middle:.0f} features in the middle, {max(sizes)} at most",
        rule=f"at most {MAX_FEATURES} in the middle",
        next_step="Store what a decision depends on (the open dialog, not the whole page), or describe states by a "
        "template (docs/how-to/states.md).",
        numbers={"median_features": middle, "largest": max(sizes)},
    )
    asked = [text for one in reversed(states.texts) for text in reversed(one)][:QUERIES]
    memory.evidence(asked[0], k=k, unit="states", threshold=threshold)  # loads the index, once
    taken: list[float] = []
    for text in asked:
        began = time.perf_counter()
        memory.evidence(text, k=k, unit="states", threshold=threshold)
        taken.append(time.perf_counter() - began)
    return [small, speed(taken, len({one for features in states.features for one in features}))]


def speed(query_s: Sequence[float], distinct_states: int) -> Check:
    """Judge how long queries took, in seconds each."""
    middle, slow = np.quantile(query_s, [0.5, 0.9]).tolist()
    return finding_if(
        middle > MAX_QUERY_S,
        "speed of retrieval",
        f"{1000 * middle:.2f} ms in the middle, {1000 * slow:.2f} ms at the 90th percentile of {len(query_s)} queries",
        rule=f"at most {1000 * MAX_QUERY_S:g} ms in the middle",
        next_step=f"{distinct_states} distinct states are searched: install the compiled index (pip install "
        "'seasoned[fast]'), mask what changes from visit to visit, or prune (docs/how-to/keeping.md).",
        numbers={"queries": len(query_s), "p50_s": middle, "p90_s": slow, "distinct_states": distinct_states},
    )
