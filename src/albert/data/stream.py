"""The batches of a training run, from any step, for any process, without replaying anything.

The samples form one endless sequence: epoch after epoch, each in an order of its own. Batch k holds the samples
k·size to (k+1)·size of it; processes and micro-batches take consecutive parts of a batch. Every sample is a pure
function of (store, settings, epoch, number), so the sequence is the same for any number of processes and workers. All
that a resume needs is the step; `epoch_sizes` saves it from counting the samples of the epochs before.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path

import numpy as np

from albert.batch import PretrainingBatch
from albert.data.index import Rows, check_store, epoch_index
from albert.data.masking import LARGEST_BATCH, mask_ngrams
from albert.data.pairs import TokenReader, make_pairs
from albert.data.pieces import Pieces
from albert.data.randomness import Ints, Words, epoch_key, keyed, shuffled
from albert.data.settings import ExampleSettings
from albert.data.store import TokenStore
from albert.errors import DataError, UsageError


class BatchStream:
    """The endless sequence of batches that a store and settings define."""

    def __init__(
        self,
        store: TokenStore,
        settings: ExampleSettings,
        *,
        batch_size: int,
        cache: Path | None = None,
        epoch_sizes: Sequence[int] = (),
    ) -> None:
        """Open a stream of batches of `batch_size` samples; indices are kept in the folder `cache`, else in memory."""
        if not 1 <= batch_size < LARGEST_BATCH:
            raise UsageError(f"batch_size={batch_size} is out of range: use 1 to {LARGEST_BATCH - 1:,}")
        check_store(store, settings)
        self.store, self.settings, self.batch_size = store, settings, batch_size
        self._cache = cache
        self._reader, self._pieces = TokenReader(store), Pieces.of(store.tokenizer)
        self._indices: dict[int, Rows] = {}
        self._epoch_ends: list[int] = np.cumsum(epoch_sizes, dtype=np.int64).tolist()
        self._lock = threading.Lock()

    @property
    def epoch_sizes(self) -> list[int]:
        """Return the samples of each epoch counted so far: put it in a checkpoint and a resume starts at once."""
        return np.diff(self._epoch_ends, prepend=0).tolist()

    def epoch_size(self, epoch: int) -> int:
        """Count the samples of an epoch."""
        return self._index(epoch).size

    def batch(self, step: int, *, part: int = 0, parts: int = 1) -> PretrainingBatch:
        """Make batch `step`, or one of `parts` parts of it; parts differ by at most one sample."""
        if parts > self.batch_size:
            raise UsageError(f"batch_size={self.batch_size} can't be divided into {parts} parts: use at least {parts}")
        first = step * self.batch_size
        return self._make(
            *self._find(first + self.batch_size * part // parts, first + self.batch_size * (part + 1) // parts)
        )

    def batches(
        self, first_step: int = 0, *, rank: int = 0, ranks: int = 1, micro_batches: int = 1, ahead: int = 2
    ) -> Iterator[list[PretrainingBatch]]:
        """Yield the micro-batches of one process, step after step for ever, made by a thread `ahead` steps early."""
        parts = ranks * micro_batches

        def make(step: int) -> list[PretrainingBatch]:
            own = range(rank * micro_batches, (rank + 1) * micro_batches)
            return [self.batch(step, part=part, parts=parts) for part in own]

        pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches")
        waiting: deque[Future[list[PretrainingBatch]]] = deque()
        try:
            for step in count(first_step):
                waiting.append(pool.submit(make, step))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def one_epoch(self, epoch: int = 0, *, rank: int = 0, ranks: int = 1) -> Iterator[PretrainingBatch]:
        """Yield every sample of one epoch once, the last batch being what is left: the fixed set of an evaluation."""
        size = self.epoch_size(epoch)
        for first in range(rank * self.batch_size, size, ranks * self.batch_size):
            yield self.samples(epoch, np.arange(first, min(first + self.batch_size, size)))

    def samples(self, epoch: int, numbers: Ints) -> PretrainingBatch:
        """Make some samples of an epoch by their numbers: the function that all others call."""
        return self._make(*self._look_up(epoch, numbers))

    def _make(self, rows: Rows, keys: Words) -> PretrainingBatch:
        pairs = make_pairs(self._reader, rows, keys=keys, pieces=self._pieces, settings=self.settings)
        masked = mask_ngrams(
            pairs.token_ids,
            pairs.lengths,
            starts=pairs.starts,
            keys=keys,
            pieces=self._pieces,
            settings=self.settings,
        )
        return PretrainingBatch(
            token_ids=masked.token_ids,
            segment_ids=pairs.segment_ids,
            lengths=pairs.lengths,
            masked_positions=masked.positions,
            masked_labels=masked.labels,
            order_labels=pairs.order_labels,
        )

    def _look_up(self, epoch: int, numbers: Ints) -> tuple[Rows, Words]:
        """Find the index rows and the keys of samples."""
        index, key = self._index(epoch), epoch_key(self.settings.seed, epoch)
        return np.asarray(index[shuffled(numbers, index.size, key=key)]), keyed(key, numbers)

    def _find(self, first: int, last: int) -> tuple[Rows, Words]:
        """Find samples of the endless sequence; a range may run over the end of an epoch."""
        found = []
        while first < last:
            epoch, begin, end = self._epoch_of(first)
            until = min(last, end)
            found.append(self._look_up(epoch, np.arange(first - begin, until - begin)))
            first = until
        return np.concatenate([rows for rows, _ in found]), np.concatenate([keys for _, keys in found])

    def _epoch_of(self, sample: int) -> tuple[int, int, int]:
        """Find a sample's epoch, and where in the sequence that epoch begins and ends."""
        with self._lock:
            while not self._epoch_ends or self._epoch_ends[-1] <= sample:
                before = self._epoch_ends[-1] if self._epoch_ends else 0
                self._epoch_ends.append(before + self._open_index(len(self._epoch_ends)).size)
            epoch = bisect_right(self._epoch_ends, sample)
            return epoch, self._epoch_ends[epoch - 1] if epoch else 0, self._epoch_ends[epoch]

    def _index(self, epoch: int) -> Rows:
        with self._lock:
            return self._open_index(epoch)

    def _open_index(self, epoch: int) -> Rows:
        if epoch not in self._indices:
            index = epoch_index(self.store, self.settings, epoch, cache=self._cache)
            known = self.epoch_sizes[epoch] if epoch < len(self._epoch_ends) else index.size
            if known != index.size:
                raise DataError(
                    f"{self.store.folder}: epoch {epoch} has {index.size:,} samples and the resumed run counted "
                    f"{known:,}: it was started with another store or other settings"
                )
            self._indices = {other: rows for other, rows in self._indices.items() if abs(other - epoch) == 1}
            self._indices[epoch] = index
        return self._indices[epoch]
