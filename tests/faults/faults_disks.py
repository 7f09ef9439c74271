"""A small separate file system, to fill or to mount read-only."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Disk", "small_disk"]


@dataclass
class Disk:
    """A mounted tmpfs."""

    folder: Path

    @property
    def free_bytes(self) -> int:
        """The free space in bytes."""
        stat = os.statvfs(self.folder)
        return stat.f_bavail * stat.f_bsize

    def fill(self, leave_bytes: int) -> None:
        """Fill the file system up to `leave_bytes` of free space."""
        with (self.folder / "ballast").open("ab") as ballast:
            ballast.write(bytes(max(0, self.free_bytes - leave_bytes)))

    def free(self) -> None:
        """Free the space used by `fill`."""
        (self.folder / "ballast").unlink(missing_ok=True)

    def remount(self, how: str) -> None:
        """Mount it again, `ro` or `rw`."""
        subprocess.run(["mount", "-o", f"remount,{how}", self.folder], check=True, capture_output=True)


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[Disk]:
    """Mount a file system in an empty folder; skip the test with the reason if mounting is not allowed."""
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", folder],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("no small disk: there is no `mount` here")
    if mounted.returncode:
        why = mounted.stderr.strip().splitlines() or ["mount failed"]
        pytest.skip(f"no small disk: {why[0].replace(str(folder), 'a folder')}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)  # a test that failed may still hold a file
