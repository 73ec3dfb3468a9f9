"""One training loop, its checkpoints, and several processes."""
