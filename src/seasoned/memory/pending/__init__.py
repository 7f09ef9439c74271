"""Pending episodes of PostgreSQL: committed, not yet derived."""
