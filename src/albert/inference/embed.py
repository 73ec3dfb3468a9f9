"""Texts as vectors: the mean of the last layer's states over all tokens, [CLS] and [SEP] included.

A text that is too long for one sequence is read in windows one after the other, and the mean is over all of them; a
model tuned for similarity cuts it, as it was trained and as sentence-transformers does. Vectors of a model that was not
tuned for similarity are a weak measure of it (UKPLab/sentence-transformers#263). A text without a word has no vector:
it is refused, or a row of NaN where files must keep their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from albert.batch import STATES, Said, Wanted
from albert.errors import DataError
from albert.inference.fill import PlainText
from albert.tasks.task import Feature, Record, join_segments
from albert.tasks.windows import window_spans
from albert.tokenizer import Tokenizer

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Embed:
    """Embedding: one vector per text."""

    max_length: int
    cut: bool = False  # rather than read in windows
    empty_width: int | None = field(default=None, repr=False)  # numbers of an empty text's row, NaN; None: refuse it

    def encode(self, example: PlainText, tokenizer: Tokenizer) -> list[Feature]:
        """Turn a text into windows; into none where it is empty and that is allowed."""
        if not example.has_words:
            if self.empty_width is not None:
                return []
            where = f"{example.place}: " if example.place else ""
            raise DataError(f"{where}the text is empty, so it has no vector: fill it in or leave it out")
        return self.windows(tokenizer.encode(example.text), tokenizer)

    def windows(self, ids: Sequence[int], tokenizer: Tokenizer) -> list[Feature]:
        """Turn the ids of a text into windows."""
        room = self.max_length - 2
        ids = ids[:room] if self.cut else ids
        windows = window_spans(len(ids), room=room, stride=room, overlap=0)
        return [Feature(*join_segments(tokenizer, ids[window.start : window.end])) for window in windows]

    def wanted(self, features: Sequence[Feature]) -> Wanted:
        """Return that the states of all tokens are wanted."""
        return {STATES: "tokens"}

    def outputs(self, feature: Feature, said: Said) -> Any:
        """Return the sum of a sequence's states."""
        (states,) = said[STATES]
        return states.sum(axis=0, dtype=np.float64)

    def decide(self, example: PlainText, features: Sequence[Feature], outputs: Sequence[Any]) -> Vector:
        """Take the mean; of nothing it is NaN."""
        if not features:
            return np.full(self.empty_width or 0, np.nan, dtype=np.float32)
        count = sum(len(feature.token_ids) for feature in features)
        vector: Vector = (np.sum(outputs, axis=0) / count).astype(np.float32)
        return vector

    def record(self, example: PlainText, prediction: Vector) -> Record:
        """Return a text and its vector, None where it has none."""
        numbers = [round(float(number), 6) for number in prediction]
        return {"text": example.text, "vector": numbers if example.has_words else None}
