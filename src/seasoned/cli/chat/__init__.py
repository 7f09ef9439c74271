"""The command `seasoned chat`, and its screen."""
