"""The episode loop: observe, ask the model, decide, act, record."""
