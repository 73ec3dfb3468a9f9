"""`albert demo`: the whole job on English that every machine with Python has; each stage is one command.

The stages are the commands that it prints, run one after the other with their results taken from the files they write.
Run again, it goes on where it stopped. What it says of the scores is what it measured.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from albert.cli.demo_folder import FINETUNE_TOML, PRETRAIN_TOML, prepare_folder, read_rows, write_text

VOCABULARY = 4_000
SHOWN_ROWS, SHOWN_CHARACTERS = 4, 78
BLANKS = {
    "demo": ("this function returns a new [MASK] .", "if the file does not [MASK] , an error is raised ."),
    "tiny-en": ("the united [MASK] of america", "she was born in [MASK] and died in 1950 ."),
}


def demo(
    out: Annotated[Path, typer.Option(help="Where everything goes; the same command again goes on.")] = Path("demo"),
    steps: Annotated[
        int, typer.Option(min=20, help="Steps of pre-training; fine-tuning takes a quarter as many.")
    ] = 1000,
    text_only: Annotated[
        bool, typer.Option("--text-only", help="Write the text and the labelled tables, and stop.")
    ] = False,
) -> None:
    """Do the whole job in small, from text to a tuned model.

    With and without pre-training, and from the shipped tiny-en; each stage says which command does it alone.
    """
    started = time.monotonic()
    new = prepare_folder(out, steps)
    print(f"{'A demo' if new else 'Going on with the demo'} in {out}; $ is a command that also works alone.")
    _text(out, steps)
    if text_only:
        return
    _vocabulary(out)
    _stores(out)
    _example(out)
    _pretraining(out)
    _finetuning(out)
    _predictions(out)
    print(f"\nDone in {_minutes(time.monotonic() - started)}. Open in a browser:")
    print(f"  {out / 'tuned' / 'report.html'}  what the tuned model gets right and wrong, with the texts")
    print(f"  {out / 'run' / 'report.html'}    the curves of pre-training")
    print(f"The model folders ({out / 'tuned' / 'model'}, {out / 'run' / 'model'}) also open in transformers.")


def _text(out: Path, steps: int) -> None:
    start = time.monotonic()
    print("\nReading the documentation that is installed here …", flush=True)
    megabytes, held_out = (size / 1e6 for size in write_text(out))
    _say(
        "Text",
        f"{megabytes:.1f} MB of English, the documentation inside Python, NumPy and PyTorch; "
        f"{held_out:.1f} MB from other modules are held out",
        start,
        ["demo", "--out", str(out), "--steps", str(steps), "--text-only"],
    )


def _vocabulary(out: Path) -> None:
    start = time.monotonic()
    command = ["tokenizer", "train", str(out / "text" / "train.txt")]
    command += ["--vocab-size", str(VOCABULARY), "--out", str(out / "tokenizer")]
    if not (out / "tokenizer" / "spiece.model").exists():
        _run(command)
    _say("Vocabulary", f"{VOCABULARY:,} pieces of words, learnt from that text", start, command)


def _stores(out: Path) -> None:
    start = time.monotonic()
    commands = [
        ["data", "build", str(out / "text" / text), "--tokenizer", str(out / "tokenizer"), "--out", str(out / store)]
        for text, store in (("train.txt", "store"), ("valid.txt", "store-valid"))
    ]
    for command in commands:
        _run(command)
    _say("Token store", "both texts as numbers of pieces, read from disk without loading", start, *commands)


def _example(out: Path) -> None:
    start = time.monotonic()
    command = ["data", "check", str(out / "store"), "--examples", "1", "--length", "64"]
    shown = _run(command, as_json=False).partition("training examples:")[2]
    legend, _, example = shown.partition("\n")
    _say("One training example", "what pre-training shows to the model, and what it asks", start, command)
    print(f"   {legend.strip()}\n" + "\n".join(f"   {line}" for line in example.strip().splitlines()))


def _pretraining(out: Path) -> None:
    start = time.monotonic()
    command = ["pretrain", "--config", str(out / PRETRAIN_TOML), "--data", str(out / "store")]
    command += ["--valid", str(out / "store-valid"), "--out", str(out / "run")]
    _run(command)
    metrics = _metrics(out / "run")
    losses = [line["loss"] for line in metrics if "loss" in line]
    curve = " → ".join(f"{losses[round(place * (len(losses) - 1) / 6)]:.2f}" for place in range(7))
    scores = next(line for line in reversed(metrics) if "valid_mlm_accuracy" in line)
    _say("Pre-training", "guessing hidden words, and whether two passages were swapped", start, command)
    print(f"   loss {curve}")
    print(
        f"   on held-out text: {scores['valid_mlm_accuracy']:.0%} of the hidden words right, "
        f"{scores['valid_sop_accuracy']:.0%} of the orders (guessing: 50%)"
    )


def _finetuning(out: Path) -> None:
    train, dev = out / "task" / "train.csv", out / "task" / "dev.csv"
    rows, held_out = len(read_rows(train)), len(read_rows(dev))
    _say(
        "A labelled task",
        f"which library is a paragraph from? {rows:,} to learn from, {held_out:,} from held-out modules; "
        "paragraphs that name a library are left out",
        time.monotonic(),
        ["data", "check", str(train), "--dev", str(dev)],
    )
    scores, own = {}, str(out / "run")
    for title, start_from, model, folder, more in (
        ("Fine-tuning", "the demo's own pre-training", own, "tuned", []),
        ("The same without pre-training", "new weights", own, "tuned-from-random", ["--set", "tune.start=random"]),
        ("The same from tiny-en, a small model that is shipped", "tiny-en", "tiny-en", "tuned-from-tiny-en", []),
    ):
        start = time.monotonic()
        command = ["finetune", "--config", str(out / FINETUNE_TOML), "--model", model, "--data", str(train)]
        command += ["--dev", str(dev), "--out", str(out / folder), *more]
        summary = json.loads(_run(command))
        scores[start_from] = summary["median"]
        _say(title, f"{summary['median']:.1%} of the held-out paragraphs right", start, command)
    known = {"a bag of words": summary["bag_of_words"], "the most frequent label": summary["baseline"]}
    print(f"\n=> {_comparison(scores, {name: score for name, score in known.items() if score}, rows=held_out)}")


def _comparison(scores: Mapping[str, float], known: Mapping[str, float], *, rows: int) -> str:
    """Say what each start scored, and which difference to new weights is more than the error that so few rows leave."""
    from_new = scores["new weights"]

    def words(name: str, score: float) -> str:
        error = 2 * math.sqrt((score * (1 - score) + from_new * (1 - from_new)) / rows)
        if name == "new weights":
            return f"{score:.1%} from {name}"
        gain = f"{100 * (score - from_new):+.0f} points" if abs(score - from_new) > error else "no clear difference"
        return f"{score:.1%} from {name} ({gain}; ±{100 * error:.0f} are chance)"

    said = [words(name, score) for name, score in scores.items()]
    return ", ".join([*said, *(f"{score:.1%} by {name}" for name, score in known.items())]) + "."


def _predictions(out: Path) -> None:
    import albert

    rows = read_rows(out / "task" / "dev.csv")[:SHOWN_ROWS]
    start = time.monotonic()
    decided: Any = albert.load(out / "tuned").classify([text for text, _ in rows])
    shown = min((text for text, _ in rows), key=len)
    _say("Predictions", f"the first {len(rows)} held-out rows", start, ["predict", str(out / "tuned"), shown])
    for (text, truth), label in zip(rows, decided, strict=True):
        verdict = "right" if label.label == truth else f"wrong: {truth}"
        print(f"   {label.label:<7} {max(label.probabilities.values()):4.0%}  {verdict:<14} {_cut(text)}")
    for name, title in ((str(out / "run"), "the demo's model"), ("tiny-en", "tiny-en")):
        start = time.monotonic()
        texts = BLANKS["tiny-en" if name == "tiny-en" else "demo"]
        filled = albert.load(name).fill(texts)
        _say("Hidden words", title, start, ["predict", name, texts[0]])
        for text, blanks in zip(texts, filled, strict=True):
            words = ", ".join(
                f"{'…' * guess.continues}{guess.text} {guess.probability:.0%}" for guess in blanks[0].guesses
            )
            print(f"   {text:<52} {words}")


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 2]} …"


def _metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def _run(arguments: list[str], *, as_json: bool = True) -> str:
    """Run a command; its progress is seen, its result given back."""
    words = [sys.executable, "-m", "albert", *arguments, *(["--json"] if as_json else [])]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, encoding="utf-8")
    try:
        output, _ = process.communicate()
    except KeyboardInterrupt:
        process.communicate()  # it was interrupted too, and is saving
        raise
    if process.returncode:
        print(f"The stage that failed: {_line(arguments)}", file=sys.stderr)
        raise typer.Exit(process.returncode)
    return output


def _say(title: str, words: str, start: float, *commands: list[str]) -> None:
    seconds = time.monotonic() - start
    print(f"\n{title}: {words}{f' ({seconds:.0f} s)' if seconds >= 0.5 else ''}")
    print("\n".join(f"   $ {_line(command)}" for command in commands), flush=True)


def _line(arguments: list[str]) -> str:
    """Return a line for the shell: with the program's place where its name alone would not be found."""
    program = "albert" if shutil.which("albert") else os.path.relpath(Path(sys.executable).with_name("albert"))
    return shlex.join([program, *arguments])


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"
