"""Text embedders."""
