"""Utilities of options, from choices among them at similar states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from seasoned.checks import check_number
from seasoned.core.arrays import Floats, Ints
from seasoned.errors import InputError

__all__ = ["MAX_CELLS", "ChoiceModel", "UtilityEstimate"]

MAX_CELLS = 256
"""The most pairs of a state and an option that one estimate solves for: those of the first choices that matter."""

_MAX_WEIGHT = 1e6
_TOLERANCE = 1e-10
_ROUNDING = 1e-12
_MAX_ITERATIONS = 100
_MAX_DOUBLINGS = 4

WeighedChoice = tuple[int, tuple[int, ...], int, float]
"""State, options, the chosen option, weight."""


@dataclass(frozen=True, slots=True)
class UtilityEstimate:
    """The posterior of the utilities of C candidates, each less the base policy's mean utility.

    Args:
        advantages: shape (C,), in nats; `sum_c pi(c) advantages[c] = 0`.
        deviations: shape (C,), their posterior standard deviations, in nats.
    """

    advantages: Floats
    deviations: Floats

    @property
    def beta(self) -> float:
        """The nats of a logit for a nat of utility: 1, or more where choices are clear.

        `max(1, max_c |advantages[c]| / deviations[c])`, the ratio of signal to noise of the clearest advantage. At 1
        the policy over an even prior chooses like the choosers themselves, mistakes included. Where one option is
        better the ratio grows with the root of the number of choices, as the greediness of SquareCB does (Foster and
        Rakhlin 2020, arXiv 2002.04926). Where nobody prefers anything, it stays near 1 while the advantages vanish.
        """
        sure = np.divide(
            np.abs(self.advantages), self.deviations, out=np.zeros(len(self.advantages)), where=self.deviations > 0.0
        )
        return max(1.0, float(sure.max(initial=0.0)))


@dataclass(frozen=True, slots=True)
class ChoiceModel:
    """Turns choices into utilities: the Plackett-Luce model, with a Gaussian process prior over similar states.

    One choice among the options O at state s is one observation, in which option a is chosen with probability

        P(a | O, s) = exp(u(s, a)) / sum_{b in O} exp(u(s, b))

    (Luce 1959; Plackett 1975; of two options: Bradley and Terry 1952). A utility is in nats: a difference is the
    log-odds of being preferred. The prior is `Cov[u(s, a), u(s', a')] = prior_sd^2 k(s, s') [a = a']`, k being the
    similarity of two states (Chu and Ghahramani 2005, "Preference Learning with Gaussian Processes"). The estimate is
    the posterior mode, which is unique; its covariance is Laplace's (Rasmussen and Williams 2006, section 3.4). At the
    mode,

        u(s, a) = prior_sd^2 sum_i w_i k(s, s_i) ([a was chosen in i] - P(a | O_i, s_i))

    so each choice moves its options by what it adds to what was expected, and by 0 in sum. An option that was in no
    choice has utility 0. The model needs no common set of options: who met whom is accounted for.

    The closed form of KL-constrained improvement with the reward u, `z'(a) = z(a) + u(a)`, maximises
    `E_p[u] - KL(p || softmax(z))`. So a utility *is* a shift of a logit, with a beta of 1 (Rafailov et al. 2023, DPO,
    arXiv 2305.18290, equation 4, for the same model of preferences).

    The cost is `O(M^3)` for M pairs of a state and an option, at most `MAX_CELLS`.

    People who agree have strong preferences. So the prior's deviation is itself estimated: among `prior_sd` times 1, 2,
    4, 8 and 16 the first that is followed by a worse one, by the marginal likelihood in Laplace's approximation times a
    log-normal prior with median `prior_sd` and `sigma = 1`. Of one choice every deviation says the same, so that one
    choice is judged by `prior_sd`.

    Args:
        prior_sd: prior standard deviation of a utility, in nats, above 0.
        fitted: whether choices that agree may raise it.

    Example:
        >>> even = np.array([0.5, 0.5])
        >>> model, here = ChoiceModel(), np.ones((1, 1))
        >>> found = model.estimate([(0, (0, 1), 0, 1.0)], here[0], here, rows=np.array([0, 1]), base_probs=even)
        >>> found.advantages.round(3).tolist()
        [0.337, -0.337]
    """

    prior_sd: float = 1.0
    fitted: bool = True

    def __post_init__(self) -> None:
        check_number("prior_sd", self.prior_sd, above=0, next_step="The default is 1 nat.")

    def estimate(
        self,
        choices: Sequence[WeighedChoice],
        to_query: Floats,
        to_each_other: Floats,
        *,
        rows: Ints,
        base_probs: Floats,
    ) -> UtilityEstimate | None:
        """Return the utilities of C candidates, or None if no choice was among any of them.

        Args:
            choices: (state, options, chosen option, weight), the most relevant first: states and options are numbers
                from 0, the chosen one is one of two or more different options. A weight is a number of choices, at
                least 0; more than a million count as a million. Choices without a common option, direct or through
                other choices, do not matter; of the others, those that do not fit into `MAX_CELLS` cells are ignored.
            to_query: shape (S,), the similarities of S states to the state of the decision, in [0, 1].
            to_each_other: shape (S, S), in [0, 1], positive semi-definite, 1 on the diagonal.
            rows: shape (C,), each candidate's number as an option; -1 if it has none.
            base_probs: shape (C,), the model's own policy.

        Raises:
            InputError: a choice breaks its rule.
        """
        candidate_of = {row: candidate for candidate, row in enumerate(rows.tolist()) if row >= 0}
        counts, cell_of = _count(_connected(choices, candidate_of), len(to_query))
        if not counts:
            return None
        states, options = np.array(list(cell_of), dtype=np.int64).T
        of_cell = np.array([candidate_of.get(option, -1) for option in options.tolist()], dtype=np.int64)
        alike = np.where(options[:, None] == options, to_each_other[np.ix_(states, states)], 0.0)
        deviation, dual, information = self._fit(_Observed.of_counts(counts), alike)
        variance = deviation**2
        prior = variance * alike

        at = np.flatnonzero(of_cell >= 0)
        reach = np.zeros((len(rows), len(options)))
        reach[of_cell[at], at] = variance * to_query[states[at]]
        utilities = reach @ dual
        explained = reach @ np.linalg.solve(np.eye(len(options)) + information @ prior, information @ reach.T)
        with_v = variance * base_probs - explained @ base_probs
        variances = variance - np.diagonal(explained) - 2.0 * with_v + float(base_probs @ with_v)
        return UtilityEstimate(utilities - float(base_probs @ utilities), np.sqrt(np.maximum(variances, 0.0)))

    def _fit(self, observed: _Observed, alike: Floats) -> tuple[float, Floats, Floats]:
        """Return the prior deviation, and the mode and the information under it."""
        best = (-np.inf, self.prior_sd, *_mode(observed, self.prior_sd**2 * alike))
        for doublings in range(_MAX_DOUBLINGS + 1 if self.fitted else 0):
            deviation = self.prior_sd * 2.0**doublings
            prior = deviation**2 * alike
            dual, information = best[2:] if doublings == 0 else _mode(observed, prior)
            utilities = prior @ dual
            volume = float(np.linalg.slogdet(np.eye(len(prior)) + information @ prior)[1])
            score = observed.log_likelihood(utilities) - (float(dual @ utilities) + volume) / 2.0
            score -= (doublings * np.log(2.0)) ** 2 / 2.0
            if score <= best[0]:
                break
            best = score, deviation, dual, information
        return best[1:]


ChoiceCounts = defaultdict[tuple[tuple[int, ...], int], float]
"""The weights of different choices: (cells of the options, cell of the chosen one)."""


def _connected(choices: Sequence[WeighedChoice], candidates: Collection[int]) -> list[WeighedChoice]:
    """Return the choices that share an option with the candidates, or with another of these choices."""
    reached, rest, connected = set(candidates), list(choices), set[int]()
    while found := {at for at, (_, options, _, _) in enumerate(rest) if at not in connected and reached & {*options}}:
        connected |= found
        reached.update(option for at in found for option in rest[at][1])
    return [rest[at] for at in sorted(connected)]


def _count(choices: Sequence[WeighedChoice], n_states: int) -> tuple[ChoiceCounts, dict[tuple[int, int], int]]:
    """Return the sum of the weights of equal choices, and the number of each cell, a pair of a state and an option."""
    counts: ChoiceCounts = defaultdict(float)
    cell_of: dict[tuple[int, int], int] = {}
    for state, options, chosen, weight in choices:
        if not 0 <= state < n_states or len(set(options)) != len(options) or len(options) < 2 or chosen not in options:
            raise InputError(
                f"the choice of {chosen} among {options} at state {state} of {n_states}",
                "one of two or more different options is chosen, at a state with similarities",
                "Leave it out.",
            )
        check_number("weight", weight, at_least=0, next_step="It is a number of choices.")
        shown = [(state, option) for option in sorted(options)]
        if len(cell_of) + sum(cell not in cell_of for cell in shown) > MAX_CELLS:
            continue
        cells = tuple(cell_of.setdefault(cell, len(cell_of)) for cell in shown)
        counts[cells, cell_of[state, chosen]] += weight
    return counts, cell_of


@dataclass(frozen=True, slots=True)
class _Observed:
    """N different choices among L shown options in all, over M cells.

    Args:
        at: shape (L,), the cell of each shown option, choice after choice.
        of: shape (L,), the number of its choice.
        starts: shape (N,), where each choice begins.
        chosen: shape (N,), the cell of the chosen option.
        weights: shape (N,).
    """

    at: Ints
    of: Ints
    starts: Ints
    chosen: Ints
    weights: Floats

    @classmethod
    def of_counts(cls, counts: ChoiceCounts) -> _Observed:
        sizes = np.array([len(cells) for cells, _ in counts], dtype=np.int64)
        return cls(
            np.array([cell for cells, _ in counts for cell in cells], dtype=np.int64),
            np.repeat(np.arange(len(sizes)), sizes),
            np.cumsum(sizes) - sizes,
            np.array([chosen for _, chosen in counts], dtype=np.int64),
            np.minimum(np.array(list(counts.values()), dtype=np.float64), _MAX_WEIGHT),
        )

    def log_normalisers(self, utilities: Floats) -> Floats:
        shown = utilities[self.at]
        largest = np.maximum.reduceat(shown, self.starts)
        result: Floats = largest + np.log(np.add.reduceat(np.exp(shown - largest[self.of]), self.starts))
        return result

    def log_likelihood(self, utilities: Floats) -> float:
        return float(self.weights @ (utilities[self.chosen] - self.log_normalisers(utilities)))

    def derivatives(self, utilities: Floats) -> tuple[Floats, Floats]:
        """Return the gradient, shape (M,), and the negative Hessian, shape (M, M), of the log-likelihood."""
        n_cells = len(utilities)
        probs = np.exp(utilities[self.at] - self.log_normalisers(utilities)[self.of])
        expected = np.bincount(self.at, self.weights[self.of] * probs, n_cells)
        by_choice = np.zeros((len(self.starts), n_cells))
        by_choice[self.of, self.at] = np.sqrt(self.weights)[self.of] * probs
        gradient = np.zeros(n_cells)
        np.add.at(gradient, self.chosen, self.weights)
        gradient -= expected
        return gradient, np.diag(expected) - by_choice.T @ by_choice


def _mode(observed: _Observed, prior: Floats) -> tuple[Floats, Floats]:
    """Return the dual a of the posterior mode `u = K a`, and the information W of the choices at the mode.

    Newton's method: `a' = (I + W K)^-1 (W u + g)`, g being the gradient of the log-likelihood; each step is halved
    until the posterior decreases by no more than rounding. The prior covariance K may be singular.
    """
    n_cells = len(prior)
    dual = np.zeros(n_cells)

    def value(at: Floats) -> float:
        utilities = prior @ at
        return observed.log_likelihood(utilities) - float(at @ utilities) / 2.0

    for _ in range(_MAX_ITERATIONS):
        utilities = prior @ dual
        gradient, information = observed.derivatives(utilities)
        step = np.linalg.solve(np.eye(n_cells) + information @ prior, information @ utilities + gradient) - dual
        here, scale = value(dual), 1.0
        while scale > _TOLERANCE and value(dual + scale * step) < here - _ROUNDING * abs(here):
            scale /= 2.0
        dual = dual + scale * step
        if np.abs(step).max() < _TOLERANCE * max(1.0, float(np.abs(dual).max())):
            break
    return dual, observed.derivatives(prior @ dual)[1]
