"""Readers of what agent harnesses and benchmarks write: one document per run, or one per event."""
