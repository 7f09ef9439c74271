"""Gymnasium environments with states and actions as text, and a recording wrapper."""

from seasoned.envs.gym.gymnasium_env import GymnasiumEnv
from seasoned.envs.gym.gymnasium_recorder import record_gymnasium
from seasoned.envs.gym.specification import open_gymnasium

__all__ = ["GymnasiumEnv", "open_gymnasium", "record_gymnasium"]
