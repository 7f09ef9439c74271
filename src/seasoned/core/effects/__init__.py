"""Effects beside those of states and actions: of the task, and of a call's name."""
