"""`albert export`: parse, call, print."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from albert.cli.progress import progress_line

if TYPE_CHECKING:
    from albert.export.files import Exported, Int8Facts

app = typer.Typer(help="Write a model in other programs' formats; each export is first run against torch.")

ModelArgument = Annotated[str, typer.Argument(help="A model folder, a run, or a model that comes with the package.")]
OutOption = Annotated[Path, typer.Option(help="The folder to write.")]
Int8Option = Annotated[bool, typer.Option("--int8", help="Write an int8 model beside the fp32 one.")]
CalibrateOption = Annotated[
    Path | None, typer.Option(help="Texts on which the matrices that int8 hurts are found (default: installed prose).")
]
DevOption = Annotated[Path | None, typer.Option(help="Labelled data: the score before and after int8.")]
LossOption = Annotated[float, typer.Option("--allow-loss", min=0.0, help="Points of the score that int8 may lose.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("hf")
def hf(model: ModelArgument, out: OutOption, json_: JsonOption = False) -> None:
    """Write a folder that transformers opens, layers written out where it can't share them."""
    from albert.export.hf import export_hf
    from albert.export.source import open_source

    with progress_line("exporting"):
        exported = export_hf(open_source(model), out)
    _print(exported, json_=json_)


@app.command("onnx")
def onnx(
    model: ModelArgument,
    out: OutOption,
    int8: Int8Option = False,
    calibrate: CalibrateOption = None,
    dev: DevOption = None,
    allow_loss: LossOption = 1.0,
    json_: JsonOption = False,
) -> None:
    """Write onnx/model.onnx, and onnx/model_quantized.onnx with --int8, as transformers.js and others open them."""
    _files("onnx", model, out, int8=int8, calibrate=calibrate, dev=dev, allow_loss=allow_loss, json_=json_)


@app.command("openvino")
def openvino(
    model: ModelArgument,
    out: OutOption,
    int8: Int8Option = False,
    calibrate: CalibrateOption = None,
    dev: DevOption = None,
    allow_loss: LossOption = 1.0,
    json_: JsonOption = False,
) -> None:
    """Write openvino/openvino_model.xml and .bin, and with --int8 openvino_model_qint8_quantized."""
    _files("openvino", model, out, int8=int8, calibrate=calibrate, dev=dev, allow_loss=allow_loss, json_=json_)


def _files(
    form: Literal["onnx", "openvino"],
    model: str,
    out: Path,
    *,
    int8: bool,
    calibrate: Path | None,
    dev: Path | None,
    allow_loss: float,
    json_: bool,
) -> None:
    from albert.export.files import export_files
    from albert.export.source import open_source

    with progress_line("exporting") as show:
        exported = export_files(
            open_source(model, vectors=True),
            out,
            form=form,
            int8=int8,
            calibrate=calibrate,
            dev=dev,
            allowed_loss=allow_loss,
            observe=show,
        )
    _print(exported, json_=json_)


def _print(exported: Exported, *, json_: bool) -> None:
    if json_:
        print(json.dumps(asdict(exported), indent=2, default=str))
        return
    for name, size in exported.files.items():
        print(f"{size / 1e6:9.2f} MB  {exported.out / name}")
    print(f"fp32: the same as torch on {exported.texts} texts (largest difference {exported.difference:.1e})")
    if exported.int8 is not None:
        print("\n".join(_int8_lines(exported.int8)))


def _int8_lines(facts: Int8Facts) -> list[str]:
    alone = ", ".join(f"{name} {error:.1%}" for name, error in sorted(facts.alone.items(), key=lambda one: -one[1]))
    lines = [
        f"int8: the answers differ by {facts.error:.1%}; left in fp32: {', '.join(facts.kept) or 'nothing'}",
        f"  each matrix alone: {alone}",
    ]
    if facts.before is not None and facts.after is not None:
        change = facts.after - facts.before
        lines.append(f"  {facts.measure} on dev: {facts.before:.2f} before, {facts.after:.2f} after ({change:+.2f})")
    else:
        lines.append("  not scored: --dev FILE says what it costs")
    return lines
