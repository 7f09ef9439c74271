"""Recall of moments for prompts, by several keys."""
