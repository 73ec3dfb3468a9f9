"""Segments from other documents: the negatives of next-sentence prediction (Table 5 of the paper).

A foreign segment begins at a random sentence of another document and is as long as the one that it stands in for would
be, so that length betrays nothing. It is read in addition: the text it replaces begins the next chunk.
"""

from __future__ import annotations

import numpy as np

from albert.data.chunks import Chunks, last_word_start, shard_starts
from albert.data.pieces import Flags
from albert.data.randomness import Ints, Purpose, below
from albert.data.store import TokenStore


def foreign_segments(store: TokenStore, chunks: Chunks, *, capacity: int, word_starts: Flags) -> tuple[Ints, Ints]:
    """Draw a segment for each foreign chunk: its first token, counted over the shards end to end, and its length."""
    which = np.flatnonzero(chunks.foreign)
    keys, lengths = chunks.keys[which], (chunks.cut - chunks.begin)[which]
    wanted, room = chunks.target[which] - lengths, capacity - lengths
    counts = np.array([shard.documents.size - 1 for shard in store.shards])
    before = np.cumsum(counts) - counts
    document = below(int(counts.sum()) - 1, keys, Purpose.FOREIGN_DOCUMENT)
    document += document >= chunks.document[which]  # any but its own
    shard_of = np.searchsorted(before, document, side="right") - 1

    starts, sizes = np.empty_like(document), np.empty_like(document)
    offsets = shard_starts(store)
    for number in np.unique(shard_of).tolist():
        shard, here = store.shards[number], np.flatnonzero(shard_of == number)
        sentences, local = shard.sentences, document[here] - before[number]
        first, last = shard.documents[local], shard.documents[local + 1]
        begin = sentences[first + below(last - first, keys[here], Purpose.FOREIGN_SENTENCE)]
        limit = np.minimum(begin + room[here], sentences[last])
        aim = np.minimum(begin + np.maximum(wanted[here], 1), limit)
        reached = sentences[np.searchsorted(sentences, aim, side="left")]
        fitting = sentences[np.searchsorted(sentences, limit, side="right") - 1]
        end = np.minimum(reached, fitting)
        for row in np.flatnonzero(end <= begin).tolist():  # no whole sentence fits: the only truncation there is
            end[row] = last_word_start(shard.tokens, int(begin[row]), int(limit[row]), word_starts=word_starts)
        starts[here], sizes[here] = offsets[number] + begin, end - begin
    return starts, sizes
