"""How fast training examples are made, on one core: the index of an epoch, and batches from it.

Uses the whole real corpus (Wikipedia and books, 260 MB). Building its store takes a minute: keep it with --store.

    python benchmarks/bench_batches.py --store /tmp/store [--rounds 7] [--record]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from recording import data_folder, print_table, record

from albert.data.build import BuildSettings, build_store
from albert.data.engines import LocalEngine
from albert.data.index import epoch_index
from albert.data.settings import NUM_SPECIAL, ExampleSettings, Objective
from albert.data.store import MANIFEST, TokenStore
from albert.data.stream import BatchStream
from albert.tokenizer import Tokenizer

TOKENS_A_ROUND = 2_000_000
SHAPES = ((128, 128), (512, 32), (128, 8), (8192, 2))  # length, sequences of a batch


@contextmanager
def corpus(folder: Path | None) -> Iterator[TokenStore]:
    """Build the store of the real corpus, or open it where it was built before."""
    if folder is not None and (folder / MANIFEST).exists():
        yield TokenStore.open(folder)
        return
    data = data_folder()
    with tempfile.TemporaryDirectory() as temporary:
        result = build_store(
            sorted((data / "corpus").glob("*.train.txt.xz")),
            folder or Path(temporary) / "store",
            tokenizer=Tokenizer.load(data / "vocab" / "spiece.model"),
            settings=BuildSettings(),
            engine=LocalEngine(os.cpu_count() or 1),
        )
        yield result.store


def index_speed(store: TokenStore, length: int, objective: Objective, *, rounds: int) -> dict[str, Any]:
    """Time the index of an epoch, kept on disk as training keeps it."""
    settings, seconds = ExampleSettings(max_length=length, objective=objective), []
    for epoch in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            started = time.perf_counter()
            samples = epoch_index(store, settings, epoch, cache=Path(cache)).size
            seconds.append(time.perf_counter() - started)
    return {
        "index": objective,
        "length": length,
        "tokens": store.num_tokens,
        "samples": samples,
        "median s": round(statistics.median(seconds), 2),
        "worst s": round(max(seconds), 2),
    }


def batch_speed(store: TokenStore, length: int, batch_size: int, *, rounds: int) -> dict[str, Any]:
    """Time batches in the shuffled order of training, index not included."""
    stream = BatchStream(store, ExampleSettings(max_length=length), batch_size=batch_size)
    stream.batch(0)
    step, speeds = 1, []
    for _ in range(rounds):
        tokens, started = 0, time.perf_counter()
        while tokens < TOKENS_A_ROUND:
            tokens += stream.batch(step).token_ids.size
            step += 1
        speeds.append(tokens / (time.perf_counter() - started))
    return {
        "length": length,
        "sequences": batch_size,
        "rounds": rounds,
        "median tokens/s": round(statistics.median(speeds)),
        "worst tokens/s": round(min(speeds)),
    }


def sample_shape(store: TokenStore, length: int) -> dict[str, Any]:
    """Count what samples are like; these figures are the same on any machine."""
    settings = ExampleSettings(max_length=length)
    rows, following = epoch_index(store, settings, 0), epoch_index(store, settings, 1)
    sizes = rows["length"].astype(np.int64) + rows["other_length"]
    ends = following["start"] + following["length"] + following["other_length"]
    again = np.intersect1d(rows["start"] * 2**14 + sizes, following["start"] * 2**14 + ends - following["start"])
    return {
        "length": length,
        "samples": rows.size,
        "mean length": round(float(sizes.mean()) + NUM_SPECIAL, 1),
        "of one sentence": f"{np.mean(rows['other_length'] == 0):.1%}",
        "chunks that return in the next epoch": f"{again.size / rows.size:.0%}",
    }


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, help="where the corpus's store is, or is to be kept")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/batches.json and .md")
    options = parser.parse_args()
    with corpus(options.store) as store:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        shapes = [sample_shape(store, length) for length in (64, 128, 512)]
        print_table(shapes)
        indices = [
            index_speed(store, length, objective, rounds=options.rounds)
            for objective, length in (("sop", 128), ("sop", 512), ("nsp", 128))
        ]
        print_table(indices)
        batches = [batch_speed(store, *shape, rounds=options.rounds) for shape in SHAPES]
        print_table(batches)
    if options.record:
        record("batches", [*shapes, *indices, *batches], title="Training examples: speed on one core")


if __name__ == "__main__":
    main()
