"""Gymnasium environments in words, and a wrapper that records."""

from seasoned.envs.gym.environment import GymnasiumEnv
from seasoned.envs.gym.opening import open_gymnasium
from seasoned.envs.gym.recording import record_gymnasium

__all__ = ["GymnasiumEnv", "open_gymnasium", "record_gymnasium"]
