"""Two branches of one memory: what both began with, and what one of them got since."""

from __future__ import annotations

from seasoned.lab.branches.growth import Base, base_of, contains, grown, lines_of

__all__ = ["Base", "base_of", "contains", "grown", "lines_of"]
