"""Checks of how states are described: whether they come back, and are found quickly."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from seasoned.errors import counted
from seasoned.lab.diagnosis.check import Check, Number, finding_if, not_checked, share
from seasoned.lab.diagnosis.encoded_states import States, featured
from seasoned.lab.diagnosis.similarity_checks import most_carried
from seasoned.memory import Memory
from seasoned.protocols import StateEncoder
from seasoned.states import ALL_MASKS, Mask, TemplateEncoder, TokenEncoder

__all__ = ["check_recurrence", "check_speed", "speed"]

MIN_RECURRENCE = 0.2
MIN_STEPS = 20
MAX_FEATURES = 2000
MAX_QUERY_S = 0.02
SAMPLE = 200
QUERIES = 30
MASK_GAIN = 0.2
SHOWN = 5
FEW = 0.1


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
        helpful, masked = masks
        distinct = len({one for features in masked.features for one in features})
        numbers |= {"masks": ", ".join(mask.name for mask in helpful), "distinct_with_masks": distinct}
        listed = ", ".join(mask.name.upper() for mask in helpful)
        leaves = f"{distinct} of {len(met)} distinct states"
        if distinct == 1 or most_carried(masked).broken:
            advice += (
                f", or a mask that is narrower than {listed} (seasoned.states.Mask): with these, {leaves} are left, so "
                "that steps which differ would count as one"
            )
        else:
            advice = (
                f"Mask what changes: TokenEncoder(masks=[{listed}]) from seasoned.states leaves {leaves}; open the "
                "memory with it and reindex=True"
            )
            if distinct < FEW * len(met):
                advice += (
                    ". That is few: look first whether these are all that a decision depends on; if not, use a "
                    "template (seasoned.states.TemplateEncoder) or narrower masks"
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


def _helpful_masks(states: States, encoder: StateEncoder) -> tuple[list[Mask], States] | None:
    """The fewest ready masks that merge what all of them merge, and the states with them; None if none helps."""
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
    masked = _with_masks(encoder, kept)
    return None if masked is None else (kept, featured(masked, states.texts))


def _with_masks(encoder: StateEncoder, masks: Sequence[Mask]) -> StateEncoder | None:
    """The encoder with more masks, where it is one that has masks."""
    if isinstance(encoder, TokenEncoder):
        return dataclasses.replace(encoder, masks=[*encoder.masks, *masks])
    if isinstance(encoder, TemplateEncoder):
        tokens = dataclasses.replace(encoder.tokens, masks=[*encoder.tokens.masks, *masks])
        return dataclasses.replace(encoder, tokens=tokens)
    return None


def check_speed(memory: Memory, states: States, *, k: int, threshold: float) -> list[Check]:
    """Whether states are small and evidence is found quickly; the latest states are asked for."""
    sizes = [len(features) for one in states.features for features in one]
    middle = float(np.median(sizes))
    small = finding_if(
        middle > MAX_FEATURES,
        "size of states",
        f"a state has {middle:.0f} features in the middle of {counted(len(sizes), 'step')}, {max(sizes)} at most",
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
