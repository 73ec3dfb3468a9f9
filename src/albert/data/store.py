"""The token store: a corpus as token ids in memory-mapped shards, complete in itself.

A folder of shards (shard.py), the tokenizer that made them, and `manifest.json`: the tokenizer's fingerprint, counts,
checksums, the settings and inputs of the build. Opening is cheap and reads no token; `verify` reads them all. A shard
of another size than the manifest says, and another tokenizer, are refused by name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, overload

from albert.data.shard import (
    Shard,
    ShardRecord,
    damage,
    open_shard,
    pack_shard,
    shard_name,
    shard_size,
    write_shard,
    wrong_size,
)
from albert.errors import DataError
from albert.files import read_json, write_json
from albert.tokenizer import Tokenizer

FORMAT = 1  # of the folder; raised when an older reader would misread it
MANIFEST = "manifest.json"
MANIFEST_LIMIT = 2**30  # bytes: it lists every input file, at some 200 bytes each
UNFINISHED = "unfinished.journal"  # of a build that has not ended; no name that a folder of text would be searched for
TOKENIZER = "tokenizer"


@dataclass(frozen=True)
class Manifest:
    """All that is known of a store but its tokens."""

    tokenizer: str  # fingerprint
    vocab_size: int
    shards: tuple[ShardRecord, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[dict[str, Any], ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    findings: dict[str, Any] = field(default_factory=dict)  # what the reader mended or skipped
    format: int = FORMAT

    def save(self, folder: Path) -> None:
        """Write the manifest: from now on the folder is a store."""
        totals = {name: total(self.shards, name) for name in ("num_tokens", "num_sentences", "num_documents")}
        write_json(folder / MANIFEST, totals | asdict(self))

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        """Read a manifest from outside and check its form."""
        values = read_json(folder / MANIFEST, error=DataError, limit=MANIFEST_LIMIT)
        return cls.parse(values, folder / MANIFEST)

    @classmethod
    def parse(cls, values: dict[str, Any], path: Path) -> Manifest:
        """Check the form of a manifest that was read from a file."""
        if values.get("format") != FORMAT:
            raise DataError(f"{path}: format {values.get('format')!r}, this version reads {FORMAT}: build it again")
        try:
            shards = tuple(ShardRecord.parse(record) for record in values["shards"])
            known = {item.name: values[item.name] for item in fields(cls) if item.name in values}
            manifest = cls(**known | {"shards": shards, "inputs": tuple(values.get("inputs", ()))})
        except (TypeError, KeyError, ValueError) as problem:
            raise DataError(f"{path}: is not the manifest of a store ({problem}): build it again") from problem
        if type(manifest.vocab_size) is not int or type(manifest.tokenizer) is not str:
            raise DataError(f"{path}: vocab_size must be a whole number and tokenizer a text: build it again")
        return manifest


def total(shards: Iterable[ShardRecord], name: str) -> int:
    """Sum a count over shards."""
    return sum(getattr(record, name) for record in shards)


@dataclass(frozen=True)
class DamagedShard:
    """A shard that is not what was written."""

    path: Path
    reason: str


class TokenStore:
    """An open store. It can be sent to another process, which opens it anew."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self.shards: Sequence[Shard] = _LazyShards(folder, manifest)
        self.num_tokens = total(manifest.shards, "num_tokens")
        self.num_sentences = total(manifest.shards, "num_sentences")
        self.num_documents = total(manifest.shards, "num_documents")
        self.num_unknown = total(manifest.shards, "num_unknown")

    @classmethod
    def open(cls, folder: Path | str) -> TokenStore:
        """Open a store, checking its manifest and the sizes of its shards."""
        folder = Path(folder)
        if not (folder / MANIFEST).exists():
            if (folder / UNFINISHED).exists():
                raise DataError(
                    f"{folder}: this store is unfinished: run the same `albert data build` again to finish it"
                )
            raise DataError(f"{folder}: no token store here ({MANIFEST} is missing): make one with `albert data build`")
        manifest = Manifest.load(folder)
        for index, record in enumerate(manifest.shards):
            path = folder / shard_name(index)
            if wrong := wrong_size(path, record, vocab_size=manifest.vocab_size):
                raise DataError(f"{path}: {wrong}: run the same `albert data build` again to rebuild it")
        return cls(folder, manifest)

    def __reduce__(self) -> tuple[Any, ...]:
        return TokenStore.open, (self.folder,)

    @property
    def fingerprint(self) -> str:
        """Name the contents: the tokenizer and every token and boundary."""
        digest = hashlib.sha256(self.manifest.tokenizer.encode())
        for record in self.manifest.shards:
            digest.update(record.sha256.encode())
        return digest.hexdigest()

    @property
    def num_bytes(self) -> int:
        """Return the size of all shards on disk."""
        return sum(shard_size(record, vocab_size=self.manifest.vocab_size) for record in self.manifest.shards)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Load the tokenizer that made the store, from its own copy."""
        tokenizer = Tokenizer.load(self.folder / TOKENIZER)
        self.require_tokenizer(tokenizer)
        return tokenizer

    def require_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Refuse a tokenizer that would read these ids as other pieces."""
        if tokenizer.fingerprint != self.manifest.tokenizer:
            raise DataError(
                f"{self.folder}: built with tokenizer {self.manifest.tokenizer[:12]} "
                f"({self.manifest.vocab_size:,} pieces), not with {tokenizer.fingerprint[:12]} "
                f"({tokenizer.vocab_size:,} pieces): "
                f"use the one in {self.folder / TOKENIZER} or build the store again"
            )

    def verify(self) -> list[DamagedShard]:
        """Read every shard and name those that are not as they were written."""
        found = []
        for index, record in enumerate(self.manifest.shards):
            path = self.folder / shard_name(index)
            if reason := damage(path, record, vocab_size=self.manifest.vocab_size):
                found.append(DamagedShard(path, reason))
        return found


class _LazyShards(Sequence[Shard]):
    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder, self._manifest = folder, manifest
        self._open: dict[int, Shard] = {}

    def __len__(self) -> int:
        return len(self._manifest.shards)

    @overload
    def __getitem__(self, index: int) -> Shard: ...
    @overload
    def __getitem__(self, index: slice) -> list[Shard]: ...
    def __getitem__(self, index: int | slice) -> Shard | list[Shard]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        if index not in self._open:
            path, record = self._folder / shard_name(index), self._manifest.shards[index]
            self._open[index] = open_shard(path, record, vocab_size=self._manifest.vocab_size)
        return self._open[index]

    def __iter__(self) -> Iterator[Shard]:
        return (self[index] for index in range(len(self)))


def write_store(
    folder: Path | str,
    documents: Iterable[Sequence[Sequence[int]]],
    *,
    tokenizer: Tokenizer,
    documents_per_shard: int = 1000,
) -> TokenStore:
    """Make a store of documents that already are sentences of ids; those of one shard at a time are in memory."""
    folder = Path(folder)
    kept = ([ids for ids in document if len(ids)] for document in documents)
    kept = (document for document in kept if document)
    records = []
    for index, part in enumerate(iter(lambda: list(islice(kept, documents_per_shard)), [])):
        sentences = [ids for document in part for ids in document]
        contents, record = pack_shard(
            sentences, list(map(len, part)), vocab_size=tokenizer.vocab_size, unk_id=tokenizer.unk_id
        )
        write_shard(folder / shard_name(index), contents)
        records.append(record)
    tokenizer.save(folder / TOKENIZER)
    Manifest(tokenizer.fingerprint, tokenizer.vocab_size, tuple(records)).save(folder)
    return TokenStore.open(folder)
