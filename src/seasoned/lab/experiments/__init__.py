"""Experiments: arms, tasks and seeds; resumable, and reported so that the report could prove us wrong."""
