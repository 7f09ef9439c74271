"""Values of actions as a Gaussian process over similar states: what each state lends to another by its similarity."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass

import numpy as np

from seasoned.checks import check_number, check_whole
from seasoned.core.advantage import AdvantageEstimate
from seasoned.core.arrays import Bools, Floats, Ints
from seasoned.core.calibration.prior_slope import PriorMean
from seasoned.core.effects.call_group import CallShapes
from seasoned.core.effects.effect_sums import Blocks, group_sums
from seasoned.core.modulation import moderate
from seasoned.core.shrinkage import Cells
from seasoned.core.statistics import t_quantile
from seasoned.errors import InputError

__all__ = ["ProcessEstimator", "SimilarStates"]

_CAUTION_DEGREES = 2.0  # of a prior by which, for intervals, all of the variance of returns is noise
_MOST_DEGREES = 200
_NOISE_PRIOR_DEGREES = 4.0
_SCALE_PRIOR_DEGREES = 2  # for intervals
_LEAST_WEIGHT = 1e-12  # of a cell; less is nothing, and its noise would overflow
_FEW_PADDED = 1 << 13  # of the covariances of all actions
_FARTHEST = 1e120  # units from the mean; a return beyond counts as if it were there, so that its square is finite
_LEAST_NOISE = 1e-9  # below it, states whose similarities are linearly dependent cannot be solved for


@dataclass(frozen=True, slots=True)
class SimilarStates:
    """The similarities of S neighbour states.

    Args:
        to_query: shape (S,), to the state of the decision, in [0, 1].
        to_each_other: shape (S, S), in [0, 1], positive semi-definite, 1 on the diagonal.
    """

    to_query: Floats
    to_each_other: Floats


@dataclass(frozen=True, slots=True)
class ProcessEstimator:
    """Turns evidence at similar states into advantages, by the posterior of a Gaussian process.

    The value of action a at state s is `Q(s, a) = m + unit * (level(s) + effect(s, a))`, two independent Gaussian
    processes with mean 0 and, k being the similarity of two states,

        Cov[level(s), level(s')] = rho k(s, s'),    Cov[effect(s, a), effect(s', a')] = (1 - rho) k(s, s') [a = a']

    and the mean return of n steps of a at s is `Q(s, a)` plus noise of variance `unit^2 eta / n`. Posterior mean and
    variance are exact, up to rounding (Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, section
    2.2; in geostatistics: kriging). It follows that

    - a state trusts its own steps as they grow in number, and near-duplicates lend theirs by similarity;
    - ten near-duplicates of each other are worth little more than one, because they are correlated;
    - an untried action has the value `m + unit * level`: it is tried where all others did worse than m;
    - intervals hold the prior's uncertainty, so that they are not empty at one step.

    It departs from the posterior in one point. With s = 1 / (1 + eta / n) a cell alone has the posterior mean `k s y`
    and variance `1 - k^2 s` in units, y being its mean return's distance from m. Each action's value is cut to c of
    these deviations around that mean, for the cell with the least variance: many weak cells of near-duplicates that
    contradict a state with much evidence do not outvote it.

    `A(a) = (Q(a) - V) / unit` with `V = sum_a pi(a) Q(a)` over all candidates, pi being the model's own policy. The
    closed form of JitRL, arXiv 2601.18510, is unchanged; its mean over neighbours is replaced. `eta` is
    `(v0 noise + SS / unit^2) / (v0 + d)`, with SS the squared deviations of returns from their cell's mean, d their
    degrees of freedom, and a prior of v0 = 4 degrees.

    **Calls.** The effect of a call of a tool may have two parts, one that all calls of its shape share, `own` of one
    call alone (`CallShapes`); `[a = a']` is then `own [a = a'] + (1 - own) [same shape]`.

    **Moderation.** Action a is D(a) units behind the best one b. `moderate` counts D(a) less the larger its deviation
    d(a) is, with

        d(a)^2 = min(Var[Q(b) - Q(a)], Var[Q(a)] + (1 - rho) s (1 - s)),    s = (1 - rho) k' B^-1 k

    B being the covariance of b's returns by its effect and noise. What is not known of a speaks for trying a. What is
    not known of b speaks for trying b, but for the noise of its returns, which may have made it the best: its variance
    in the posterior mean of one cell is the second term. An action that failed often is given up for an untried one.
    Where m is itself a guess, its standard error e adds to that: `d(a)^2 = recurrence^2 (...) + (e / unit)^2`.

    **The model's own policy.** Where returns rise with the probability that the model gave to an action, an action that
    the model prefers is expected to return more: with a slope b (`prior_slope`) the mean of `Q(s, a)` is
    `m + unit * b (x(s, a) - mean x)` instead of m, x being the lead of the action in the model's policy at that state
    (an explicit basis function: Rasmussen and Williams 2006, section 2.7, with its weight estimated first). Returns of
    neighbours then tell of the action what the model did not know, and a doubtful effect does not outweigh a model
    that is mostly right.

    An interval holds what the posterior takes for certain: the noise and the scale of values. It is Student's, of
    `min(2 + M, N - 1)` degrees for M cells and a unit from N returns; variances are times
    `max(1, (2 + y' K^-1 y) / (2 + M))`, K being the covariance of the mean returns (as in a Student-t process: Shah,
    Wilson and Ghahramani 2014). If the noise may be `f = (2 + SS / unit^2) / ((2 + d) eta)` times as large, above 1, by
    a prior that takes all of the variance for noise, a contrast of variance `p v0` a priori and v now has the mean
    squared error `v (p + (1 - p) f)`, with `p = v / v0`, as if one cell told of it.

    The cost is `O(S^3 + sum_a S_a^3 + S^2 A)` for S states and A actions, S_a states with action a.

    Args:
        level: rho, the share of variance that all actions of a state have in common, in [0, 1).
        noise: eta before any repetition was seen, above 0.
        deviations: c, above 0; None: no bound.

    Example:
        >>> cells = Cells(*(np.array(a) for a in ([0], [0], [1.0], [1.0], [1.0], [1.0])))
        >>> states = SimilarStates(np.array([1.0]), np.eye(1))
        >>> estimate = ProcessEstimator(level=0.0, noise=0.25).estimate(
        ...     cells, states, rows=np.array([0, -1]), base_probs=np.array([0.5, 0.5]), mean=0.0, unit=1.0)
        >>> estimate.advantages.tolist()
        [0.4, -0.4]
    """

    level: float = 0.3
    noise: float = 0.1
    deviations: float | None = 2.0

    def __post_init__(self) -> None:
        check_number("level", self.level, 0, below=1, next_step="The default is 0.3.")
        check_number("noise", self.noise, above=0, next_step="The default is 0.1.")
        if self.deviations is not None:
            check_number("deviations", self.deviations, above=0, next_step="The default is 2; None: no bound.")

    def estimate(
        self,
        cells: Cells,
        states: SimilarStates,
        *,
        rows: Ints,
        base_probs: Floats,
        mean: float,
        unit: float,
        n_returns: int | None = None,
        mean_deviation: float = 0.0,
        moderation_nats: float = 0.0,
        recurrence: float = 1.0,
        calls: CallShapes | None = None,
        prior: PriorMean | None = None,
    ) -> AdvantageEstimate:
        """Return the advantages of C candidates.

        Args:
            cells: sums by distinct state and action, M pairs.
            states: the similarities of the S states.
            rows: shape (C,), each candidate's action in `cells`; -1 if it is untried.
            base_probs: shape (C,), the model's own policy.
            mean: m, the expected return of an action about which nothing is known, in reward units.
            unit: the scale of returns, in reward units, above 0.
            n_returns: the number of returns from which the unit was estimated, at least 0; None: the unit is known.
            mean_deviation: e, the standard error of m, in reward units; it counts in the moderation.
            moderation_nats: nats per unit of advantage in `moderate`; 0: the advantages are as estimated.
            recurrence: share of the posterior deviation that counts there, in [0, 1].
            calls: which actions are calls of one tool; None: each action has an effect of its own.
            prior: what the model's own policy says of values; None: nothing.

        Raises:
            InputError: the similarities do not fit the cells, or a number breaks its rule.
        """
        n_states = len(states.to_query)
        if states.to_each_other.shape != (n_states, n_states) or (
            len(cells.states) and int(cells.states.max()) >= n_states
        ):
            raise InputError(
                f"similarities of shape {states.to_query.shape} and {states.to_each_other.shape}",
                "each state of the cells has similarities, of shape (S,) and (S, S)",
                "Pass the similarities that belong to the cells.",
            )
        check_number("unit", unit, above=0, next_step="It is the spread of the returns.")
        held = np.flatnonzero(cells.weights > _LEAST_WEIGHT)
        n_actions = int(cells.actions.max(initial=-1)) + 1
        at = np.where((rows >= 0) & (rows < n_actions), rows, n_actions)
        expected = prior or PriorMean(np.zeros(len(rows)), np.zeros(len(cells.states)), np.zeros(len(rows)))
        parts, at = self._parts(calls, at, cells, held, states, mean, unit, expected.of_cells[held])
        n_rows = len(parts.own)

        rho, near = self.level, states.to_query
        spread = rho * states.to_each_other
        reach = parts.reach
        pulled = parts.information @ near
        # (spread^-1 + information)^-1, times what is needed of it: returns, the query, each action's reach.
        sides = np.concatenate([parts.returns[:, None], pulled[:, None], reach], axis=1)
        solved = np.linalg.solve(np.eye(n_states) + spread @ parts.information, spread @ sides)
        of_returns, of_pulled, through = solved[:, 0], solved[:, 1], solved[:, 2:]
        common = rho * float(near @ (parts.returns - parts.information @ of_returns))
        own = parts.own - reach.T @ of_returns
        values = np.clip(common + (1.0 - rho) * own[at], parts.low[at], parts.high[at]) + expected.of_candidates

        # Variances of contrasts, without the matrix between all candidates.
        level_level = float(near @ pulled - pulled @ of_pulled)
        level_own = reach.T @ near - reach.T @ of_pulled
        own_own = parts.precision - (reach * through).sum(axis=0)
        explained = rho * rho * level_level + 2.0 * rho * (1.0 - rho) * level_own + (1.0 - rho) ** 2 * own_own
        variances = np.maximum(1.0 - explained[at], 0.0)

        def deviations_from(policy: Floats) -> Floats:
            """Return the deviation of each `Q(c) - sum_b policy(b) Q(b)`."""
            weights: Floats = np.bincount(at, policy, n_rows).astype(np.float64)  # by action
            with_policy = (
                rho
                + (1.0 - rho) * parts.alike(at, policy)
                - rho * rho * level_level
                - rho * (1.0 - rho) * (level_own[at] + float(weights @ level_own))
                - (1.0 - rho) ** 2 * (parts.crossed(weights)[at] - reach.T[at] @ (through @ weights))
            )
            of_policy = float(policy @ with_policy)
            found: Floats = np.sqrt(np.maximum(variances - 2.0 * with_policy + of_policy, 0.0))
            return found

        contrast = deviations_from(base_probs) ** 2
        with np.errstate(over="ignore", invalid="ignore"):
            fit = parts.fit - float(parts.returns @ of_returns)
        # Returns too large to be squared fit no scale: the intervals are as wide as a number can say.
        fit = fit if np.isfinite(fit) else float(np.finfo(np.float64).max)
        by_steps = contrast, parts.alike(at, base_probs), base_probs, parts, fit, len(held), n_returns
        half = np.hypot(self._half_widths(*by_steps), expected.half_widths)
        advantages = values - float(base_probs @ values)
        means = np.full(len(rows), np.nan)
        weights_of, totals_of = (
            np.bincount(cells.actions[held], column[held], n_rows) for column in (cells.weights, cells.totals)
        )
        tried = weights_of[at] > 0.0
        means[tried], behind = totals_of[rows[tried]] / weights_of[rows[tried]], values
        if moderation_nats:
            b = int(np.argmax(values))
            share = min((1.0 - rho) * float(parts.precision[at[b]]), 1.0)
            unknown = variances + (1.0 - rho) * share * (1.0 - share)
            of_contrast = deviations_from((np.arange(len(rows)) == b).astype(np.float64))
            unsure = np.hypot(recurrence * np.minimum(of_contrast, np.sqrt(unknown)), mean_deviation / unit)
            behind = moderate(values, unsure, moderation_nats)
        return AdvantageEstimate(
            values=means,
            advantages=behind - float(base_probs @ behind),
            estimated=advantages,
            low=advantages - half,
            high=advantages + half,
            bonuses=np.zeros(len(rows)),
            baseline=mean + unit * float(base_probs @ values),
            scale=unit,
            kappa=parts.noise,
            preferred=None if prior is None else prior.of_candidates - float(base_probs @ prior.of_candidates),
        )

    def _half_widths(
        self,
        contrast: Floats,
        alike: Floats,
        base_probs: Floats,
        parts: Blocks,
        fit: float,
        n_cells: int,
        n_returns: int | None,
    ) -> Floats:
        """Return the half widths of 95 % intervals, which know neither the noise nor the scale of values for sure.

        Args:
            contrast: shape (C,), posterior variances of the advantages, in units squared.
            alike: shape (C,), `Blocks.alike` of the base policy.
            base_probs: shape (C,), the base policy.
            parts: of the posterior.
            fit: `y' K^-1 y`, y the M mean returns and K their covariance; M is expected.
            n_cells: M.
            n_returns: N; None: infinite.
        """
        before = (1.0 - self.level) * (1.0 - 2.0 * alike + float(base_probs @ alike))
        share = np.divide(contrast, before, out=np.ones(len(contrast)), where=before > 0.0)
        share = np.minimum(share, 1.0)
        wider = contrast * (share + (1.0 - share) * parts.caution)
        scale = max(1.0, (_SCALE_PRIOR_DEGREES + fit) / (_SCALE_PRIOR_DEGREES + n_cells))
        degrees = _SCALE_PRIOR_DEGREES + n_cells
        if n_returns is not None:
            degrees = min(degrees, max(1, check_whole("n_returns", n_returns, 0) - 1))
        half: Floats = _quantile(degrees) * np.sqrt(scale * wider)
        return half

    def _parts(
        self,
        calls: CallShapes | None,
        at: Ints,
        cells: Cells,
        held: Ints,
        states: SimilarStates,
        mean: float,
        unit: float,
        expected: Floats,
    ) -> tuple[Blocks, Ints]:
        """Return what the steps of each action say beyond what was expected, and each candidate's row there.

        A shape with one action alone is as without shapes: its two effects are then one.
        """
        returns = self._mean_returns(cells, held, mean, unit, expected)
        untried = int(cells.actions.max(initial=-1)) + 1
        effect = 1.0 - self.level
        low, high = self._bounds(returns, states.to_query, untried + 1)
        if calls is None:
            return dataclasses.replace(_blocks(returns, states, untried + 1, effect), low=low, high=high), at
        tried = np.unique(returns.actions)
        new = ~np.isin(at, tried)
        n_calls = Counter([*calls.actions[tried].tolist(), *calls.candidates[new].tolist()])
        shapes = [shape for shape, n in n_calls.items() if shape >= 0 and n > 1]
        of_returns = calls.actions[returns.actions]
        alone = _blocks(returns.of(~np.isin(of_returns, shapes)), states, untried + 1, effect)
        groups = []
        for number, shape in enumerate(shapes, start=untried + 1):
            members = tried[calls.actions[tried] == shape]
            theirs = returns.of(of_returns == shape)
            theirs = dataclasses.replace(theirs, actions=np.searchsorted(members, theirs.actions))
            sums = _blocks(theirs, states, len(members) + 1, calls.own * effect)
            groups.append(group_sums(np.append(members, number), calls.own, effect * states.to_each_other, sums))
            at = np.where((calls.candidates == shape) & new, number, at)
        return dataclasses.replace(alone, low=low, high=high).joined(groups), at

    def _mean_returns(self, cells: Cells, held: Ints, mean: float, unit: float, expected: Floats) -> _MeanReturns:
        """Return the mean returns of the cells that have weight, beyond the expected units, with their noise."""
        weights, means = cells.weights[held], cells.totals[held] / cells.weights[held]
        with np.errstate(over="ignore"):
            within = (cells.squares[held] - cells.totals[held] * means) / unit / unit  # unit**2 may be 0
            residuals = np.clip((means - mean) / unit - expected, -_FARTHEST, _FARTHEST)
        degrees = np.maximum(weights - 1.0, 0.0)
        counted = (degrees > 0.0) & np.isfinite(within)
        if cells.label_only is not None:  # an option that was never right repeats its 0, whatever the noise
            counted &= ~cells.label_only[held]
        repeated, scatter = float(degrees[counted].sum()), float(np.maximum(within[counted], 0.0).sum())
        eta = (_NOISE_PRIOR_DEGREES * self.noise + scatter) / (_NOISE_PRIOR_DEGREES + repeated)
        caution = (_CAUTION_DEGREES + scatter) / (_CAUTION_DEGREES + repeated)
        # Returns that were all equal elsewhere do not make one step at a near-duplicate certain.
        cautious = np.maximum(eta, self.noise) / weights
        noise = np.maximum(eta / weights, _LEAST_NOISE)
        actions, at_states = cells.actions[held], cells.states[held]
        return _MeanReturns(actions, at_states, residuals, noise, cautious, eta, caution)

    def _bounds(self, returns: _MeanReturns, to_query: Floats, n_actions: int) -> tuple[Floats, Floats]:
        """Return the least and the largest value of each action, in units: around what its most telling cell says."""
        low, high = np.full(n_actions, -np.inf), np.full(n_actions, np.inf)
        if self.deviations is None:
            return low, high
        actions, residuals, near = returns.actions, returns.residuals, to_query[returns.states]
        gains = near / (1.0 + returns.cautious)
        variances = 1.0 - near * gains
        order = np.lexsort((variances, actions))
        first = order[np.diff(actions[order], prepend=-1) > 0]
        half = self.deviations * np.sqrt(np.maximum(variances[first], 0.0))
        low[actions[first]] = gains[first] * residuals[first] - half
        high[actions[first]] = gains[first] * residuals[first] + half
        return low, high


@dataclass(frozen=True, slots=True)
class _MeanReturns:
    """The mean returns of M cells.

    Args:
        actions, states: shape (M,).
        residuals: shape (M,), distances from the mean, in units.
        noise: shape (M,), the variance of each mean, in units squared; `cautious` at least by eta a priori.
        eta: the noise of one return; `caution` by a prior that takes all of the variance for noise.
    """

    actions: Ints
    states: Ints
    residuals: Floats
    noise: Floats
    cautious: Floats
    eta: float
    caution: float

    def of(self, chosen: Bools) -> _MeanReturns:
        """Return some of them."""
        residuals, noise, cautious = (column[chosen] for column in (self.residuals, self.noise, self.cautious))
        actions, states = self.actions[chosen], self.states[chosen]
        return _MeanReturns(actions, states, residuals, noise, cautious, self.eta, self.caution)


def _blocks(returns_of: _MeanReturns, states: SimilarStates, n_actions: int, effect: float) -> Blocks:
    """Return what the steps of each action say by themselves, without bounds.

    Args:
        returns_of: the mean returns.
        states: the similarities.
        n_actions: the number of actions; the last of them is for untried ones.
        effect: the variance of an effect, in units squared.
    """
    n_states = len(states.to_query)
    information, reach = np.zeros((n_states, n_states)), np.zeros((n_states, n_actions))
    returns, own, precision = np.zeros(n_states), np.zeros(n_actions), np.zeros(n_actions)
    actions, at_states, residuals, noise = returns_of.actions, returns_of.states, returns_of.residuals, returns_of.noise
    n_cells = np.bincount(actions, minlength=n_actions)
    single = np.flatnonzero(n_cells[actions] == 1)  # most actions of a long list: all of them at once
    at, of = at_states[single], actions[single]
    inverses, near = 1.0 / (effect + noise[single]), states.to_query[at]
    np.add.at(information, (at, at), inverses)
    np.add.at(returns, at, inverses * residuals[single])
    reach[at, of] = inverses * near
    own[of] = near * inverses * residuals[single]
    precision[of] = near * inverses * near
    fit = float(inverses @ residuals[single] ** 2)
    # The others by the number of their cells, up to the next power of two: many small matrices at once.
    # Where few numbers are padded in all, one group is quicker.
    groups = np.where(n_cells > 1, np.ceil(np.log2(np.maximum(n_cells, 1))), 0.0).astype(int)
    if np.count_nonzero(groups) * int(n_cells.max()) ** 2 <= _FEW_PADDED:
        groups = np.minimum(groups, 1)
    order = np.lexsort((at_states, actions))
    firsts = np.cumsum(n_cells) - n_cells
    for group in sorted({*groups.tolist()} - {0}):
        alike = np.flatnonzero(groups == group)
        place = np.arange(n_cells[alike].max())
        filled = place < n_cells[alike][:, None]
        cell = order[np.minimum(firsts[alike][:, None] + place, len(order) - 1)]  # shape (actions, places)
        at, of_step = at_states[cell], np.where(filled, noise[cell], 1.0)
        # Actions observed equally often at the same states have one matrix. With labels these are most actions.
        seen_alike = np.concatenate([np.where(filled, at, -1), of_step], axis=1)
        number_of: dict[bytes, int] = {}
        of = np.array([number_of.setdefault(one.tobytes(), len(number_of)) for one in seen_alike])
        first, n_alike = np.unique(of, return_index=True, return_counts=True)[1:]
        at_first = at[first]
        both = filled[first][:, :, None] & filled[first][:, None, :]
        covariance = np.where(both, effect * states.to_each_other[at_first[:, :, None], at_first[:, None, :]], 0.0)
        covariance[:, place, place] += of_step[first]
        inverse = np.where(both, np.linalg.inv(covariance), 0.0)
        pairs = (n_states * at_first[:, :, None] + at_first[:, None, :]).ravel()
        all_inverses = (n_alike[:, None, None] * inverse).ravel()
        information += np.bincount(pairs, all_inverses, n_states**2).reshape(n_states, n_states)
        seen, near = _products(inverse, of, residuals[cell]), _products(inverse, of, states.to_query[at])
        returns += np.bincount(at.ravel(), seen.ravel(), n_states)
        reach[at[filled], np.repeat(alike, n_cells[alike])] = near[filled]
        own[alike] = (states.to_query[at] * seen).sum(axis=1)
        precision[alike] = (states.to_query[at] * near).sum(axis=1)
        fit += float((residuals[cell] * seen).sum())
    eta, caution = returns_of.eta, max(1.0, returns_of.caution / returns_of.eta)
    unbounded = np.full(n_actions, np.inf)
    return Blocks(information, returns, reach, own, precision, eta, -unbounded, unbounded, fit, caution)


def _products(matrices: Floats, of: Ints, vectors: Floats) -> Floats:
    """Return each vector, shape (A, P), times its symmetric matrix, whose number is `of`; shape (A, P)."""
    if len(matrices) == 1:
        products: Floats = vectors @ matrices[0]
    else:
        products = (matrices[of] @ vectors[:, :, None])[:, :, 0]
    return products


def _quantile(degrees: int) -> float:
    """Return the half width of a 95 % interval in deviations, by Student's t."""
    return t_quantile(0.975, min(degrees, _MOST_DEGREES))
