"""Interactive fiction: story files, played through Jericho."""

from seasoned.envs.jericho.jericho_env import JerichoEnv, open_jericho

__all__ = ["JerichoEnv", "open_jericho"]
