"""Forks of a memory: fork, compare, promote, roll back."""

from __future__ import annotations

from seasoned.lab.forks.snapshot_diff import Base, base_of, contains, grown, lines_of

__all__ = ["Base", "base_of", "contains", "grown", "lines_of"]
