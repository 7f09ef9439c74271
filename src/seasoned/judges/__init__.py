"""Where rewards come from besides the environment."""
