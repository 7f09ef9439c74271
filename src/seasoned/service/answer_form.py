"""What a person answers to a question, and the typed feedback that it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from seasoned.checks import check_number, check_text
from seasoned.errors import InputError, excerpt
from seasoned.types import Choice, Edit, Feedback, OwnAnswer

__all__ = ["MAX_CANDIDATES", "Candidate", "Reply", "ReplyKind"]

MAX_CANDIDATES = 9
"""One key each."""

ReplyKind = Literal["choice", "edit", "own_answer"]
"""One of the candidates is best; one of them, made better; something else."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that an agent could give.

    Args:
        text: the answer, as an action.
        logprob: the model's, in nats, at most 0, if known.
        model: which model proposed it; people see that only after they answered.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Candidate("Dear Ann", logprob=-0.5).logprob
        -0.5
    """

    text: str
    logprob: float | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        check_text("text", self.text)
        if self.model is not None:
            check_text("model", self.model)
        if self.logprob is not None:
            logprob = check_number("logprob", self.logprob)
            if logprob > 0.0:
                raise InputError(f"logprob = {logprob}", "a logprob is at most 0, in nats", "Take the logarithm.")
            object.__setattr__(self, "logprob", logprob)


@dataclass(frozen=True, slots=True)
class Reply:
    """What somebody answered.

    Args:
        kind: `choice`, `edit` or `own_answer`.
        author: who.
        chosen: of a choice or an edit: which candidate, counted from 0 as in the question.
        order: of a choice or an edit: the candidates in the order in which they were shown; None: as in the question.
            It is kept, so that it can be found out whether people just take the first.
        text: of an edit or an own answer: what they wrote.
        comment: why.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Reply("choice", "bob", chosen=0, order=[1, 0]).feedback(["Dear Ann", "Hi"])
        Choice(candidates=('Hi', 'Dear Ann'), chosen=1, comment=None)
    """

    kind: ReplyKind
    author: str
    chosen: int | None = None
    order: Sequence[int] | None = None
    text: str | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(ReplyKind):
            raise InputError(
                f"kind = {excerpt(self.kind)}", f"it is one of {', '.join(get_args(ReplyKind))}", "Choose one."
            )
        check_text("author", self.author)
        for name in ("text", "comment"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        needs = {"choice": ("chosen",), "edit": ("chosen", "text"), "own_answer": ("text",)}[self.kind]
        for name in ("chosen", "text"):
            if (getattr(self, name) is None) == (name in needs):
                rule = f"{self.kind} has {' and '.join(needs)}"
                raise InputError(f"{name} = {excerpt(getattr(self, name))}", rule, "Give these, and no other.")

    def feedback(self, candidates: Sequence[str]) -> Feedback:
        """Return the typed feedback that this answer is, to a question with these candidates.

        An edit says how much the edited candidate was worth, whether it was executed or only proposed.

        Args:
            candidates: as in the question.

        Raises:
            InputError: it names a candidate that is not there, or another order than one of all candidates.
        """
        if self.chosen is not None and (
            isinstance(self.chosen, bool) or not isinstance(self.chosen, int) or not 0 <= self.chosen < len(candidates)
        ):
            raise InputError(
                f"chosen = {excerpt(self.chosen)}", f"it is an index, 0 to {len(candidates) - 1}", "Count from 0."
            )
        order = self._order(len(candidates))
        if self.chosen is None:
            return OwnAnswer(str(self.text), self.comment)
        shown, chosen = tuple(candidates[i] for i in order), order.index(self.chosen)
        if self.kind == "choice":
            return Choice(shown, chosen, self.comment)
        return Edit(str(self.text), self.comment, shown, chosen)

    def _order(self, n_candidates: int) -> list[int]:
        if self.order is None:
            return list(range(n_candidates))
        order = list(self.order) if isinstance(self.order, list | tuple) else None
        whole = order is not None and all(isinstance(i, int) and not isinstance(i, bool) for i in order)
        if order is None or not whole or sorted(order) != list(range(n_candidates)):
            raise InputError(
                f"order = {excerpt(self.order)}",
                f"an order names each of 0 to {n_candidates - 1} once",
                "Leave it out.",
            )
        return order
