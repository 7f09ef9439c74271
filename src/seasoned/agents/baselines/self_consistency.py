"""Self-consistency: several sampled answers a step, and the majority decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from seasoned.agents.baselines.token_checks import check_fraction, check_whole, estimated_tokens
from seasoned.agents.baselines.transcripts import check_finished
from seasoned.agents.loop.episode import episode_seed, play_episode
from seasoned.agents.loop.step_log import EpisodeLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.checks import check_text
from seasoned.errors import InputError, ModelAnswerError
from seasoned.policies.base_policy import base_decision, generator
from seasoned.policies.candidates import check_candidates
from seasoned.protocols import (
    LLM,
    Admissible,
    Capabilities,
    Chooser,
    Completion,
    CompletionRequest,
    Environment,
    Policy,
    PriorReader,
    PriorReading,
    Usage,
)
from seasoned.types import Decision, Episode, Prior

__all__ = ["MajorityPolicy", "SelfConsistency", "VotesOf"]

VotesOf = Callable[[LLM, int, int], PriorReader]
"""A reader by votes, of a model, a number of samples and a seed."""

_SEED_LIMIT = 2**30


class MajorityPolicy:
    """Takes the candidate with most votes; among equals one at random, by the seed.

    Example:
        >>> MajorityPolicy().decide("page:cart", {"click(pay)": -0.1, "click(back)": -2.4}, seed=0).action
        'click(pay)'
    """

    name = "majority"

    def decide(
        self,
        state: str,
        candidates: Mapping[str, float],
        *,
        admissible: Admissible = None,
        task: str | None = None,
        step: int = 0,
        seed: int | None = None,
    ) -> Decision:
        """Return the decision; see `seasoned.protocols.Policy`.

        Raises:
            InputError: the state is blank, or no candidate is admissible.
        """
        del task
        check_text("state", state)
        checked = check_candidates(candidates, admissible)
        if not checked.logits:
            raise InputError(
                f"{len(checked.dropped)} candidates", "at least one is admissible", "Ask among what is possible."
            )
        rng = generator(seed, step)
        names = list(checked.logits)
        shuffled = {names[i]: checked.logits[names[i]] for i in rng.permutation(len(names)).tolist()}
        return base_decision(
            state,
            shuffled,  # argmax takes the first of equals
            rng=rng,
            selection="argmax",
            reason="the majority of the model's own answers",
            policy=self.name,
            dropped=checked.dropped,
            prior=candidates if isinstance(candidates, Prior) else None,
            step=step,
            seed=seed,
        )


@dataclass
class _Metered:
    """A model, with what was asked of it: a reading that fails says nothing of its cost."""

    llm: LLM
    usage: Usage = field(default_factory=Usage)

    @property
    def name(self) -> str:
        return self.llm.name

    async def capabilities(self) -> Capabilities:
        return await self.llm.capabilities()

    async def complete(self, request: CompletionRequest) -> Completion:
        answer = await self.llm.complete(request)
        self.usage += answer.usage
        return answer

    async def aclose(self) -> None:
        """Leave the model open: it is another's."""


@dataclass
class _Episode:
    """What was sampled in the episode that is being played."""

    seed: int = 0
    asked: int = 0
    samples: int = 0
    tokens: int = 0


class SelfConsistency:
    """Self-consistency (arXiv 2203.11171) for actions: n answers sampled at temperature 1, the majority is taken.

    It is a `PriorReader`, and a `seasoned.agents.Play` that plays with it; decide with `MajorityPolicy`. Samples are
    drawn at every step of every episode. If no answer names a candidate, the prior is uniform (its method states this),
    and one candidate is drawn.

    With `tokens` the number of samples follows the budget: what is left of it, over the steps that are expected to
    come (the mean number of steps with a choice in the episodes that it was told of; `steps` before the first), over
    what a sample took so far in this episode (at its first step, an estimate from the question); rounded up, and at
    least one.

    Departures: the paper samples a chain of thought before each answer; here an answer is an action, as for every
    arm, and temperature is 1.

    Args:
        llm: the model.
        votes_of: makes a reader by votes.
        question: what a sample is asked, from state, task and candidates; for the estimate.
        samples: a step; None: by `tokens`.
        tokens: an episode may take; None: by `samples`.
        steps: of an episode, before any was played.

    Raises:
        InputError: neither or both of `samples` and `tokens`, or a number outside its range.
    """

    def __init__(
        self,
        llm: LLM,
        votes_of: VotesOf,
        question: Callable[[str, str, Sequence[str]], str],
        *,
        samples: int | None = None,
        tokens: float | None = None,
        steps: int = 20,
    ) -> None:
        if (samples is None) == (tokens is None):
            raise InputError(
                f"samples = {samples}, tokens = {tokens}",
                "one of them says how many answers a step has",
                "Give samples, or the arm whose budget this one has (budget_of).",
            )
        self._llm, self._votes_of, self._question = llm, votes_of, question
        self._samples = None if samples is None else check_whole("samples", samples)
        self._tokens = None if tokens is None else check_fraction("tokens", tokens)
        self._first_guess = check_whole("steps", steps)
        self._lengths: list[int] = []
        self._now = _Episode()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._llm.name

    async def play(
        self, environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> EpisodeResult:
        """Play an episode whose samples are drawn from its seed; see `seasoned.agents.Play`."""
        self._now = _Episode(seed)
        return await play_episode(environment, policy, reader, log, seed=seed)

    async def learn(self, episode: Episode) -> Usage:
        """Note how many steps of the episode had a choice; free."""
        steps = check_finished(episode).steps
        self._lengths.append(sum(step.prior is None or len(step.prior) > 1 for step in steps))
        return Usage()

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        """Return the shares of the votes, smoothed; see `seasoned.protocols.PriorReader`."""
        now, metered = self._now, _Metered(self._llm)
        if len(candidates) < 2:
            return await self._votes_of(metered, 1, 0).read(state, task, candidates)
        n_samples = self._samples or self._affordable(state, task, candidates)
        seed = episode_seed(now.seed, now.asked) % _SEED_LIMIT
        try:
            reading = await self._votes_of(metered, n_samples, seed).read(state, task, candidates)
        except ModelAnswerError as error:
            method = f"votes, n={n_samples}, none usable: {error.seen}"[:300]
            uniform = Prior(dict.fromkeys(candidates, -math.log(len(candidates))), method, self.name, tuple(candidates))
            reading = PriorReading(uniform, metered.usage)
        now.asked += 1
        now.samples += n_samples
        now.tokens += reading.usage.tokens
        return reading

    def _affordable(self, state: str, task: str, candidates: Sequence[str]) -> int:
        now = self._now
        expected = float(np.mean(self._lengths)) if self._lengths else float(self._first_guess)
        left = ((self._tokens or 0.0) - now.tokens) / max(1.0, expected - now.asked)
        each = now.tokens / now.samples if now.tokens else estimated_tokens(self._question(state, task, candidates))
        return max(1, math.ceil(left / each))
