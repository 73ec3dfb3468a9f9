"""An exported graph as an engine: so that it is checked and scored by the one predictor.

Pads as other programs do. Knows the inputs and outputs of `whole_graph`, and not which runtime runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from albert.batch import STATES, Batch, Positions, Said, Wanted
from albert.errors import ModelError
from albert.hardware import count_threads
from albert.model.config import AlbertConfig

Run = Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]]  # inputs and outputs by name
STATES_OUTPUT = "last_hidden_state"
OUTPUTS = {STATES: STATES_OUTPUT, "order": "sop_logits"}  # others are `logits`, the span's are two


class ExportedEngine:
    """A graph that is ready to run."""

    name = "export"

    def __init__(self, run: Run, config: AlbertConfig, heads: Sequence[str]) -> None:
        self._run, self.config, self.heads = run, config, tuple(heads)

    def run(self, batch: Batch, wanted: Wanted) -> list[Said]:
        """Return what the wanted heads say of each text."""
        longest = int(batch.lengths.max())
        seen = np.arange(longest) < batch.lengths[:, None]  # [B, S]
        feeds = {"attention_mask": seen.astype(np.int64)}
        for name, packed in (("input_ids", batch.token_ids), ("token_type_ids", batch.segment_ids)):
            feeds[name] = np.zeros(seen.shape, dtype=np.int64)
            feeds[name][seen] = packed
        if "choice" in self.heads:
            feeds = {name: values[:, None] for name, values in feeds.items()}
        outputs = self._run(feeds)
        return [
            {head: (_rows(self._values(head, outputs), text, where, batch),) for head, where in wanted.items()}
            for text in range(len(batch.lengths))
        ]

    @staticmethod
    def _values(head: str, outputs: Mapping[str, np.ndarray]) -> np.ndarray:
        if head == "span":
            return np.stack([outputs["start_logits"], outputs["end_logits"]], axis=-1)
        return outputs[OUTPUTS.get(head, "logits")]


def _rows(values: np.ndarray, text: int, where: Positions, batch: Batch) -> np.ndarray:
    """Return what a head says of one text: [B, …] or [B, S, …] at the positions that are wanted."""
    own = values[text]
    if own.ndim == 1:
        return own
    if isinstance(where, str):
        return own[: 1 if where == "class" else int(batch.lengths[text])]
    return own[list(where[text])]


def open_onnx(path: Path, config: AlbertConfig, heads: Sequence[str]) -> ExportedEngine:
    """Open an exported ONNX file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = count_threads(), 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # the runtime's own classes differ by version
        raise ModelError(f"{path}: ONNX Runtime can't open it: {problem}") from problem
    names = [output.name for output in session.get_outputs()]
    return ExportedEngine(lambda feeds: dict(zip(names, session.run(names, feeds), strict=True)), config, heads)


def open_openvino(path: Path, config: AlbertConfig, heads: Sequence[str]) -> ExportedEngine:
    """Open an exported OpenVINO model."""
    import openvino

    settings = {"INFERENCE_NUM_THREADS": count_threads(), "INFERENCE_PRECISION_HINT": "f32"}
    try:
        compiled = openvino.Core().compile_model(path, "CPU", settings)
    except Exception as problem:
        raise ModelError(f"{path}: OpenVINO can't open it: {problem}") from problem
    request = compiled.create_infer_request()

    def run(feeds: dict[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        found = request.infer(feeds)
        return {name: found[output] for output in compiled.outputs for name in output.get_names()}

    return ExportedEngine(run, config, heads)
