"""Shell commands under limits."""

from seasoned.envs.shell.shell import Shell, ShellLimits, ShellResult

__all__ = ["Shell", "ShellLimits", "ShellResult"]
