"""Which pieces begin a word, for masking whole words in any language (section 4.1 of the paper).

A word begins at SentencePiece's marker, so punctuation and digits stay in the word that they are written in. Scripts
that are written without spaces have no marker to go by: there every piece is a word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

MARKER = "\u2581"  # SentencePiece's mark of a word's beginning

# Unicode has the script in the character's name, and Python has the names. Hangul is not here: Korean has spaces.
_WITHOUT_SPACES = (
    "CJK ", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC", "BOPOMOFO", "YI SYLLABLE", "THAI", "LAO", "KHMER", "MYANMAR",
    "TIBETAN", "TAI ", "NEW TAI", "JAVANESE", "BALINESE", "SUNDANESE",
)  # fmt: skip


def word_starts(pieces: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Tell of each piece whether a word begins with it.

    <unk> never does: where a word begins with something unknown, a bare marker goes before it.
    """
    return np.array([piece.startswith(MARKER) or _has_no_spaces(piece[:1]) for piece in pieces], dtype=bool)


def _has_no_spaces(letter: str) -> bool:
    return not letter.isascii() and unicodedata.name(letter, "").startswith(_WITHOUT_SPACES)
