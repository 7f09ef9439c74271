"""Addresses of an agent's loop: advice and examples for its prompt, and decisions among its own options."""
