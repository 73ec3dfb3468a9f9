"""Fine-tuning against transformers with dynamic padding: training steps on the real texts of four tasks.

The base shape, the same weights, the same batches (32 texts, or 12 windows of SQuAD), the same AdamW. transformers gets
what its users do, sdpa attention and batches padded to their longest text, and what they don't: it runs in this very
process, with our settings of CPU and memory, and its batches are padded before the clock starts. A round is a step on
every batch, ours and theirs in turn; the ratio is the median over rounds. Run nothing beside it.

    python benchmarks/bench_finetune.py [--rounds 5] [--batches 4] [--only sst-2] [--record]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from recording import data_folder, print_table, record

from albert.model import Albert, Packed, new_model, preset  # first: it sets the CPU up

import torch  # isort: skip
import transformers  # isort: skip

from albert.finetune.job import FinetuneJob, Items, batch_items, encode_items
from albert.hardware import keep_memory
from albert.labelled.catalog import DataRequest, open_data
from albert.model.folder import load_model, save_model
from albert.optim import OptimizerSettings, build_optimizer
from albert.tasks.task import AnyTask, Feature, batch_of
from albert.tokenizer import Tokenizer
from albert.train.loop import accumulate
from albert.train.settings import TrainSettings
from albert.train.world import World

RATE = 2e-5
Batch = list[Feature]


@dataclass(frozen=True)
class Case:
    """A task, where its data is, and how large a batch is."""

    name: str
    path: str
    batch_size: int
    max_length: int
    peer: str  # transformers' class


CASES = (
    Case("sst-2", "glue/SST-2", 32, 128, "AlbertForSequenceClassification"),
    Case("rte", "glue/RTE", 32, 512, "AlbertForSequenceClassification"),
    Case("mrpc", "glue/MRPC", 32, 128, "AlbertForSequenceClassification"),
    Case("squad", "squad/train-subset-v1.1.json", 12, 384, "AlbertForQuestionAnswering"),
)


def read_case(case: Case, batches: int) -> tuple[AnyTask, list[Batch]]:
    """Encode a task's training texts with the official vocabulary, and draw the batches that a run begins with."""
    tokenizer = Tokenizer.load(data_folder() / "vocab" / "spiece.model")
    request = DataRequest(data_folder() / case.path, task=case.name, max_length=case.max_length, limit_train=2_000)
    opened = open_data(request)
    items = encode_items(opened.task, opened.splits.train, tokenizer)
    drawn = [batch_items(items.items, step, batch_size=case.batch_size, seed=0) for step in range(batches)]
    return opened.task, [[feature for item in chosen for feature in item] for chosen in drawn]


def padded(batch: Batch) -> dict[str, torch.Tensor]:
    """Lay a batch out as transformers wants it, with its labels; made outside of what is timed."""
    rows = [torch.tensor(list(feature.token_ids)) for feature in batch]
    types = [torch.tensor(list(feature.segment_ids)) for feature in batch]
    names = {"input_ids": rows, "token_type_ids": types, "attention_mask": [torch.ones_like(row) for row in rows]}
    found = {name: torch.nn.utils.rnn.pad_sequence(values, batch_first=True) for name, values in names.items()}
    targets = torch.tensor([feature.target for feature in batch])  # type: ignore[attr-defined]
    if targets.ndim == 1:
        return found | {"labels": targets}
    return found | {"start_positions": targets[:, 0], "end_positions": targets[:, 1]}


def both_models(case: Case, task: AnyTask) -> tuple[Albert, transformers.PreTrainedModel]:
    """Return the same weights to us and to transformers."""
    config = task.configure(preset("base").with_settings({"classifier_dropout_prob": 0.0}))
    with tempfile.TemporaryDirectory() as folder:
        save_model(new_model(config, (task.head,)), folder)
        theirs = getattr(transformers, case.peer).from_pretrained(folder, attn_implementation="sdpa")
        return load_model(folder).model.train(), theirs.train()


def our_round(model: Albert, task: AnyTask, batches: Sequence[Batch], folder_items: Items) -> Callable[[], list[float]]:
    """Return the function that takes a step on every batch, by the training loop's own functions."""
    world, settings = World(0, 1, torch.device("cpu")), TrainSettings(precision="fp32", batch_size=len(batches[0]))
    job = FinetuneJob(model, task, folder_items, settings=settings, world=world)
    optimizer = build_optimizer(OptimizerSettings(name="adamw"), model, lr=RATE)

    def run() -> list[float]:
        losses = []
        for batch in batches:
            sums = accumulate(
                job, [batch], counts=job.counts(batch), step=0, settings=settings, scaler=None, world=world
            )
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(sums["loss"])
        return losses

    return run


def their_round(model: transformers.PreTrainedModel, batches: Sequence[Batch]) -> Callable[[], list[float]]:
    """Return the function that takes a step on every batch as a plain transformers loop does."""
    inputs = [padded(batch) for batch in batches]
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, eps=1e-6)

    def run() -> list[float]:
        losses = []
        for batch in inputs:
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
        return losses

    return run


@torch.no_grad()
def check_same(ours: Albert, theirs: transformers.PreTrainedModel, task: AnyTask, batch: Batch) -> None:
    """Compare the losses of one text: in a batch transformers' span loss counts padding as places for an answer."""
    packed = Packed.from_batch(batch_of(batch))
    mine = task.loss(ours, packed, ours(packed), features=batch, count=task.count(batch)).item()
    other = theirs(**padded(batch)).loss.item()
    assert abs(mine - other) < 1e-3, f"not the same model: the loss is {mine} and {other}"


def bench(case: Case, rounds: int, batches: int) -> dict[str, Any]:
    """Time both in turn."""
    task, chosen = read_case(case, batches)
    ours, theirs = both_models(case, task)
    items = Items([[feature] for batch in chosen for feature in batch], sum(len(batch) for batch in chosen))
    functions = our_round(ours, task, chosen, items), their_round(theirs, chosen)
    check_same(ours, theirs, task, chosen[0][:1])
    for function in functions:  # the warm-up
        function()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for function, into in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            into.append(time.perf_counter() - start)
    tokens = sum(len(feature.token_ids) for batch in chosen for feature in batch)
    places = sum(len(batch) * max(len(feature.token_ids) for feature in batch) for batch in chosen)
    texts = sum(len(batch) for batch in chosen)
    return {
        "task": case.name,
        "batches": f"{len(chosen)} of {case.batch_size}",
        "tokens a text": round(tokens / texts, 1),
        "padding": f"{1 - tokens / places:.0%}",
        "ours texts/s": round(texts / median(times[0]), 1),
        "transformers texts/s": round(texts / median(times[1]), 1),
        "ratio": round(median(b / a for a, b in zip(*times, strict=True)), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--only", choices=[case.name for case in CASES])
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    keep_memory()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    rows = []
    for case in CASES:
        if options.only in (None, case.name):
            rows.append(bench(case, options.rounds, options.batches))
            print_table(rows[-1:])
    if options.record:
        record("finetune", rows, title="Fine-tuning against transformers", rounds=options.rounds)


if __name__ == "__main__":
    main()
