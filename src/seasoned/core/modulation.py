"""Closed form of KL-constrained policy improvement, and operations on distributions over candidates."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number, check_whole
from seasoned.core.arrays import Floats, as_floats
from seasoned.errors import InputError, excerpt

__all__ = [
    "capped_beta",
    "check_beta",
    "kl_bound",
    "kl_divergence",
    "kl_objective",
    "log_softmax",
    "mix_in",
    "moderate",
    "modulate",
    "redraw_index",
    "sample_index",
    "softmax",
]


_LARGEST = float(np.finfo(np.float64).max)


def check_beta(beta: float) -> float:
    """Return `beta` if it is finite and at least 0.

    Raises:
        InputError: it is not.

    Example:
        >>> check_beta(4.0)
        4.0
    """
    if isinstance(beta, bool) or not isinstance(beta, int | float | np.number) or not 0.0 <= beta <= _LARGEST:
        rule = "beta must be finite and at least 0 nats"
        raise InputError(f"beta = {excerpt(beta)}", rule, "0 switches memory off; 1 to 5 is usual.")
    return float(beta)


def _vector(name: str, values: npt.ArrayLike) -> Floats:
    array = as_floats(name, values)
    if array.ndim != 1 or not len(array):
        raise InputError(
            f"{name} of shape {array.shape}", f"{name} must have shape (C,) with C >= 1", "Pass at least one candidate."
        )
    if not np.isfinite(array).all():
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InputError(f"{name}[{at}] = {array[at]}", f"{name} must be finite", "Bound the missing logprobs.")
    return array


def _probabilities(values: npt.ArrayLike) -> Floats:
    array = _vector("probabilities", values)
    if (array < 0).any() or not array.sum() > 0:
        raise InputError(
            f"probabilities {array}", "probabilities must be at least 0, with a positive sum", "Take a softmax first."
        )
    return array


def log_softmax(logits: npt.ArrayLike) -> Floats:
    """Return normalised logprobs: `z - log sum exp z`, in nats.

    Args:
        logits: shape (C,), finite, unnormalised nats. Adding a constant to all of them changes nothing.

    Raises:
        InputError: there are none, or one is not finite.

    Example:
        >>> log_softmax([0.0, 0.0]).round(4).tolist()
        [-0.6931, -0.6931]
    """
    return _normalized(_vector("logits", logits))


def _normalized(z: Floats) -> Floats:
    """Return `log_softmax` of finite logits."""
    shifted = z - z.max()
    result: Floats = shifted - np.log(np.exp(shifted).sum())
    return result


def softmax(logits: npt.ArrayLike) -> Floats:
    """Return probabilities `exp z / sum exp z`, shape (C,); see `log_softmax`.

    Example:
        >>> softmax([0.0, 0.0]).tolist()
        [0.5, 0.5]
    """
    z = _vector("logits", logits)
    weights = np.exp(z - z.max())
    result: Floats = weights / weights.sum()
    return result


def modulate(logits: npt.ArrayLike, advantages: npt.ArrayLike, beta: float) -> Floats:
    """Return the improved policy's logprobs: `z'(a) = z(a) + beta * A(a)`, normalised.

    The exact maximiser of `E_p[A] - KL(p || softmax(z)) / beta`. Source: JitRL, arXiv 2601.18510, the closed-form
    update. It departs from the paper's published code, which adds advantages to probabilities.

    Args:
        logits: shape (C,), the model's own, in nats.
        advantages: shape (C,), 0 for a candidate without evidence.
        beta: nats per unit of advantage, >= 0; 0 returns the model's own policy.

    Returns:
        Shape (C,), logprobs in nats.

    Raises:
        InputError: shapes differ, or a value is not finite.

    Example:
        >>> np.exp(modulate([0.0, 0.0], [0.0, np.log(3.0)], beta=1.0)).round(4).tolist()
        [0.25, 0.75]
    """
    z, shift = _vector("logits", logits), _vector("advantages", advantages)
    if z.shape != shift.shape:
        raise InputError(
            f"{len(z)} logits and {len(shift)} advantages", "each candidate must have one advantage", "Align them."
        )
    with np.errstate(over="ignore"):
        return _shifted(z, shift - shift.max(), check_beta(beta))


def _shifted(z: Floats, behind: Floats, beta: float) -> Floats:
    """Return `modulate` of finite logits, given how far each advantage is behind the largest; overflow is ignored."""
    if beta == 0.0:  # exact also if a difference of advantages overflows, since 0 times infinity is NaN
        return _normalized(z)
    # A logit that overflows to minus infinity has probability 0 in any case; a finite floor keeps the result a policy.
    return _normalized(np.maximum(z + beta * behind, -1e300))


def moderate(advantages: npt.ArrayLike, deviations: npt.ArrayLike, beta: float) -> Floats:
    """Return how far each candidate is behind the best one, less the less is known about the difference.

    `A~(a) = -D(a) / sqrt(1 + (pi / 8) (beta d(a))^2)`, with `D(a) = max A - A(a)`. `beta * D(a)` are the log odds that
    evidence gives to the best candidate against a. If they are normal with deviation `beta * d(a)`, the mean of their
    sigmoid is nearly the sigmoid of `-beta * A~(a)` (MacKay 1992, Neural Computation 4, "The evidence framework applied
    to classification networks", equation 10). So a certain difference is worth beta nats per unit, and an uncertain one
    at most `1.6 D(a) / d(a)` nats, whatever beta is: with an even prior an action is taken about as often as it may be
    the best, as posterior sampling does (Thompson 1933, Biometrika 25). It departs from the source in comparing more
    than two candidates, each with the best one.

    Args:
        advantages: shape (C,).
        deviations: shape (C,), standard deviations of the differences, at least 0, in the unit of the advantages.
        beta: nats per unit of advantage, >= 0.

    Raises:
        InputError: shapes differ, a value is not finite, or a deviation is below 0.

    Example:
        >>> moderate([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], beta=50.0).round(3).tolist()
        [0.0, -1.0, -0.032]
    """
    a, d = _vector("advantages", advantages), _vector("deviations", deviations)
    if a.shape != d.shape or (d < 0.0).any():
        raise InputError(
            f"{len(a)} advantages, deviations {excerpt(deviations)}",
            "each advantage must have a deviation, at least 0",
            "Take the square root of its variance.",
        )
    with np.errstate(over="ignore"):
        behind = np.maximum(a - a.max(), -np.finfo(np.float64).max)
        result: Floats = behind / np.hypot(1.0, math.sqrt(math.pi / 8.0) * check_beta(beta) * d)
    return result


def capped_beta(logits: npt.ArrayLike, advantages: npt.ArrayLike, beta: float, max_kl_nats: float) -> float:
    """Return the largest beta up to `beta` whose modulated policy is within `max_kl_nats` of the model's own.

    `KL(p_beta || softmax(z))` grows with beta (its derivative is `beta * Var_p[A]`), so bisection finds it; and
    `p_beta` at that beta maximises `E_p[A]` among all policies within the cap: beta is the inverse of the constraint's
    multiplier (the trust region of Peters, Muelling and Altun 2010, AAAI, "Relative Entropy Policy Search").

    Args:
        logits, advantages, beta: as for `modulate`.
        max_kl_nats: the cap, > 0 and finite.

    Raises:
        InputError: the cap is not positive, or as for `modulate`.

    Example:
        >>> round(capped_beta([0.0, 0.0], [0.0, 1.0], beta=4.0, max_kl_nats=0.1), 3)
        0.943
    """
    check_number("max_kl_nats", max_kl_nats, above=0, next_step="None sets no cap.")
    own, shift = log_softmax(logits), _vector("advantages", advantages)
    modulate(own, shift, beta)  # checks shapes and beta
    low, high = 0.0, float(beta)
    with np.errstate(over="ignore"):
        behind = shift - shift.max()

        def spent(candidate: float) -> float:
            shifted = _shifted(own, behind, candidate)
            return float(np.exp(shifted) @ (shifted - own))

        if spent(high) <= max_kl_nats:
            return high
        while high - low > 1e-12 * high:  # ends: the interval halves, and its upper end is positive
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (middle, high) if spent(middle) <= max_kl_nats else (low, middle)
    return low


def kl_divergence(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return `KL(p || q) = sum p log(p / q)` in nats, with `0 log 0 = 0`; infinite where q is 0 and p is not.

    Args:
        p, q: shape (C,), probabilities.

    Example:
        >>> round(kl_divergence([0.5, 0.5], [0.25, 0.75]), 4)
        0.1438
    """
    p_, q_ = _probabilities(p), _probabilities(q)
    if p_.shape != q_.shape:
        raise InputError(
            f"{len(p_)} and {len(q_)} probabilities", "both policies must be over the same candidates", "Align them."
        )
    positive = p_ > 0
    with np.errstate(divide="ignore"):
        return max(0.0, float((p_[positive] * (np.log(p_[positive]) - np.log(q_[positive]))).sum()))


def kl_bound(shifts: npt.ArrayLike) -> float:
    """Return `(max - min)^2 / 8`, in nats: the largest KL, over all priors, of adding these shifts to the logits.

    With `p_t` proportional to `p exp(t s)` and psi its log-normaliser, `KL(p_1 || p) = psi'(1) - psi(1)`, which is the
    integral of `u psi''(u)` over u from 0 to 1; `psi''(u)` is the variance of s under `p_u`, at most a quarter of the
    squared range (Popoviciu 1935; this is Hoeffding's lemma, 1963, J. Amer. Statist. Assoc. 58). So a cap on KL can be
    met without knowledge of the prior. The bound is tight for small shifts of an even prior, and loose for a sharp one.

    Args:
        shifts: shape (C,), nats, finite.

    Example:
        >>> kl_bound([0.0, 2.0])
        0.5
    """
    s = _vector("shifts", shifts)
    with np.errstate(over="ignore"):
        return float((s.max() - s.min()) ** 2 / 8.0)


def kl_objective(p: npt.ArrayLike, advantages: npt.ArrayLike, logits: npt.ArrayLike, beta: float) -> float:
    """Return the objective of `modulate`, `E_p[A] - KL(p || softmax(logits)) / beta`, in units of advantage (beta > 0).

    Example:
        >>> best = np.exp(modulate([0.0, 0.0], [0.0, 1.0], beta=2.0))
        >>> kl_objective(best, [0.0, 1.0], [0.0, 0.0], 2.0) > kl_objective([0.5, 0.5], [0.0, 1.0], [0.0, 0.0], 2.0)
        True
    """
    if not check_beta(beta) > 0:
        raise InputError(f"beta = {beta}", "the objective needs beta > 0", "At 0 the only policy is the model's own.")
    expected = float(_vector("probabilities", p) @ _vector("advantages", advantages))
    return expected - kl_divergence(p, softmax(logits)) / beta


def mix_in(logprobs: npt.ArrayLike, n_added: int, mass: float) -> Floats:
    """Return logprobs over C + `n_added` candidates: added candidates share `mass`, the others keep their proportions.

    It departs from JitRL, arXiv 2601.18510: the paper gives an action that memory adds the base logit 0, which is
    reasonable on a probability scale only; among logprobs, 0 beats every action of the model.

    Args:
        logprobs: shape (C,), normalised; may be empty (C = 0), then the added candidates have all the mass.
        n_added: the number of candidates that memory adds.
        mass: their joint prior probability, in (0, 1).

    Example:
        >>> np.exp(mix_in([0.0], n_added=2, mass=0.1)).round(3).tolist()
        [0.9, 0.05, 0.05]
    """
    own = as_floats("logprobs", logprobs)
    if not check_whole("n_added", n_added, 0):
        return own
    if not len(own):
        return np.full(n_added, -np.log(n_added))
    check_number("mass", mass, above=0, below=1, next_step="0.1 is the default.")
    return np.concatenate([own + np.log1p(-mass), np.full(n_added, np.log(mass / n_added))])


def sample_index(probs: npt.ArrayLike, rng: np.random.Generator) -> int:
    """Return the index of one draw from `probs` (shape (C,), any positive total), by inverting the cumulative sum.

    Example:
        >>> sample_index([0.0, 1.0], np.random.default_rng(0))
        1
    """
    cumulative = np.cumsum(_probabilities(probs))
    index = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
    return min(index, len(cumulative) - 1)


def redraw_index(
    drawn: int, drawn_from: npt.ArrayLike, wanted: npt.ArrayLike, rng: np.random.Generator
) -> tuple[int, bool]:
    """Turn a draw from one policy into a draw from another; return the index, and whether it is the same draw.

    The draw is kept with probability `min(1, wanted / drawn_from)`, and otherwise replaced by a draw from
    `max(0, wanted - drawn_from)`. The result follows `wanted` exactly, and no other rule keeps the draw more often: a
    maximal coupling, the rule of speculative sampling (Leviathan, Kalman and Matias 2023, arXiv 2211.17192).

    Args:
        drawn: the index that was drawn.
        drawn_from, wanted: shape (C,), probabilities, or weights with a positive total.

    Example:
        >>> redraw_index(0, [0.5, 0.5], [0.5, 0.5], np.random.default_rng(0))
        (0, True)
        >>> redraw_index(0, [1.0, 1e-9], [0.0, 1.0], np.random.default_rng(0))
        (1, False)
    """
    q, p = _probabilities(drawn_from), _probabilities(wanted)
    whole = isinstance(drawn, int | np.integer) and not isinstance(drawn, bool)
    if q.shape != p.shape or not whole or not 0 <= drawn < len(q):
        raise InputError(
            f"index {drawn} of {len(q)} and {len(p)} probabilities",
            "both policies must be over the same candidates, and the index one of them",
            "Align them.",
        )
    q, p = q / q.sum(), p / p.sum()
    if rng.random() * q[drawn] <= p[drawn]:
        return drawn, True
    lacking = np.maximum(p - q, 0.0)
    return (sample_index(lacking, rng), False) if lacking.any() else (drawn, True)
