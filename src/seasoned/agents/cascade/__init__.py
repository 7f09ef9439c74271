"""Cascades of a small and a large model: distillation, and attribution of steps."""
