"""`albert demo`: the whole job on English that every machine with Python has; each stage is one command."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

HELD_OUT = 20  # every 20th document
QUESTIONS = (
    "returns the [MASK] of the array elements .",
    "if the file does not [MASK] , an error is raised .",
    "this function returns a new [MASK] .",
)


def demo(
    out: Annotated[Path, typer.Option(help="Where everything goes; the same command again goes on.")] = Path("demo"),
    steps: Annotated[int, typer.Option(min=10, help="Steps of pre-training.")] = 1000,
) -> None:
    """From text to a model that fills in words: each stage says which command does it alone."""
    _write_corpus(out / "text")
    text, held_out = str(out / "text" / "train.txt"), str(out / "text" / "valid.txt")
    tokenizer, store, valid = str(out / "tokenizer"), str(out / "store"), str(out / "store-valid")
    _run("a vocabulary", ["tokenizer", "train", text, "--vocab-size", "4000", "--out", tokenizer])
    _run("token ids of the text", ["data", "build", text, "--tokenizer", tokenizer, "--out", store])
    _run("token ids of held-out text", ["data", "build", held_out, "--tokenizer", tokenizer, "--out", valid])
    _run("one training example, as the model sees it", ["data", "check", store, "--examples", "1", "--length", "64"])
    settings = {
        "train.steps": steps, "train.batch_size": 32, "train.log_every": max(1, steps // 12), "train.eval_every": steps,
        "train.save_every": max(10, steps // 4), "data.max_length": 64, "evaluation.examples": 500,
        "optimizer.name": "lamb", "optimizer.lr": 0.01,
    }  # fmt: skip
    assignments = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    run = ["pretrain", "--data", store, "--valid", valid, "--model", "tiny", "--out", str(out / "run")]
    _run("a model, by masked words and sentence order", [*run, *assignments])
    _run("what the model is and costs", ["info", str(out / "run" / "model")])
    _fill(out / "run" / "model")
    print(f"\nEverything is in {out}: the model folder {out / 'run' / 'model'} also opens in transformers.")


def _write_corpus(folder: Path) -> None:
    from albert.files import atomic_write
    from albert.text.installed import installed_documents

    start = time.monotonic()
    files = folder / "train.txt", folder / "valid.txt"
    if not all(file.exists() for file in files):
        with atomic_write(files[0]) as train, atomic_write(files[1]) as valid:
            for number, document in enumerate(installed_documents()):
                into = valid if number % HELD_OUT == 0 else train
                into.write(f"{document}\n\n".encode())
    size = sum(file.stat().st_size for file in files)
    print(f"== text: {size / 1e6:.1f} MB of English from Python's own documentation, {time.monotonic() - start:.0f} s")


def _run(what: str, arguments: list[str]) -> None:
    print(f"\n== {what}:  albert {shlex.join(arguments)}", flush=True)
    start = time.monotonic()
    code = subprocess.run([sys.executable, "-m", "albert", *arguments], check=False).returncode
    if code:
        raise typer.Exit(code)
    print(f"   ({time.monotonic() - start:.0f} s)", flush=True)


def _fill(folder: Path) -> None:
    import albert

    print("\n== the model fills in words (a few minutes of training: expect common ones)")
    for question, blanks in zip(QUESTIONS, albert.load(folder).fill(QUESTIONS), strict=True):
        words = ", ".join(f"{guess.text or guess.piece} {guess.probability:.0%}" for guess in blanks[0].guesses)
        print(f"   {question}   → {words}")
