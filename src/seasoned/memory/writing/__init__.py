"""Writing: episodes, interning, evidence views, feedback, notes, quarantine."""
