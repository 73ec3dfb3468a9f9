"""A whole model as one ONNX graph with the inputs and outputs of transformers' exports.

`input_ids`, `attention_mask` and `token_type_ids`, [batch, sequence], padded; for choices [batch, choices, sequence].
Outputs are named as transformers names them. A weight is stored once, however many layers use it. Legend: H hidden,
b batch, s sequence.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx
from torch import nn

from albert.errors import UsageError
from albert.export.exported_engine import STATES_OUTPUT
from albert.inference.int8 import Form
from albert.inference.onnx_graph import Graph, Shape
from albert.model import HEADS, Albert
from albert.model.encoder import Attention, FeedForward
from albert.model.heads import MaskedLMHead, OrderHead, PooledHead, SpanHead, TagHead

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
WITHOUT = "conditional_span"


def whole_graph(
    model: Albert, *, int8: Form | None = None, kept: Collection[str] = (), largest: int = 127
) -> onnx.ModelProto:
    """Return the graph of a model with its heads; `kept` matrices stay in fp32."""
    if WITHOUT in model.heads:
        raise UsageError(f"the head {WITHOUT} is a search, not a graph: tune with the plain span head to export")
    if model.config.is_relaxed:
        raise UsageError("norm_per_depth and adapter_rank: export it with `albert export hf` first, then that folder")
    graph = Graph(int8=int8, kept=kept, largest=largest)
    choices = ["choices"] if "choice" in model.heads else []
    ids, mask, types = (graph.input(name, "int64", ["batch", *choices, "sequence"]) for name in INPUTS)
    if choices:
        ids, mask, types = (graph.add("Flatten", x, axis=2) for x in (ids, mask, types))
    states = _encode(graph, model, ids, mask, types)
    return graph.build(_outputs(graph, model, states, choices=bool(choices), ids=INPUTS[0]))


def _encode(graph: Graph, model: Albert, ids: str, mask: str, types: str) -> str:
    """Add embedding and layers: [b, s] → [b, s, H]."""
    encoder, config = model.encoder, model.config
    tables = encoder.embeddings
    word = graph.table(ids, "encoder.embeddings.word", tables.word)
    segment = graph.table(types, "encoder.embeddings.segment", tables.segment)
    positions = graph.weight("encoder.embeddings.position.weight", tables.position.weight)
    length = graph.add("Shape", ids, start=1, end=2)
    # a slice, not rows by their numbers: ONNX Runtime would make a faulty slice of those
    position = graph.add("Slice", positions, graph.constant(0), length, graph.constant(0))  # [s, E]
    x = graph.norm(graph.add("Add", graph.add("Add", word, segment), position), "encoder.embeddings.norm", tables.norm)
    if encoder.projection is not None:
        x = graph.linear(x, "encoder.projection", encoder.projection)
    seen = graph.add("Cast", mask, to=onnx.TensorProto.FLOAT)
    hidden = graph.add("Sub", graph.constant(1.0, kind="float32"), seen)
    bias = graph.add("Unsqueeze", graph.add("Mul", hidden, graph.constant(-1e4, kind="float32")), graph.constant(1, 2))
    names = {id(block): f"encoder.attention.{i}" for i, block in enumerate(encoder.attention)}
    names |= {id(block): f"encoder.ffn.{i}" for i, block in enumerate(encoder.ffn)}

    def mix(query: str, key: str, value: str) -> str:
        heads, width = config.num_attention_heads, config.hidden_size
        return graph.attend(query, key, value, bias, num_heads=heads, width=width)

    for attention, ffn, _ in encoder.steps():
        assert isinstance(attention, Attention)
        assert isinstance(ffn, FeedForward)
        x = graph.layer(x, attention, ffn, names=(names[id(attention)], names[id(ffn)]), mix=mix)
    return x


def _outputs(graph: Graph, model: Albert, states: str, *, choices: bool, ids: str) -> dict[str, Shape]:
    """Add pooler and heads; return the outputs with their shapes."""
    config, every = model.config, ["batch", "sequence"]
    pooled = ""
    if model.encoder.pooler is not None and (not model.heads or any(HEADS[head].pooled for head in model.heads)):
        first = graph.add("Gather", states, graph.constant(0, scalar=True), axis=1)  # [b, H]
        pooled = graph.add("Tanh", graph.linear(first, "encoder.pooler", model.encoder.pooler))
    found: dict[str, Shape] = {}
    for name, head in model.heads.items():
        match head:
            case MaskedLMHead():
                x = graph.activate(graph.linear(states, "heads.mlm.dense", head.dense), head.activation)
                x = graph.norm(x, "heads.mlm.norm", head.norm)
                words = graph.whole_table("encoder.embeddings.word", model.encoder.embeddings.word)
                x = graph.add("Add", graph.add("MatMul", x, words), graph.weight("heads.mlm.bias", head.bias))
                found[graph.named(x, "logits")] = [*every, config.vocab_size]
            case OrderHead():
                found[_linear(graph, pooled, name, head, output="sop_logits")] = ["batch", 2]
            case SpanHead():
                # two products, not one that is divided: ONNX Runtime's fusion of the parts mixes them up
                for row, output in enumerate(("start_logits", "end_logits")):
                    weight = graph.weight(f"heads.span.weight.{row}", head.weight[row])
                    bias = graph.weight(f"heads.span.bias.{row}", head.bias[row])
                    found[graph.add("Add", graph.add("MatMul", states, weight), bias, name=output)] = every
            case TagHead():
                found[_linear(graph, states, name, head.linear, output="logits")] = [*every, len(config.labels)]
            case PooledHead() if choices:
                logits = graph.linear(pooled, f"heads.{name}.linear", head.linear)  # [b * choices, 1]
                shape = graph.add("Shape", ids, start=0, end=2)
                found[graph.add("Reshape", logits, shape, name="logits")] = ["batch", "choices"]
            case PooledHead():
                found[_linear(graph, pooled, name, head.linear, output="logits")] = ["batch", len(config.labels)]
    if not found:
        found[graph.named(states, STATES_OUTPUT)] = [*every, config.hidden_size]
        if pooled:
            found[graph.named(pooled, "pooler_output")] = ["batch", config.hidden_size]
    return found


def _linear(graph: Graph, x: str, head: str, linear: nn.Linear, *, output: str) -> str:
    return graph.named(graph.linear(x, f"heads.{head}.linear", linear), output)
