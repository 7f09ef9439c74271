"""Forks of a memory: fork, compare, promote, roll back."""
