"""Repeated attempts by the model alone at an equal token budget; the best attempt counts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from seasoned.agents.loop.episode import episode_seed, play_episode
from seasoned.agents.loop.step_log import EpisodeLog, StepLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.checks import check_number, check_whole
from seasoned.errors import InputError
from seasoned.protocols import Chooser, Environment, Policy, PriorReader

__all__ = ["Attempts"]


@dataclass(frozen=True)
class Attempts:
    """A `seasoned.agents.Play` that plays an episode's instance several times, and records the best attempt.

    The best attempt has the highest score of the environment; among equals it is the first. No deployed agent can ask
    such a judge, so this is an upper bound for attempts without memory; an arm above it has learned.

    Every attempt resets the environment with the episode's seed, and makes its own decisions. The first one equals the
    episode of the model alone, draw for draw. The result's usage, `seconds` and `environment_s` are sums over all
    attempts; all other fields, `decision_s` too, are those of the best attempt.

    Args:
        attempts: number of attempts; None: limited by `tokens`.
        tokens: another attempt begins while the episode has used fewer tokens than this, so that the arm uses at least
            the budget of the arm it is compared with, and at most one attempt more. One attempt is always played. An
            attempt without model usage is the last one, as no further attempt could use the rest of the budget.
        stop_at: with `retries`, the score that ends the attempts; the environment's `max_score` takes precedence.
        retries: whether to stop at the best possible score (retries), or to play all attempts (best of n).

    Raises:
        InputError: neither or both of `attempts` and `tokens`, or one outside its range.
    """

    attempts: int | None = None
    tokens: float | None = None
    retries: bool = False
    stop_at: float | None = None

    def __post_init__(self) -> None:
        if (self.attempts is None) == (self.tokens is None):
            raise InputError(
                f"attempts = {self.attempts}, tokens = {self.tokens}",
                "exactly one of attempts and tokens limits the attempts",
                "Pass attempts, or the arm with the same budget (budget_of).",
            )
        if self.attempts is not None:
            check_whole("attempts", self.attempts, 1)
        if self.tokens is not None:
            check_number("tokens", self.tokens, 0.0)
        if self.stop_at is not None:
            check_number("stop_at", self.stop_at)

    async def __call__(
        self, environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> EpisodeResult:
        """Play, record the best attempt in `log`, and return its result.

        An attempt that raises an error is recorded up to its last step, and the error is raised again.
        """
        results: list[EpisodeResult] = []
        best, best_log = None, StepLog()
        while self._continues(results, environment.max_score):
            attempt_log = StepLog()
            number = len(results)
            decision_seed = episode_seed(seed, number) if number else seed
            try:
                result = await play_episode(
                    environment, policy, reader, attempt_log, seed=seed, decision_seed=decision_seed
                )
            except BaseException:
                attempt_log.copy_to(log)
                raise
            results.append(result)
            if best is None or result.score > best.score:
                best, best_log = result, attempt_log
        best_log.copy_to(log)
        first, *others = results
        return dataclasses.replace(
            best or first,
            usage=sum((other.usage for other in others), first.usage),
            environment_s=sum(result.environment_s for result in results),
            seconds=sum(result.seconds for result in results),
        )

    def _continues(self, results: list[EpisodeResult], max_score: float | None) -> bool:
        """Return whether another attempt is played."""
        if not results:
            return True
        best_possible = self.stop_at if max_score is None else max_score
        if self.retries and best_possible is not None and max(result.score for result in results) >= best_possible:
            return False
        if self.attempts is not None:
            return len(results) < self.attempts
        used = sum(result.usage.tokens for result in results)
        return results[-1].usage.tokens > 0 and used < (self.tokens or 0.0)
