"""Vectors against sentence-transformers and its backends: texts/s in bulk and a single text, from strings.

`tiny-en-vectors` on real texts (MNLI's premises, in the order of the file and sorted by length), tokenising included.
Each contender is a process of its own, which times itself; rounds are interleaved: every contender runs once, then
every one again; medians are shown. sentence-transformers takes batches of 32 and sorts by itself, as ours does.

Its ONNX and OpenVINO backends need optimum, which does not install beside this project's transformers 5; name an
environment that has them (there: pip install torch==2.13.0 'sentence-transformers<6' transformers==4.57.6
optimum-onnx==0.1.0 optimum-intel==1.27.0 onnxruntime openvino nncf), or they are left out. Run nothing beside it.

    python benchmarks/bench_embedding.py [--rounds 5] [--texts 1024] [--backends PYTHON] [--only ours] [--record]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from recording import data_folder, peak_memory, print_table, record

MODEL = "tiny-en-vectors"
SINGLES = 50
# name: (who runs it, its engine or backend, precision)
CONTENDERS = {
    "ours, torch": ("ours", "torch", "fp32"),
    "ours, onnx": ("ours", "onnx", "fp32"),
    "ours, openvino": ("ours", "openvino", "fp32"),
    "ours, torch bf16": ("ours", "torch", "bf16"),
    "ours, openvino bf16": ("ours", "openvino", "bf16"),
    "ours, torch int8": ("ours", "torch", "int8"),
    "ours, onnx int8": ("ours", "onnx", "int8"),
    "ours, openvino int8": ("ours", "openvino", "int8"),
    "sentence-transformers, torch": ("theirs", "torch", "fp32"),
    "sentence-transformers, ONNX": ("backends", "onnx", "fp32"),
    "sentence-transformers, ONNX int8": ("backends", "onnx", "int8"),
    "sentence-transformers, OpenVINO (bf16 where the CPU has it)": ("backends", "openvino", "its own"),
    "sentence-transformers, OpenVINO int8": ("backends", "openvino", "int8"),
}
INT8_FILES = {"onnx": "onnx/model_quantized.onnx", "openvino": "openvino/openvino_model_qint8_quantized.xml"}


def open_contender(name: str, folder: str) -> Callable[[Sequence[str]], Any]:
    """Open a contender, in its own process."""
    who, engine, precision = CONTENDERS[name]
    if who == "ours":
        import albert

        return albert.load(MODEL, engine=engine, precision=precision).embed
    from sentence_transformers import SentenceTransformer

    file = {"file_name": INT8_FILES[engine]} if precision == "int8" else {}
    if engine == "torch":
        return SentenceTransformer(folder, device="cpu").float().encode  # the folder is in fp16
    return SentenceTransformer(folder, device="cpu", backend=engine, model_kwargs=file).encode


def work(name: str, folder: str) -> None:
    """Answer lines of JSON: texts, and whether one by one, with the seconds that they take."""
    started = time.perf_counter()
    embed = open_contender(name, folder)
    embed(["A first text."])
    taken = time.perf_counter() - started
    print(json.dumps({"load s": taken}), flush=True)
    for line in sys.stdin:
        texts, single = json.loads(line)
        times = []
        for own in [[text] for text in texts] if single else [texts]:
            began = time.perf_counter()
            embed(own)
            times.append(time.perf_counter() - began)
        print(json.dumps({"seconds": times, "memory MB": peak_memory()}), flush=True)


class Worker:
    """A contender in a process of its own."""

    def __init__(self, python: str, name: str, folder: Path) -> None:
        words = [python, __file__, "--work", name, "--folder", str(folder)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.name, self.memory = name, 0.0
        self.load = self._read()["load s"]

    def seconds(self, texts: Sequence[str], *, single: bool = False) -> list[float]:
        """Return the seconds of all texts together, or of each."""
        assert self.process.stdin is not None
        print(json.dumps([list(texts), single]), file=self.process.stdin, flush=True)
        found = self._read()
        self.memory = found["memory MB"]
        return found["seconds"]

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):  # others are what libraries print
                return json.loads(line)
        sys.exit(f"{self.name}: its process ended, see above")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=1024)
    parser.add_argument("--backends", help="Python with sentence-transformers' backends")
    parser.add_argument("--only", action="append", help="contenders whose name has this in it")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.folder)
        return
    lines = (data_folder() / "nli/mnli.dev-matched.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["premise"] for line in lines[: options.texts]]
    with tempfile.TemporaryDirectory(prefix="albert-bench-") as scratch:
        workers = open_workers(Path(scratch) / "model", options.only or [], options.backends)
        try:
            rows = measure(workers, texts, rounds=options.rounds)
        finally:
            for worker in workers:
                worker.process.terminate()
    print_table(rows)
    if options.record:
        record("embedding", rows, title="Vectors against sentence-transformers", texts=f"{len(texts)} premises of MNLI")


def open_workers(folder: Path, only: Sequence[str], backends: str | None) -> list[Worker]:
    """Start the contenders that are asked for and installed."""
    from albert.export.files import export_files
    from albert.export.source import open_source
    from albert.inference.choose_engine import installed
    from albert.inference.cpu_linear import has_bf16
    from albert.model.locate import locate

    source = open_source(MODEL, vectors=True)
    for form in ("onnx", "openvino"):
        if installed(form):
            exported = export_files(source, folder.with_name(form), form=form, int8=True)
            print(f"exported {form}: {exported.difference:.1e} from torch")
    shutil.copytree(locate(MODEL), folder)
    for form in ("onnx", "openvino"):
        if (made := folder.with_name(form) / form).is_dir():
            shutil.copytree(made, folder / form)
    workers = []
    for name, (who, engine, precision) in CONTENDERS.items():
        if only and not any(part in name for part in only):
            continue
        if (who == "ours" and not installed(engine)) or (who == "backends" and backends is None):
            print(f"left out: {name} is not installed")
            continue
        if precision == "bf16" and not has_bf16():
            print(f"left out: {name}: the CPU has none")
            continue
        workers.append(Worker(str(backends) if who == "backends" else sys.executable, name, folder))
    return workers


def measure(workers: Sequence[Worker], texts: Sequence[str], *, rounds: int) -> list[dict[str, Any]]:
    """Time all contenders in turn."""
    by_length = sorted(texts, key=len)
    times: dict[str, dict[str, list[float]]] = {w.name: {"sorted": [], "unsorted": [], "single": []} for w in workers}
    for worker in workers:
        worker.seconds(texts[:64])  # warm
    for _ in range(rounds):
        for worker in workers:
            own = times[worker.name]
            own["sorted"] += worker.seconds(by_length)
            own["unsorted"] += worker.seconds(texts)
            own["single"] += worker.seconds(texts[:SINGLES], single=True)
    return [
        {
            "contender": worker.name,
            "texts/s sorted": f"{len(texts) / median(own['sorted']):.0f}",
            "texts/s unsorted": f"{len(texts) / median(own['unsorted']):.0f}",
            "single ms": f"{1000 * median(own['single']):.2f}",
            "p95 ms": f"{1000 * sorted(own['single'])[int(0.95 * len(own['single']))]:.2f}",
            "load s": f"{worker.load:.2f}",
            "memory MB": f"{worker.memory:.0f}",
        }
        for worker, own in zip(workers, times.values(), strict=True)
    ]


if __name__ == "__main__":
    main()
