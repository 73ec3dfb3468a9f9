"""The options by which commands choose what runs a model, and how it reads."""

from __future__ import annotations

from typing import Annotated

import typer

EngineOption = Annotated[
    str | None,
    typer.Option("--engine", help="torch, onnx, openvino, or auto: the fastest installed, measured once (default)."),
]
PrecisionOption = Annotated[
    str,
    typer.Option("--precision", help="fp32, bf16 (faster where the CPU has it) or int8 (faster): a little less exact."),
]
LongOption = Annotated[
    str | None, typer.Option("--long", help="Classify a text that is too long by its first window, or the mean of all.")
]
ExitOption = Annotated[
    str | None,
    typer.Option("--exit", help="Let texts leave early: patience=3 or confidence=0.95 (finetune --early-exit)."),
]
