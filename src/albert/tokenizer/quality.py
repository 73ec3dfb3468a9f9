"""How well a vocabulary fits text that it was not trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from albert.tokenizer.runtime import Tokenizer


@dataclass(frozen=True)
class Quality:
    """Counts over a text, and what follows from them."""

    characters: int  # but white space
    known_characters: int  # with a piece of their own
    words: int  # between spaces
    pieces: int
    unknown_pieces: int

    @property
    def coverage(self) -> float:
        """Return the share of characters that the vocabulary knows."""
        return self.known_characters / max(self.characters, 1)

    @property
    def unknown_rate(self) -> float:
        """Return the share of pieces that are <unk>."""
        return self.unknown_pieces / max(self.pieces, 1)

    @property
    def pieces_per_word(self) -> float:
        """Return the mean number of pieces of a word; of little meaning where words have no spaces between them."""
        return self.pieces / max(self.words, 1)

    @property
    def characters_per_piece(self) -> float:
        """Return the mean length of a piece."""
        return self.characters / max(self.pieces, 1)


def measure(tokenizer: Tokenizer, lines: Iterable[str]) -> Quality:
    """Count pieces, words and unknowns in some lines."""
    texts = list(lines)
    characters = Counter(character for text in texts for character in tokenizer.normalise(text))
    known = set(tokenizer.pieces)
    ids = tokenizer.encode_many(texts)
    return Quality(
        characters=sum(count for character, count in characters.items() if not character.isspace()),
        known_characters=sum(count for character, count in characters.items() if character in known),
        words=sum(len(text.split()) for text in texts),
        pieces=sum(map(len, ids)),
        unknown_pieces=sum(text_ids.count(tokenizer.unk_id) for text_ids in ids),
    )
