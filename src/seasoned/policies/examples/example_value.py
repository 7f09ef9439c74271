"""Values of example candidates: which recalled moments to imitate or avoid, by returns and not by their texts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """A distinct pair of a state and an action among the recalled moments, and the moment that represents it.

    Args:
        moment: the most similar moment of the pair with this outcome; among equals the one with the highest return (to
            be avoided: the lowest), then the first that was recalled.
        similarity: of the moment to the query.
        kind: whether to imitate or to avoid it.
        relevance: the sharpened similarity times the probability that the pair's worth has the sign of its kind.
        value, low, high: the pair's worth above the baseline, and its interval, in reward units.
        n_shown: the number of steps, of the latest 256, at which the pair was shown.
        features: of the state and the action, for the similarity between candidates.
        baseline: what a success must exceed, in reward units.
        floor: returns whether a return may be a success.
        tries: the number of steps whose returns are those of the pair.
        key: the action of the moment, normalised.

    Attributes:
        nearness: the similarity of its state to the observation; 0 without one.
        weight: the number of tries times the sharpened nearness.
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
    baseline: float = 0.0
    floor: Callable[[float], bool] = bool
    tries: int = 1
    key: str = ""
    nearness: float = field(init=False)
    weight: float = field(init=False)

    def __post_init__(self) -> None:
        """Compute what every pair of candidates is compared by."""
        nearness = self.moment.similarities.get("observation", 0.0)
        object.__setattr__(self, "nearness", nearness)
        object.__setattr__(self, "weight", sharpen(nearness) * self.tries)

    @property
    def action(self) -> str:
        """The action of the moment."""
        return self.moment.experience.action

    def failed(self, return_: float) -> bool:
        """Return whether a return of this action is a failure."""
        return not self.floor(return_) or return_ < self.baseline


