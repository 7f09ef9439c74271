"""Retention: pruning and deletion."""
