"""Caches of model answers, scores and embeddings on disk."""