def similarity_of(moment: Moment, weights: Mapping[str, float]) -> float:
    """Return the weighted mean of a moment's similarities over the keys of the query; a missing key counts as 0.

    Goals are compared by rarity, the other keys by Jaccard. A mean of such similarities is exact, in [0, 1], and
    comparable between queries, so that relevance can combine it with worth. Rank fusion would lose the similarity of
    the best moment.

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
    """Return the fourth power of a similarity.

    Texts of one kind share most of their words, so plain similarity separates a similar moment only weakly from a
    moment with similar wording. An example that is shown often and always followed has a measured worth near that of
    the other steps at its state, which were shown it too; with plain similarity it would rank below examples that fit
    less well and were shown less often.

    Example:
        >>> round(sharpen(0.8), 2), round(sharpen(1.0), 2)
        (0.41, 1.0)
    """
    return similarity**_SHARPNESS


def baseline_of(returns: Sequence[float], similarities: Sequence[float], median: Callable[[], float | None]) -> float:
    """Return the baseline of returns, in reward units.

    It is the mean return of the recalled moments, weighted by similarity. If all returns are equal (or there is one),
    it is the namespace's median return; if that is the same value, it is 0.

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
    effects: Callable[[Sequence[Sequence[StepRef]]], ObservedEffects],
    features: Callable[[str], frozenset[str]],
    *,
    median: Callable[[], float | None],
    floor: Callable[[float], bool],
    neutral: float | None,
    model: Callable[[Moment], bool],
    whole: bool,
    trusted: bool,
) -> list[ExampleCandidate]:
    """Return the candidates among the recalled moments, the most relevant first.

    Moments with the same state and action form a pair (whole episodes: with the same first state and plan). A moment is
    a success if its return is above its baseline and passes `floor`, and a failure if its return is below the baseline
    or fails `floor`. Both count in the worth of their pair, so an action that mostly fails in a state is not a model
    because it succeeded once. Never a model: a pair with a retired moment, a moment that fails `model`, and a rejected
    moment (`rejected_steps`), even if the other actions tried there were worse. If all successes of a pair were
    rejected, the pair is to be avoided. Moments without any similarity to the query are left out.

    The baseline of a pair with rivals (other actions at the same distinct state, with other mean returns) is the mean
    return of all actions at that state, over all of their tries. A pair without rivals has the baseline of all recalled
    moments (`baseline_of`), or `neutral` if that is lower, its mean passes `floor`, and `neutral` is given: a return
    need only reach `neutral`. Returns elsewhere differ for other reasons, such as the distance to the end of the task,
    and an action without a better alternative is not a failure.

    The outcomes of the steps at which a success was shown rank it, by the probability that its worth is above 0. It is
    not a model only if the interval of its worth lies below 0. An example with no measurable effect when shown keeps
    its original score.

    A pair's own outcome is the mean return of all of its steps in the memory, if all episodes are `trusted` (and it is
    not a plan); otherwise of its recalled moments. `effects` returns the outcomes of the steps at which each pair was
    shown, and the rejected steps.
    """
    near = {moment.place: similarity for moment in moments if (similarity := similarity_of(moment, weights)) > 0.0}
    moments = [moment for moment in moments if moment.place in near]
    if not moments:
        return []
    returns = [moment.experience.return_ for moment in moments]
    baseline = baseline_of(returns, list(near.values()), median)
    pairs: dict[tuple[frozenset[str], str], list[Moment]] = {}
    for moment in moments:
        done = moment.experience.action if not whole else moment.plan or f"\t{moment.place}"
        pairs.setdefault((features(moment.experience.state), normalize_action(done)), []).append(moment)
    means = [_mean_return(members, pooled=trusted and not whole) for members in pairs.values()]
    tries = [members[0].tries if trusted and not whole else len(members) for members in pairs.values()]
    baselines = _baselines([state for state, _ in pairs], means, tries, baseline, neutral)
    own = [
        mean - (min(level, least) if least is not None and floor(mean) else level)
        for mean, (level, least) in zip(means, baselines, strict=True)
    ]
    shown = effects([[one.place for one in members] for members in pairs.values()])
    observed = shown.observed.with_own(own)
    worth = posterior_worth(observed, derived_shrinkage(observed))
    sides = [_side(worth, row) for row in range(len(pairs))]
    kinds: list[ExampleKind] = [
        "imitate" if above >= 0.5 or outcome >= -_ROUNDING else "avoid"
        for above, outcome in zip(sides, own, strict=True)
    ]
    fits = [
        [one for one in members if _outcome_kind(one.experience.return_, *held, floor) == kind]
        for members, held, kind in zip(pairs.values(), baselines, kinds, strict=True)
    ]
    rejected = shown.rejected(
        [one.experience for fit, kind in zip(fits, kinds, strict=True) if kind == "imitate" for one in fit]
    )
    found: list[ExampleCandidate] = []
    for row, ((state, action), members) in enumerate(pairs.items()):
        kind, fit, above = kinds[row], fits[row], sides[row]
        if kind == "imitate":
            if any(one.retired for one in members) or worth.high[row] < 0.0:
                continue
            accepted = [one for one in fit if one.place not in rejected]
            kind, fit = ("imitate", [one for one in accepted if model(one)]) if accepted else ("avoid", fit)
        if not fit:
            continue
        best = fit[0] if len(fit) == 1 else max(fit, key=functools.partial(_representative_key, near, kind))
        similarity, sure = near[best.place], above if kind == "imitate" else 1.0 - above
        bounds = float(worth.values[row]), float(worth.low[row]), float(worth.high[row])
        candidate = ExampleCandidate(
            best,
            similarity,
            kind,
            sharpen(similarity) * sure,
            *bounds,
            shown.n_shown[row],
            state | {f"\taction\t{action}"},
            baselines[row][0],
            floor,
            tries[row],
            normalize_action(best.experience.action) if whole else action,
        )
        found.append(candidate)
    return sorted(found, key=lambda one: (-one.relevance, -one.similarity))


def _representative_key(near: Mapping[StepRef, float], kind: ExampleKind, moment: Moment) -> tuple[float, float]:
    return_ = moment.experience.return_
    return near[moment.place], return_ if kind == "imitate" else -return_


def _baselines(
    states: Sequence[frozenset[str]],
    means: Sequence[float],
    tries: Sequence[int],
    overall: float,
    neutral: float | None,
) -> list[tuple[float, float | None]]:
    """Return for each pair its baseline, and the sufficient return of a pair without rivals (None with rivals)."""
    at: dict[frozenset[str], list[int]] = {}
    for row, state in enumerate(states):
        at.setdefault(state, []).append(row)
    found: list[tuple[float, float | None]] = [(overall, neutral)] * len(states)
    for rows in at.values():
        if len(rows) == 1:
            continue
        least, most = min(means[row] for row in rows), max(means[row] for row in rows)
        if most - least > _ROUNDING * max(1.0, abs(most)):
            level = sum(tries[row] * means[row] for row in rows) / sum(tries[row] for row in rows)
            for row in rows:
                found[row] = level, None
    return found


def _outcome_kind(
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
    """Return the posterior probability that a worth is above the baseline, by the normal distribution."""
    z = float(worth.values[row] / worth.deviations[row]) if worth.deviations[row] > 0.0 else 0.0
    return 0.5 if abs(z) < _ROUNDING else _NORMAL.cdf(z)
