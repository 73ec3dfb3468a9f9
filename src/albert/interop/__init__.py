"""Other people's formats: Google's TensorFlow checkpoints and legacy pickles in."""
