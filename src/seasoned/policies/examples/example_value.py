"""Which of the moments found are worth imitating, and how much; from values, never from what a trajectory says."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from seasoned.core.impression_value import Worth, derived_shrinkage, posterior_worth
from seasoned.policies.examples.impression_effects import ObservedEffects
from seasoned.types import StepRef, normalize_action
from seasoned.types.recall import Moment

__all__ = ["ExampleCandidate", "baseline_of", "rank_candidates", "sharpen", "similarity_of"]

ExampleKind = Literal["imitate", "avoid"]

_NORMAL = NormalDist()
_ROUNDING = 1e-9
_SHARPNESS = 4


@dataclass(frozen=True, slots=True)
class ExampleCandidate:
    """A distinct pair of a state and an action among the moments found, and the moment that stands for it.

    Args:
        moment: the most similar of those that turned out so; among equals the one that earned most (to be avoided:
            least), then the first that was recalled.
        similarity: its own.
        kind: what it is a model of.
        relevance: its similarity, sharpen, times the probability that its worth is on the side of its kind.
        value, low, high: of the pair's worth above the baseline, in reward units.
        n_shown: at how many steps the pair was shown; of the latest 256.
        features: of the state and the action, to compare candidates by.
    """

    moment: Moment
    similarity: float
    kind: ExampleKind
    relevance: float
    value: float
    low: float
    high: float
    n_shown: int
    features: frozenset[str]


def similarity_of(moment: Moment, weights: Mapping[str, float]) -> float:
    """Return the weighted mean of a moment's similarities over the keys of the query; a key it lacks counts as 0.

    A mean of Jaccard similarities is exact, in [0, 1], and means the same in every query, so that relevance can weigh
    it against worth. Fusing ranks would forget how alike the best one is.

    Example:
        >>> from seasoned.types import Experience
        >>> step = Experience("page:pay", "click(confirm)", 1.0, 1.0, "e1", 0, "checkout")
        >>> similarity_of(Moment(step, {"goal": 0.5, "observation": 1.0}, "terminated"), {"goal": 1, "observation": 3})
        0.875
    """
    near = total = 0.0
    for key, similarity in moment.similarities.items():
        near += weights[key] * similarity
        total += weights[key]
    return near / total


def sharpen(similarity: float) -> float:
    """Return the fourth power: how much a moment says of another one that is so alike.

    Texts of one kind share most of their words whatever they say, so that plain similarity tells little between a
    moment like this one and one that is merely written alike. What is shown often and always followed is worth no more
    than the others at its state, which were shown it too; with plain similarity it would lose to what fits less and was
    shown less.

    Example:
        >>> round(sharpen(0.8), 2), round(sharpen(1.0), 2)
        (0.41, 1.0)
    """
    return similarity**_SHARPNESS


def baseline_of(returns: Sequence[float], similarities: Sequence[float], median: Callable[[], float | None]) -> float:
    """Return what a return is held against, in reward units.

    The mean return of the moments found, weighted by similarity. Where they all earned the same (or there is one), they
    say nothing of each other: then the namespace's median; and where that is the same, too, 0.

    Example:
        >>> baseline_of([1.0, 0.0], [0.9, 0.3], lambda: None), baseline_of([1.0, 1.0], [0.9, 0.3], lambda: 0.5)
        (0.75, 0.5)
    """
    if min(returns) != max(returns):
        weighted = sum(near * return_ for near, return_ in zip(similarities, returns, strict=True))
        return weighted / sum(similarities)
    typical = median()
    return 0.0 if typical is None or typical == returns[0] else typical


def rank_candidates(
    moments: Sequence[Moment],
    weights: Mapping[str, float],
    known: Callable[[Sequence[Sequence[StepRef]]], ObservedEffects],
    features: Callable[[str], frozenset[str]],
    *,
    median: Callable[[], float | None],
    floor: Callable[[float], bool],
    neutral: float | None,
    model: Callable[[Moment], bool],
    whole: bool,
    believed: bool,
) -> list[ExampleCandidate]:
    """Return the candidates among the moments found, the most relevant first.

    Moments with the same state and action are pooled (of whole episodes, those with the same first state and plan: a
    first action is no plan). A moment is a success if its return is above its baseline, and `floor` holds of it; it
    failed if its return is below the baseline, or `floor` does not hold. Both count in the worth of their pair: an
    action that mostly fails there is no model because it worked once. A pair with a retired moment is no model either,
    nor is a moment of which `model` does not hold, nor one that was rejected (`rejected`), though what else was
    tried was worse: where all successes of a pair were rejected, it is to be avoided. Moments that share nothing with
    the query are left out.

    The baseline of a pair with rivals, other actions found at its own distinct state that earned more or less, is the
    mean return of all of these, over all of their tries. Without rivals it is that of all moments found
    (`baseline_of`); for what `floor` holds of at most `neutral`, which a return need only reach: elsewhere other
    returns are earned for other reasons, such as being nearer to the end, and an action that nothing was better than is
    no failure for that.

    What followed where a success was shown ranks it, by the probability that its worth is above 0: it is no model only
    where the interval of its worth lies below 0. Where showing it did nothing, it stays what worked.

    A pair's own outcome is the mean return of all steps that the memory holds of it, if all are `believed` (and it is
    no plan); else of its moments here. `known` says what followed where a pair's members were shown, and what was
    rejected.
    """
    near = {moment.place: similarity_of(moment, weights) for moment in moments}
    moments = [moment for moment in moments if near[moment.place] > 0.0]
    if not moments:
        return []
    returns = [moment.experience.return_ for moment in moments]
    baseline = baseline_of(returns, [near[moment.place] for moment in moments], median)
    pairs: dict[tuple[frozenset[str], str], list[Moment]] = {}
    for moment in moments:
        done = moment.experience.action if not whole else moment.plan or f"\t{moment.place}"
        pairs.setdefault((features(moment.experience.state), normalize_action(done)), []).append(moment)
    means = [_mean_return(members, pooled=believed and not whole) for members in pairs.values()]
    tries = [members[0].tries if believed and not whole else len(members) for members in pairs.values()]
    baselines = _baselines([state for state, _ in pairs], means, tries, baseline, neutral)
    own = [
        mean - (min(level, least) if least is not None and floor(mean) else level)
        for mean, (level, least) in zip(means, baselines, strict=True)
    ]
    there = known([[one.place for one in members] for members in pairs.values()])
    observed = there.observed.with_own(own)
    worth = posterior_worth(observed, derived_shrinkage(observed))
    sides = [_side(worth, row) for row in range(len(pairs))]
    kinds: list[ExampleKind] = [
        "imitate" if above >= 0.5 or outcome >= -_ROUNDING else "avoid"
        for above, outcome in zip(sides, own, strict=True)
    ]
    fits = [
        [one for one in members if _turned_out(one.experience.return_, *held, floor) == kind]
        for members, held, kind in zip(pairs.values(), baselines, kinds, strict=True)
    ]
    rejected = there.rejected(
        [one.experience for fit, kind in zip(fits, kinds, strict=True) if kind == "imitate" for one in fit]
    )
    found: list[ExampleCandidate] = []
    for row, ((state, action), members) in enumerate(pairs.items()):
        kind, fit, above = kinds[row], fits[row], sides[row]
        if kind == "imitate":
            if any(one.retired for one in members) or worth.high[row] < 0.0:
                continue
            liked = [one for one in fit if one.place not in rejected]
            kind, fit = ("imitate", [one for one in liked if model(one)]) if liked else ("avoid", fit)
        if not fit:
            continue
        best = max(fit, key=functools.partial(_standing_for, near, kind))
        similarity, sure = near[best.place], above if kind == "imitate" else 1.0 - above
        bounds = float(worth.values[row]), float(worth.low[row]), float(worth.high[row])
        features_ = state | {f"\taction\t{action}"}
        relevance = sharpen(similarity) * sure
        found.append(ExampleCandidate(best, similarity, kind, relevance, *bounds, there.n_shown[row], features_))
    return sorted(found, key=lambda one: (-one.relevance, -one.similarity))


def _standing_for(near: Mapping[StepRef, float], kind: ExampleKind, moment: Moment) -> tuple[float, float]:
    return_ = moment.experience.return_
    return near[moment.place], return_ if kind == "imitate" else -return_


def _baselines(
    states: Sequence[frozenset[str]],
    means: Sequence[float],
    tries: Sequence[int],
    all_found: float,
    neutral: float | None,
) -> list[tuple[float, float | None]]:
    """Return for each pair what it is held against, and the least that is enough where it has no rivals."""
    at: dict[frozenset[str], list[int]] = {}
    for row, state in enumerate(states):
        at.setdefault(state, []).append(row)
    found: list[tuple[float, float | None]] = []
    for state in states:
        rows = at[state]
        least, most = min(means[row] for row in rows), max(means[row] for row in rows)
        if most - least <= _ROUNDING * max(1.0, abs(most)):
            found.append((all_found, neutral))
        else:
            found.append((sum(tries[row] * means[row] for row in rows) / sum(tries[row] for row in rows), None))
    return found


def _turned_out(
    return_: float, baseline: float, least: float | None, floor: Callable[[float], bool]
) -> ExampleKind | None:
    if not floor(return_):
        return "avoid"
    if least is not None and return_ >= least:
        return "imitate"
    return "avoid" if return_ < baseline else "imitate" if return_ > baseline else None


def _mean_return(members: Sequence[Moment], *, pooled: bool) -> float:
    known = members[0].mean_return
    if pooled and known is not None:
        return known
    return sum(one.experience.return_ for one in members) / len(members)


def _side(worth: Worth, row: int) -> float:
    """The posterior probability that a worth is above the baseline, by the normal law."""
    z = float(worth.values[row] / worth.deviations[row]) if worth.deviations[row] > 0.0 else 0.0
    return 0.5 if abs(z) < _ROUNDING else _NORMAL.cdf(z)
