"""A contextual bandit with known mean rewards: the smallest unit test of learning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, get_args
from urllib.parse import quote, unquote

import numpy as np

from seasoned.checks import check_number, check_one_of, check_text, check_whole
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import EpisodeGuard
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Observation
from seasoned.types import normalize_action

__all__ = ["ContextualBandit", "Noise", "open_bandit"]

Noise = Literal["none", "gaussian", "bernoulli"]
"""The distribution of a reward with mean m: constant, N(m, sigma^2), or 1 with probability m and else 0."""


class ContextualBandit:
    """A bandit that shows a uniformly drawn context each round; the mean reward depends on context and action.

    Args:
        means: context to action to mean reward.
        noise: `none`, `gaussian` or `bernoulli` (means in [0, 1]).
        sigma: standard deviation of Gaussian noise, in reward units.
        rounds: an episode is terminated after this many rounds.
        seed: the seed of contexts and noise across episodes; `reset(seed=...)` starts a new random sequence.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> from seasoned.sync import Sync
        >>> with Sync(ContextualBandit({"red": {"left": 0.0, "right": 1.0}})) as bandit:
        ...     bandit.reset().state, bandit.step("right").reward
        ('red', 1.0)
    """

    def __init__(
        self,
        means: Mapping[str, Mapping[str, float]],
        *,
        noise: Noise = "none",
        sigma: float = 0.1,
        rounds: int = 1,
        seed: int = 0,
    ) -> None:
        self._means = _check_means(means)
        check_one_of("noise", noise, get_args(Noise))
        flat = [mean for actions in self._means.values() for mean in actions.values()]
        if noise == "bernoulli" and not all(0.0 <= mean <= 1.0 for mean in flat):
            raise InputError(
                f"means from {min(flat)} to {max(flat)}",
                "a Bernoulli mean is a probability, in [0, 1]",
                "Rescale the means, or use gaussian noise.",
            )
        self._noise, self._sigma = noise, check_number("sigma", sigma, at_least=0.0, next_step="Try sigma=0.1.")
        self._rounds = check_whole("rounds", rounds, 1)
        self._seed = check_whole("seed", seed, 0)
        self._rng = np.random.default_rng(seed)
        self._guard = EpisodeGuard(None)
        self._context = ""
        self._played = 0

    @property
    def name(self) -> str:
        """The specification that opens the same environment with `open_env`."""
        table = quote(json.dumps(self._means, separators=(",", ":"), ensure_ascii=False), safe=' {}[]":,.')
        noise = f"&noise={self._noise}" + (f"&sigma={self._sigma}" if self._noise == "gaussian" else "")
        return f"bandit:{table}?rounds={self._rounds}{noise}&seed={self._seed}"

    @property
    def task(self) -> str:
        """The task in words."""
        return "Earn as much reward as you can. The best action depends on the context."

    @property
    def max_score(self) -> float | None:
        """`rounds` times the largest reward, or None under Gaussian noise, which has no largest."""
        flat = [mean for actions in self._means.values() for mean in actions.values()]
        if self._noise == "gaussian":
            return None
        best = max(flat) if self._noise == "none" else float(max(flat) > 0.0)
        return self._rounds * best

    @property
    def true_values(self) -> dict[str, dict[str, float]]:
        """The exact mean reward of every action in every context, in reward units: Q* at gamma 0, under any policy."""
        return {context: dict(actions) for context, actions in self._means.items()}

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode and return its first context.

        Raises:
            EnvError: the environment was closed.
        """
        if seed is not None:
            self._rng = np.random.default_rng(check_whole("seed", seed, 0))
        self._played = 0
        self._draw_context()
        return self._guard.begin(self._context, self._means[self._context])

    async def step(self, action: str) -> Observation:
        """Draw the action's reward in this context, and return it with the next context.

        Raises:
            EnvError: before `reset`, after the end, or for an unknown action.
        """
        chosen = self._guard.resolve_action(action)
        reward = mean = self._means[self._context][chosen]
        if self._noise == "gaussian":
            reward = float(self._rng.normal(mean, self._sigma))
        elif self._noise == "bernoulli":
            reward = float(self._rng.random() < mean)
        self._played += 1
        self._draw_context()
        actions = self._means[self._context]
        return self._guard.observe(self._context, actions, reward=reward, terminated=self._played >= self._rounds)

    async def aclose(self) -> None:
        """Refuse every later call."""
        self._guard.close()

    def _draw_context(self) -> None:
        self._context = list(self._means)[int(self._rng.integers(len(self._means)))]


def open_bandit(target: str, options: Mapping[str, str]) -> ContextualBandit:
    """Return the bandit of `bandit:JSON?option=value&...`; the target is percent-encoded JSON of the mean rewards.

    Raises:
        InputError: the target is not JSON, an option is unknown, or a value is not allowed.
    """
    try:
        means = json.loads(unquote(target))
    except ValueError:
        raise InputError(
            f"bandit {excerpt(target)}", "a bandit's target is JSON", 'Write bandit:{"red":{"left":0.1,"right":0.9}}.'
        ) from None
    known = {"seed": Option(0, high=2**31 - 1), "rounds": Option(1, low=1)}
    return ContextualBandit(means, **option_values(options, known, ("noise",), ("sigma",)))


def _check_means(means: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the mean rewards as plain dicts, checked."""
    example = 'Pass {"red": {"left": 0.1, "right": 0.9}}, say.'
    if not isinstance(means, Mapping) or not means:
        raise InputError(f"means = {excerpt(means)}", "means map each context to its actions, at least one", example)
    table: dict[str, dict[str, float]] = {}
    for context, actions in means.items():
        check_text("context", context)
        if not isinstance(actions, Mapping) or not actions:
            raise InputError(f"means[{context!r}] = {excerpt(actions)}", "a context has at least one action", example)
        table[context] = {
            check_text("action", a): check_number(f"means[{context!r}][{a!r}]", m) for a, m in actions.items()
        }
        if len({normalize_action(action) for action in actions}) < len(actions):
            raise InputError(
                f"actions {excerpt(list(actions))}",
                "actions differ in more than case and blanks",
                "Rename one of them.",
            )
    return table
