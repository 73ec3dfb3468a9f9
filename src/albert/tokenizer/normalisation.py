"""The text that SentencePiece sees: ALBERT's preprocessing, exactly as transformers 4's slow AlbertTokenizer does it.

White space collapses, `` and '' become ", compatibility forms are taken apart (NFKD), combining marks go, letters
become small. SentencePiece's own normaliser (nmt_nfkc) runs after this, inside the model. `align` does the same and
says where each character came from. Knows nothing of pieces or ids.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

_SURROGATES = re.compile("[\ud800-\udfff]")
# All that does not simply become one small letter: quotes of two characters, white space but a single plain space, and
# whatever is not ASCII.
_SPECIAL = re.compile(r"``|''|\s{2,}|[^\S ]|[^\x00-\x7f]")


@dataclass(frozen=True)
class Aligned:
    """A normalised text; character i was made from the original's character `origins[i]` on, up to the next origin."""

    text: str
    origins: Sequence[int]  # one more than there are characters: the last is the original's length


@dataclass(frozen=True)
class Normalisation:
    """What happens to letters before they are cut into pieces."""

    lower_case: bool = True
    keep_accents: bool = False
    _letters: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(self, text: str) -> str:
        """Normalise one text."""
        # Printable text has no white space but plain spaces; asking first is 3x faster than taking each text apart.
        if not text.isprintable() or "  " in text or text.startswith(" ") or text.endswith(" "):
            text = " ".join(text.split())
        text = text.replace("``", '"').replace("''", '"')
        if not text.isascii():
            text = self._decomposed(text)
        return text.lower() if self.lower_case else text  # also the new capitals that NFKD makes, as from 𝐀

    def align(self, text: str) -> Aligned:
        """Normalise one text, all white space collapsed, and keep where each character came from."""
        begin, stop = len(text) - len(text.lstrip()), len(text.rstrip())
        # Most texts are as simple as this; asking so is 3x faster than one search of the pattern.
        simple = begin == 0 and stop == len(text) and text.isascii() and text.isprintable()
        if simple and not ("  " in text or "``" in text or "''" in text):
            return Aligned(self(text), range(len(text) + 1))
        parts: list[str] = []
        origins: list[int] = []
        position = begin
        for match in _SPECIAL.finditer(text, begin, stop):
            special = match[0]
            part = " " if special.isspace() else '"' if len(special) == 2 else self._letter(special)
            parts += (text[position : match.start()], part)
            origins.extend(range(position, match.start()))
            origins += [match.start()] * len(part)
            position = match.end()
        whole = "".join((*parts, text[position:stop]))
        origins += (*range(position, stop), len(text))
        return Aligned(whole.lower() if self.lower_case else whole, origins)

    def _letter(self, letter: str) -> str:
        letters = self._letters.get(letter)
        if letters is None:
            letters = self._letters[letter] = self._decomposed(letter)
        return letters

    def _decomposed(self, text: str) -> str:
        if not text.isprintable():
            text = _SURROGATES.sub("\ufffd", text)  # half a character, as JSON can hold it, can't become UTF-8
        if self.lower_case:
            # The reference lowers letter by letter before anything else: a capital sigma never becomes a final one.
            text = text.replace("Σ", "σ").lower()
        if self.keep_accents:
            return text
        text = unicodedata.normalize("NFKD", text)
        # A text has few different marks: removing each is faster than asking of every character whether it is one.
        for mark in filter(unicodedata.combining, set(text)):
            text = text.replace(mark, "")
        return text
