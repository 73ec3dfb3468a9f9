"""Inference against the peers, each at its best: texts/s in bulk, a single text, load time, memory, file size.

Classification with random weights (speed does not depend on them) at the base shape and the shape of tiny-en, on the
lengths of real texts, sorted by length and in the order of the file. Rounds are interleaved: every contender runs once,
then every one again; medians are shown. Load time and memory are those of a process of its own that has loaded torch:
opening, and the first text. `--tuned` takes a model that inference_accuracy.py tuned for SST-2, on SST-2's dev set,
with early exit too. Contenders whose packages are missing are left out by name. Run nothing beside it.

    python benchmarks/bench_inference.py [--minutes 120] [--rounds 5] [--texts 512] [--shape base|tiny-en] [--kind MNLI]
        [--only ours] [--tuned RUN] [--record]

`--minutes` is a bound: no further round begins when a table has had its share. It takes some 45 on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from inference_peers import CONTENDERS, PADDED, Classify, Texts, file_sizes, ours, shape_of
from recording import data_folder, peak_memory, print_table, record

from albert.errors import UsageError
from albert.hardware import count_threads, keep_memory
from albert.model import new_model
from albert.model.folder import save_model

import numpy as np  # isort: skip
import torch  # isort: skip

SINGLES = 10
COUNTS = {"base": (64, 24), "tiny-en": (512, 128)}  # texts; of SQuAD's, which are long
RULES = ("patience=3", "patience=5", "confidence=0.7", "confidence=0.8", "confidence=0.9")


def seconds(run: Classify, texts: Texts) -> float:
    started = time.perf_counter()
    run(texts)
    return time.perf_counter() - started


def load_alone(name: str, folder: Path) -> dict[str, str]:
    """Open a contender in a process of its own and run one text; give seconds and megabytes."""
    words = [sys.executable, __file__, "--alone", name, "--folder", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[-500:]}")
    facts: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {key: f"{value:.2f}" if key == "load s" else f"{value:.0f}" for key, value in facts.items()}


def alone(name: str, folder: Path) -> None:
    started = time.perf_counter()
    run = CONTENDERS[name][2](folder)
    run([[2, 5, 6, 7, 3]])
    taken = time.perf_counter() - started
    print(json.dumps({"load s": taken, "memory MB": peak_memory()}))


def open_all(folder: Path, only: Sequence[str], rules: Sequence[str] = ()) -> dict[str, tuple[str, Classify]]:
    """Open the contenders that are asked for and installed: precision and how it is run, by name."""
    asked = {name: own for name, own in CONTENDERS.items() if not only or any(part in name for part in only)}
    runs: dict[str, tuple[str, Classify]] = {}
    for name, (packages, precision, opened) in asked.items():
        if missing := [package for package in packages if not find_spec(package)]:
            print(f"left out: {name} needs {', '.join(missing)}")
            continue
        try:
            runs[name] = (precision, opened(folder))
        except UsageError as reason:
            print(f"left out: {name}: {reason}")
            continue
        for rule in rules if name.startswith("ours") else ():
            engine = name.removeprefix("ours, ").split()[0]
            runs[f"{name}, {rule}"] = (precision, ours(folder, engine, precision, rule))
    return runs


def measure(
    runs: dict[str, tuple[str, Classify]], texts: Texts, *, rounds: int, until: float
) -> dict[str, dict[str, list[float]]]:
    """Time all contenders on texts in the order given and sorted, and one by one."""
    by_length = sorted(texts, key=len)
    times: dict[str, dict[str, list[float]]] = {name: {"sorted": [], "unsorted": [], "single": []} for name in runs}
    for _, run in runs.values():
        run(texts[: 2 * PADDED])  # warm: what compiles does so for several texts and for one
        run([texts[0]])
    for number in range(rounds):
        if number and time.monotonic() > until:
            break
        for name, (_, run) in runs.items():
            times[name]["sorted"].append(seconds(run, by_length))
            times[name]["unsorted"].append(seconds(run, texts))
            times[name]["single"] += [seconds(run, [text]) for text in texts[:SINGLES]]
    return times


def rows_of(
    shape: str, kind: str, texts: Texts, runs: dict[str, tuple[str, Classify]], times: dict[str, dict[str, list[float]]]
) -> list[dict[str, Any]]:
    return [
        {
            "shape": shape,
            "texts": f"{len(texts)} of {kind}, {np.mean([len(text) for text in texts]):.0f} tokens",
            "contender": name,
            "precision": runs[name][0],
            "texts/s sorted": f"{len(texts) / median(own['sorted']):.1f}",
            "texts/s unsorted": f"{len(texts) / median(own['unsorted']):.1f}",
            "single ms": f"{1000 * median(own['single']):.2f}",
            "p95 ms": f"{1000 * float(np.quantile(own['single'], 0.95)):.2f}",
            "rounds": len(own["sorted"]),
        }
        for name, own in times.items()
    ]


def random_texts(kind: str, count: int, vocab_size: int) -> Texts:
    """Return random ids in texts as long as real ones."""
    from bench_model import lengths_of  # here: it loads transformers, which a contender's own process must not

    rng = np.random.default_rng(0)
    return [rng.integers(5, vocab_size, length).tolist() for length in lengths_of(kind, count)[:count]]


def sst2_texts(folder: Path, count: int) -> Texts:
    """Return the dev set of SST-2 as a tuned model reads it."""
    from albert.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(folder)
    lines = (data_folder() / "glue/SST-2/dev.tsv").read_text(encoding="utf-8").splitlines()[1:]
    texts = [line.split("\t")[0] for line in lines[:count]]
    return [[tokenizer.cls_id, *tokenizer.encode(text)[:126], tokenizer.sep_id] for text in texts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, help="default: 512, at the base shape 64; of SQuAD 128 and 24")
    parser.add_argument("--shape", choices=["base", "tiny-en"], action="append")
    parser.add_argument("--kind", choices=["MNLI", "SST-2", "SQuAD"], action="append")
    parser.add_argument("--only", action="append", help="contenders whose name has this in it")
    parser.add_argument("--tuned", type=Path, help="a model tuned for SST-2 with early exit")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(count_threads())
    if options.alone:
        alone(options.alone, options.folder)
        return
    keep_memory()
    shapes, kinds = options.shape or ["base", "tiny-en"], options.kind or ["MNLI", "SST-2", "SQuAD"]
    ends, left = time.monotonic() + 60 * options.minutes, len(shapes) * (len(kinds) + 1) + (options.tuned is not None)
    rows: list[dict[str, Any]] = []
    opened: list[dict[str, Any]] = []
    sizes: list[dict[str, Any]] = []

    def until() -> float:
        nonlocal left
        left -= 1
        return time.monotonic() + (ends - time.monotonic()) / (left + 1)

    def show(own: list[dict[str, Any]], into: list[dict[str, Any]]) -> None:
        print_table(own)
        into += own

    with tempfile.TemporaryDirectory(prefix="albert-bench-") as scratch:
        for shape in shapes:
            folder, config = Path(scratch) / shape, shape_of(shape)
            save_model(new_model(config, ("classifier",), seed=0), folder)
            runs = open_all(folder, options.only or [])
            for kind in kinds:
                count = options.texts or COUNTS[shape][kind == "SQuAD"]
                texts = random_texts(kind, count, config.vocab_size)
                times = measure(runs, texts, rounds=options.rounds, until=until())
                show(rows_of(shape, kind, texts, runs, times), rows)
            show([{"shape": shape, "contender": name} | load_alone(name, folder) for name in runs], opened)
            show([{"shape": shape} | size for size in file_sizes(folder)], sizes)
            until()
        if options.tuned is not None:
            folder = Path(scratch) / "tuned"
            copy_model(options.tuned, folder)
            runs, texts = open_all(folder, options.only or [], RULES), sst2_texts(folder, options.texts or 512)
            times = measure(runs, texts, rounds=options.rounds, until=until())
            show(rows_of(f"tuned, {options.tuned.parent.name}", "SST-2 dev", texts, runs, times), rows)
    if options.record:
        record("inference", [*rows, *opened, *sizes], title="Inference against the peers", threads=count_threads())


def copy_model(run: Path, folder: Path) -> None:
    """Copy the model of a run in fp32, for all contenders alike."""
    from albert.model.folder import load_model
    from albert.model.locate import locate
    from albert.tokenizer import Tokenizer

    source = locate(str(run))
    save_model(load_model(source).model, folder, tokenizer=Tokenizer.load(source))


if __name__ == "__main__":
    main()
