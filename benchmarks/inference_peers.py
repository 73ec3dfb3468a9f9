"""What bench_inference.py compares: ours in every engine and precision, and the peers, each at its best.

Every contender takes texts as token ids and classifies them. Peers take batches of 16 padded texts in the order given;
ours sorts a window by itself, as `albert predict` does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from albert.model import AlbertConfig, preset  # first: it sets the CPU up

import numpy as np  # isort: skip
import torch  # isort: skip

from albert.hardware import count_threads
from albert.inference.choose_engine import open_engine
from albert.inference.early_exit import EarlyExitEngine, ExitRule
from albert.inference.int8 import SAFE
from albert.inference.predictor import BATCH_TOKENS, WINDOW, length_batches
from albert.model.folder import load_model
from albert.model.locate import locate
from albert.tasks.task import Feature, batch_of

Texts = Sequence[Sequence[int]]  # token ids
Classify = Callable[[Texts], Any]
PADDED = 16  # texts of a peer's batch
LABELS = ("a", "b", "c")
WANTED = {"classifier": "class"}


def shape_of(name: str) -> AlbertConfig:
    config = preset("base") if name == "base" else load_model(locate("tiny-en")).model.config
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
    options.log_severity_level = 3
    options.intra_op_num_threads = count_threads()
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return in_batches(lambda feeds: session.run(["logits"], feeds))


def openvino_file(folder: Path, *, int8: bool) -> Path:
    import openvino

    path = folder / ("nncf.xml" if int8 else "openvino.xml")
    if path.exists():
        return path
    model = openvino.Core().read_model(onnx_file(folder))
    if int8:
        import logging

        import nncf

        logging.getLogger("nncf").setLevel(logging.ERROR)

        rng = np.random.default_rng(0)
        data = [padded([rng.integers(5, 8000, 32).tolist() for _ in range(4)]) for _ in range(64)]
        model = nncf.quantize(model, nncf.Dataset(data), model_type=nncf.ModelType.TRANSFORMER)
    openvino.save_model(model, path, compress_to_fp16=False)
    return path


def openvino_whole(folder: Path, *, int8: bool = False, precision: str | None = None) -> Classify:
    """Open the whole graph; without a precision OpenVINO chooses it, bf16 where the CPU has that."""
    import openvino

    settings: dict[str, Any] = {"INFERENCE_NUM_THREADS": count_threads(), "PERFORMANCE_HINT": "LATENCY"}
    if precision is not None:
        settings["INFERENCE_PRECISION_HINT"] = precision
    compiled = openvino.Core().compile_model(openvino_file(folder, int8=int8), "CPU", settings)
    request = compiled.create_infer_request()
    return in_batches(lambda feeds: request.infer(feeds, share_inputs=True)[0])


# name: (packages that it needs, precision, how it is opened)
CONTENDERS: dict[str, tuple[tuple[str, ...], str, Callable[[Path], Classify]]] = {
    "ours, torch": ((), "fp32", lambda f: ours(f, "torch", "fp32")),
    "ours, onnx": (("onnxruntime",), "fp32", lambda f: ours(f, "onnx", "fp32")),
    "ours, openvino": (("openvino",), "fp32", lambda f: ours(f, "openvino", "fp32")),
    "ours, torch bf16": ((), "bf16", lambda f: ours(f, "torch", "bf16")),
    "ours, openvino bf16": (("openvino",), "bf16", lambda f: ours(f, "openvino", "bf16")),
    "ours, torch int8": ((), "int8", lambda f: ours(f, "torch", "int8")),
    "ours, onnx int8": (("onnxruntime",), "int8", lambda f: ours(f, "onnx", "int8")),
    "ours, openvino int8": (("openvino",), "int8", lambda f: ours(f, "openvino", "int8")),
    "transformers": (("transformers",), "fp32", lambda f: transformers_model(f)),
    "transformers, compiled": (("transformers",), "fp32", lambda f: transformers_model(f, compiled=True)),
    "transformers, dynamic int8": (("transformers",), "int8", lambda f: transformers_model(f, int8=True)),
    "ONNX Runtime, whole graph": (("onnxruntime",), "fp32", lambda f: onnx_whole(f, int8=False)),
    "ONNX Runtime, whole graph int8": (("onnxruntime",), "int8", lambda f: onnx_whole(f, int8=True)),
    "OpenVINO, whole graph": (("openvino",), "fp32", lambda f: openvino_whole(f, precision="f32")),
    "OpenVINO, whole graph, its default": (("openvino",), "bf16 if there", lambda f: openvino_whole(f)),
    "OpenVINO, NNCF int8": (("openvino", "nncf"), "int8", lambda f: openvino_whole(f, int8=True)),
}


def file_sizes(folder: Path) -> list[dict[str, str]]:
    """Return the megabytes of a model's files, ours and the peers', those that can be written here."""
    from albert.export.whole_graph import whole_graph

    model = load_model(folder).model
    quantised = len(whole_graph(model, int8="rows", largest=SAFE).SerializeToString())
    sizes = {"model.safetensors, fp32": (folder / "model.safetensors").stat().st_size}
    sizes |= {"our ONNX, fp32": onnx_file(folder).stat().st_size, "our ONNX, every matrix int8": quantised}
    names = {"whole_int8.onnx": "ONNX Runtime's quantize_dynamic", "openvino.bin": "OpenVINO, fp32"}
    names |= {"nncf.bin": "NNCF int8"}
    sizes |= {name: (folder / file).stat().st_size for file, name in names.items() if (folder / file).exists()}
    return [{"file": name, "MB": f"{size / 1e6:.2f}"} for name, size in sizes.items()]
