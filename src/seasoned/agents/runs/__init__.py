"""Runs of many episodes: their records, learning curves and costs."""
