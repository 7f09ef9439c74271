"""Conversations: the text of a state, its parser, and its encoder."""
