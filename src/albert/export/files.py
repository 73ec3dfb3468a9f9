"""Exports to ONNX and OpenVINO: build, write, run against torch, and only then let the folder appear.

fp32 must say what torch says within 1e-4. int8 is scored on a dev set where one is given, with the matrices that hurt
left in fp32 (sensitive.py), and refused if it loses more than is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from albert.errors import ModelError, UsageError
from albert.export.check import Recorded, batches_of, largest_difference, real_texts, refuse_difference, relative_error
from albert.export.exported_engine import ExportedEngine, open_onnx, open_openvino
from albert.export.sensitive import Kept, find_sensitive
from albert.export.source import DevScore, Source
from albert.files import atomic_folder
from albert.inference.int8 import FULL, SAFE, Form

Format = Literal["onnx", "openvino"]
FP32_FILE = {"onnx": "onnx/model.onnx", "openvino": "openvino/openvino_model.xml"}
INT8_FILE = {"onnx": "onnx/model_quantized.onnx", "openvino": "openvino/openvino_model_qint8_quantized.xml"}
NEEDS = {"onnx": ("onnx", "onnxruntime"), "openvino": ("onnx", "openvino")}
FORM: dict[str, Form] = {"onnx": "rows", "openvino": "weights"}
HOPELESS = 0.5  # relative error of an int8 model that no dev set was given for


@dataclass(frozen=True)
class Int8Facts:
    """What int8 cost."""

    kept: tuple[str, ...]  # matrices left in fp32
    alone: dict[str, float]  # the error of each matrix alone in int8
    error: float  # of the answers of the file, relative
    measure: str | None = None
    before: float | None = None  # points on dev
    after: float | None = None


@dataclass(frozen=True)
class Exported:
    """What was written: bytes by file, and how it compares with torch."""

    out: Path
    files: dict[str, int]
    texts: int  # that it was run on
    difference: float  # the largest of fp32
    int8: Int8Facts | None = field(default=None)


def refuse_missing(form: Format) -> None:
    """Refuse a format whose packages are not installed."""
    if missing := [package for package in NEEDS[form] if find_spec(package) is None]:
        raise UsageError(f"export {form} needs {', '.join(missing)}: pip install 'albert-lite[{form}]'")


def export_files(
    source: Source,
    out: Path,
    *,
    form: Format,
    int8: bool = False,
    calibrate: Path | None = None,
    dev: Path | None = None,
    allowed_loss: float = 1.0,
    observe: Callable[[float, str], None] = lambda *_: None,
) -> Exported:
    """Export a model with its tokenizer and configuration into a folder."""
    refuse_missing(form)
    if not int8 and (calibrate or dev):
        raise UsageError("--calibrate and --dev are for --int8: add it, or leave them out")
    texts = real_texts(calibrate)
    batches = batches_of(texts, source.tokenizer, longest=source.model.config.max_position_embeddings)
    torch_says = Recorded(source.engine, batches)
    with atomic_folder(out) as folder:
        source.copy_files(folder)
        observe(0.1, "writing fp32")
        engine = _write(source, folder / FP32_FILE[form], form=form)
        difference = largest_difference(engine, torch_says, batches)
        refuse_difference(FP32_FILE[form], difference)
        facts = None
        if int8:
            judged = DevScore(source, dev) if dev is not None else None
            before = judged.of(source.engine) if judged is not None else None
            observe(0.3, "measuring which matrices int8 hurts")
            plain = source.engine
            kept = find_sensitive(
                source.model,
                batches,
                score=(lambda: judged.of(plain)) if judged is not None else None,
                least=(before or 0.0) - allowed_loss,
            )
            observe(0.8, "writing int8")
            engine = _write(source, folder / INT8_FILE[form], form=form, kept=kept)
            error = relative_error(engine, torch_says, batches)
            after = judged.of(engine) if judged is not None else None
            measure = judged.measure if judged is not None else None
            facts = Int8Facts(kept.kept, kept.alone, error, measure, before, after)
            _refuse_loss(facts, allowed_loss)
        sizes = {
            str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()
        }
    return Exported(out, sizes, len(texts), difference, facts)


def _write(source: Source, path: Path, *, form: Format, kept: Kept | None = None) -> ExportedEngine:
    """Write one file and open it again."""
    from albert.export.whole_graph import whole_graph

    model = source.model
    largest = SAFE if form == "onnx" else FULL  # OpenVINO multiplies int8 only where it has VNNI
    graph = whole_graph(
        model,
        int8=FORM[form] if kept is not None else None,
        kept=kept.kept if kept is not None else (),
        largest=largest,
    )
    path.parent.mkdir(exist_ok=True)
    if form == "onnx":
        path.write_bytes(graph.SerializeToString())
        return open_onnx(path, model.config, list(model.heads))
    _save_openvino(graph, path, source, int8=kept is not None)
    return open_openvino(path, model.config, list(model.heads))


def _save_openvino(graph: Any, path: Path, source: Source, *, int8: bool) -> None:
    import openvino

    from albert.inference.openvino_engine import int8_group

    model = openvino.Core().read_model(graph.SerializeToString())
    if int8:
        attention, ffn, _ = source.model.encoder.steps()[0]
        group = int8_group(attention, ffn)  # type: ignore[arg-type]
        model.set_rt_info(str(group), ["runtime_options", "DYNAMIC_QUANTIZATION_GROUP_SIZE"])
    openvino.save_model(model, path, compress_to_fp16=False)


def _refuse_loss(facts: Int8Facts, allowed: float) -> None:
    if facts.before is not None and facts.after is not None and facts.before - facts.after > allowed:
        raise ModelError(
            f"int8 loses {facts.before - facts.after:.2f} points of {facts.measure} on dev ({facts.before:.2f} to "
            f"{facts.after:.2f}), more than {allowed:g}: nothing was written; export fp32, or allow more (--allow-loss)"
        )
    if facts.before is None and not facts.error <= HOPELESS:
        raise ModelError(
            f"int8 changes what the model says by {facts.error:.0%}: nothing was written; give --dev to find out what "
            "it costs, or export fp32"
        )
