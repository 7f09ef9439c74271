"""The report of an experiment: HTML page, plots, JSON."""
