"""The engine that is OpenVINO (extra `openvino`); it reads the graphs that ONNX Runtime runs."""

from __future__ import annotations

import openvino

from albert.errors import UsageError
from albert.inference.layer_engine import Compiled, Feeds, Floats, LayerEngine
from albert.inference.layer_graph import layer_graph
from albert.model.encoder import Attention, FeedForward

GROUPS = (128, 64, 32)  # activations that share a scale in int8: the largest is the fastest


def int8_group(attention: Attention, ffn: FeedForward) -> int:
    """Return how many activations of a token share a scale; 0 where the sizes allow none: weights alone are int8."""
    sizes = (attention.query.in_features, ffn.down.in_features)
    return next((group for group in GROUPS if all(size % group == 0 for size in sizes)), 0)


class OpenVinoEngine(LayerEngine):
    """Layers in OpenVINO."""

    name = "openvino"

    def compile(
        self, attention: Attention, ffn: FeedForward, *, precision: str, largest: int, threads: int
    ) -> Compiled:
        int8, core = precision == "int8", openvino.Core()
        if precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise UsageError("precision bf16: OpenVINO has none on this CPU: use fp32, or int8")
        graph = layer_graph(attention, ffn, int8="weights" if int8 else None, largest=largest)
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": int8_group(attention, ffn) if int8 else 0,
        }
        request = core.compile_model(core.read_model(graph), "CPU", settings).create_infer_request()

        def run(feeds: Feeds) -> Floats:
            out: Floats = request.infer(feeds)[0]
            return out

        return run
