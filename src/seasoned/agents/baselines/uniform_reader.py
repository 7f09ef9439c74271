"""Reader of a uniform policy, in place of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from seasoned.errors import InputError
from seasoned.protocols import PriorReading, Usage
from seasoned.types import Prior

__all__ = ["UniformReader"]


class UniformReader:
    """Gives every candidate the same probability, so that memory alone decides.

    Example:
        >>> import asyncio
        >>> asyncio.run(UniformReader().read("s", "t", ["a", "b"])).prior["a"]
        -0.6931471805599453
    """

    name = "uniform"

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        """Return the uniform policy; see `seasoned.protocols.PriorReader`."""
        del state, task
        if not candidates:
            raise InputError("candidates = []", "a reader needs at least one candidate", "Pass the possible actions.")
        logprob = -math.log(len(candidates))
        return PriorReading(Prior(dict.fromkeys(candidates, logprob), method="uniform", model=self.name), Usage())
