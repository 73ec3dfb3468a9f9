"""From text to a shard: the one task that a build consists of, on whatever machine it runs.

A build cuts the stream of documents into parts of some million characters, whole documents each, and makes one
shard of every part. Cut and task depend on text, tokenizer and settings only, so the shards are the same bytes for any
number of workers. Knows nothing of files or of who calls it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain

import numpy as np

from albert.data.shard import BOUNDARY, ShardRecord, pack_arrays, token_type
from albert.errors import ResourceError
from albert.text.documents import Document, ReadReport
from albert.text.sentences import split_sentences
from albert.tokenizer import Tokenizer

BATCH_SIZE = 2**18  # characters encoded at once: ids come as Python numbers, which take 36 bytes each


@dataclass(frozen=True)
class Part:
    """Some whole documents of the corpus, which become shard `index`."""

    index: int
    texts: tuple[bytes, ...]  # UTF-8: one rare character makes a Python string four bytes wide
    bytes_read: int  # of the input files, when the part was complete


@dataclass(frozen=True)
class EncodedPart:
    """The shard that a part became."""

    index: int
    contents: bytes
    record: ShardRecord
    bytes_read: int


def versions() -> dict[str, str]:
    """Name the software that decides which ids a text gets."""
    packages = {name: version(name) for name in ("sentencepiece", "sentencex")}
    return packages | {"unicode": unicodedata.unidata_version}


@dataclass(frozen=True)
class Job:
    """What every task of a build needs to know."""

    tokenizer: Tokenizer
    language: str | None  # None for one sentence per line
    versions: dict[str, str] = field(default_factory=versions)

    def check_machine(self) -> None:
        """Refuse a machine that would give other ids."""
        if self.versions != versions():
            raise ResourceError(f"a worker has {versions()}, the build began with {self.versions}: install the same")


def cut_parts(documents: Iterable[Document], report: ReadReport, *, part_size: int) -> Iterator[Part]:
    """Cut a stream of documents into parts: each ends with the document that brings it to `part_size` characters."""
    index, size = 0, 0
    texts: list[bytes] = []
    for document in documents:
        texts.append(document.text.encode())
        size += len(document.text)
        if size >= part_size:
            yield Part(index, tuple(texts), report.bytes_read)
            index, size, texts = index + 1, 0, []
    if texts:
        yield Part(index, tuple(texts), report.bytes_read)


def encode_part(part: Part, job: Job) -> EncodedPart:
    """Make a shard of a part: split, encode, lay end to end. Sentences without tokens are left out."""
    tokens, lengths, owners = [], [], []
    for sentences, documents in _batches(part.texts, job.language):
        ids = job.tokenizer.encode_many(sentences)
        sizes = np.fromiter(map(len, ids), BOUNDARY, len(ids))
        tokens.append(np.fromiter(chain.from_iterable(ids), token_type(job.tokenizer.vocab_size), int(sizes.sum())))
        lengths.append(sizes[sizes > 0])
        owners.append(np.asarray(documents, dtype=BOUNDARY)[sizes > 0])
    counts = np.bincount(np.concatenate(owners))
    contents, record = pack_arrays(
        np.concatenate(tokens), np.concatenate(lengths), counts[counts > 0], unk_id=job.tokenizer.unk_id
    )
    return EncodedPart(part.index, contents, record, part.bytes_read)


def _batches(texts: tuple[bytes, ...], language: str | None) -> Iterator[tuple[list[str], list[int]]]:
    """Return sentences, and the number of the document of each, some at a time."""
    sentences: list[str] = []
    owners: list[int] = []
    size = 0
    for number, text in enumerate(texts):
        for sentence in split_sentences(text.decode(), language=language):
            sentences.append(sentence)
            owners.append(number)
            size += len(sentence)
            if size >= BATCH_SIZE:
                yield sentences, owners
                sentences, owners, size = [], [], 0
    yield sentences, owners
