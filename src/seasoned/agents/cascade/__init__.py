"""Cascades of a small and a large model: distillation, and who decided each step."""
