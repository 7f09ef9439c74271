"""Assistants of others that learn: a gateway and hooks for one process, and what it has taught the memory."""
