"""ALBERT, whole: from a folder of text to a small encoder in production."""

__version__ = "0.1.0"
