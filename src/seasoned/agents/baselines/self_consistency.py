"""Self-consistency: several sampled answers per step, decided by majority."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from seasoned.agents.loop.episode import episode_seed, play_episode
from seasoned.agents.loop.step_log import EpisodeLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.checks import check_number, check_text, check_whole
from seasoned.errors import InputError, ModelAnswerError
from seasoned.judges.episode_view import check_finished
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
from seasoned.states.text_budget import estimated_tokens
from seasoned.types import Decision, Episode, Prior

__all__ = ["MajorityPolicy", "SelfConsistency", "VotesOf"]

VotesOf = Callable[[LLM, int, int], PriorReader]
"""Returns a reader by votes, from a model, a number of samples and a seed."""

_SEED_LIMIT = 2**30


class MajorityPolicy:
    """Policy that takes the candidate with most votes; among equals one at random, by the seed.

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
                f"{len(checked.dropped)} candidates",
                "at least one candidate must be admissible",
                "Pass admissible candidates.",
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
class _MeteredLLM:
    """A model with a usage count, since a reading that fails reports no usage."""

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
        """Leave the model open: its owner closes it."""


@dataclass
class _EpisodeCounts:
    """Counts of the running episode: decided steps, samples and their tokens."""

    seed: int = 0
    steps: int = 0
    samples: int = 0
    tokens: int = 0


class SelfConsistency:
    """Self-consistency (arXiv 2203.11171) for actions: n answers sampled at temperature 1, the majority is taken.

    It is a `PriorReader`, and a `seasoned.agents.Play` that plays with it; decide with `MajorityPolicy`. Samples are
    drawn at every step of every episode. If no answer names a candidate, the prior is uniform (its method states this),
    and one candidate is drawn.

    With `tokens`, the number of samples follows the budget:

        n_samples = max(1, ceil(tokens_left / steps_left / tokens_per_sample)).

    The expected number of steps is the mean number of steps with a choice in earlier episodes (`steps` before the
    first). The tokens of a sample are the mean in this episode (at its first step, an estimate from the question).

    Departures: the paper samples a chain of thought before each answer; here an answer is an action, as for every
    arm, and the temperature is 1.

    Args:
        llm: the model.
        votes_of: returns a reader by votes.
        question: returns the question of a sample, from state, task and candidates; for the estimate.
        samples: number of samples a step; None: by `tokens`.
        tokens: budget of an episode; None: by `samples`.
        steps: expected number of steps of the first episode.

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
                "exactly one of samples and tokens sets the number of answers",
                "Pass samples, or the arm with the same budget (budget_of).",
            )
        self._llm, self._votes_of, self._question = llm, votes_of, question
        self._samples = None if samples is None else check_whole("samples", samples, 1)
        self._tokens = None if tokens is None else check_number("tokens", tokens, 0.0)
        self._default_steps = check_whole("steps", steps, 1)
        self._lengths: list[int] = []
        self._now = _EpisodeCounts()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._llm.name

    async def play(
        self, environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> EpisodeResult:
        """Play an episode whose samples are drawn from its seed; see `seasoned.agents.Play`."""
        self._now = _EpisodeCounts(seed)
        return await play_episode(environment, policy, reader, log, seed=seed)

    async def learn(self, episode: Episode) -> Usage:
        """Count the episode's steps with a choice; no usage."""
        steps = check_finished(episode).steps
        self._lengths.append(sum(step.prior is None or len(step.prior) > 1 for step in steps))
        return Usage()

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        """Return the smoothed shares of the votes; see `seasoned.protocols.PriorReader`."""
        now, metered = self._now, _MeteredLLM(self._llm)
        if len(candidates) < 2:
            return await self._votes_of(metered, 1, 0).read(state, task, candidates)
        n_samples = self._samples or self._n_affordable(state, task, candidates)
        seed = episode_seed(now.seed, now.steps) % _SEED_LIMIT
        try:
            reading = await self._votes_of(metered, n_samples, seed).read(state, task, candidates)
        except ModelAnswerError as error:
            method = f"votes, n={n_samples}, none usable: {error.seen}"[:300]
            uniform = Prior(dict.fromkeys(candidates, -math.log(len(candidates))), method, self.name, tuple(candidates))
            reading = PriorReading(uniform, metered.usage)
        now.steps += 1
        now.samples += n_samples
        now.tokens += reading.usage.tokens
        return reading

    def _n_affordable(self, state: str, task: str, candidates: Sequence[str]) -> int:
        """Return the number of samples within the budget; see the class."""
        now = self._now
        expected = float(np.mean(self._lengths)) if self._lengths else float(self._default_steps)
        tokens_per_step = ((self._tokens or 0.0) - now.tokens) / max(1.0, expected - now.steps)
        tokens_per_sample = now.tokens / now.samples if now.tokens else self._estimate(state, task, candidates)
        return max(1, math.ceil(tokens_per_step / tokens_per_sample))

    def _estimate(self, state: str, task: str, candidates: Sequence[str]) -> int:
        return estimated_tokens(self._question(state, task, candidates))
