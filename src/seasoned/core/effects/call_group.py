"""Calls of one tool: what all of them have in common, and what each has of its own."""

from __future__ import annotations

from dataclasses import dataclass

from seasoned.checks import check_number
from seasoned.core.arrays import Floats, Ints
from seasoned.errors import InputError

__all__ = ["CallGroup", "CallShapes"]


@dataclass(frozen=True, slots=True)
class CallShapes:
    """Which actions are calls of one tool with the same names of arguments.

    Args:
        actions: shape (A,), the number of each action's shape, from 0; -1: it is no call.
        candidates: shape (C,), of each candidate.
        own: the share of an effect's variance that one exact call has of its own, in (0, 1].

    Raises:
        InputError: the share is out of range, or a number is below -1.
    """

    actions: Ints
    candidates: Ints
    own: float = 0.5

    def __post_init__(self) -> None:
        check_number("own", self.own, above=0, at_most=1, next_step="The default is 0.5.")
        if min(self.actions.min(initial=0), self.candidates.min(initial=0)) < -1:
            raise InputError("a shape below -1", "shapes are numbered from 0, and -1 is no call", "Number them.")


@dataclass(frozen=True, slots=True)
class CallGroup:
    """The posterior of the calls of one shape, F of them; the last row is that of its untried calls.

    Args:
        rows: shape (F,), of the calls among all actions.
        own: the share of an effect's variance that one call has of its own.
        common: the sum of `n' B_a^-1 n` over the calls.
        precision: shape (F,), `n' B_a^-1 n` of each call; 0 where it is untried.
        reach: W, shape (S, F).
        explained: H, shape (S, S).
    """

    rows: Ints
    own: float
    common: float
    precision: Floats
    reach: Floats
    explained: Floats

    def crossed(self, weights: Floats) -> Floats:
        """Return the sum over calls d of `q_c' B^-1 q_d` times d's weight, for each call c; shape (F,)."""
        shared = 1.0 - self.own
        products: Floats = (
            shared * (shared * self.common + self.own * self.precision) * weights.sum()
            + shared * self.own * float(self.precision @ weights)
            + self.own**2 * self.precision * weights
            - self.reach.T @ (self.explained @ (self.reach @ weights))
        )
        return products
