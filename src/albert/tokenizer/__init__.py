"""SentencePiece vocabularies of ALBERT: train, encode with offsets, write in every format that others read."""

from albert.tokenizer.runtime import Encoding, Tokenizer

__all__ = ["Encoding", "Tokenizer"]
