"""Retrieval: from a state to its neighbours and their evidence."""
