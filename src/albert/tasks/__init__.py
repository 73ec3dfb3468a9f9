"""What models are trained and scored for: each task owns its examples, loss and score."""
