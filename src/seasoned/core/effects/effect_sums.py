"""Sums over the steps of each action by itself, from which a posterior over actions is computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seasoned.core.arrays import Floats, Ints
from seasoned.core.effects.call_group import CallGroup

__all__ = ["Blocks", "GroupedSums", "group_sums"]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Sums over actions of what their own steps say, with B the covariance of an action's returns without levels.

    Args:
        information: shape (S, S), the sum of `B^-1`.
        returns: shape (S,), the sum of `B^-1 y`.
        reach: shape (S, A + 1), `B^-1 k`, k the similarities to the query; the last row of the actions, here and below,
            is of untried ones, without any steps.
        own: shape (A + 1,), `k' B^-1 y`.
        precision: shape (A + 1,), `k' B^-1 k`.
        noise: eta.
        low, high: shape (A + 1,), the bounds of the values, in units.
        fit: the sum of `y' B^-1 y`.
        caution: the noise of intervals as a multiple of eta, at least 1.
        groups: actions whose effects are not independent; the rows of their untried members are after the last.
    """

    information: Floats
    returns: Floats
    reach: Floats
    own: Floats
    precision: Floats
    noise: float
    low: Floats
    high: Floats
    fit: float
    caution: float
    groups: tuple[CallGroup, ...] = ()

    def joined(self, groups: Sequence[GroupedSums]) -> Blocks:
        """Return these sums with those of groups, whose last rows are put after the last one here, in this order."""

        def with_rows(own: Floats, name: str) -> Floats:
            both = np.concatenate([own, np.zeros((*own.shape[:-1], len(groups)))], axis=-1)
            for sums in groups:
                both[..., sums.group.rows] = getattr(sums, name)
            return both

        return dataclasses.replace(
            self,
            information=self.information + sum(sums.information for sums in groups),
            returns=self.returns + sum(sums.returns for sums in groups),
            reach=with_rows(self.reach, "reach"),
            own=with_rows(self.own, "own"),
            precision=with_rows(self.precision, "precision"),
            low=np.append(self.low, np.full(len(groups), -np.inf)),
            high=np.append(self.high, np.full(len(groups), np.inf)),
            fit=self.fit + sum(sums.fit for sums in groups),
            groups=tuple(sums.group for sums in groups),
        )

    def crossed(self, weights: Floats) -> Floats:
        """Return, for each action a, the sum over actions b of `k_a' B^-1 k_b` times b's weight."""
        products: Floats = weights * self.precision
        for group in self.groups:
            products[group.rows] = group.crossed(weights[group.rows])
        return products

    def alike(self, at: Ints, policy: Floats) -> Floats:
        """Return the prior correlation of each candidate's effect with the mean effect under a policy; shape (C,).

        Args:
            at: shape (C,), the row of each candidate.
            policy: shape (C,).
        """
        if not self.groups:
            return policy
        found = policy.copy()
        group_of = np.full(len(self.own), -1)
        for number, group in enumerate(self.groups):
            group_of[group.rows] = number
        for number, group in enumerate(self.groups):
            members = group_of[at] == number
            found[members] = group.own * policy[members] + (1.0 - group.own) * float(policy[members].sum())
        return found


@dataclass(frozen=True, slots=True)
class GroupedSums:
    """A group, and its parts of the sums in `Blocks`; columns are by the group's rows.

    Args:
        group: for products between its calls.
        information: shape (S, S). returns: shape (S,). reach: shape (S, F). own, precision: shape (F,). fit: a number.
    """

    group: CallGroup
    information: Floats
    returns: Floats
    reach: Floats
    own: Floats
    precision: Floats
    fit: float


def group_sums(rows: Ints, own: float, covariance: Floats, calls: Blocks) -> GroupedSums:
    """Return what the steps of all calls of one shape say, from what each call's steps say by its own effect alone.

    The effect of a call c of shape g is `effect(s, g) + effect(s, c)`, two independent Gaussian processes with the
    shares `1 - own` and `own` of the variance (a hierarchical model; analysis of variance: Gelman 2005). With
    `E = blockdiag(B_a^-1)`, B_a the covariance of one call's returns by its own effect and noise, P the indicators of
    states and C the covariance of effect(., g), the inverse of the covariance of all returns of the shape is

        B^-1 = E - E P H P' E,    H = (C^-1 + P' E P)^-1

    (Woodbury), and the covariance of c's effect with the returns is `q_c = (1 - own) n + own n_c`, in which n has the
    similarities to the query, and n_c is n at the steps of c, else 0. So no matrix between calls is needed, and the
    cost is `O(S^3 + S^2 F)`.

    Args:
        rows: shape (F,), of the calls among all actions; the last one is for untried calls of this shape.
        own: the share of an effect's variance that one call has of its own, in (0, 1].
        covariance: shape (S, S), `(1 - rho) k` between the states.
        calls: the sums of the calls by their own effects alone, in the order of `rows`.
    """
    shared = 1.0 - own
    common = shared * covariance
    explained = np.linalg.solve(np.eye(len(common)) + common @ calls.information, common)
    explained = 0.5 * (explained + explained.T)
    weights = shared * calls.reach.sum(axis=1, keepdims=True) + own * calls.reach
    through = explained @ weights
    information, returns, values, precision = calls.information, calls.returns, calls.own, calls.precision
    group = CallGroup(rows, own, float(precision.sum()), precision, weights, explained)
    alone = shared * (shared * precision.sum() + own * precision) + shared * own * precision + own**2 * precision
    return GroupedSums(
        group,
        information - information @ explained @ information,
        returns - information @ (explained @ returns),
        weights - information @ through,
        shared * values.sum() + own * values - through.T @ returns,
        alone - (weights * through).sum(axis=0),
        calls.fit - float(returns @ explained @ returns),
    )
