"""ONNX graphs of a model's parts, node by node: what ONNX Runtime and OpenVINO run, and what is exported.

Written by hand rather than traced: a layer is thirty nodes, they are there in milliseconds, a weight that is used L
times is stored once, and int8 is where `inference/int8.py` says. Linear layers take tokens in any leading shape; how
tokens attend to each other the caller says. Knows nothing of engines and files.

Legend: H hidden, N heads, D head size, `…` any leading dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from albert.inference.int8 import EXPORTED, Form, quantise
from albert.model.config import Activation
from albert.model.encoder import Attention, FeedForward

OPSET = 20  # the first with Gelu
KINDS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}

Shape = Sequence[int | str]


class Graph:
    """A graph that grows; values and weights are known by their names."""

    def __init__(self, *, int8: Form | None = None, kept: Collection[str] = (), largest: int = 127) -> None:
        """Begin a graph; in int8, matrices whose last name is `kept` stay in fp32."""
        self.int8, self._kept, self._largest = int8, kept, largest
        self._nodes: list[Any] = []
        self._weights: dict[str, Any] = {}
        self._inputs: list[Any] = []
        self._rows: dict[str, tuple[str, str]] = {}  # activations in int8, and their scales
        self._floats: dict[str, str] = {}  # weights of which the runtime makes floats

    def input(self, name: str, kind: str, shape: Shape) -> str:
        """Add an input."""
        self._inputs.append(helper.make_tensor_value_info(name, KINDS[kind], shape))
        return name

    def add(self, op: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        output = name or f"{op}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [output], name=f"node_{len(self._nodes)}", **attributes))
        return output

    def split(self, x: str, count: int) -> list[str]:
        """Divide the last dimension into equal parts."""
        name = f"Split_{len(self._nodes)}"
        outputs = [f"{name}_{part}" for part in range(count)]
        self._nodes.append(helper.make_node("Split", [x], outputs, name=name, axis=-1, num_outputs=count))
        return outputs

    def named(self, value: str, name: str) -> str:
        """Give a value another name: an output's, which readers must find without a second one beside it."""
        for node in self._nodes:
            for names in (node.input, node.output):
                for place, own in enumerate(names):
                    if own == value:
                        names[place] = name
        return name

    def weight(self, name: str, values: np.ndarray | Tensor) -> str:
        """Add a weight, once; return its name."""
        if name not in self._weights:
            array = values.detach().float().numpy() if isinstance(values, Tensor) else values
            self._weights[name] = numpy_helper.from_array(np.require(array, requirements="C"), name)
        return name

    def constant(self, *values: float, kind: str = "int64", scalar: bool = False) -> str:
        """Add a small constant: a number in float32, a list or a number in int64."""
        scalar = scalar or kind == "float32"
        array = np.array(values[0] if scalar else values, dtype=kind)
        return self.weight(f"{kind}_{'scalar_' if scalar else ''}{'_'.join(map(str, values))}", array)

    def is_small(self, name: str) -> bool:
        """Tell whether a matrix is stored in int8."""
        matrix = name.rpartition(".")[2]
        return self.int8 is not None and matrix in EXPORTED and matrix not in self._kept

    def table(self, ids: str, name: str, module: nn.Embedding) -> str:
        """Add the rows of an embedding: […] → […, E]."""
        if not self.is_small(name):
            return self.add("Gather", self.weight(f"{name}.weight", module.weight), ids)
        weight, scale = self._small(name, module)
        rows = self.add("Cast", self.add("Gather", weight, ids), to=TensorProto.FLOAT)
        scales = self.add("Gather", scale, ids)
        return self.add("Mul", rows, self.add("Unsqueeze", scales, self.constant(-1)))

    def whole_table(self, name: str, module: nn.Embedding) -> str:
        """Return an embedding as a matrix for a product: [E, rows]; stored once, also where its rows are used too."""
        if not self.is_small(name):
            return self.add("Transpose", self.weight(f"{name}.weight", module.weight), perm=[1, 0])
        weight, scale = self._small(name, module)
        floats = self.add("Transpose", self.add("Cast", weight, to=TensorProto.FLOAT), perm=[1, 0])
        return self.add("Mul", floats, scale)

    def linear(self, x: str, name: str, module: nn.Linear) -> str:
        """Add a linear layer: […, in] → […, out]."""
        if not self.is_small(name):
            product = self.add("MatMul", x, self.weight(f"{name}.weight", module.weight.T))
        else:
            product = self._int8_product(x, name, module)
        return self.add("Add", product, self.weight(f"{name}.bias", module.bias))

    def norm(self, x: str, name: str, module: nn.LayerNorm) -> str:
        """Add a LayerNorm."""
        parts = (self.weight(f"{name}.{part}", getattr(module, part)) for part in ("weight", "bias"))
        return self.add("LayerNormalization", x, *parts, axis=-1, epsilon=module.eps)

    def activate(self, x: str, activation: Activation) -> str:
        """Add the non-linearity."""
        match activation:
            case "gelu_new":
                return self.add("Gelu", x, approximate="tanh")
            case "gelu":
                return self.add("Gelu", x)
            case "relu":
                return self.add("Relu", x)

    def layer(
        self,
        x: str,
        attention: Attention,
        ffn: FeedForward,
        *,
        names: tuple[str, str],
        mix: Callable[[str, str, str], str],
        joined: nn.Linear | None = None,
        asking: str | None = None,
    ) -> str:
        """Add a layer; `mix` is attention between query, key and value, `asking` the tokens that are gone on with.

        `joined` stands for query, key and value as one matrix: fewer products, which counts for a short text.
        """
        asking = asking or x
        if joined is None:
            parts = ("query", "key", "value")
            query, key, value = (self.linear(x, f"{names[0]}.{part}", getattr(attention, part)) for part in parts)
        else:
            query, key, value = self.split(self.linear(x, f"{names[0]}.query", joined), 3)
        mixed = self.linear(mix(query, key, value), f"{names[0]}.output", attention.output)
        assert attention.norm is not None
        assert ffn.norm is not None
        states = self.norm(self.add("Add", asking, mixed), f"{names[0]}.norm", attention.norm)
        assert ffn.activation is not None, "the model's own layers, not packed ones"
        inner = self.activate(self.linear(states, f"{names[1]}.up", ffn.up), ffn.activation)
        down = self.linear(inner, f"{names[1]}.down", ffn.down)
        return self.norm(self.add("Add", states, down), f"{names[1]}.norm", ffn.norm)

    def attend(self, query: str, key: str, value: str, bias: str, *, num_heads: int, width: int) -> str:
        """Add attention over rows [B, S, H] with a bias [B, 1, 1, S] on the keys."""
        shape = self.constant(0, 0, num_heads, width // num_heads)
        q, v = (
            self.add("Transpose", self.add("Reshape", x, shape), perm=[0, 2, 1, 3]) for x in (query, value)
        )  # [B, N, S, D]
        k = self.add("Transpose", self.add("Reshape", key, shape), perm=[0, 2, 3, 1])  # [B, N, D, S]
        scale = self.constant(float((width // num_heads) ** -0.5), kind="float32")
        scores = self.add("Add", self.add("MatMul", self.add("Mul", q, scale), k), bias)
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        return self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), self.constant(0, 0, width))

    def build(self, outputs: Mapping[str, Shape]) -> onnx.ModelProto:
        """Return the graph as a model."""
        found = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
        graph = helper.make_graph(self._nodes, "albert", self._inputs, found, list(self._weights.values()))
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9, producer_name="albert-lite"
        )

    def _small(self, name: str, module: nn.Embedding) -> tuple[str, str]:
        values, scales = quantise(module.weight.detach().float().numpy(), largest=127)  # not multiplied: full range
        return self.weight(f"{name}.weight_int8", values), self.weight(f"{name}.scale", scales)

    def _int8_product(self, x: str, name: str, module: nn.Linear) -> str:
        values, scales = quantise(module.weight.detach().float().numpy(), largest=self._largest)
        weight, scale = self.weight(f"{name}.weight_int8", values.T), self.weight(f"{name}.scale", scales)
        if self.int8 == "weights":
            if name not in self._floats:  # once, however often it is used
                self._floats[name] = self.add("DequantizeLinear", weight, scale, axis=1)
            return self.add("MatMul", x, self._floats[name])
        small, own = self._scaled(x)
        product = self.add("MatMulInteger", small, weight, self.weight("uint8_128", np.array(128, dtype=np.uint8)))
        floats = self.add("Cast", product, to=TensorProto.FLOAT)
        return self.add("Mul", self.add("Mul", floats, scale), own)

    def _scaled(self, x: str) -> tuple[str, str]:
        """Add what scales each token to [1, 255]: once for all matrices that read it."""
        if x not in self._rows:
            largest = self.add("ReduceMax", self.add("Abs", x), self.constant(-1), keepdims=1)
            scale = self.add(
                "Mul",
                self.add("Max", largest, self.constant(1e-12, kind="float32")),
                self.constant(1 / 127, kind="float32"),
            )
            shifted = self.add("Add", self.add("Div", x, scale), self.constant(128.5, kind="float32"))
            self._rows[x] = (self.add("Cast", shifted, to=TensorProto.UINT8), scale)
        return self._rows[x]
