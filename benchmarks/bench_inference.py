"""Inference against the peers, each at its best: texts/s in bulk, a single text, load time, memory, file size.

Classification with random weights (speed does not depend on them) at the base shape and the shape of tiny-en, on the
lengths of real texts. Rounds are interleaved: every contender runs once, then every one again; medians are shown.
Peers take batches of 16 padded texts, sorted by length and in the order of the file; ours takes the texts in the same
order and sorts a window by itself, as `albert predict` does. Load time and memory are those of a process of its own
that has loaded torch.
Contenders whose packages are missing are left out by name. Run nothing beside it.

    python benchmarks/bench_inference.py [--rounds 5] [--texts 512] [--shape base|tiny-en] [--kind MNLI] [--only ours]
        [--record]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from recording import print_table, record

from albert.model import AlbertConfig, new_model, preset  # first: it sets the CPU up

import numpy as np  # isort: skip
import torch  # isort: skip

from albert.hardware import count_threads, keep_memory
from albert.inference.choose_engine import open_engine
from albert.inference.early_exit import EarlyExitEngine, ExitRule
from albert.inference.predictor import BATCH_TOKENS, WINDOW, length_batches
from albert.model.folder import load_model, save_model
from albert.model.locate import SHIPPED
from albert.tasks.task import Feature, batch_of

Texts = Sequence[Sequence[int]]  # token ids
Classify = Callable[[Texts], Any]
PADDED = 16  # texts of a peer's batch
SINGLES = 50
LABELS = ("a", "b", "c")
WANTED = {"classifier": "class"}


def shape_of(name: str) -> AlbertConfig:
    config = preset("base") if name == "base" else load_model(SHIPPED / "tiny-en").model.config
    return config.with_settings({"labels": LABELS, "problem_type": None})


def padded(texts: Texts) -> dict[str, np.ndarray]:
    longest = max(map(len, texts))
    ids = np.zeros((len(texts), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def in_batches(run: Callable[[dict[str, np.ndarray]], Any]) -> Classify:
    return lambda texts: [run(padded(texts[i : i + PADDED])) for i in range(0, len(texts), PADDED)]


def ours(folder: Path, engine: str, precision: str, rule: str | None = None) -> Classify:
    opened: Any = open_engine(load_model(folder).model, engine=engine, precision=precision)
    if rule is not None:
        opened = EarlyExitEngine(opened, ExitRule.parse(rule))

    def classify(texts: Texts) -> None:
        for first in range(0, len(texts), WINDOW):
            features = [Feature(text, [0] * len(text)) for text in texts[first : first + WINDOW]]
            for chosen in length_batches(features, tokens=BATCH_TOKENS):
                opened.run(batch_of([features[i] for i in chosen]), WANTED)

    return classify


def transformers_model(folder: Path, *, compiled: bool = False, int8: bool = False) -> Classify:
    from transformers import AlbertForSequenceClassification

    model = AlbertForSequenceClassification.from_pretrained(folder).eval()
    if int8:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    if compiled:
        model = torch.compile(model, dynamic=True)

    @torch.inference_mode()
    def run(feeds: dict[str, np.ndarray]) -> Any:
        return model(**{name: torch.from_numpy(values) for name, values in feeds.items()}).logits

    return in_batches(run)


def onnx_file(folder: Path) -> Path:
    from albert.export.whole_graph import whole_graph

    path = folder / "whole.onnx"
    if not path.exists():
        path.write_bytes(whole_graph(load_model(folder).model).SerializeToString())
    return path


def onnx_whole(folder: Path, *, int8: bool) -> Classify:
    import onnxruntime

    path = onnx_file(folder)
    if int8:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        small = folder / "whole_int8.onnx"
        if not small.exists():
            quantize_dynamic(path, small, weight_type=QuantType.QInt8, per_channel=True)
        path = small
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = count_threads()
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return in_batches(lambda feeds: session.run(["logits"], feeds))


def openvino_whole(folder: Path, *, int8: bool) -> Classify:
    import openvino

    core = openvino.Core()
    model = core.read_model(onnx_file(folder))
    if int8:
        import nncf

        rng = np.random.default_rng(0)
        data = [padded([rng.integers(5, 8000, 32).tolist() for _ in range(4)]) for _ in range(64)]
        model = nncf.quantize(model, nncf.Dataset(data), model_type=nncf.ModelType.TRANSFORMER)
    settings = {"INFERENCE_NUM_THREADS": count_threads(), "PERFORMANCE_HINT": "LATENCY"}
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    return in_batches(lambda feeds: request.infer(feeds, share_inputs=True)[0])


# name: (packages that it needs, precision, how it is opened)
CONTENDERS: dict[str, tuple[tuple[str, ...], str, Callable[[Path], Classify]]] = {
    "ours, torch": ((), "fp32", lambda f: ours(f, "torch", "fp32")),
    "ours, onnx": (("onnxruntime",), "fp32", lambda f: ours(f, "onnx", "fp32")),
    "ours, openvino": (("openvino",), "fp32", lambda f: ours(f, "openvino", "fp32")),
    "ours, torch int8": ((), "int8", lambda f: ours(f, "torch", "int8")),
    "ours, onnx int8": (("onnxruntime",), "int8", lambda f: ours(f, "onnx", "int8")),
    "ours, openvino int8": (("openvino",), "int8", lambda f: ours(f, "openvino", "int8")),
    "transformers": (("transformers",), "fp32", lambda f: transformers_model(f)),
    "transformers, compiled": (("transformers",), "fp32", lambda f: transformers_model(f, compiled=True)),
    "transformers, dynamic int8": (("transformers",), "int8", lambda f: transformers_model(f, int8=True)),
    "ONNX Runtime, whole graph": (("onnxruntime",), "fp32", lambda f: onnx_whole(f, int8=False)),
    "ONNX Runtime, whole graph int8": (("onnxruntime",), "int8", lambda f: onnx_whole(f, int8=True)),
    "OpenVINO, whole graph": (("openvino",), "fp32", lambda f: openvino_whole(f, int8=False)),
    "OpenVINO, NNCF int8": (("openvino", "nncf"), "int8", lambda f: openvino_whole(f, int8=True)),
}


def seconds(run: Classify, texts: Texts) -> float:
    started = time.perf_counter()
    run(texts)
    return time.perf_counter() - started


def load_alone(name: str, folder: Path) -> dict[str, float]:
    """Open a contender in a process of its own and run one text; give seconds and megabytes."""
    words = [sys.executable, __file__, "--alone", name, "--folder", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[-500:]}")
    facts: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return facts


def alone(name: str, folder: Path) -> None:
    started = time.perf_counter()
    run = CONTENDERS[name][2](folder)
    run([[2, 5, 6, 7, 3]])
    taken = time.perf_counter() - started
    print(json.dumps({"load s": taken, "memory MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def measure(
    shape: str, kind: str, *, texts: int, rounds: int, folder: Path, only: Sequence[str]
) -> list[dict[str, Any]]:
    """Run all contenders on the lengths of a data set."""
    from bench_model import lengths_of  # here: it loads transformers, which a contender's own process must not

    config, rng = shape_of(shape), np.random.default_rng(0)
    if not (folder / "config.json").exists():
        save_model(new_model(config, ("classifier",), seed=0), folder)
    lengths = lengths_of(kind, texts)[:texts]
    unsorted = [rng.integers(5, config.vocab_size, length).tolist() for length in lengths]
    by_length = sorted(unsorted, key=len)
    asked = {name: own for name, own in CONTENDERS.items() if not only or any(part in name for part in only)}
    found = {name: own for name, own in asked.items() if all(find_spec(package) for package in own[0])}
    for name in asked.keys() - found.keys():
        print(f"left out: {name} needs {', '.join(CONTENDERS[name][0])}")
    runs = {name: own[2](folder) for name, own in found.items()}
    times: dict[str, dict[str, list[float]]] = {name: {"sorted": [], "unsorted": [], "single": []} for name in runs}
    for run in runs.values():
        run(unsorted[: 2 * PADDED])  # warm
    for _ in range(rounds):
        for name, run in runs.items():
            times[name]["sorted"].append(seconds(run, by_length))
            times[name]["unsorted"].append(seconds(run, unsorted))
            times[name]["single"] += [seconds(run, [text]) for text in unsorted[:SINGLES]]
    rows = []
    for name, own in times.items():
        facts = load_alone(name, folder)
        rows.append(
            {
                "shape": shape,
                "texts": f"{kind}, {np.mean(lengths):.0f} tokens",
                "contender": name,
                "precision": found[name][1],
                "texts/s sorted": f"{len(unsorted) / median(own['sorted']):.1f}",
                "texts/s unsorted": f"{len(unsorted) / median(own['unsorted']):.1f}",
                "single ms": f"{1000 * median(own['single']):.2f}",
                "p95 ms": f"{1000 * float(np.quantile(own['single'], 0.95)):.2f}",
                **{key: f"{value:.1f}" for key, value in facts.items()},
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--shape", choices=["base", "tiny-en"], action="append")
    parser.add_argument("--kind", choices=["MNLI", "SST-2", "SQuAD"], action="append")
    parser.add_argument("--only", action="append", help="contenders whose name has this in it")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(count_threads())
    if options.alone:
        alone(options.alone, options.folder)
        return
    keep_memory()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="albert-bench-") as scratch:
        for shape in options.shape or ["base", "tiny-en"]:
            for kind in options.kind or ["MNLI", "SST-2", "SQuAD"]:
                folder = Path(scratch) / shape
                own = measure(
                    shape, kind, texts=options.texts, rounds=options.rounds, folder=folder, only=options.only or []
                )
                print_table(own)
                rows += own
    if options.record:
        record("inference", rows, title="Inference against the peers", threads=count_threads())


if __name__ == "__main__":
    main()
