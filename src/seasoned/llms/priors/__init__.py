"""Prior readers: a model's own policy over named candidates."""
