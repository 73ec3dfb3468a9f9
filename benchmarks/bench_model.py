"""Our model against transformers': forward, and the memory of a training step, on the same weights and texts.

Rounds are interleaved (ours, theirs, ours, …) and the median ratio is printed. transformers gets what its users do:
sdpa attention, batches padded to the longest text, `AlbertForPreTraining` with labels -100 where nothing is masked.
"share of matmul" is the time of the bare matrix products over the time of our pass. Run nothing beside it. The speed of
training is bench_training.py's.

    python benchmarks/bench_model.py [--rounds 5] [--only forward|memory] [--record]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from padded import pad
from recording import data_folder, print_table, record

from albert.model import Albert, AlbertConfig, new_model, preset  # first: it sets the CPU up

import numpy as np  # isort: skip
import torch  # isort: skip
import transformers  # isort: skip

from albert.batch import Batch, PretrainingBatch, pack
from albert.hardware import keep_memory
from albert.model.folder import load_model, save_model
from albert.model.losses import cross_entropy
from albert.tokenizer import Tokenizer


@dataclass(frozen=True)
class Case:
    """A shape and the texts it is run on."""

    name: str
    config: AlbertConfig
    batches: list[Batch]


def lengths_of(kind: str, count: int) -> list[int]:
    """Draw real lengths: texts of a data set in file order, tokenised with the official vocabulary."""
    data = data_folder()
    tokenizer = Tokenizer.load(data / "vocab" / "spiece.model")
    if kind == "SST-2":
        rows = (data / "glue/SST-2/dev.tsv").read_text().splitlines()[1:]
        texts = [row.split("\t")[0] for row in rows]
        extra = 2
    elif kind == "MNLI":
        rows = (data / "nli/mnli.dev-matched.jsonl").read_text().splitlines()
        texts = [f"{row['premise']} {row['hypothesis']}" for row in map(json.loads, rows[:count])]
        extra = 3
    else:
        articles = json.loads((data / "squad/dev-v1.1.json").read_text())["data"]
        pairs = [
            (question["question"], paragraph["context"])
            for article in articles
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"][:1]
        ]
        texts = [f"{question} {context}" for question, context in pairs]
        extra = 3
    return [min(384, len(ids) + extra) for ids in tokenizer.encode_many(texts[:count])]


def random_batches(lengths: list[int], size: int, vocab: int) -> list[Batch]:
    rng = np.random.default_rng(0)
    groups = [lengths[i : i + size] for i in range(0, len(lengths), size)]
    return [pack([rng.integers(5, vocab, n) for n in group]) for group in groups]


def tensors(batch: Batch) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in pad(batch).items()}


def both_models(config: AlbertConfig) -> tuple[Albert, transformers.AlbertForPreTraining]:
    """Return the same weights to us and to transformers."""
    with tempfile.TemporaryDirectory() as folder:
        save_model(new_model(config, ("mlm", "order")), folder)
        theirs = transformers.AlbertForPreTraining.from_pretrained(folder, attn_implementation="sdpa")
        return load_model(folder).model, theirs


def interleave(
    first: Callable[[], object], second: Callable[[], object], rounds: int
) -> tuple[list[float], list[float]]:
    first(), second()  # warm-up
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for function, into in zip((first, second), times, strict=True):
            start = time.perf_counter()
            function()
            into.append(time.perf_counter() - start)
    return times


def masked(batch: Batch) -> PretrainingBatch:
    """Have 15% of the tokens predicted, and every order."""
    rng = np.random.default_rng(1)
    count = max(1, round(0.15 * batch.token_ids.size))
    positions = np.sort(rng.choice(batch.token_ids.size, count, replace=False))
    return PretrainingBatch(
        token_ids=batch.token_ids,
        segment_ids=batch.segment_ids,
        lengths=batch.lengths,
        masked_positions=positions,
        masked_labels=batch.token_ids[positions],
        order_labels=np.zeros_like(batch.lengths),
    )


def our_gradients(model: Albert, batch: PretrainingBatch) -> None:
    encoded = model(batch)
    labels = torch.from_numpy(batch.masked_labels)
    loss = model.mlm_loss(encoded, torch.from_numpy(batch.masked_positions), labels)[0] / labels.numel()
    (loss + cross_entropy(model.heads["order"](encoded.pooled), torch.from_numpy(batch.order_labels))).backward()


def their_gradients(model: transformers.AlbertForPreTraining, batch: PretrainingBatch) -> None:
    model(**tensors(batch)).loss.backward()


def matmul_seconds(config: AlbertConfig, tokens: int) -> float:
    """Time the bare matrix products of a forward pass (attention's left out, so the share is understated)."""
    h, f = config.hidden_size, config.intermediate_size
    steps = config.num_hidden_layers * config.inner_group_num
    total = 0.0
    for inner, outer, count in [(h, h, 4 * steps), (h, f, steps), (f, h, steps), (config.embedding_size, h, 1)]:
        x, w = torch.randn(tokens, inner), torch.randn(outer, inner)
        torch.mm(x, w.T)
        spent = []
        for _ in range(3):
            start = time.perf_counter()
            torch.mm(x, w.T)
            spent.append(time.perf_counter() - start)
        total += count * median(spent)
    return total


def bench_forward(cases: list[Case], rounds: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for case in cases:
        ours, theirs = both_models(case.config)
        inputs = [tensors(batch) for batch in case.batches]
        encoder = theirs.albert.eval()
        with torch.inference_mode():
            mine, others = interleave(
                lambda ours=ours, case=case: [ours(batch) for batch in case.batches],  # type: ignore[misc]
                lambda encoder=encoder, inputs=inputs: [encoder(**batch) for batch in inputs],  # type: ignore[misc]
                rounds,
            )
            bare = sum(matmul_seconds(case.config, batch.token_ids.size) for batch in case.batches)
        rows.append(row(case, mine, others, bare))
        print_table(rows[-1:])
    return rows


def row(case: Case, mine: list[float], others: list[float], bare: float) -> dict[str, object]:
    tokens = sum(int(batch.lengths.sum()) for batch in case.batches)
    return {
        "what": "forward",
        "case": case.name,
        "texts": sum(len(batch.lengths) for batch in case.batches),
        "tokens": tokens,
        "ours tokens/s": round(tokens / median(mine)),
        "transformers tokens/s": round(tokens / median(others)),
        "ratio": round(median(b / a for a, b in zip(mine, others, strict=True)), 2),
        "share of matmul": round(bare / median(mine), 2),
    }


def measure_memory(who: str, shape: str) -> int:
    """Run in a process of its own: peak resident memory of a training step beyond that of the model at rest."""
    config, batch = memory_case(shape)
    ours, theirs = both_models(config)
    model: torch.nn.Module = theirs if who == "theirs" else ours
    del ours, theirs
    model.train()
    if who == "ours with checkpointing":
        model.encoder.checkpointing = True  # type: ignore[union-attr]
    if who != "theirs":
        keep_memory()  # as training does
    gradients = their_gradients if who == "theirs" else our_gradients
    gradients(model, masked(pack([[5, 6, 7]])))  # type: ignore[arg-type]  allocates the gradients
    rest = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of building
    gradients(model, masked(batch))  # type: ignore[arg-type]
    return resident("VmHWM") - rest


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def memory_case(shape: str) -> tuple[AlbertConfig, Batch]:
    config = preset("base") if shape == "base-512" else preset("small")
    lengths = [512] * 8 if shape == "base-512" else [128] * 64
    return config, random_batches(lengths, len(lengths), config.vocab_size)[0]


def bench_memory() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for shape in ("base-512", "small-128"):
        sizes = {}
        for who in ("theirs", "ours", "ours with checkpointing"):
            command = [sys.executable, __file__, "--measure-memory", who, shape]
            sizes[who] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])
        rows += [
            {
                "what": "memory of a step",
                "case": f"{shape}, {who}",
                "ours MB": round(sizes[who] / 1e6),
                "transformers MB": round(sizes["theirs"] / 1e6),
                "ratio": round(sizes[who] / sizes["theirs"], 2),
            }
            for who in ("ours", "ours with checkpointing")
        ]
        print_table(rows[-2:])
    return rows


def cases() -> list[Case]:
    """List base and small on batches of 32 texts of real lengths, and on full ones."""
    found = []
    real = {"SST-2": lengths_of("SST-2", 32), "MNLI": lengths_of("MNLI", 32), "SQuAD": lengths_of("SQuAD", 12)}
    for name, full in (("base", {128: 8, 512: 2}), ("small", {128: 64, 512: 8})):
        lengths = real | {str(length): [length] * count for length, count in full.items()}
        found += [
            Case(f"{name}, {kind}", preset(name), random_batches(texts, len(texts), 30_000))
            for kind, texts in lengths.items()
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["forward", "memory"])
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--measure-memory", nargs=2, metavar=("WHO", "SHAPE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(0)
    if options.measure_memory:
        print(measure_memory(*options.measure_memory))
        return
    rows = []
    if options.only in (None, "forward"):
        rows += bench_forward(cases(), options.rounds)
    if options.only in (None, "memory"):
        rows += bench_memory()
    if options.record:
        record("model", rows, title="The model against transformers", rounds=options.rounds)


if __name__ == "__main__":
    main()
