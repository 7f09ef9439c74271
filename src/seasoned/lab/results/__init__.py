"""Results of learning runs, read back from disk."""
