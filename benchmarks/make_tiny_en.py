"""Make the model that the package ships, `tiny-en`, from the shared Wikipedia and books: `make tiny-en`.

Vocabulary, token stores, three pre-training runs that go on from each other's model, then the package: weights in half
precision, vocabulary and card in src/albert/models/tiny-en, the figures and the curve in benchmarks/results/tiny-en.*.
Every stage is an ordinary `albert` command; run again to resume. Two hours and a half on two cores, nearly all of it
training.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import recording
import torch
from matplotlib.figure import Figure

from albert.data.store import TokenStore
from albert.evaluate import PretrainingScores, evaluate_pretraining
from albert.model.folder import load_model, save_model
from albert.tokenizer import Tokenizer
from albert.train.history import History, read_history

NAME, EXAMPLES, LENGTH = "tiny-en", 4_000, 128
CARD = """\
---
language: en
license: apache-2.0
tags: [albert]
pipeline_tag: fill-mask
---

# tiny-en

A small ALBERT for English, shipped with albert-lite: 8,000 pieces (lower-cased, without accents), embeddings of 64,
256 wide, 6 layers that share their weights, trained on sequences of up to 128 tokens. Made to start fine-tuning from on
a laptop, for demonstrations and for tests; a model of this size and training knows little of the world.

{table}

{facts}

Trained on the Wikipedia of 2015 (13,100 articles, CC BY-SA) and 99 books in the public domain, 260 MB together, with
masked n-grams and sentence order, in the last of three runs also on pairs of texts that overlap, on two CPU cores.
`make tiny-en` makes its like (benchmarks/make_tiny_en.py). What its texts say and leave out, it repeats: look at what
it does on your own data before you rely on it.

