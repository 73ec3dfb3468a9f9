"""The options by which commands choose what runs a model."""

from __future__ import annotations

from typing import Annotated

import typer

EngineOption = Annotated[
    str | None,
    typer.Option("--engine", help="torch, onnx, openvino, or auto: the fastest installed, measured once (default)."),
]
PrecisionOption = Annotated[str, typer.Option("--precision", help="fp32, or int8: faster, a little less exact.")]
