"""The commands of `seasoned memory`."""
