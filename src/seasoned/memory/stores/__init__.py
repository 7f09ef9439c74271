"""Stores: the database protocol, and SQLite."""
