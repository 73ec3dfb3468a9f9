"""Which tokens make which sample: the segment pairs of an epoch as rows of token ranges, in the order of the text.

Built from a store's boundaries, in half a second for 60 million tokens; kept in memory, or memory-mapped in a cache
folder. A row is 20 bytes. Knows nothing of batches. The order of an epoch is not stored but computed (stream.py).
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from albert.data.chunks import cut_chunks, slabs
from albert.data.foreign import foreign_segments
from albert.data.randomness import epoch_key
from albert.data.settings import ExampleSettings
from albert.data.store import TokenStore
from albert.errors import DataError
from albert.files import atomic_write

log = logging.getLogger(__name__)

Rows = npt.NDArray[np.void]

# A sample: two ranges of tokens, counted over the shards end to end. A chunk of one sentence has an empty second range.
ROW = np.dtype([("start", "<i8"), ("other_start", "<i8"), ("length", "<u2"), ("other_length", "<u2")])
_FORMAT = 1  # in the name of every cached index: raise it when the same settings give other rows


def epoch_index(store: TokenStore, settings: ExampleSettings, epoch: int, *, cache: Path | None = None) -> Rows:
    """Return the samples of an epoch, read from the cache folder or built (and kept there, if one is given)."""
    check_store(store, settings)
    if cache is None:
        return np.concatenate(list(_build(store, settings, epoch)))
    name = _cache_name(store, settings)
    path = cache / f"{name}-{epoch:06d}.index"
    if not _usable(path):
        log.info("building the index of epoch %d in %s", epoch, path)
        with atomic_write(path) as file:
            for rows in _build(store, settings, epoch):
                file.write(rows.tobytes())
        _forget_old_epochs(cache, name, epoch=epoch)
    return np.memmap(path, dtype=ROW, mode="r")


def check_store(store: TokenStore, settings: ExampleSettings) -> None:
    """Refuse a store that has no text, or too few documents for the objective."""
    if store.num_tokens == 0:
        raise DataError(f"{store.folder}: the store holds no text: build it from files that do")
    if settings.objective == "nsp" and store.num_documents < 2:
        raise DataError(f"{store.folder}: objective 'nsp' needs two documents and the store has one: use 'sop'")


def _build(store: TokenStore, settings: ExampleSettings, epoch: int) -> Iterator[Rows]:
    key, word_starts = epoch_key(settings.seed, epoch), store.tokenizer.word_starts
    for slab in slabs(store, settings.capacity, word_starts=word_starts):
        chunks = cut_chunks(slab, settings, key=key)
        rows = np.empty(chunks.begin.size, dtype=ROW)
        rows["start"], rows["length"] = chunks.begin, chunks.cut - chunks.begin
        rows["other_start"], rows["other_length"] = chunks.cut, chunks.end - chunks.cut
        if chunks.foreign.any():
            rows["other_start"][chunks.foreign], rows["other_length"][chunks.foreign] = foreign_segments(
                store, chunks, capacity=settings.capacity, word_starts=word_starts
            )
        yield rows


def _cache_name(store: TokenStore, settings: ExampleSettings) -> str:
    facts = {
        "format": _FORMAT,
        "store": store.fingerprint,
        "seed": settings.seed,
        "max_length": settings.max_length,
        "short_prob": settings.short_prob,
        "foreign": settings.objective == "nsp",
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _usable(path: Path) -> bool:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return False
    return size > 0 and size % ROW.itemsize == 0


def _forget_old_epochs(cache: Path, name: str, *, epoch: int) -> None:
    """Remove the indices of epochs gone by; a process that still reads one keeps its copy until it lets go."""
    for path in cache.glob(f"{name}-*.index"):
        if path.name < f"{name}-{epoch - 1:06d}":
            path.unlink(missing_ok=True)
