"""Segment pairs: `[CLS] A [SEP] B [SEP]`, packed, with the label of their order (section 3.1 of the paper).

sop: half of the pairs are swapped; 0 = in order, 1 = swapped; both segments are consecutive text of one document.
nsp: half of the pairs have a B from another document, chosen in the index; 0 = next, 1 = foreign.
none: the pairs of sop, all in order and without a label, so that Table 5 compares losses and nothing else.
No label is -1. A share of the pairs may be made to overlap, whatever the objective but nsp: half a chunk and the same
half moved on a little, without a label. What is hidden in one segment then mostly stands in the other, and a model
learns to look there: to compare two texts, which ordinary text teaches a small model late. Another share may be
one segment, as single texts are when a model is used. Legend: B samples, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from albert.data.chunks import shard_starts
from albert.data.index import Rows
from albert.data.pieces import Flags, Pieces
from albert.data.randomness import Ints, Purpose, Words, below, uniform
from albert.data.settings import ExampleSettings
from albert.data.store import TokenStore

NO_LABEL = -1
SHORTEST_OVERLAP = 4  # tokens of a segment


@dataclass(frozen=True)
class Pairs:
    """Pairs end to end, before anything is masked."""

    token_ids: Ints  # [T]
    segment_ids: Ints  # [T]
    lengths: Ints  # [B]
    starts: Flags  # [T] a word begins here; special tokens and the first piece of a segment always count as one
    order_labels: Ints  # [B]


class TokenReader:
    """The tokens of a store as one long row, read by ranges."""

    def __init__(self, store: TokenStore) -> None:
        self._tokens = [np.asarray(shard.tokens) for shard in store.shards]
        self._starts = shard_starts(store)

    def read(self, starts: Ints, lengths: Ints, *, out: Ints, places: Ints) -> None:
        """Copy each range to its place in `out`; no range crosses a shard."""
        shards = np.searchsorted(self._starts, starts, side="right") - 1
        begins = starts - self._starts[shards]
        for shard, begin, length, place in zip(
            shards.tolist(), begins.tolist(), lengths.tolist(), places.tolist(), strict=True
        ):
            out[place : place + length] = self._tokens[shard][begin : begin + length]


def make_pairs(reader: TokenReader, rows: Rows, *, keys: Words, pieces: Pieces, settings: ExampleSettings) -> Pairs:
    """Lay out the samples of some index rows; `keys` [B] are the samples' randomness."""
    objective = settings.objective
    start, length = rows["start"].astype(np.int64), rows["length"].astype(np.int64)
    other_start, other_length = rows["other_start"].astype(np.int64), rows["other_length"].astype(np.int64)
    single = np.flatnonzero(other_length == 0)
    if single.size:
        cut = _cut_at_words(reader, start[single], length[single], keys=keys[single], pieces=pieces)
        other_start[single], other_length[single] = start[single] + cut, length[single] - cut
        length[single] = cut

    paired = other_length > 0
    swapped = paired & (uniform(keys, Purpose.SWAP) < 0.5) & (objective == "sop")
    match objective:
        case "sop":
            labels = np.where(paired, swapped, NO_LABEL)
        case "nsp":
            labels = np.where(rows["other_length"] > 0, other_start != start + length, NO_LABEL)
        case "none":
            labels = np.full(rows.size, NO_LABEL)
    if settings.overlap:
        half = (length + other_length) // 2
        overlaps = paired & (half >= SHORTEST_OVERLAP) & (uniform(keys, Purpose.OVERLAP) < settings.overlap)
        moved = start + below(half // 2 + 1, keys, Purpose.OVERLAP, counters=1)
        length, other_length = np.where(overlaps, half, (length, other_length))
        other_start = np.where(overlaps, moved, other_start)
        swapped = np.where(overlaps, uniform(keys, Purpose.OVERLAP, 2) < 0.5, swapped)
        labels = np.where(overlaps, NO_LABEL, labels)
        paired = paired & ~overlaps  # an overlapping pair stays one
    if settings.alone:
        alone = paired & (uniform(keys, Purpose.ALONE) < settings.alone)
        length = np.where(alone, length + other_length, length)
        other_length = np.where(alone, 0, other_length)
        swapped, labels = swapped & ~alone, np.where(alone, NO_LABEL, labels)
    start, other_start = np.where(swapped, (other_start, start), (start, other_start))
    length, other_length = np.where(swapped, (other_length, length), (length, other_length))
    return _lay_out(reader, (start, length), (other_start, other_length), pieces=pieces, labels=labels)


def _lay_out(
    reader: TokenReader, first: tuple[Ints, Ints], second: tuple[Ints, Ints], *, pieces: Pieces, labels: Ints
) -> Pairs:
    """Put special tokens around the ranges; a missing second segment has no [SEP] of its own."""
    (start, length), (other_start, other_length) = first, second
    paired = other_length > 0
    sizes = np.stack(
        [length + 2, other_length + paired], axis=1
    )  # [B, 2] tokens of each segment, special ones included
    lengths = sizes.sum(axis=1)
    ends = np.cumsum(lengths)
    begin = ends - lengths
    place, other_place = begin + 1, (begin + sizes[:, 0])[paired]

    token_ids = np.full(int(lengths.sum()), pieces.sep_id)
    token_ids[begin] = pieces.cls_id
    reader.read(start, length, out=token_ids, places=place)
    reader.read(other_start[paired], other_length[paired], out=token_ids, places=other_place)

    starts = pieces.word_starts[token_ids]
    for boundary in (begin, place, other_place - 1, other_place, ends - 1):
        starts[boundary] = True
    return Pairs(
        token_ids=token_ids,
        segment_ids=np.repeat(np.tile([0, 1], lengths.size), sizes.reshape(-1)),
        lengths=lengths,
        starts=starts,
        order_labels=labels.astype(np.int64),
    )


def _cut_at_words(reader: TokenReader, start: Ints, length: Ints, *, keys: Words, pieces: Pieces) -> Ints:
    """Choose where to cut single sentences in two: before any of their words but the first; one word stays whole."""
    ends = np.cumsum(length)
    begin = ends - length
    tokens = np.empty(int(length.sum()), dtype=np.int64)
    reader.read(start, length, out=tokens, places=begin)
    inner = pieces.word_starts[tokens]
    inner[begin] = False
    words = np.flatnonzero(inner)
    before, after = np.searchsorted(words, begin), np.searchsorted(words, ends)
    cuts = length.copy()
    several = np.flatnonzero(after > before)
    choice = before[several] + below((after - before)[several], keys[several], Purpose.WORD_CUT)
    cuts[several] = words[choice] - begin[several]
    return cuts
