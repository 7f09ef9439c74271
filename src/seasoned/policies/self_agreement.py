"""Self-agreement of a model: of its samples, or of the distribution behind them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from seasoned.checks import check_whole
from seasoned.errors import InputError, excerpt
from seasoned.protocols import PriorReading

__all__ = ["SelfAgreement", "VoteCounts", "VotedReading", "reading_agreement", "sample_agreement"]

_DRAWN_AGREE = 1.0
_LIKELY = 0.5
_SUM_SLACK = 1e-6


def sample_agreement(probs: Sequence[float], samples: int) -> float:
    """Return the probability that `samples` independent draws are all the same, `sum_a p(a)^N`.

    It is 1 for one draw, and at least `C^(1 - N)` for C actions.

    Raises:
        InputError: the probabilities do not sum to 1, or `samples` is below 1.

    Example:
        >>> round(sample_agreement([0.9, 0.1], 3), 3), sample_agreement([0.5, 0.5], 2)
        (0.73, 0.5)
    """
    p = np.asarray(probs, dtype=np.float64)
    if not p.size or not (p >= 0.0).all() or abs(float(p.sum()) - 1.0) > _SUM_SLACK:
        raise InputError(f"probs = {excerpt(list(probs))}", "probs must be at least 0 and sum to 1", "Normalise them.")
    return float(np.sum((p / p.sum()) ** check_whole("samples", samples, 1)))


@runtime_checkable
class VotedReading(Protocol):
    """A reading made from samples, such as `seasoned.llms.VotesReading`."""

    @property
    def votes(self) -> VoteCounts:
        """The counts of the samples."""
        ...


class VoteCounts(Protocol):
    """The number of samples, and the number for each candidate."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of samples for each candidate."""
        ...

    @property
    def n(self) -> int:
        """The number of all samples, those for no candidate included."""
        ...


@dataclass(frozen=True, slots=True)
class SelfAgreement:
    """The self-agreement of a model in one reading.

    Args:
        value: in [0, 1]: a share of samples, or the probability that all agree; `summary` says which.
        min_value: the default threshold: 1 for a share of samples, 0.5 for the probability that all agree.
        summary: the result in words.
    """

    value: float
    min_value: float
    summary: str

    def __str__(self) -> str:
        return self.summary


def reading_agreement(
    reading: PriorReading, samples: int, *, seed: int | None = None, question: tuple[str, ...] = ()
) -> SelfAgreement:
    """Return the self-agreement of the model in one reading.

    Of votes: the share of the most frequent candidate among all samples, those for no candidate included. Of a
    distribution without a seed: the probability that `samples` draws all agree. With a seed: the share of the most
    frequent candidate among that many draws; the same seed, question and candidates give the same draws.

    Example:
        >>> from seasoned.protocols import Usage
        >>> from seasoned.types import Prior
        >>> print(reading_agreement(PriorReading(Prior({"go": -0.7, "wait": -0.7}, model="small"), Usage()), 2))
        2 samples of small agree with probability 0.5
    """
    name = reading.prior.model or "an unnamed model"
    if isinstance(reading, VotedReading):
        most, n = max(reading.votes.counts.values()), reading.votes.n
        return SelfAgreement(most / n, _DRAWN_AGREE, f"{most} of {n} samples of {name} agree, {most / n:.3g}")
    probs = np.exp(list(reading.prior.values()))
    probs = probs / probs.sum()
    if seed is None:
        chance = sample_agreement(probs.tolist(), samples)
        return SelfAgreement(chance, _LIKELY, f"{samples} samples of {name} agree with probability {chance:.3g}")
    seed_text = repr((question, list(reading.prior))).encode(errors="surrogatepass")
    rng = np.random.default_rng([seed, *np.frombuffer(hashlib.sha256(seed_text).digest(), dtype="<u4").tolist()])
    most = int(rng.multinomial(samples, probs).max())
    share = most / samples
    return SelfAgreement(share, _DRAWN_AGREE, f"{most} of {samples} drawn samples of {name} agree, {share:.3g}")
