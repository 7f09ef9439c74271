"""The slope of returns on the probability that the model gave to the action taken."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number
from seasoned.core.arrays import Floats, Ints
from seasoned.core.statistics import t_quantile
from seasoned.errors import InputError

__all__ = ["PriorMean", "PriorSlope", "prior_leads", "prior_slope"]

_FARTHEST = 2.0  # units from the mean; a return beyond counts as if it were there
_FEWEST = 8  # steps
_LEAST_LEAD = 1e-6


@dataclass(frozen=True, slots=True)
class PriorSlope:
    """What a lead of the model's own policy is worth.

    Args:
        slope: units of return for each unit of lead (`prior_leads`), at least 0.
        deviation: its posterior standard deviation.
        mean_lead: the mean lead of the actions that were taken, without its tails.
        n: the number of steps that it was estimated from.
    """

    slope: float
    deviation: float
    mean_lead: float
    n: int


@dataclass(frozen=True, slots=True)
class PriorMean:
    """What the model's own policy says of values, in units of return.

    Args:
        of_candidates: shape (C,), what each is expected to return beyond the mean.
        of_cells: shape (M,), the same of each pair of a state and an action in memory.
        half_widths: shape (C,), of the 95 % intervals of the advantages by this alone.
    """

    of_candidates: Floats
    of_cells: Floats
    half_widths: Floats

    @classmethod
    def of(
        cls, slope: PriorSlope, base_probs: Floats, cell_leads: Floats, *, candidates: Ints, similarities: Floats
    ) -> PriorMean:
        """Return what a slope says.

        At a state of similarity k to that of the decision a lead is `k x(a) + (1 - k) x'(a)`, x being that of the
        decision and x' the stored one (the mean lead where it is unknown). At the state itself the returns so count in
        full, whatever prior was stored with the latest of its steps: that may be of another model, or invented.

        Args:
            slope: what a lead is worth.
            base_probs: shape (C,), the model's own policy.
            cell_leads: shape (M,), as they are stored; NaN where one is unknown.
            candidates: shape (M,), the position of the cell's action among the candidates; -1 if it is none of them.
            similarities: shape (M,), of the cell's state to that of the decision.
        """
        leads = prior_leads(base_probs)
        stored = np.where(np.isnan(cell_leads), slope.mean_lead, cell_leads)
        near = np.where(candidates >= 0, similarities, 0.0)
        at_cells = near * leads[candidates] + (1.0 - near) * stored
        half = t_quantile(0.975, max(1, slope.n - 1)) * slope.deviation
        return cls(
            slope.slope * (leads - slope.mean_lead),
            slope.slope * (at_cells - slope.mean_lead),
            half * np.abs(base_probs - float(base_probs @ base_probs)),
        )


def prior_leads(probs: npt.ArrayLike) -> Floats:
    """Return by how much the model prefers each candidate to an even choice: `p(a) - 1 / C`, for C candidates.

    An even policy has leads of 0, however many candidates there are.

    Example:
        >>> prior_leads([0.5, 0.25, 0.25, 0.0]).tolist()
        [0.25, 0.0, 0.0, -0.25]
    """
    p = np.asarray(probs, dtype=np.float64)
    leads: Floats = p - 1.0 / max(len(p), 1)
    return leads


def prior_slope(
    leads: npt.ArrayLike, expected: npt.ArrayLike, returns: npt.ArrayLike, *, mean: float, unit: float
) -> PriorSlope | None:
    """Return the slope of the return on the lead that the model gave to the action taken; None if it is unknown or 0.

    The return of a step is `c + unit * (b x + d e + noise)`, x being the lead of its action (`prior_leads`) and
    `e = sum p^2 - 1 / C` the lead that the model's own choices have there on average, with noise of variance 1 and
    b, d ~ N(0, 1). Where the model is sure, returns may be higher whatever is done: that is d, while x - e has the mean
    0 at each state under the model's own choices (as covariates centred on the policy: Greenewald and others 2017,
    "Action Centered Contextual Bandits").
    The posterior of b is normal (Bayesian linear regression: Bishop 2006, section 3.3). With x, e and y less their
    means, y in units,

        E[b] = (x'y - x'e e'y / (1 + e'e)) / h,   Var[b] = 1 / h,   h = 1 + x'x - (x'e)^2 / (1 + e'e)

    and the slope is `E[b] - sqrt(Var[b])`, at least 0: what is likely to hold. A model whose probabilities say nothing
    has the slope 0; it is never below, since a preference is not turned around.

    A few steps do not decide: fewer than eight say nothing, the highest and the lowest tenth of x, and of e, count as
    the next ones, and a return farther than two units from the mean counts as if it were there.

    Args:
        leads: shape (N,), x, of the actions that were taken.
        expected: shape (N,), e, at the states where they were taken.
        returns: shape (N,), in reward units.
        mean: the mean of returns, in reward units.
        unit: the scale of returns, in reward units, above 0.

    Raises:
        InputError: shapes differ, or the unit is not above 0.

    Example:
        >>> found = prior_slope([0.4, -0.4] * 50, [0.3] * 100, [1.0, 0.0] * 50, mean=0.5, unit=0.5)
        >>> round(found.slope, 2), round(found.deviation, 2)
        (2.11, 0.24)
    """
    x, e, y = (np.asarray(column, dtype=np.float64) for column in (leads, expected, returns))
    if x.ndim != 1 or not x.shape == e.shape == y.shape:
        raise InputError(
            f"leads of shape {x.shape}, expected ones of shape {e.shape}, returns of shape {y.shape}",
            "each step has a lead, an expected lead and a return",
            "Pass all three.",
        )
    check_number("unit", unit, above=0, next_step="It is the spread of the returns.")
    if len(x) < _FEWEST:
        return None
    x, e = _without_tails(x), _without_tails(e)
    if float(np.ptp(x)) < _LEAST_LEAD:
        return None
    with np.errstate(over="ignore"):
        scaled = np.clip((y - mean) / unit, -_FARTHEST, _FARTHEST)
    mean_lead = float(x.mean())
    x, e, scaled = x - mean_lead, e - e.mean(), scaled - scaled.mean()
    share = float(x @ e) / (1.0 + float(e @ e))
    precision = 1.0 + float(x @ x) - share * float(x @ e)
    deviation = 1.0 / math.sqrt(precision)
    slope = float((x - share * e) @ scaled) / precision - deviation
    return PriorSlope(slope, deviation, mean_lead, len(scaled)) if slope > 0.0 else None


def _without_tails(values: Floats) -> Floats:
    """Return the values with the lowest and the highest tenth of them as the next one."""
    ascending, n = np.sort(values), math.ceil(len(values) / 10)
    found: Floats = np.clip(values, ascending[n], ascending[-1 - n])
    return found
