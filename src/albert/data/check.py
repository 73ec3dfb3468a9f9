"""What is in a token store, read from its tokens and boundaries: lengths, unknown tokens, documents that occur twice.

Reads every shard once, in memory that grows with the number of documents (16 bytes each) and not with their length.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from albert.data.shard import Shard
from albert.data.store import TokenStore, total
from albert.errors import DataError

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lengths:
    """How long sentences or documents are, in tokens."""

    shortest: int
    median: int
    mean: float
    longest: int
    histogram: tuple[
        tuple[int, int], ...
    ]  # (upper bound, how many are longer than the bound before it, up to this one)


@dataclass(frozen=True)
class Duplicate:
    """A document that has the tokens of an earlier one, both counted from 0 over the store."""

    document: int
    earlier: int


@dataclass(frozen=True)
class StoreCheck:
    """What was found in a store whose every checksum is right."""

    num_documents: int
    num_sentences: int
    num_tokens: int
    num_unknown: int
    num_single: int  # documents of one sentence
    sentence_lengths: Lengths
    document_lengths: Lengths
    duplicates: tuple[Duplicate, ...]


def check_store(store: TokenStore, *, progress: Callable[[float], None] = lambda _: None) -> StoreCheck:
    """Verify all checksums and count what the store holds; damaged shards are named in one error."""
    if damaged := store.verify():
        names = "; ".join(f"{shard.path.name}: {shard.reason}" for shard in damaged)
        raise DataError(f"{store.folder}: damaged ({names}): run the same `albert data build` again to rebuild")
    if not store.num_documents:
        raise DataError(f"{store.folder}: the store holds no text: build it from files that do")
    sentence_counts = np.zeros(0, dtype=np.int64)  # how many sentences have each length
    document_lengths, hashes, num_single = [], [], 0
    for number, shard in enumerate(store.shards):
        counts = np.bincount(np.diff(shard.sentences))
        sentence_counts = _added(sentence_counts, counts)
        bounds = shard.sentences[shard.documents]
        document_lengths.append(np.diff(bounds))
        num_single += int(np.count_nonzero(np.diff(shard.documents) == 1))
        hashes.append(_document_hashes(shard, bounds))
        progress((number + 1) / len(store.shards))
    return StoreCheck(
        num_documents=store.num_documents,
        num_sentences=store.num_sentences,
        num_tokens=store.num_tokens,
        num_unknown=total(store.manifest.shards, "num_unknown"),
        num_single=num_single,
        sentence_lengths=_lengths(np.arange(sentence_counts.size), sentence_counts),
        document_lengths=_lengths(*np.unique(np.concatenate(document_lengths), return_counts=True)),
        duplicates=_duplicates(np.concatenate(hashes)),
    )


def _added(counts: Ints, more: Ints) -> Ints:
    longer, shorter = (counts, more) if counts.size > more.size else (more, counts)
    longer = longer.copy()
    longer[: shorter.size] += shorter
    return longer


def _document_hashes(shard: Shard, bounds: Ints) -> npt.NDArray[np.uint64]:
    digests = (
        hashlib.blake2b(shard.tokens[start:end].data, digest_size=8).digest()
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    )
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def _duplicates(hashes: npt.NDArray[np.uint64]) -> tuple[Duplicate, ...]:
    _, first, where = np.unique(hashes, return_index=True, return_inverse=True)
    earlier = first[where]
    later = np.flatnonzero(earlier != np.arange(hashes.size))
    return tuple(Duplicate(document, int(earlier[document])) for document in later.tolist())


def _lengths(values: Ints, counts: Ints) -> Lengths:
    values, counts = values[counts > 0], counts[counts > 0]
    up_to = np.cumsum(counts)
    return Lengths(
        shortest=int(values[0]),
        median=int(values[np.searchsorted(up_to, (up_to[-1] + 1) // 2)]),
        mean=float(np.average(values, weights=counts)),
        longest=int(values[-1]),
        histogram=tuple(_histogram(values, counts)),
    )


def _histogram(values: Ints, counts: Ints) -> Iterable[tuple[int, int]]:
    """Count in bins that end at powers of two."""
    bins = np.ceil(np.log2(values)).astype(np.int64)
    totals = np.bincount(bins, weights=counts).astype(np.int64)
    return ((2**power, int(totals[power])) for power in range(int(bins[0]), totals.size))
