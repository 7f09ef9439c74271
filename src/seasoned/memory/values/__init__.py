"""Values of the memory: events, selections, hashes, limits."""
