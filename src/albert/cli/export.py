"""`albert export`: parse, call, print."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from albert.cli.progress import progress_line

if TYPE_CHECKING:
    from albert.export.files import Exported, Int8Facts

app = typer.Typer(help="Write a model in other programs' formats. Each export is first run against torch.")

ModelArgument = Annotated[str, typer.Argument(help="A model folder, a run, or a model that comes with the package.")]
OutOption = Annotated[Path, typer.Option(help="The folder to write.")]
Int8Option = Annotated[bool, typer.Option("--int8", help="Write an int8 model beside the fp32 one.")]
CalibrateOption = Annotated[
    Path | None, typer.Option(help="Texts on which the matrices that int8 hurts are found (default: installed prose).")
]
DevOption = Annotated[Path | None, typer.Option(help="Labelled data: the score before and after int8.")]
LossOption = Annotated[float, typer.Option("--allow-loss", min=0.0, help="Points of the score that int8 may lose.")]
Fp32Option = Annotated[bool, typer.Option("--fp32", help="Put the fp32 model on the page, not the int8 one.")]
RuntimeOption = Annotated[
    Path | None, typer.Option(help="A folder with onnxruntime-web, unpacked (default: npm fetches it).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("hf")
def hf(model: ModelArgument, out: OutOption, json_: JsonOption = False) -> None:
    """Write a folder that transformers opens.

    Layers are written out where it can't share them.
    """
    from albert.export.hf import export_hf
    from albert.export.source import open_source

    with progress_line("exporting"):
        exported = export_hf(open_source(model), out)
    _print(exported, json_=json_)


ONNX_HELP = """Write ONNX, as transformers.js and others open it.

The files are onnx/model.onnx, and with --int8 onnx/model_quantized.onnx.
"""
OPENVINO_HELP = """Write OpenVINO's .xml and .bin.

The files are openvino/openvino_model.xml and .bin, and with --int8 openvino_model_qint8_quantized.
"""


@app.command("openvino", help=OPENVINO_HELP)
@app.command("onnx", help=ONNX_HELP)  # the inner one is listed first
def files(
    context: typer.Context,
    model: ModelArgument,
    out: OutOption,
    int8: Int8Option = False,
    calibrate: CalibrateOption = None,
    dev: DevOption = None,
    allow_loss: LossOption = 1.0,
    json_: JsonOption = False,
) -> None:
    """Write a model in the format that the command is named after: both have the same options."""
    from albert.export.files import export_files
    from albert.export.source import open_source

    with progress_line("exporting") as show:
        exported = export_files(
            open_source(model),
            out,
            form="onnx" if context.info_name == "onnx" else "openvino",
            int8=int8,
            calibrate=calibrate,
            dev=dev,
            allowed_loss=allow_loss,
            observe=show,
        )
    _print(exported, json_=json_)


@app.command("web")
def web(
    model: ModelArgument,
    out: OutOption,
    fp32: Fp32Option = False,
    runtime: RuntimeOption = None,
    calibrate: CalibrateOption = None,
    dev: DevOption = None,
    allow_loss: LossOption = 1.0,
    json_: JsonOption = False,
) -> None:
    """Write a page that runs the model in a browser.

    A folder for any file server; the page needs no network.
    """
    from albert.export.source import open_source
    from albert.export.web import export_web

    with progress_line("exporting") as show:
        exported = export_web(
            open_source(model),
            out,
            fp32=fp32,
            runtime=runtime,
            calibrate=calibrate,
            dev=dev,
            allowed_loss=allow_loss,
            observe=show,
        )
    _print(exported, json_=json_)
    if not json_:
        checked = exported.tokenizer_texts
        print(
            "tokenizer in JavaScript: not checked, because node is missing"
            if checked is None
            else f"tokenizer in JavaScript: our ids on {checked} texts"
        )
        print(f"look at it: python -m http.server --bind 127.0.0.1 --directory {out}")


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
