"""Diagnosis of a memory: replay, flip audit, off-policy evaluation, drift, checks."""
