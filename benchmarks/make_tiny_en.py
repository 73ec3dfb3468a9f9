"""Make the model that the package ships, `tiny-en`, from the shared Wikipedia and books: `make tiny-en`.

Vocabulary, token stores, one pre-training run with the recipe `laptop`, then the package: weights in half precision,
vocabulary and card in src/albert/models/tiny-en, the figures and the curve in benchmarks/results/tiny-en.*. Every stage
is an ordinary `albert` command; run again to resume. An hour and a quarter on two cores, nearly all of it the training.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
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
masked n-grams and sentence order, on two CPU cores. `make tiny-en` makes its like (benchmarks/make_tiny_en.py, recipe
`laptop`). What its texts say and leave out, it repeats: look at what it does on your own data before you rely on it.

```python
import albert

model = albert.load("tiny-en")
model.fill("The capital of France is [MASK].")
```
"""
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
    if not (work / "run" / "model").exists():
        launch = ["-m", "torch.distributed.run", "--nproc-per-node", str(arguments.processes), "-m", "albert"]
        stores = ["--data", str(work / "train"), "--valid", str(work / "valid")]
        python(*launch, "pretrain", "--config", "laptop", *stores, "--out", str(work / "run"))
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
    history = read_history(work / "run")
    model, tokenizer = load_model(work / "run" / "model").model, Tokenizer.load(work / "run" / "model")
    save_model(model, FOLDER, tokenizer=tokenizer, dtype=torch.float16)
    valid, train = TokenStore.open(work / "valid"), TokenStore.open(work / "train")
    scores = evaluate_pretraining(str(FOLDER), valid, train=train, examples=EXAMPLES, max_length=LENGTH)
    assert isinstance(scores, PretrainingScores)
    assert scores.gap is not None
    compared = (
        ("tiny-en", scores.model),
        ("the same architecture, untrained", scores.untrained),
        ("the commonest piece, the commoner order", scores.commonest),
    )
    rows = [score_row({"model": name}, asdict(row)) for name, row in compared]
    curve = [
        score_row({"step": int(line["step"])}, {key.removeprefix("valid_"): value for key, value in line.items()})
        for line in history.metrics
        if "valid_mlm_loss" in line
    ]
    ended = datetime.fromtimestamp((work / "run" / "model" / "config.json").stat().st_mtime, UTC)
    minutes = (ended - datetime.fromisoformat(history.circumstances["started"])).total_seconds() / 60
    facts = {
        "training": f"{history.last_step:,} steps, {minutes:.0f} minutes",
        "MLM loss on training text": f"{scores.gap.training_loss:.3f}, {scores.gap.gap:+.3f} held out",
        "held-out examples": f"{EXAMPLES:,} of each kind, length {LENGTH}, the paper's masking (1,000 along the run)",
    }
    save_model(model, FOLDER, tokenizer=tokenizer, dtype=torch.float16, card=card(rows, facts))
    recording.record(NAME, [*rows, *curve], title="tiny-en: held-out scores, and the curve of its run", **facts)
    draw(history, recording.ROOT / "benchmarks" / "results" / f"{NAME}.svg")
    recording.print_table(rows)


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
