"""Readers of chats: completions, messages, items, and the sessions of coding agents."""
