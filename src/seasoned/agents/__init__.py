"""The episode loop and its record."""
