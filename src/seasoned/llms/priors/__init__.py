"""Readers of a model's own policy over named candidates."""
