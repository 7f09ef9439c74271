"""Control tokens and turn marks of the chat templates of many models, one a line of `template_marks.txt`."""

from __future__ import annotations

from pathlib import Path

MARKS = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
