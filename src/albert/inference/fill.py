"""Fill in the blanks: what a masked-LM model would put at each [MASK] of a text.

The vocabulary is scored at the blanks alone. Offered are pieces with a letter or a digit: not special tokens, not
punctuation, not the bare marker of a word's beginning. Probabilities are those among all pieces. A text that is too
long for one sequence is read in overlapping windows, each blank decided where it has most context.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from albert.batch import Said, Wanted
from albert.errors import DataError
from albert.tasks.task import Example, Feature, Record, join_segments
from albert.tasks.windows import best_context, window_spans
from albert.tokenizer import Tokenizer
from albert.tokenizer.words import MARKER, word_starts

HEAD = "mlm"
MASK = "[MASK]"


@dataclass(frozen=True)
class PlainText(Example):
    """A text by itself: with blanks to fill, or to embed."""

    text: str
    id: str | None = None  # what a file calls it

    @property
    def has_words(self) -> bool:
        """Tell whether there is anything to read."""
        return bool(self.text.strip())


@dataclass(frozen=True)
class BlankFeature(Feature):
    """A window of a text, and the positions of the blanks that are filled here."""

    blanks: Sequence[int]


@dataclass(frozen=True)
class Guess:
    """A piece for a blank as text and as the vocabulary writes it (▁: a word begins), and its probability."""

    text: str
    piece: str
    probability: float
    continues: bool = False  # whether it only continues the word before it


@dataclass(frozen=True)
class Blank:
    """A blank by its characters in the text, and the best pieces for it, best first."""

    start: int
    end: int
    guesses: tuple[Guess, ...]


@dataclass(frozen=True)
class Fill:
    """Filling in: the `top` best words per blank."""

    pieces: Sequence[str]  # of the vocabulary
    max_length: int
    top: int = 3
    special: frozenset[int] = frozenset()  # pieces that are never text: [CLS], <unk>
    strict: bool = True  # refuse a text without a blank; else it has no guesses

    @cached_property
    def offered(self) -> npt.NDArray[np.int64]:
        """Return the numbers of the pieces that are offered."""
        return np.array([i for i, piece in enumerate(self.pieces) if i not in self.special and _has_letter(piece)])

    @cached_property
    def _starts(self) -> npt.NDArray[np.bool_]:
        return word_starts(self.pieces)

    def encode(self, example: PlainText, tokenizer: Tokenizer) -> list[BlankFeature]:
        """Turn a text into the windows that have blanks to fill; none where it has none and that is allowed."""
        ids: list[int] = []
        for number, part in enumerate(example.text.split(MASK)):
            ids += ([tokenizer.mask_id] if number else []) + tokenizer.encode(part)
        blanks = np.array(ids) == tokenizer.mask_id
        if not blanks.any() and self.strict:
            where = f"{example.place}: " if example.place else ""
            raise DataError(f"{where}no {MASK} in the text: write it where a word is to be filled in")
        room = self.max_length - 2
        windows = window_spans(len(ids), room=room, stride=room // 2, overlap=room // 2)
        features = []
        for window, counts in zip(windows, best_context(windows), strict=True):
            positions = np.flatnonzero(counts & blanks[window.start : window.end])
            if positions.size:
                token_ids, segment_ids = join_segments(tokenizer, ids[window.start : window.end])
                features.append(BlankFeature(token_ids, segment_ids, (positions + 1).tolist()))
        return features

    def wanted(self, features: Sequence[BlankFeature]) -> Wanted:
        """Return that the masked-LM head is wanted at the blanks."""
        return {HEAD: [feature.blanks for feature in features]}

    def outputs(self, feature: BlankFeature, said: Said) -> Any:
        """Return the best words of a sequence's blanks and their probabilities."""
        (logits,) = said[HEAD]  # [blanks, V]
        offered = logits[:, self.offered]
        top = min(self.top, offered.shape[-1])
        best = np.argpartition(offered, -top, axis=-1)[:, -top:]
        order = np.argsort(-np.take_along_axis(offered, best, axis=-1), axis=-1)
        best = self.offered[np.take_along_axis(best, order, axis=-1)]  # [blanks, top]
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))  # fp32 is enough, and twice as fast
        return best, np.take_along_axis(powers, best, axis=-1) / powers.sum(axis=-1, keepdims=True)

    def decide(self, example: PlainText, features: Sequence[BlankFeature], outputs: Sequence[Any]) -> tuple[Blank, ...]:
        """Put the guesses where the blanks stand in the text."""
        rows = [row for indices, values in outputs for row in zip(indices, values, strict=True)]
        return tuple(
            Blank(match.start(), match.end(), tuple(self._guess(int(i), float(p)) for i, p in zip(*row, strict=True)))
            for match, row in zip(re.finditer(re.escape(MASK), example.text), rows, strict=True)
        )

    def record(self, example: PlainText, prediction: tuple[Blank, ...]) -> Record:
        """Return a text and the guesses for its blanks."""
        return {"text": example.text, "blanks": [asdict(blank) for blank in prediction]}

    def _guess(self, number: int, probability: float) -> Guess:
        piece = self.pieces[number]
        return Guess(piece.replace(MARKER, " ").strip(), piece, probability, continues=not bool(self._starts[number]))


def _has_letter(piece: str) -> bool:
    return any(letter.isalnum() for letter in piece)
