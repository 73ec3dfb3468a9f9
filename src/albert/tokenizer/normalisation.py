"""The text that SentencePiece sees: ALBERT's preprocessing, exactly as transformers 4's slow AlbertTokenizer does it.

White space collapses, `` and '' become ", compatibility forms are taken apart (NFKD), combining marks go, letters
become small. SentencePiece's own normaliser runs after this, inside the model. Knows nothing of pieces or ids.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import filterfalse


@dataclass(frozen=True)
class Normalisation:
    """What happens to letters before they are cut into pieces."""

    lower_case: bool = True
    keep_accents: bool = False

    def __call__(self, text: str) -> str:
        """Normalise one text."""
        if self.lower_case:
            # The reference lowers letter by letter before anything else, so a capital sigma never becomes a final one.
            text = text.replace("Σ", "σ").lower()
        text = " ".join(text.split()).replace("``", '"').replace("''", '"')
        if text.isascii():
            return text
        if not self.keep_accents:
            text = "".join(filterfalse(unicodedata.combining, unicodedata.normalize("NFKD", text)))
            if self.lower_case:  # NFKD makes new capitals, as from 𝐀
                text = text.lower()
        return text
