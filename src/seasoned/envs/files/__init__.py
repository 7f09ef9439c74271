"""File tasks, solved by shell commands."""

from seasoned.envs.files.file_tasks import FileTasks, open_files

__all__ = ["FileTasks", "open_files"]
