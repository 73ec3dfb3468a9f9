"""The packed batch: what data makes and the model takes; what is wanted of a model, and what it says. NumPy only.

Texts lie end to end in one row of tokens, with their lengths beside it. There is no padding and no mask, so no mask
can be inverted (transformers' SOP collator hides [MASK] and shows padding). Legend: B texts, T tokens in all,
P masked positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from albert.errors import UsageError

Ints = npt.NDArray[np.int64]
STATES = "states"  # named among heads: the encoder's own states

# Where a head is asked: at the [CLS] of each text, at every token, or at positions of each text counted from its [CLS].
Positions = Literal["class", "tokens"] | Sequence[Sequence[int]]
Wanted = Mapping[str, Positions]  # heads by name
Said = Mapping[str, tuple[npt.NDArray[Any], ...]]  # what each says of one text: float32, or integers that are positions

MICRO_TOKENS = 16_384  # what a micro-batch of training holds at most, where nobody says how many sequences it has


@dataclass(frozen=True)
class Batch:
    """Texts end to end: the sum of `lengths` is the number of tokens."""

    token_ids: Ints  # [T]
    segment_ids: Ints  # [T] 0 for the first segment, 1 for the second
    lengths: Ints  # [B]

    def __post_init__(self) -> None:
        assert self.token_ids.shape == self.segment_ids.shape == (int(self.lengths.sum()),)
        assert self.lengths.size > 0, "a batch has at least one text"
        assert int(self.lengths.min()) > 0, "every text has at least one token"

    @property
    def starts(self) -> Ints:
        """Return the position of each text's first token, [B]."""
        return np.cumsum(self.lengths) - self.lengths


@dataclass(frozen=True)
class PretrainingBatch(Batch):
    """A batch whose masked tokens and segment order are to be predicted."""

    masked_positions: Ints  # [P] positions in [0, T), ascending
    masked_labels: Ints  # [P] the tokens that stood there
    order_labels: Ints  # [B] 0 in order, 1 swapped, -1 no label


def places_of(lengths: Sequence[int] | Ints, positions: Positions) -> Ints:
    """Return the places [P] in a batch of texts of these lengths that are meant by positions."""
    starts: Ints = np.cumsum(lengths) - np.asarray(lengths)
    if isinstance(positions, str):
        return starts if positions == "class" else np.arange(sum(lengths))
    counts = [len(own) for own in positions]
    return np.repeat(starts, counts) + np.concatenate([np.asarray(own, dtype=np.int64) for own in positions])


def pack(texts: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None = None) -> Batch:
    """Lay token lists end to end; without segments every token is of segment 0."""
    if not len(texts):
        raise UsageError("no texts to pack: give at least one list of token ids")
    for number, text in enumerate(texts, 1):
        if isinstance(text, str) or not hasattr(text, "__len__"):
            raise UsageError(
                f"text {number} of {len(texts)} is {text!r:.50}: give lists of token ids (tokenizer.encode)"
            )
        if not len(text):
            raise UsageError(f"text {number} of {len(texts)} has no tokens: each needs one at least, such as [CLS]")
    if segments is not None and [*map(len, segments)] != [*map(len, texts)]:
        raise UsageError("segments are not as long as their texts: give a segment for every token")
    token_ids = _whole_numbers(texts)
    if segments is None:
        segment_ids = np.zeros_like(token_ids)
    else:
        segment_ids = np.concatenate([np.asarray(segment, dtype=np.int64) for segment in segments])
    return Batch(token_ids, segment_ids, np.array([len(text) for text in texts], dtype=np.int64))


def _whole_numbers(texts: Sequence[Sequence[int]]) -> Ints:
    """Return the tokens of all texts; what is no id is refused."""
    ids = np.concatenate([np.asarray(text) for text in texts])
    if ids.dtype.kind not in "iu":
        raise UsageError("token ids are whole numbers: give what tokenizer.encode returns")
    return ids.astype(np.int64, copy=False)


def rounded(count: int) -> int:
    """Round a number of tokens, of a text's length or of texts up: eight sizes between a power of two and the next."""
    step = 2 ** max(0, count.bit_length() - 4)
    return -(-count // step) * step
