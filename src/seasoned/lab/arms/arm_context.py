"""The parts of a learning run that an arm is built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from seasoned.memory import Memory
from seasoned.protocols import LLM, Chooser, PriorReader

__all__ = ["ArmContext"]


@dataclass(frozen=True)
class ArmContext:
    """The parts of a learning run that an arm is built from.

    Args:
        settings: the suite's settings of the arm, merged over the defaults of its kind.
        memory: the memory of this learning run; it holds only this arm's episodes.
        llm: the model; None for `uniform` and for models that only score.
        reader: reads the model's policy.
        seed: the seed of the run.
        success: the score from which an episode counts as a pass; None: the best possible score, if it is known.
        tokens: the token budget of an episode, where the arm has the budget of another arm.
    """

    settings: Mapping[str, Any]
    memory: Memory
    llm: LLM | None
    reader: PriorReader | Chooser
    seed: int
    success: float | None
    tokens: float | None

    @property
    def prior_reader(self) -> PriorReader:
        """The reader, for arms that change the prompt of the model."""
        return cast(PriorReader, self.reader)

    @property
    def model(self) -> LLM:
        """The model, for arms that send it requests of their own."""
        return cast(LLM, self.llm)
