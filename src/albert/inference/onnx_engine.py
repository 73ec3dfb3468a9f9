"""The engine that is ONNX Runtime (extra `onnx`)."""

from __future__ import annotations

import onnxruntime

from albert.errors import UsageError
from albert.inference.layer_engine import Compiled, Feeds, Floats, LayerEngine
from albert.inference.layer_graph import Blocks, layer_graph


class OnnxEngine(LayerEngine):
    """Layers in ONNX Runtime."""

    name = "onnx"

    def compile(self, blocks: Blocks, *, largest: int, threads: int) -> Compiled:
        if self.precision == "bf16":
            raise UsageError(
                "precision bf16: ONNX Runtime has none on a CPU: use the engine torch or openvino, or int8"
            )
        graph = layer_graph(blocks, int8="rows" if self.precision == "int8" else None, largest=largest)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        options.enable_mem_pattern = False  # a plan kept for every shape
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

        def run(feeds: Feeds) -> Floats:
            out: Floats = session.run(["out"], feeds)[0]
            return out

        return run
