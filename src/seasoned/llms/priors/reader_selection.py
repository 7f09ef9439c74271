"""Which way to read a model's policy: named, or chosen by what its endpoint was found to be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from seasoned.checks import suggest
from seasoned.errors import UnknownNameError, excerpt
from seasoned.llms.priors.exact import ExactReader
from seasoned.llms.priors.labels import LabelReader
from seasoned.llms.priors.verbalized import VerbalizedReader
from seasoned.llms.priors.votes import DEFAULT_VOTES, VotesReader
from seasoned.llms.wire.capability_probe import probed_capabilities
from seasoned.llms.wire.text_scores import TextScorer
from seasoned.protocols import LLM, Capabilities, PriorReader, PriorReading, Usage, check_model

__all__ = ["READING_METHODS", "AutoReader", "choose_reader", "reader_for"]

READING_METHODS = ("auto", "exact", "label", "verbalized", "votes")
"""Ways to read a model's policy, by name; `exact` needs a model that scores texts."""

_LEAST_LABELS = 2


@dataclass
class _Chosen:
    """A reader, what the endpoint can do, and what probing it cost until a reading has told it."""

    reader: PriorReader
    can: Capabilities
    owed: Usage


@dataclass(frozen=True)
class AutoReader:
    """Reads by the best way that the endpoint allows: probed at the first reading, and named in each prior.

    Label, where at least 2 top logprobs come: the model's own numbers, one call (two, calibrated). Else votes, where it
    answers at temperature 1: draws from the model's own policy, n calls. Else verbalized: what the model says, one
    call. Never exact, which is to be named: it needs a model that scores texts, not a chat endpoint, and it reads
    another policy (over whole texts) than label does.

    The first reading's usage holds what probing cost, if it was done for it. A model that was probed before, or whose
    answer cache knows, costs nothing.

    Args:
        llm: the model.
        calibrate: for label, see `LabelReader`.
        n_votes: for votes, see `VotesReader`.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> llm = ScriptedLLM(lambda request: {"A": -0.5, "B": -1.5})
        >>> asyncio.run(AutoReader(llm, calibrate=False).read("a kitchen", "eat", ["north", "south"])).prior.method
        'label'
    """

    llm: LLM
    calibrate: bool = False
    n_votes: int = DEFAULT_VOTES
    _chosen: list[_Chosen] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.llm.name

    async def selected(self) -> PriorReader:
        """Return the reader that the endpoint allows; probed once.

        Raises:
            ModelError: the endpoint could not be asked.
        """
        if not self._chosen:
            can, spent = await probed_capabilities(self.llm)
            reader = reader_for(self.llm, _best(can), calibrate=self.calibrate, n_votes=self.n_votes)
            if self._chosen:  # another reading began at the same time and probed too
                self._chosen[0].owed += spent
            else:
                self._chosen.append(_Chosen(reader, can, spent))
        return self._chosen[0].reader

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        """Return the model's policy over `candidates`; raises what the chosen reader raises."""
        reader = await self.selected()
        reading = await reader.read(state, task, candidates)
        chosen = self._chosen[0]
        owed, chosen.owed = chosen.owed, Usage()
        prior = replace(reading.prior, capabilities=str(chosen.can))
        return replace(reading, prior=prior, usage=owed + reading.usage)


def reader_for(llm: LLM, method: str = "auto", *, calibrate: bool = False, n_votes: int = DEFAULT_VOTES) -> PriorReader:
    """Return a reader of the model's policy, by the method named; `auto` probes at the first reading.

    Raises:
        UnknownNameError: no such method.
        ConfigError: `exact` for a model that does not score texts.
        InputError: it is no model, or `n_votes` < 1.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> type(reader_for(ScriptedLLM([]), "votes")).__name__
        'VotesReader'
    """
    if method == "exact":
        return ExactReader(cast(TextScorer, llm))  # which refuses any other model
    check_model(llm)
    if method == "auto":
        return AutoReader(llm, calibrate, n_votes)
    if method == "label":
        return LabelReader(llm, calibrate=calibrate)
    if method == "votes":
        return VotesReader(llm, n=n_votes)
    if method == "verbalized":
        return VerbalizedReader(llm)
    raise UnknownNameError(
        f"method {excerpt(method)}", "no way to read a model has this name", suggest(method, READING_METHODS)
    )


async def choose_reader(llm: LLM, *, calibrate: bool = False, n_votes: int = DEFAULT_VOTES) -> PriorReader:
    """Return the reader that the endpoint allows, after asking it what it can do (the model's `probe_usage`).

    Raises:
        ModelError: the endpoint could not be asked.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> type(asyncio.run(choose_reader(ScriptedLLM([], max_top_logprobs=0)))).__name__
        'VotesReader'
    """
    return await AutoReader(llm, calibrate, n_votes).selected()


def _best(can: Capabilities) -> str:
    if can.logprobs and can.max_top_logprobs >= _LEAST_LABELS:
        return "label"
    return "verbalized" if can.samples is False else "votes"
