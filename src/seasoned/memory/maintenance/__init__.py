"""Maintenance of whole stores: backup, diff, compaction."""
