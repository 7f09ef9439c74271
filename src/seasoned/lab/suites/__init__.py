"""Suites: the tasks, arms, seeds and budget of an experiment, as data."""