```python
import albert

model = albert.load("tiny-en")
model.fill("The capital of France is [MASK].")
```
"""
MORE = {  # six layers and whole length throughout, the rate raised and lowered once more
    "data.max_length": 128,
    "data.mask_prob": 0.25,
    "optimizer.lr": 0.003,
    "optimizer.warmup_steps": 100,
    "train.steps": 5_600,
    "train.batch_size": 16,
    "train.seed": 1,
    "train.save_every": 200,
    "train.eval_every": 1_400,
    "train.log_every": 20,
    "evaluation.examples": 1_000,
}
RUNS = {
    "run": ["--config", "laptop"],
    "more": [word for name, value in MORE.items() for word in ("--set", f"{name}={value}")],
    "match": ["--config", "compare", "--set", "train.seed=2"],
}
FOLDER = recording.ROOT / "src" / "albert" / "models" / NAME


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=recording.ROOT / "runs" / NAME, help="folder of the stages")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    work, corpus = arguments.work, recording.data_folder() / "corpus"
    texts = {
        split: [str(corpus / f"{kind}.{split}.txt.xz") for kind in ("wiki", "books")] for split in ("train", "valid")
    }
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "tok").exists():
        albert("tokenizer", "train", *texts["train"], "--vocab-size", "8000", "--out", str(work / "tok"))
    for split in ("train", "valid"):
        albert("data", "build", *texts[split], "--tokenizer", str(work / "tok"), "--out", str(work / split))
    start: list[str] = []
    for run, how in RUNS.items():
        if not (work / run / "model").exists():
            stores = ["--data", str(work / "train"), "--valid", str(work / "valid")]
            albert("pretrain", *how, *start, *stores, "--out", str(work / run), "--processes", str(arguments.processes))
        start = ["--model", str(work / run / "model")]
    package(work)


def albert(*words: str) -> None:
    """Run an `albert` command."""
    python("-m", "albert", *words)


def python(*words: str) -> None:
    """Run a Python command, and stop if it fails."""
    if code := subprocess.run([sys.executable, *words]).returncode:
        sys.exit(code)


def package(work: Path) -> None:
    """Write the model folder in half precision, score what was written, and record it."""
    histories = [read_history(work / run) for run in RUNS]
    history = joined(histories)
    last = work / list(RUNS)[-1] / "model"
    model, tokenizer = load_model(last).model, Tokenizer.load(last)
    save_model(model, FOLDER, tokenizer=tokenizer, dtype=torch.float16)
    valid, train = TokenStore.open(work / "valid"), TokenStore.open(work / "train")
    scores = evaluate_pretraining(str(FOLDER), valid, train=train, examples=EXAMPLES, max_length=LENGTH)
    assert isinstance(scores, PretrainingScores)
    assert scores.gap is not None
    compared = (
        ("tiny-en", scores.model),
        ("the same architecture, untrained", scores.untrained),
        ("baseline: the most frequent piece, the more frequent order", scores.baseline),
    )
    rows = [score_row({"model": name}, asdict(row)) for name, row in compared]
    curve = [
        score_row({"step": int(line["step"])}, {key.removeprefix("valid_"): value for key, value in line.items()})
        for line in history.metrics
        if "valid_mlm_loss" in line
    ]
    facts = {
        "training": ", then ".join(f"{part.last_step:,} steps in {minutes(part):.0f} minutes" for part in histories),
        "MLM loss on training text": f"{scores.gap.training_loss:.3f}, {scores.gap.gap:+.3f} held out",
        "held-out examples": f"{EXAMPLES:,} of each kind, length {LENGTH}, the paper's masking (1,000 along the run)",
    }
    save_model(model, FOLDER, tokenizer=tokenizer, dtype=torch.float16, card=card(rows, facts))
    recording.record(NAME, [*rows, *curve], title="tiny-en: held-out scores, and the curve of its run", **facts)
    draw(history, recording.ROOT / "benchmarks" / "results" / f"{NAME}.svg")
    recording.print_table(rows)


def joined(histories: Sequence[History]) -> History:
    """Lay runs end to end, counting their steps through."""
    metrics: list[Mapping[str, float]] = []
    for history in histories:
        before = metrics[-1]["step"] if metrics else 0
        metrics += [{**line, "step": line["step"] + before} for line in history.metrics]
    return replace(histories[-1], metrics=tuple(metrics))


def minutes(history: History) -> float:
    """Return how long a run took, from its start to its model."""
    ended = datetime.fromtimestamp((history.folder / "model" / "config.json").stat().st_mtime, UTC)
    return (ended - datetime.fromisoformat(history.circumstances["started"])).total_seconds() / 60


def score_row(head: dict[str, Any], scores: Mapping[str, float | None]) -> dict[str, Any]:
    """Put intrinsic scores into words."""
    loss = scores["mlm_loss"]
    accuracies = {f"{kind} accuracy": f"{scores[f'{kind.lower()}_accuracy']:.1%}" for kind in ("MLM", "SOP", "NSP")}
    return {**head, "MLM loss": "" if loss is None else f"{loss:.3f}", **accuracies}


def card(rows: list[dict[str, Any]], facts: dict[str, str]) -> str:
    """Write the model card."""
    lines = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    return CARD.format(table=recording.markdown(rows), facts=lines)


def draw(history: History, path: Path) -> None:
    """Draw the held-out curves."""
    figure = Figure(figsize=(7, 3), layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    loss.plot(
        *zip(*history.series("mlm_loss"), strict=True), linewidth=0.6, label="training (25% masked, growing length)"
    )
    loss.plot(*zip(*history.series("valid_mlm_loss"), strict=True), marker="o", label="held out (15% masked)")
    loss.set(title="MLM loss", xlabel="step")
    for kind in ("mlm", "sop", "nsp"):
        points = history.series(f"valid_{kind}_accuracy")
        accuracy.plot(
            *zip(*((step, 100 * value) for step, value in points), strict=True), marker="o", label=kind.upper()
        )
    accuracy.set(title="held-out accuracy, %", xlabel="step")
    for axes in (loss, accuracy):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
