"""Feedback stored and read back, for tests that look at its record."""

from __future__ import annotations


def stored_feedback(memory, *arguments, **options):
    """Call `memory.feedback`, and return the record that is stored."""
    [record] = memory.feedback_records(id=memory.feedback(*arguments, **options))
    return record
