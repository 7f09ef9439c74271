"""The model alone at an equal token budget: it plays the same instance again, and the best attempt counts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from seasoned.agents.baselines.token_checks import check_fraction, check_whole
from seasoned.agents.loop.episode import episode_seed, play_episode
from seasoned.agents.loop.step_log import EpisodeLog, StepLog
from seasoned.agents.loop.step_runner import EpisodeResult
from seasoned.checks import check_number
from seasoned.errors import InputError
from seasoned.protocols import Chooser, Environment, Policy, PriorReader

__all__ = ["Attempts"]


@dataclass(frozen=True)
class Attempts:
    """A `seasoned.agents.Play` that plays an episode's instance several times, and records the best attempt.

    The environment's own score says which attempt is best, the first among equals. No deployed agent has such a
    judge, so this is an upper bound on what tries without memory can reach; an arm that beats it has learned.

    Every attempt is at the same instance (the environment is reset with the episode's seed) with decisions of its own.
    The first is what the model alone plays in this episode, draw for draw. The result's usage, `seconds` and
    `environment_s` are those of all attempts; everything else, `decision_s` too, is of the one that is kept.

    Args:
        attempts: how many; None: as many as `tokens` allows.
        tokens: another attempt is begun while fewer than this many were spent on the episode, so that no less is spent
            than by the arm that is matched, and at most one attempt more. One is always played. An attempt that asked
            the model nothing ends them, since none can then spend what is left.
        stop_at: no more attempts once this score is reached (retries); None: all are played (best of n). The
            environment's `max_score` goes before it.
        retries: whether to stop at the best possible score.

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
                "one of them says when to stop",
                "Give attempts, or the arm whose budget this one has (budget_of).",
            )
        if self.attempts is not None:
            check_whole("attempts", self.attempts)
        if self.tokens is not None:
            check_fraction("tokens", self.tokens)
        if self.stop_at is not None:
            check_number("stop_at", self.stop_at)

    async def __call__(
        self, environment: Environment, policy: Policy, reader: PriorReader | Chooser, log: EpisodeLog, *, seed: int
    ) -> EpisodeResult:
        """Play, record the best attempt in `log`, and return how it went.

        An attempt that breaks off is recorded as far as it went, and the error goes on its way.
        """
        played: list[EpisodeResult] = []
        best, best_draft = None, StepLog()
        while self._again(played, environment.max_score):
            draft = StepLog()
            number = len(played)
            try:
                result = await play_episode(
                    environment,
                    policy,
                    reader,
                    draft,
                    seed=seed,
                    decision_seed=episode_seed(seed, number) if number else seed,
                )
            except BaseException:
                draft.copy_to(log)
                raise
            played.append(result)
            if best is None or result.score > best.score:
                best, best_draft = result, draft
        best_draft.copy_to(log)
        first, *others = played
        return dataclasses.replace(
            best or first,
            usage=sum((other.usage for other in others), first.usage),
            environment_s=sum(result.environment_s for result in played),
            seconds=sum(result.seconds for result in played),
        )

    def _again(self, played: list[EpisodeResult], max_score: float | None) -> bool:
        if not played:
            return True
        best_possible = self.stop_at if max_score is None else max_score
        if self.retries and best_possible is not None and max(result.score for result in played) >= best_possible:
            return False
        if self.attempts is not None:
            return len(played) < self.attempts
        spent = sum(result.usage.tokens for result in played)
        return played[-1].usage.tokens > 0 and spent < (self.tokens or 0.0)
