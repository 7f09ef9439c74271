"""Running experiments: schedule, workers, limits and interruption."""
