"""The command line."""

from __future__ import annotations

from seasoned.cli.main import main

__all__ = ["main"]
