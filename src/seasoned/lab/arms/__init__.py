"""The arms of a comparison, built from their specifications."""
