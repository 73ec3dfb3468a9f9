"""ALBERT, whole: from a folder of text to a small encoder in production."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert.finetune import Finetuned
    from albert.inference.model import Model

__version__ = "0.1.0"


def load(
    name: str | Path,
    *,
    device: str | None = None,
    engine: str | None = None,
    precision: str = "fp32",
    early_exit: str | None = None,
) -> Model:
    """Open a model for use: `classify`, `answer`, `choose`, `tag`, `fill`, `embed`, `similarity`, `search`.

    The name is a model folder, a run folder, or a model that comes with the package. Torch is loaded here, not before.
    `engine` is torch, onnx, openvino or auto, the fastest that is installed (the default); `precision` fp32, bf16
    or int8; `early_exit` a rule (patience=3, confidence=0.95) by which texts leave before the last layer.
    """
    from albert.inference.model import load

    return load(name, device=device, engine=engine, precision=precision, early_exit=early_exit)


def tune(
    model: str | Path,
    data: Any,
    out: str | Path,
    *,
    dev: Any = None,
    test: Any = None,
    task: str | None = None,
    columns: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    seeds: int = 1,
    retry: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Finetuned:
    """Tune a model for a task, as `albert finetune` does: run again to resume.

    Data is a path, a list of dicts, or a DataFrame of pandas or polars; task and columns are found in it, or told.
    `settings` have dotted names: `{"train.steps": 500}`. `tell` is given what a user should know, a line at a time.
    """
    from albert.finetune.in_memory import tune

    return tune(
        model,
        data,
        out,
        dev=dev,
        test=test,
        task=task,
        columns=columns,
        settings=settings,
        seeds=seeds,
        retry=retry,
        tell=tell,
    )
