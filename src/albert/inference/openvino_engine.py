"""The engine that is OpenVINO (extra `openvino`); it reads the graphs that ONNX Runtime runs."""

from __future__ import annotations

import openvino

from albert.errors import UsageError
from albert.inference.layer_engine import Compiled, Feeds, Floats, LayerEngine
from albert.inference.layer_graph import Blocks, layer_graph
from albert.model.encoder import Attention, FeedForward

GROUPS = (128, 64, 32)  # activations that share a scale in int8: the largest is the fastest


def int8_group(attention: Attention, ffn: FeedForward) -> int:
    """Return how many activations of a token share a scale; 0 where the sizes allow none: weights alone are int8."""
    sizes = (attention.query.in_features, ffn.down.in_features)
    return next((group for group in GROUPS if all(size % group == 0 for size in sizes)), 0)


class OpenVinoEngine(LayerEngine):
    """Layers in OpenVINO."""

    name = "openvino"

    def compile(self, blocks: Blocks, *, largest: int, threads: int) -> Compiled:
        int8, core = self.precision == "int8", openvino.Core()
        if self.precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise UsageError("precision bf16: OpenVINO has none on this CPU: use fp32, or int8")
        graph = layer_graph(blocks, int8="weights" if int8 else None, largest=largest)
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if self.precision == "bf16" else "f32",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": int8_group(*blocks[0]) if int8 else 0,
        }
        compiled = core.compile_model(core.read_model(graph), "CPU", settings)
        request, names = compiled.create_infer_request(), [port.any_name for port in compiled.inputs]

        def run(feeds: Feeds) -> Floats:
            # an input that no layer reads (`back`, of a single layer) is none of OpenVINO's
            out: Floats = request.infer({name: feeds[name] for name in names}, share_inputs=True)[0]
            return out

        return run
