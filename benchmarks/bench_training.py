"""Training throughput: whole steps against transformers' AlbertForPreTraining, and against bare matrix products.

Both sides have the same weights, the same real pre-training batches (masked n-grams, sentence order; packed for us,
padded for transformers) and AdamW; a step is forward, both losses, backward, clipping, optimizer. transformers runs in
a process of its own without our settings, as its users run it; one process waits while the other works. The bare
products are those of the step, forward and both backward ones, with attention's, into arrays that exist already. All
are interleaved in every round; medians of the rounds' ratios are printed. Run nothing beside it: 8 minutes on 2 cores.

    python benchmarks/bench_training.py [--rounds 5] [--only base|small] [--record]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from padded import pad
from recording import data_folder, print_table, record

from albert.model import AlbertConfig, new_model, preset  # first: it sets the CPU up

import torch  # isort: skip

from albert.batch import PretrainingBatch
from albert.data.build import BuildSettings, build_store
from albert.data.engines import LocalEngine
from albert.data.settings import ExampleSettings
from albert.data.store import TokenStore
from albert.data.stream import BatchStream
from albert.model.folder import save_model
from albert.optim import OptimizerSettings, build_optimizer
from albert.pretrain.job import PretrainJob
from albert.pretrain.settings import PretrainSettings
from albert.tokenizer import Tokenizer
from albert.train.loop import accumulate
from albert.train.world import World, join_world

LOOP = Path(__file__).with_name("transformers_loop.py")


@dataclass(frozen=True)
class Case:
    """A shape and what is trained on at once."""

    model: str
    length: int
    sequences: int
    bare: bool = True  # whether the bare products are timed as well


CASES = (
    Case("base", 512, 4),
    Case("base", 512, 8, bare=False),
    Case("small", 128, 32),
    Case("small", 128, 64),
)


@dataclass(frozen=True)
class Round:
    """The seconds of one round."""

    ours: float
    theirs: float
    bare: float | None
    tokens: int


def measure(case: Case, store: TokenStore, *, rounds: int, world: World) -> dict[str, Any]:
    """Time one case; the first step, on a single text, warms both sides up and shows that they compute the same."""
    config = preset(case.model).with_settings({"classifier_dropout_prob": 0.0})
    batches = [_batches(store, case.length, 1).batch(0)]
    batches += [_batches(store, case.length, case.sequences).batch(number) for number in range(rounds)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        step = our_step(config, store, case.length, folder=folder, world=world)
        for number, batch in enumerate(batches):
            np.savez(folder / f"batch-{number}.npz", **pad(batch))
        with transformers_step(folder) as their_step:
            _, our_loss = step(batches[0])
            _, their_loss = their_step(0)
            if abs(our_loss - their_loss) > 1e-3:
                sys.exit(f"the sides differ: our loss is {our_loss}, transformers' {their_loss}")
            times = [
                Round(
                    step(batch)[0],
                    their_step(number)[0],
                    bare_seconds(config, batch) if case.bare else None,
                    batch.token_ids.size,
                )
                for number, batch in enumerate(batches[1:], start=1)
            ]
    return row(case, times)


def row(case: Case, times: list[Round]) -> dict[str, Any]:
    """Put the rounds of a case into a line of the table."""
    ratios = [each.theirs / each.ours for each in times]
    shares = [each.bare / each.ours for each in times if each.bare is not None]
    room = case.sequences * case.length
    return {
        "case": f"{case.model}, {case.sequences} × {case.length}",
        "tokens a step": round(median(each.tokens for each in times)),
        "not filled": f"{1 - sum(each.tokens for each in times) / (room * len(times)):.0%}",
        "ours tokens/s": round(median(each.tokens / each.ours for each in times)),
        "transformers tokens/s": round(median(each.tokens / each.theirs for each in times)),
        "ratio": f"{median(ratios):.2f}",
        "ratios": f"{min(ratios):.2f} to {max(ratios):.2f}",
        "share of bare products": f"{median(shares):.0%}" if shares else "",
    }


def our_step(
    config: AlbertConfig, store: TokenStore, length: int, *, folder: Path, world: World
) -> Callable[[PretrainingBatch], tuple[float, float]]:
    """Make our training step, and write the model that it starts from for the other side."""
    model = new_model(config, ("mlm", "order")).train()
    save_model(model, folder / "model")
    settings = PretrainSettings.model_validate(
        {"data": {"max_length": length}, "train": {"batch_size": 1, "precision": "fp32"}}
    )
    job = PretrainJob(model, store, settings, world=world, valid=None)
    optimizer = build_optimizer(OptimizerSettings(name="adamw"), model, lr=1e-4)

    def step(batch: PretrainingBatch) -> tuple[float, float]:
        started = time.perf_counter()
        counts = job.counts(batch)
        sums = accumulate(job, [batch], counts=counts, step=0, settings=settings.train, scaler=None, world=world)
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.optimizer.clip)
        optimizer.step()
        optimizer.zero_grad()
        return time.perf_counter() - started, sums["loss"]

    return step


@contextmanager
def transformers_step(folder: Path) -> Iterator[Callable[[int], tuple[float, float]]]:
    """Start transformers' loop; the function that is given makes it do one step."""
    with subprocess.Popen(
        [sys.executable, str(LOOP), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        requests, answers = child.stdin, child.stdout

        def step(number: int) -> tuple[float, float]:
            print(number, file=requests, flush=True)
            seconds, loss = answers.readline().split()
            return float(seconds), float(loss)

        try:
            yield step
        finally:
            requests.close()


def bare_seconds(config: AlbertConfig, batch: PretrainingBatch) -> float:
    """Time the matrix products of a step and nothing else, as one unit."""
    units = [_linear_products(*shape) for shape in _linear_shapes(config, batch)]
    heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    units += [
        _attention_products(count * heads, length, width, repeats=config.num_hidden_layers)
        for length, count in Counter(batch.lengths.tolist()).items()
    ]
    started = time.perf_counter()
    for unit in units:
        unit()
    return time.perf_counter() - started


def _linear_shapes(config: AlbertConfig, batch: PretrainingBatch) -> list[tuple[int, int, int, int]]:
    """List rows, width in, width out and how often, of every linear map of a step."""
    tokens, texts, predicted = batch.token_ids.size, batch.lengths.size, batch.masked_positions.size
    hidden, wide, narrow = config.hidden_size, config.intermediate_size, config.embedding_size
    layers = config.num_hidden_layers
    return [
        (tokens, narrow, hidden, 1),
        (tokens, hidden, hidden, 4 * layers),
        (tokens, hidden, wide, layers),
        (tokens, wide, hidden, layers),
        (texts, hidden, hidden, 1),
        (predicted, hidden, narrow, 1),
        (predicted, narrow, config.vocab_size, 1),
    ]


def _linear_products(rows: int, width_in: int, width_out: int, repeats: int) -> Callable[[], None]:
    x, weight, gradient = torch.randn(rows, width_in), torch.randn(width_out, width_in), torch.randn(rows, width_out)
    y, dx, dw = torch.zeros_like(gradient), torch.zeros_like(x), torch.zeros_like(weight)

    def run() -> None:
        for _ in range(repeats):
            torch.mm(x, weight.T, out=y)
            torch.mm(gradient, weight, out=dx)
            torch.mm(gradient.T, x, out=dw)

    return run


def _attention_products(maps: int, length: int, width: int, *, repeats: int) -> Callable[[], None]:
    q, k, v = torch.randn(3, maps, length, width)
    scores, mixed = torch.zeros(maps, length, length), torch.zeros(maps, length, width)

    def run() -> None:
        for _ in range(repeats):
            torch.bmm(q, k.mT, out=scores)
            torch.bmm(scores, v, out=mixed)
            torch.bmm(q, v.mT, out=scores)  # the gradient of the probabilities
            for probabilities, states in ((scores.mT, q), (scores, k), (scores.mT, q)):  # of v, of q, of k
                torch.bmm(probabilities, states, out=mixed)

    return run


def _batches(store: TokenStore, length: int, sequences: int) -> BatchStream:
    return BatchStream(store, ExampleSettings(max_length=length), batch_size=sequences)


@contextmanager
def held_out_store() -> Iterator[TokenStore]:
    """Build a store of the held-out Wikipedia text with the official vocabulary: 4 MB are enough for some batches."""
    data = data_folder()
    with tempfile.TemporaryDirectory() as folder:
        result = build_store(
            [data / "corpus" / "wiki.valid.txt.xz"],
            Path(folder) / "store",
            tokenizer=Tokenizer.load(data / "vocab" / "spiece.model"),
            settings=BuildSettings(),
            engine=LocalEngine(1),
        )
        yield result.store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=sorted({case.model for case in CASES}))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = []
    with held_out_store() as store, join_world(timeout_minutes=1) as world:
        for case in CASES:
            if options.only in (None, case.model):
                rows.append(measure(case, store, rounds=options.rounds, world=world))
                print_table(rows[-1:])
    if options.record:
        record("training", rows, title="Training steps against transformers", rounds=options.rounds)


if __name__ == "__main__":
    main()
