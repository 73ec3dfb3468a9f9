"""One shard of a token store: a file of little-endian numbers that is memory-mapped as it lies.

`documents` [D+1] int64, then `sentences` [S+1] int64, then `tokens` [T] (uint16, uint32 for more than 65,536 pieces).
Sentence i of the shard is `tokens[sentences[i]:sentences[i+1]]`; document j is the sentences `documents[j]` to
`documents[j+1]`. There are no special tokens, no empty sentence and no empty document. How many of each a file holds
stands in its record, in the store's manifest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from albert.errors import DataError
from albert.files import atomic_write, sha256

BOUNDARY = np.dtype("<i8")

Tokens = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Boundaries = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shard:
    """Tokens and the boundaries of sentences and documents, read from the file as they are needed."""

    tokens: Tokens  # [T]
    sentences: Boundaries  # [S+1] offsets into tokens, from 0 to T
    documents: Boundaries  # [D+1] offsets into sentences, from 0 to S


@dataclass(frozen=True)
class ShardRecord:
    """What a manifest keeps of a shard."""

    num_tokens: int
    num_sentences: int
    num_documents: int
    num_unknown: int
    sha256: str

    @classmethod
    def parse(cls, values: dict[str, Any]) -> ShardRecord:
        """Check a record that was read from a file."""
        record = cls(**values)
        counts = (record.num_tokens, record.num_sentences, record.num_documents, record.num_unknown)
        if any(type(count) is not int or count < 0 for count in counts) or type(record.sha256) is not str:
            raise ValueError(f"a shard's record is {values}")
        return record


def token_type(vocab_size: int) -> np.dtype[Any]:
    """Choose the smallest number that holds every id."""
    return np.dtype("<u2") if vocab_size <= 2**16 else np.dtype("<u4")


def shard_name(index: int) -> str:
    """Name the file of a shard."""
    return f"shard-{index:06}.bin"


def pack_shard(
    sentences: Iterable[Sequence[int]], sentence_counts: Sequence[int], *, vocab_size: int, unk_id: int
) -> tuple[bytes, ShardRecord]:
    """Lay sentences end to end; `sentence_counts` tells how many of them each document has."""
    lists = list(sentences)
    lengths = np.fromiter(map(len, lists), BOUNDARY, len(lists))
    counts = np.asarray(sentence_counts, dtype=BOUNDARY)
    tokens = np.fromiter(chain.from_iterable(lists), token_type(vocab_size), int(lengths.sum()))
    return pack_arrays(tokens, lengths, counts, unk_id=unk_id)


def pack_arrays(
    tokens: Tokens, lengths: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], *, unk_id: int
) -> tuple[bytes, ShardRecord]:
    """Make a shard's bytes of its tokens, the length of each sentence and the number of sentences of each document."""
    assert lengths.all(), "an empty sentence"
    assert counts.all(), "an empty document"
    assert (counts.sum(), lengths.sum()) == (lengths.size, tokens.size), "boundaries that don't fit"
    contents = b"".join((_offsets(counts), _offsets(lengths), tokens.tobytes()))
    record = ShardRecord(
        num_tokens=tokens.size,
        num_sentences=lengths.size,
        num_documents=counts.size,
        num_unknown=int(np.count_nonzero(tokens == unk_id)),
        sha256=hashlib.sha256(contents).hexdigest(),
    )
    return contents, record


def _offsets(lengths: npt.NDArray[np.int64]) -> bytes:
    return np.concatenate(([0], np.cumsum(lengths))).astype(BOUNDARY).tobytes()


def write_shard(path: Path, contents: bytes) -> None:
    """Write a shard's bytes, whole or not at all."""
    with atomic_write(path) as file:
        file.write(contents)


def open_shard(path: Path, record: ShardRecord, *, vocab_size: int) -> Shard:
    """Map a shard into memory; only its size is checked."""
    if damage := wrong_size(path, record, vocab_size=vocab_size):
        raise DataError(f"{path}: {damage}: run the same `albert data build` again to rebuild it")
    # A plain array over the map: slicing an np.memmap costs several times as much.
    contents = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    at_sentences = (record.num_documents + 1) * BOUNDARY.itemsize
    at_tokens = at_sentences + (record.num_sentences + 1) * BOUNDARY.itemsize
    return Shard(
        tokens=contents[at_tokens:].view(token_type(vocab_size)),
        sentences=contents[at_sentences:at_tokens].view(BOUNDARY),
        documents=contents[:at_sentences].view(BOUNDARY),
    )


def shard_size(record: ShardRecord, *, vocab_size: int) -> int:
    """Return the bytes of a shard's file."""
    boundaries = record.num_documents + record.num_sentences + 2
    return boundaries * BOUNDARY.itemsize + record.num_tokens * token_type(vocab_size).itemsize


def wrong_size(path: Path, record: ShardRecord, *, vocab_size: int) -> str | None:
    """Say what is wrong with a shard's size, if anything."""
    expected = shard_size(record, vocab_size=vocab_size)
    try:
        size = path.stat().st_size
    except OSError as problem:
        return f"can't be read ({problem.strerror})"
    return None if size == expected else f"holds {size:,} bytes instead of {expected:,}"


def damage(path: Path, record: ShardRecord, *, vocab_size: int) -> str | None:
    """Say what is wrong with a shard's contents, if anything: reads all of it."""
    if wrong := wrong_size(path, record, vocab_size=vocab_size):
        return wrong
    return None if sha256(path) == record.sha256 else "its checksum is not the recorded one"
