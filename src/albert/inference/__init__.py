"""Using a model on text."""
