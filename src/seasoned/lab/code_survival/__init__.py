"""Code survival: how much of a change is still in a git repository."""
