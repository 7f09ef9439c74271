"""Maintenance of stores: backup, diff, compaction."""
