"""Environments behind one protocol. The library of an environment is loaded when the environment is opened."""

from seasoned.envs.bandit import ContextualBandit
from seasoned.envs.browser import BrowserEnv
from seasoned.envs.files import FileTasks
from seasoned.envs.grid import Grid
from seasoned.envs.gym import GymnasiumEnv, record_gymnasium
from seasoned.envs.intents import IntentRouting
from seasoned.envs.jericho import JerichoEnv
from seasoned.envs.mdp_solver import ExactValues
from seasoned.envs.registry import ENVIRONMENT_SPECIFICATIONS, ENVIRONMENTS, open_env
from seasoned.envs.shell import Shell, ShellLimits, ShellResult
from seasoned.envs.support import SupportTriage
from seasoned.envs.textworld import TextWorldEnv

__all__ = [
    "ENVIRONMENTS",
    "ENVIRONMENT_SPECIFICATIONS",
    "BrowserEnv",
    "ContextualBandit",
    "ExactValues",
    "FileTasks",
    "Grid",
    "GymnasiumEnv",
    "IntentRouting",
    "JerichoEnv",
    "Shell",
    "ShellLimits",
    "ShellResult",
    "SupportTriage",
    "TextWorldEnv",
    "open_env",
    "record_gymnasium",
]
