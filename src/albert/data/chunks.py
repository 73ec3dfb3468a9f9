"""Documents into chunks, chunks into segments A and B: where each begins and ends (section 3.1 of the paper).

A chunk is whole sentences of one document, as many as fit. It begins and ends with a sentence (but for those that are
longer than a sequence): half a sentence at its end would betray which segment came last. Every token lies in exactly
one chunk; chunks and cuts differ from epoch to epoch. Reads boundaries, not tokens. Doesn't know which segment comes
first or what is masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from albert.data.pieces import Flags
from albert.data.randomness import Ints, Purpose, Words, below, keyed, uniform
from albert.data.settings import ExampleSettings
from albert.data.shard import Shard, Tokens
from albert.data.store import TokenStore
from albert.errors import DataError

_SLAB = 2**19  # sentences handled at once: about 14 million tokens of English, 100 MB of arrays


@dataclass(frozen=True)
class Slab:
    """Whole documents of one shard. A unit is a sentence, or a part of one that is longer than a sequence."""

    first_token: int  # of the shard, counted over the shards end to end
    first_document: int  # of the slab, counted likewise
    bounds: Ints  # [U+1] where units begin, in tokens of the shard
    documents: Ints  # [D+1] where documents begin, in units


@dataclass(frozen=True)
class Chunks:
    """Chunks in the order of the text; tokens and documents are counted over the shards end to end."""

    begin: Ints
    cut: Ints  # where B begins; equal to `end` for a chunk of one sentence
    end: Ints
    target: Ints  # tokens of text that were aimed at
    document: Ints
    foreign: Flags  # B is to come from another document, and the chunk's own B begins the next chunk (NSP)
    keys: Words


def shard_starts(store: TokenStore) -> Ints:
    """Return the number of tokens before each shard, and last of all shards."""
    return np.cumsum([0, *(shard.tokens.size for shard in store.shards)], dtype=np.int64)


def slabs(store: TokenStore, capacity: int, *, word_starts: Flags) -> Iterator[Slab]:
    """Walk the store in runs of whole documents, so that memory doesn't grow with its shards."""
    starts, first_document = shard_starts(store).tolist(), 0
    for number, shard in enumerate(store.shards):
        documents = shard.documents
        low, last = 0, documents.size - 1
        while low < last:
            high = max(low + 1, int(np.searchsorted(documents, documents[low] + _SLAB, side="right")) - 1)
            sentences = shard.sentences[documents[low] : documents[high] + 1]
            if sentences.size < 2 or np.diff(sentences).min() < 1:
                raise DataError(f"{store.folder}: shard {number} is damaged: see `albert data check {store.folder}`")
            bounds = _split_long(shard, sentences, capacity=capacity, word_starts=word_starts)
            borders = np.searchsorted(bounds, sentences[documents[low : high + 1] - documents[low]])
            yield Slab(starts[number], first_document + low, bounds, borders)
            low = high
        first_document += last


def cut_chunks(slab: Slab, settings: ExampleSettings, *, key: Words) -> Chunks:
    """Cut a slab into chunks, and chunks into segments.

    Where a chunk ends depends only on where it begins: so find the end of the chunk that would begin at each unit, for
    all units at once, and then follow the chain from the first.
    """
    units = np.arange(slab.bounds.size - 1)
    keys = keyed(key, slab.first_token + slab.bounds[:-1])
    targets = _targets(slab, settings, keys=keys)
    ends = _chunk_ends(slab, targets, capacity=settings.capacity)
    cuts = units + 1 + below(ends - units - 1, keys, Purpose.CUT)
    foreign = (cuts < ends) & (uniform(keys, Purpose.FOREIGN) < 0.5) & (settings.objective == "nsp")
    chosen = _chain(np.where(foreign, cuts, ends))
    tokens = slab.first_token + slab.bounds
    return Chunks(
        begin=tokens[chosen],
        cut=tokens[cuts[chosen]],
        end=tokens[ends[chosen]],
        target=targets[chosen],
        document=slab.first_document + np.searchsorted(slab.documents, chosen, side="right") - 1,
        foreign=foreign[chosen],
        keys=keys[chosen],
    )


def last_word_start(tokens: Tokens, begin: int, limit: int, *, word_starts: Flags) -> int:
    """Find the last place in (begin, limit] where a word begins; in one endless word, the limit itself."""
    places = np.flatnonzero(word_starts[tokens[begin + 1 : limit + 1]])
    return begin + 1 + int(places[-1]) if places.size else limit


def _split_long(shard: Shard, sentences: Ints, *, capacity: int, word_starts: Flags) -> Ints:
    """Cut sentences that are longer than a sequence at word boundaries into parts that fit."""
    cuts = []
    for sentence in np.flatnonzero(np.diff(sentences) > capacity).tolist():
        begin, end = int(sentences[sentence]), int(sentences[sentence + 1])
        while end - begin > capacity:
            begin = last_word_start(shard.tokens, begin, begin + capacity, word_starts=word_starts)
            cuts.append(begin)
    return np.sort(np.concatenate([sentences, np.array(cuts, dtype=np.int64)]))


def _targets(slab: Slab, settings: ExampleSettings, *, keys: Words) -> Ints:
    """Draw the length aimed at by the chunk that would begin at each unit, in tokens of text."""
    capacity = settings.capacity
    targets = np.full(keys.size, capacity)
    # Boundaries move every epoch at no cost: the first chunk gives up a part of what the last one would lack.
    first, last = slab.documents[:-1], slab.documents[1:]
    tokens = slab.bounds[last] - slab.bounds[first]
    first, tokens = first[tokens > capacity], tokens[tokens > capacity]
    targets[first] -= below(-tokens % capacity, keys[first], Purpose.SLACK)
    short = np.flatnonzero(uniform(keys, Purpose.LENGTH) < settings.short_prob)
    targets[short] = 2 + below(capacity - 1, keys[short], Purpose.TARGET)
    return targets


def _chunk_ends(slab: Slab, targets: Ints, *, capacity: int) -> Ints:
    """Find where the chunk that would begin at each unit ends, as a unit.

    A chunk takes whole units until its target is reached, but never more than fit, and stays in its document.
    """
    begin = slab.bounds[:-1]
    ends = np.searchsorted(slab.bounds, begin + capacity, side="right") - 1
    short = np.flatnonzero(targets < capacity)
    reached = np.searchsorted(slab.bounds, begin[short] + targets[short], side="left")
    ends[short] = np.minimum(ends[short], reached)
    return np.minimum(ends, np.repeat(slab.documents[1:], np.diff(slab.documents)))


def _chain(links: Ints) -> Ints:
    """Follow the links from 0 until they leave the array; give the stops."""
    following, stops, stop = links.tolist(), [], 0
    while stop < len(following):
        stops.append(stop)
        stop = following[stop]
    return np.array(stops, dtype=np.int64)
