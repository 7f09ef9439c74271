"""Environments behind one protocol. TextWorld itself is loaded when a game is opened."""

from seasoned.envs.bandit import ContextualBandit
from seasoned.envs.exact import ExactValues
from seasoned.envs.grid import Grid
from seasoned.envs.open import open_env
from seasoned.envs.textworld import TextWorldEnv

__all__ = ["ContextualBandit", "ExactValues", "Grid", "TextWorldEnv", "open_env"]
