"""The rotation of a task's environments over its episodes, and variables in their specifications."""

from __future__ import annotations

import os

import numpy as np

from seasoned.errors import ConfigError, excerpt

__all__ = ["env_order", "expand_variables"]


def env_order(seed: int, episode: int, n: int) -> int:
    """Return the index of the environment of an episode, of a task with `n` environments.

    Each round plays all `n` in an order drawn from the run's seed, so the order is the same for every arm.

    Example:
        >>> sorted(env_order(7, episode, 3) for episode in range(3, 6))
        [0, 1, 2]
    """
    round_, place = divmod(episode, n)
    return int(np.random.default_rng([seed, round_]).permutation(n)[place])


def expand_variables(spec: str) -> str:
    """Return an environment's specification with `$NAME` replaced by the environment variable of that name.

    Raises:
        ConfigError: the variable is not set.
    """
    expanded = os.path.expandvars(spec)
    if "$" in expanded:
        raise ConfigError(
            f"environment {excerpt(spec)}",
            "every variable in it is set",
            "Set it to the folder with the files, with `export` in the shell.",
        )
    return expanded
