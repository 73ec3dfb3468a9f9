"""What examples need to know of a vocabulary: which pieces begin words, and which are never masked or made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from albert.data.randomness import Ints
from albert.tokenizer import Tokenizer

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Pieces:
    """The pieces of a vocabulary by their part in an example."""

    word_starts: Flags  # [V] a word begins with this piece
    special: Flags  # [V] <pad>, <unk>, [CLS], [SEP], [MASK]
    ordinary: Ints  # all other ids
    cls_id: int
    sep_id: int
    mask_id: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Pieces:
        """Sort a tokenizer's pieces."""
        special = np.zeros(tokenizer.vocab_size, dtype=np.bool_)
        special[[tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id]] = True
        return cls(
            word_starts=tokenizer.word_starts,
            special=special,
            ordinary=np.flatnonzero(~special),
            cls_id=tokenizer.cls_id,
            sep_id=tokenizer.sep_id,
            mask_id=tokenizer.mask_id,
        )
